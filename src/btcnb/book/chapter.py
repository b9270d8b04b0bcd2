"""The opening of a chapter: the card with goals and times, and the *Re-run me* box."""

from __future__ import annotations

import csv
import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from btcnb.book.output import show
from btcnb.book.style import plot_style

PROJECT = Path(__file__).resolve().parents[3]
WORDS_PER_MINUTE = 180  # technical prose with formulas, read slowly


def open_chapter(name: str, learn: Sequence[str], prerequisites: Sequence[str]) -> None:
    """Draw the card and the *Re-run me* box of `notebooks/<name>.ipynb`, and set the style of its figures.

    Reading time is counted from the chapter's own words; running times come from `results/chapter_times.csv`; the
    parameters, their types, defaults and meaning from the chapter's parameters cell. Nothing is typed twice.
    """
    plot_style()
    notebook = PROJECT / "notebooks" / f"{name}.ipynb"
    show(
        _card_myst(learn, prerequisites, _times(name, notebook)) + "\n" + _rerun_myst(name, parameters(notebook)),
        _card_html(learn, prerequisites, _times(name, notebook)),
    )


def parameters(notebook: Path) -> list[dict[str, Any]]:
    """Name, type, default and meaning of each parameter, from the notebook's parameters cell."""
    if not notebook.exists():
        return []
    from papermill import inspect_notebook

    return [
        {
            "name": entry["name"],
            "type": entry["inferred_type_name"],
            "default": entry["default"],
            "meaning": entry["help"],
        }
        for entry in inspect_notebook(str(notebook)).values()
    ]


def reading_minutes(notebook: Path) -> int:
    """Minutes to read the chapter's text, from its word count; at least one."""
    cells = nbformat.read(notebook, as_version=4).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    return max(1, math.ceil(words / WORDS_PER_MINUTE))


def _times(name: str, notebook: Path) -> str:
    reading = f"{reading_minutes(notebook)} min to read" if notebook.exists() else ""
    measured = [
        f"{_seconds(float(row['seconds']))} (`{row['preset']}`)" for row in _recorded_times() if row["chapter"] == name
    ]
    running = "to run on two cores: " + ", ".join(measured) if measured else "running time not measured yet"
    return f"{reading}; {running}"


def _recorded_times() -> list[dict[str, str]]:
    path = PROJECT / "results" / "chapter_times.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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


def _rerun_myst(name: str, entries: Sequence[dict[str, Any]]) -> str:
    rows = "\n".join(
        f"| `{entry['name']}` | {entry['type']} | `{entry['default']}` | {entry['meaning']} |" for entry in entries
    )
    example = f" -p {entries[-1]['name']} {entries[-1]['default']}" if entries else ""
    table = f"\n| parameter | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}\n" if entries else ""
    return (
        "::::::{admonition} Re-run me\n:class: tip dropdown rerun\n\n"
        f"```bash\npapermill notebooks/{name}.ipynb runs/{name}.ipynb{example}\n```\n{table}::::::\n"
    )


def _card_html(learn: Sequence[str], prerequisites: Sequence[str], times: str) -> str:
    def items(entries: Sequence[str]) -> str:
        return "".join(f"<li>{html.escape(entry)}</li>" for entry in entries)

    return (
        f"<p><b>What you will learn</b></p><ul>{items(learn)}</ul>"
        f"<p><b>Before you start</b></p><ul>{items(prerequisites)}</ul><p>{html.escape(times)}</p>"
    )
