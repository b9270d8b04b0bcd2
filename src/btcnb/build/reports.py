"""Two pages made of records: what the benchmarks measured, and every verdict that the chapters have given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from btcnb.build.chapters import Chapter
from btcnb.build.provenance import cell

ENVIRONMENT = (
    "cores",
    "machine",
    "python",
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "scikit-learn",
    "torch",
    "torch_geometric",
)
"""Columns that describe where a benchmark ran; said once per benchmark instead of in every row."""
_HEADINGS = {
    "seconds": "time (s)",
    "cpu_seconds": "CPU time (s)",
    "peak_mb": "peak memory (MB)",
    "start_mb": "before (MB)",
}

Records = Sequence[Mapping[str, Any]]


def benchmarks_page(folder: Path) -> str:
    """`book/benchmarks.md`, MyST: one section per `results/benchmarks/NAME.json`."""
    lines = [
        "# Benchmarks",
        "",
        "Measured side by side in one run, each stage in a process of its own, and kept under `results/benchmarks/`.",
        "Machines differ and are rarely idle: read ratios, not seconds. `python benchmarks/NAME.py` measures again.",
    ]
    for path in sorted(folder.glob("*.json")):
        lines += [
            "",
            f"## {path.stem.replace('_', ' ').capitalize()}",
            "",
            *_section(json.loads(path.read_text("utf-8"))),
        ]
    return "\n".join(lines) + "\n"


def verdicts_page(chapters: Iterable[tuple[Chapter, Records]]) -> str:
    """`book/verdicts.md`, MyST: every verdict that an executed chapter has recorded, in chapter order."""
    rows = [
        f"| {{doc}}`/notebooks/{chapter.name}` | {cell(entry['claim'])} | {cell(entry['where'])} "
        f"| **{entry['verdict']}** | {cell(entry['evidence'])} |"
        for chapter, records in chapters
        if chapter.in_toc
        for entry in records
        if entry.get("kind") == "verdict"
    ]
    lines = [
        "# Verdicts so far",
        "",
        "Every claim that the chapters of this build have judged, with the numbers they judged it on. A number on",
        "simulated data says so.",
        "",
        "| chapter | claim | in the paper | verdict | evidence |",
        "| :--- | :--- | :--- | :--- | :--- |",
    ]
    return "\n".join([*lines, *rows] if rows else [*lines[:2], "No chapter has been executed yet."]) + "\n"


def _section(records: Records) -> list[str]:
    """Rows that hold the same things share a table; what is the same in all of them stands above it."""
    lines: list[str] = []
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for entry in records:
        groups.setdefault(tuple(name for name in entry if name not in ENVIRONMENT), []).append(entry)
    for columns, rows in groups.items():
        varying = [name for name in columns if len(rows) == 1 or len({str(row[name]) for row in rows}) > 1]
        common = [f"{name} {_text(rows[0][name])}" for name in columns if name not in varying and name != "benchmark"]
        lines += [cell(", ".join(common)) + ":" if common else "", ""]
        lines += ["| " + " | ".join(_HEADINGS.get(name, name.replace("_", " ")) for name in varying) + " |"]
        numbers = [all(isinstance(row[name], int | float) for row in rows) for name in varying]
        lines += ["| " + " | ".join("---:" if number else ":---" for number in numbers) + " |"]
        lines += ["| " + " | ".join(cell(_text(row[name])) for name in varying) + " |" for row in rows]
        lines += [""]
    where = records[0] if records else {}
    lines.append("Measured with " + ", ".join(f"{name} {where[name]}" for name in ENVIRONMENT if name in where) + ".")
    return lines


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
