"""Sections that need what somebody's data may lack: they are skipped, and the page says so.

A code cell whose first line is `# needs: truth` (or `transactions`, `labels`, `simulated`, several with commas) is run
only where the data has that. Elsewhere its place on the page is kept: numbers that text cites become dashes, tables and
figures become one line with the same name, claims that it would have judged *cannot be tested here*, and a first look
says nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from btcnb import gates
from btcnb.book.looks import Look, first_look
from btcnb.book.output import Verdict, glue, record, show, verdicts
from btcnb.book.text import escape, without_credentials
from btcnb.data import Source
from btcnb.errors import ParameterError

FACTS = {
    "truth": "the true owners of the addresses",
    "labels": "publicly labelled addresses",
    "transactions": "the transactions behind the graph",
    "simulated": "the simulated economies of this book",
}
_NEEDS = re.compile(r"#\s*needs:\s*(.+)")
_NAMELESS = "a claim of this section"


def whose(data: Source, besides: str = "") -> None:
    """Say in the title block whose data the page shows, and from here on skip cells that need what it lacks.

    besides: what else the page shows, whoever's data it is run on
    """
    gates.text("besides", besides)
    gates.instance("data", data, Source)
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
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:  # a script that was made of the notebook: nothing to skip by
        return
    transformers = shell.input_transformers_cleanup
    transformers[:] = [item for item in transformers if not getattr(item, "skips_needy_cells", False)]

    def transform(lines: list[str]) -> list[str]:
        return rewritten("".join(lines), lacks).splitlines(keepends=True)

    transform.skips_needy_cells = True  # type: ignore[attr-defined]
    transformers.append(transform)


def rewritten(cell: str, lacks: Callable[[str], bool]) -> str:
    """The cell itself, or, where something that it needs is lacking, code that keeps its place on the page."""
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
    parts = list(_places(ast.parse(cell)))
    draws = "plt." in cell or "subplots(" in cell
    return f"from btcnb.book.needs import skipped\nskipped({missing!r}, {parts!r}, {draws!r})\n"


def skipped(missing: list[str], places: list[tuple[str, str, str]], draws: bool) -> None:
    """Stand-ins for what a skipped cell would have shown."""
    reason = "This needs " + " and ".join(FACTS[what] for what in missing) + ", which the data does not tell."
    judged: list[Verdict] = []
    looked: list[Look] = []
    for kind, name, where in places:
        if kind == "glue":
            glue(name, "–")
        elif kind == "table":
            show(f"::::{{table}} {reason}\n:name: {name}\n\n| – |\n| :--- |\n| – |\n::::\n", f"<p>{reason}</p>")
        elif kind == "look":
            looked.append(Look(name, [], reason))
        else:
            judged.append(Verdict(name, "cannot be tested here", reason, where))
    if judged:
        verdicts(judged)
    if looked:
        first_look(looked)
    if draws:
        _empty_plate(reason)
    elif not (judged or looked) and all(kind == "glue" for kind, _, _ in places):
        show(f"*Skipped. {reason}*", f"<p><i>Skipped. {reason}</i></p>")


def _places(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(kind, name, where) of everything that the cell would glue, tabulate or judge, by its literal names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "glue" and (key := _text(node, "key", 0)):
            yield "glue", key, ""
        elif called == "table" and (name := _text(node, "name", 2)):
            yield "table", name, ""
        elif called == "Look" and (claim := _text(node, "id", 0)):
            yield "look", claim, ""
        elif called == "Verdict":
            yield "verdict", _text(node, "claim", 0) or _NAMELESS, _text(node, "where", 3) or ""


def _text(call: ast.Call, name: str, position: int) -> str | None:
    """A literal argument of a call, by its name or position."""
    given: Any = next((word.value for word in call.keywords if word.arg == name), None)
    if given is None and position < len(call.args):
        given = call.args[position]
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def _empty_plate(reason: str) -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(7.2, 1.2))
    ax.axis("off")
    ax.text(0.5, 0.5, reason, ha="center", va="center", wrap=True)
    plt.show()
