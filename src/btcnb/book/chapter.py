"""The opening of a chapter: the card with goals and times, and the *Re-run me* box."""

from __future__ import annotations

import ast
import csv
import html
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from IPython.core.getipython import get_ipython

from btcnb import gates
from btcnb.book.output import show
from btcnb.book.parameters import Parameter, chapter_parameters, check_run, read_parameters
from btcnb.book.style import plot_style
from btcnb.book.text import code, pipe_table
from btcnb.errors import DataError, ParameterError

PROJECT = Path(__file__).resolve().parents[3]
OF_OWN_DATA = ("source", "intervals", "price_usd")
"""Parameters that change nothing, or everything, unless one brings data of one's own."""
LONGEST = 88  # characters of a command that fit the column of a laptop's screen
WORDS_PER_MINUTE = 180  # technical prose with formulas, read slowly


def open_chapter(name: str, learn: Sequence[str], prerequisites: Sequence[str]) -> None:
    """Check the chapter's parameters, draw its card and the *Re-run me* box, and set the style of its figures.

    Reading time is counted from the chapter's own words; running times come from `results/chapter_times.csv`; the
    parameters, their types, ranges, defaults and meaning from the chapter's parameters cell. Nothing is typed twice.
    Raises `ParameterError` for a value of the wrong type or out of range, and for one that papermill has set and the
    chapter does not know.
    """
    if not re.fullmatch(r"\w{1,100}", gates.text("name", name)):
        raise ParameterError(f"{name!r:.80} is no chapter; give the name of its file, such as 01_transactions.")
    learn = [gates.text("learn", line) for line in gates.items("learn", learn)]
    prerequisites = [gates.text("prerequisites", line) for line in gates.items("prerequisites", prerequisites)]
    notebook = PROJECT / "notebooks" / f"{name}.ipynb"
    declared = parameters(notebook)
    shell = get_ipython()
    if shell is not None:
        text, given = _injected(shell.user_ns.get("In", []))
        check_run(name, declared if text is None else read_parameters(name, text), shell.user_ns, given)
    plot_style()
    show(
        _card_myst(learn, prerequisites, _times(name, notebook)) + "\n" + _rerun_myst(name, declared),
        _card_html(learn, prerequisites, _times(name, notebook)),
    )


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


def reading_minutes(notebook: Path) -> int:
    """Minutes to read the chapter's text, from its word count; at least one."""
    cells = nbformat.read(notebook, as_version=4).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    return max(1, math.ceil(words / WORDS_PER_MINUTE))


def _times(name: str, notebook: Path) -> str:
    reading = f"{reading_minutes(notebook)} min to read" if notebook.exists() else ""
    measured = [
        f"{_seconds(seconds)} ({code(preset)})"
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


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _card_myst(learn: Sequence[str], prerequisites: Sequence[str], times: str) -> str:
    goals = "\n".join(f"- {goal}" for goal in learn)
    needs = "\n".join(f"- {need}" for need in prerequisites) or "- none"
    return (
        "::::::{grid} 1 1 2 2\n:class-container: chapter-card\n\n"
        f":::::{{grid-item-card}} What you will learn\n{goals}\n:::::\n\n"
        f":::::{{grid-item-card}} Before you start\n{needs}\n\n::::{{card-footer}}\n{times}\n::::\n:::::\n::::::\n"
    )


def _rerun_myst(name: str, entries: Mapping[str, Parameter]) -> str:
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


def _card_html(learn: Sequence[str], prerequisites: Sequence[str], times: str) -> str:
    def items(entries: Sequence[str]) -> str:
        return "".join(f"<li>{html.escape(entry)}</li>" for entry in entries)

    return (
        f"<p><b>What you will learn</b></p><ul>{items(learn)}</ul>"
        f"<p><b>Before you start</b></p><ul>{items(prerequisites)}</ul><p>{html.escape(times)}</p>"
    )
