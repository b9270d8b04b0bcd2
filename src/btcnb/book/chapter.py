"""The opening of a chapter: the card with goals and times, the *Re-run me* box, and whose data the page shows.

A code cell whose first line is `# needs: truth` (or `transactions`, `labels`, `simulated`, several with commas) is run
only where the data has that. Elsewhere numbers that text cites become dashes, tables and figures are left out, claims
that the cell would have judged *cannot be tested here*, and a first look says nothing.
"""

from __future__ import annotations

import ast
import csv
import html
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from IPython.core.getipython import get_ipython

from btcnb.book.figures import plot_style
from btcnb.book.judging import Look, first_look
from btcnb.book.page import (
    UNTESTED,
    Verdict,
    code,
    escape,
    glue,
    leave_out,
    pipe_table,
    record,
    show,
    verdicts,
)
from btcnb.book.parameters import Parameter, chapter_parameters, check_run, read_parameters
from btcnb.errors import DataError, ParameterError, without_credentials
from btcnb.store.reads import ROOT

if TYPE_CHECKING:
    from btcnb.data import Source

PROJECT = ROOT
OF_OWN_DATA = ("source", "intervals", "price_usd")
"""Parameters that change nothing, or everything, unless one brings data of one's own."""
LONGEST = 88  # characters of a command that fit the column of a laptop's screen
WORDS_PER_MINUTE = 180  # technical prose with formulas, read slowly
FACTS = {
    "truth": "the true owners of the addresses",
    "labels": "publicly labelled addresses",
    "transactions": "the transactions behind the graph",
    "simulated": "the simulated economies of this book",
}
"""What a cell can need, and how pages call it."""
_NEEDS = re.compile(r"#\s*needs:\s*(.+)")


def open_chapter(name: str, learn: Sequence[str], prerequisites: Sequence[str]) -> None:
    """Check the chapter's parameters, draw its card and the *Re-run me* box, and set the style of its figures.

    Reading time is counted from the chapter's own words; running times come from `results/chapter_times.csv`; the
    parameters, their types, ranges, defaults and meaning from the chapter's parameters cell. Nothing is typed twice.
    Raises `ParameterError` for a value of the wrong type or out of range, and for one that papermill has set and the
    chapter does not know.
    """
    notebook = PROJECT / "notebooks" / f"{name}.ipynb"
    declared = parameters(notebook)
    shell = get_ipython()
    if shell is not None:
        text, given = _injected(shell.user_ns.get("In", []))
        check_run(name, declared if text is None else read_parameters(name, text), shell.user_ns, given)
    plot_style()
    times = _times(name, notebook)
    goals, before = ("\n".join(f"- {line}" for line in lines) for lines in (learn, prerequisites or ["none"]))
    card = (
        "::::::{grid} 1 1 2 2\n:class-container: chapter-card\n\n"
        f":::::{{grid-item-card}} What you will learn\n{goals}\n:::::\n\n"
        f":::::{{grid-item-card}} Before you start\n{before}\n\n::::{{card-footer}}\n{times}\n::::\n:::::\n::::::\n"
    )
    fallback = "".join(
        f"<p><b>{title}</b></p><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
        for title, lines in (("What you will learn", learn), ("Before you start", prerequisites))
    )
    show(f"{card}\n{_rerun_box(name, declared)}", f"{fallback}<p>{html.escape(times)}</p>")


def parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters of a chapter's notebook, by name."""
    return chapter_parameters(notebook.stem, nbformat.read(notebook, as_version=4)) if notebook.exists() else {}


def _injected(history: Sequence[str]) -> tuple[str | None, list[str]]:
    """The parameters cell as it ran and the names that papermill has set after it; (None, []) if it has set none.

    papermill's cell starts with the comment `# Parameters` and stands below the chapter's own, or first of all cells.
    """
    for position in range(len(history) - 1, 0, -1):
        if history[position].startswith("# Parameters\n"):
            assigned = [node for node in ast.parse(history[position]).body if isinstance(node, ast.Assign)]
            names = [target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)]
            return history[position - 1], names
    return None, []


def _times(name: str, notebook: Path) -> str:
    """Minutes to read the chapter's text, by its number of words, and the recorded times to run it."""
    reading = ""
    if notebook.exists():
        cells = nbformat.read(notebook, as_version=4).cells
        words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
        reading = f"{max(1, math.ceil(words / WORDS_PER_MINUTE))} min to read"
    measured = [
        (f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min") + f" ({code(preset)})"
        for (chapter, preset), seconds in recorded_times(PROJECT / "results" / "chapter_times.csv").items()
        if chapter == name
    ]
    running = "to run on two cores: " + ", ".join(measured) if measured else "running time not measured yet"
    return f"{reading}; {running}"


def recorded_times(path: Path) -> dict[tuple[str, str], float]:
    """Seconds by chapter and preset, as `btcnb build --record-times` has written them."""
    if not path.exists():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {(row["chapter"], row["preset"]): float(row["seconds"]) for row in csv.DictReader(file)}
    except (KeyError, TypeError, ValueError, csv.Error):
        raise DataError(path, "running times", "cannot be read", "delete it, or take it from the repository") from None


def _rerun_box(name: str, entries: Mapping[str, Parameter]) -> str:
    rows = [[code(e.name), e.annotation, code(repr(e.default)), str(e.range), e.meaning] for e in entries.values()]
    table = pipe_table(["parameter", "type", "default", "range", "meaning"], rows) if rows else ""
    command = f".venv/bin/papermill notebooks/{name}.ipynb runs/{name}.ipynb{_example(entries)}"
    if len(command) > LONGEST:
        command = command.replace(" runs/", " \\\n  runs/", 1)
    opening = "::::::{admonition} Re-run me\n:class: tip dropdown rerun\n\n"
    return f"{opening}```bash\n{command}\n```\n\n{table}\n::::::\n"


def _example(entries: Mapping[str, Parameter]) -> str:
    """An option that changes something: another seed, or else the first parameter that has another value."""
    for entry in sorted(entries.values(), key=lambda entry: (not entry.is_seed, entry.name in OF_OWN_DATA)):
        if (value := entry.another_value()) != entry.default:
            return f" -p {entry.name} {shlex.quote(str(value))}"
    return ""


# Whose data the page shows, and the cells that need what it lacks


def whose(data: Source, besides: str = "") -> None:
    """Say in the title block whose data the page shows, and from here on skip cells that need what it lacks.

    besides: what else the page shows, whoever's data it is run on
    """
    record("whose", source=data.words, simulated=data.simulated)
    missing = [what for what in FACTS if what != "simulated" and not data.has(what)]
    if data.simulated:
        text = f"{'The' if besides else 'All'} data on this page is **simulated**: {data.words}."
    else:
        text = f"The data on this page is somebody's own: {escape(without_credentials(data.words))}."
        text += " " + " ".join(f"It does not tell {FACTS[what]}." for what in missing) if missing else ""
    text += f" Beside it stand {besides}." if besides else ""
    show(f":::{{admonition}} Whose data\n:class: note whose\n\n{text}\n:::\n", f"<p>{text}</p>")
    skip_where(lambda what: not data.has(what))


def skip_where(lacks: Callable[[str], bool]) -> None:
    """Run every later cell of this notebook through `rewritten`."""
    shell = get_ipython()
    if shell is None:  # a script that was made of the notebook: nothing to skip by
        return
    transformers = shell.input_transformers_cleanup
    transformers[:] = [item for item in transformers if getattr(item, "__name__", "") != "skip_needy_cells"]

    def skip_needy_cells(lines: list[str]) -> list[str]:
        return rewritten("".join(lines), lacks).splitlines(keepends=True)

    transformers.append(skip_needy_cells)


def rewritten(cell: str, lacks: Callable[[str], bool]) -> str:
    """The cell itself, or, where something that it needs is lacking, code that stands in for it on the page."""
    lines = [line for line in cell.splitlines() if line.strip()]
    needs = _NEEDS.fullmatch(lines[0].strip()) if lines else None
    if needs is None:
        return cell
    wanted = [word.strip() for word in needs[1].split(",")]
    unknown = [word for word in wanted if word not in FACTS]
    if unknown:
        raise ParameterError(f"`# needs: {unknown[0]}`: a cell can need {', '.join(FACTS)}.")
    missing = [word for word in wanted if lacks(word)]
    if not missing:
        return cell
    return f"from btcnb.book.chapter import skipped\nskipped({missing!r}, {list(_places(ast.parse(cell)))!r})\n"


def skipped(missing: list[str], places: list[tuple[str, str, str]]) -> None:
    """What stands on the page in the place of a skipped cell; its figure and its tables are left out."""
    reason = "This needs " + " and ".join(FACTS[what] for what in missing) + ", which the data does not tell."
    names: dict[str, list[str]] = {kind: [name for each, name, _ in places if each == kind] for kind, *_ in places}
    for key in names.get("glue", []):
        glue(key, "–")
    leave_out()  # the figure, if the cell draws one
    if "table" in names:
        leave_out(*names["table"])
    if "Verdict" in names:
        verdicts([Verdict(name, UNTESTED, reason, where) for kind, name, where in places if kind == "Verdict"])
    elif "Look" in names:
        first_look([Look(name, [], reason) for name in names["Look"]])
    else:
        show(f"*Left out. {reason}*", f"<p><i>Left out. {reason}</i></p>")


def _places(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(kind, name, where) of everything that the cell would glue, tabulate or judge, by its literal names."""
    positions = {"glue": ("key", 0), "table": ("name", 2), "Look": ("id", 0), "Verdict": ("claim", 0)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in positions:
            name = _literal(node, *positions[called])
            where = _literal(node, "where", 3) if called == "Verdict" else ""
            if name or called == "Verdict":
                yield called, name or "a claim of this section", where


def _literal(call: ast.Call, name: str, position: int) -> str:
    """A literal argument of a call, by its name or position; empty where it is none."""
    given = next((word.value for word in call.keywords if word.arg == name), None)
    if given is None and position < len(call.args):
        given = call.args[position]
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
