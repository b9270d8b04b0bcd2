"""Two pages made of records: what the benchmarks measured, and every verdict that the chapters have given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from btcnb.book.text import Markup, escape, number, pipe_table, without_credentials
from btcnb.build.chapters import Chapter
from btcnb.build.project import Project
from btcnb.store.reach import Package

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
    "igraph",
    "leidenalg",
)
"""Columns that describe where a benchmark ran; said once per benchmark instead of in every row."""
CODE = "code"
"""Column with the digest of the code that was measured (`measured_code`); compared, not shown."""
_HEADINGS = {
    "seconds": "time (s)",
    "cpu_seconds": "CPU time (s)",
    "peak_mb": "peak memory (MB)",
    "start_mb": "before (MB)",
}
_OLDER = (
    ":::{warning}\nMeasured before the code that it measures was last changed; "
    "`.venv/bin/python benchmarks/NAME.py` measures again.\n:::"
)

Records = Sequence[Mapping[str, Any]]


def measured_code(script: Path, package: Package | None = None) -> str:
    """The digest of the package code that a benchmark's script reaches, for its records' column `code`."""
    return (package or Package()).of_source([script.read_text(encoding="utf-8")]).digest


def current_code(project: Project) -> Callable[[str], str | None]:
    """The digest that a benchmark's records would carry today, by the benchmark's name; None without a script."""
    package = Package(project.source / "btcnb")

    def current(name: str) -> str | None:
        script = project.root / "benchmarks" / f"{name}.py"
        return measured_code(script, package) if script.exists() else None

    return current


def benchmarks_page(folder: Path, current: Callable[[str], str | None]) -> str:
    """`book/benchmarks.md`, MyST: one section per `results/benchmarks/NAME.json`; older ones than the code say so."""
    lines = [
        "# Benchmarks",
        "",
        "Measured side by side in one run, each stage in a process of its own, and kept under `results/benchmarks/`.",
        "Machines differ and are rarely idle: read ratios, not seconds. `python benchmarks/NAME.py` measures again.",
    ]
    for path in sorted(folder.glob("*.json")):
        lines += ["", f"## {path.stem.replace('_', ' ').capitalize()}", ""]
        try:
            records: Records = [dict(entry) for entry in json.loads(path.read_text("utf-8"))]
        except (OSError, ValueError, TypeError, RecursionError) as error:
            lines.append(f"`results/benchmarks/{path.name}` cannot be read: {escape(error)}.")
            continue
        now = current(path.stem)
        if now is not None and any(entry.get(CODE) != now for entry in records):
            lines += [_OLDER.replace("NAME", path.stem), ""]
        lines += _section(records)
    return "\n".join(lines) + "\n"


def verdicts_page(chapters: Iterable[tuple[Chapter, Records]]) -> str:
    """`book/verdicts.md`, MyST: every verdict that an executed chapter has recorded, in chapter order."""
    rows = [
        [
            Markup(f"{{doc}}`/notebooks/{chapter.name}`"),
            entry["claim"],
            entry["where"],
            f"**{entry['verdict']}**",
            entry["evidence"],
            _data(records),
        ]
        for chapter, records in chapters
        if chapter.in_toc
        for entry in records
        if entry.get("kind") == "verdict"
    ]
    lines = [
        "# Verdicts so far",
        "",
        "Every claim that the chapters of this build have judged, with the numbers they judged it on, and the data",
        "that those numbers come from, where they come from data.",
        "",
        pipe_table(["chapter", "claim", "in the paper", "verdict", "evidence", "data"], rows),
    ]
    return "\n".join(lines if rows else [*lines[:2], "No chapter has been executed yet."]) + "\n"


def _data(records: Records) -> str:
    """Whose data the chapter's page shows; a dash for chapters that need none."""
    whose = next((entry for entry in records if entry.get("kind") == "whose"), None)
    return "–" if whose is None else "simulated" if whose["simulated"] else without_credentials(whose["source"])


def _section(records: Records) -> list[str]:
    """Rows that hold the same things share a table; what is the same in all of them stands above it."""
    lines: list[str] = []
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for entry in records:
        groups.setdefault(tuple(name for name in entry if name not in (*ENVIRONMENT, CODE)), []).append(entry)
    for columns, rows in groups.items():
        varying = [name for name in columns if len(rows) == 1 or len({str(row[name]) for row in rows}) > 1]
        common = [f"{name} {number(rows[0][name])}" for name in columns if name not in varying and name != "benchmark"]
        lines += [escape(", ".join(common)) + ":" if common else "", ""]
        header = [_HEADINGS.get(name, name.replace("_", " ")) for name in varying]
        numeric = [all(isinstance(row[name], int | float) for row in rows) for name in varying]
        lines += [pipe_table(header, [[number(row[name]) for name in varying] for row in rows], numeric), ""]
    where = records[0] if records else {}
    told = ", ".join(f"{name} {where[name]}" for name in ENVIRONMENT if name in where)
    lines.append(f"Measured with {escape(told)}.")
    return lines
