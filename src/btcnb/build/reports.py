"""Two pages made of records: what the benchmarks measured, and every verdict that the chapters have given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from btcnb.book.inline import inline_myst
from btcnb.book.output import MARKS
from btcnb.book.text import Markup, escape, number, pipe_table, without_credentials
from btcnb.build.chapters import Chapter
from btcnb.build.fingerprint import package_today
from btcnb.build.project import Project
from btcnb.build.races import races_html
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
_TITLES = {
    "blocks": "Reading blocks",
    "coarse": "Coarse partition",
    "data": "From simulator to graph",
    "evaluation": "Scoring a model",
    "linkage": "Average linkage, up to a million leaves",
    "local_graphs": "Local graphs a second",
    "neighbours": "Drawing neighbours",
    "permutation": "Permutation test",
    "purity": "Dendrogram purity",
    "refine": "Refining clusters",
    "silhouette": "Silhouettes",
    "training_step": "A training step",
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
    package = package_today(project.source / "btcnb")

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
    found: dict[str, Records] = {}
    below: list[str] = []
    for path in sorted(folder.glob("*.json")):
        below += ["", f"## {_TITLES.get(path.stem, path.stem.replace('_', ' ').capitalize())}", ""]
        try:
            records: Records = [dict(entry) for entry in json.loads(path.read_text("utf-8"))]
        except (OSError, ValueError, TypeError, RecursionError) as error:
            below.append(f"`results/benchmarks/{path.name}` cannot be read: {escape(error)}.")
            continue
        found[path.stem] = records
        now = current(path.stem)
        if now is not None and any(entry.get(CODE) != now for entry in records):
            below += [_OLDER.replace("NAME", path.stem), ""]
        below += [f"::::{{dropdown}} All numbers of {path.stem}", "", *_section(records), "::::"]
    races = races_html(found)
    return "\n".join([*lines, *(["", "```{raw} html", races, "```"] if races else []), *below]) + "\n"


def verdicts_page(chapters: Iterable[tuple[Chapter, Records]]) -> str:
    """`book/verdicts.md`, MyST: what every executed chapter has said, in its own words and in the order of the book.

    Counts of each chapter first, then its verdicts, folded. The scoreboard is the other way round: a line a claim.
    """
    listed = [(chapter, records) for chapter, records in chapters if chapter.in_toc]
    said = [(chapter, _verdicts(records), _data(records)) for chapter, records in listed if _verdicts(records)]
    lines = ["# Verdicts, chapter by chapter", ""]
    if not said:
        return "\n".join([*lines, "No chapter has been executed yet."]) + "\n"
    last = next((chapter.name for chapter, _ in listed if chapter.reads_records), "")
    board = f"{{doc}}`scoreboard </notebooks/{last}>`" if last else "scoreboard"
    rows = [[Markup(f"{{doc}}`/notebooks/{chapter.name}`"), *_counts(found), data] for chapter, found, data in said]
    rows.append(["all", *_counts([entry for _, found, _ in said for entry in found]), ""])
    header = ["chapter", *(f"{MARKS[name]} {name}" for name in MARKS), "data"]
    lines += [
        "What each chapter of this build has said, in its own words, with the numbers it judged on, and the data that",
        f"these come from, where they come from data. The {board} turns this around: every claim of the",
        "paper once, with its rule, its importance and filters. Where several chapters speak of one claim, it says",
        "which of them decides.",
        "",
        pipe_table(header, rows, [False, *[True] * len(MARKS), False]),
    ]
    for chapter, found, _ in said:
        lines += ["", f":::{{dropdown}} {chapter.number} · {inline_myst(chapter.title)} ({len(found)})", ""]
        lines += [_verdict(entry) for entry in found] + [":::"]
    return "\n".join(lines) + "\n"


def _verdicts(records: Records) -> Records:
    return [entry for entry in records if entry.get("kind") == "verdict"]


def _counts(found: Records) -> list[int]:
    return [sum(entry["verdict"] == name for entry in found) for name in MARKS]


def _verdict(entry: Mapping[str, Any]) -> str:
    """One verdict as a line of a list: mark, claim, place, evidence."""
    known = f"{entry['id']}: " if entry.get("id") else ""
    where = f" ({inline_myst(entry['where'])})" if entry["where"] else ""
    claim = inline_myst(str(entry["claim"]).rstrip("."))
    return f"- {MARKS[entry['verdict']]} **{entry['verdict']}** · {known}{claim}{where}. *Evidence:* " + inline_myst(
        entry["evidence"]
    )


def _data(records: Records) -> str:
    """Whose data the chapter's page shows; without that, the kinds that its data sources name; a dash for none."""
    whose = next((entry for entry in records if entry.get("kind") == "whose"), None)
    if whose is not None:
        return "simulated" if whose["simulated"] else without_credentials(whose["source"])
    told = " ".join(str(entry.get("source", "")) for entry in records if entry.get("kind") == "data_source").lower()
    return " and ".join(kind for kind in ("simulated", "real") if re.search(rf"(?<![a-z]){kind}(?![a-z])", told)) or "–"


def _differ(rows: Records, name: str) -> bool:
    return len({str(row[name]) for row in rows}) > 1


def _section(records: Records) -> list[str]:
    """Rows that hold the same things share a table; what is the same in all of them stands above it."""
    lines: list[str] = []
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for entry in records:
        groups.setdefault(tuple(name for name in entry if name not in (*ENVIRONMENT, CODE)), []).append(entry)
    for columns, rows in groups.items():
        timed = len(rows) == 1 and not set(columns).isdisjoint(_HEADINGS)  # a row of its own: its measures are enough
        shown = ("stage", *_HEADINGS) if timed else columns
        varying = [name for name in shown if name in columns and (len(rows) == 1 or _differ(rows, name))]
        common = [f"{name} {number(rows[0][name])}" for name in columns if name not in varying and name != "benchmark"]
        above = escape(", ".join(common).replace("_", " ")) + ":" if common else ""
        lines += [*([above] if above not in lines else []), ""]
        header = [_HEADINGS.get(name, name.replace("_", " ")) for name in varying]
        numeric = [all(isinstance(row[name], int | float) for row in rows) for name in varying]
        lines += [pipe_table(header, [[number(row[name]) for name in varying] for row in rows], numeric), ""]
    where = records[0] if records else {}
    told = ", ".join(f"{name} {where[name]}" for name in ENVIRONMENT if name in where)
    lines.append(f"Measured with {escape(told)}.")
    return lines
