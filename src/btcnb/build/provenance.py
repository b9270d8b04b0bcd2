"""Where a page comes from: commit, versions, machine, and the box that says so at the foot of each chapter."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from btcnb.book.text import code, pipe_table, without_credentials
from btcnb.build.fingerprint import Stamp
from btcnb.build.progress import duration

PACKAGES = (
    "numpy", "scipy", "pandas", "pyarrow", "numba", "scikit-learn", "torch", "torch_geometric", "igraph", "matplotlib",
    "papermill", "jupyter-book",
)  # fmt: skip


def commit(root: Path) -> str:
    """`git describe` of the project, with `-dirty` for uncommitted changes; "unknown" outside a repository."""
    command = ["git", "-C", str(root), "describe", "--always", "--tags", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found or "unknown"


def versions() -> dict[str, str]:
    """Python, btcnb and the libraries that results depend on."""
    found = {"python": platform.python_version()}
    for package in ("btcnb", *PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(cores: int) -> str:
    return f"{platform.system()} {platform.machine()}, {cores} {'core' if cores == 1 else 'cores'}"


def provenance_box(stamp: Stamp, records: Sequence[Mapping[str, Any]]) -> str:
    """A folded admonition, MyST; it carries no heading, so it fits below any section."""
    rows = [
        ("preset", f"`{stamp.preset}`"),
        ("parameters", _parameters(stamp)),
        ("seed", _seeds(stamp.parameters)),
        ("data source", _data_sources(records)),
        ("recipe", _recipes(records)),
        ("commit", f"`{stamp.commit}`"),
        ("executed", f"{when(stamp.finished)}, {stamp.cells} code cells in {duration_words(stamp.seconds)}"),
        ("machine", stamp.machine),
        ("versions", ", ".join(f"{name} {version}" for name, version in stamp.versions.items())),
    ]
    return (
        f":::{{admonition}} Provenance\n:class: dropdown note provenance\n\n{pipe_table(['what', 'value'], rows)}\n:::"
    )


def when(moment: str) -> str:
    """2026-01-31 17:05 UTC, from ISO 8601."""
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M UTC")


def duration_words(seconds: float) -> str:
    """7.3 s, 12:30 min, 1:02:03 h; the unit sticks to its number."""
    if seconds < 60:
        return f"{seconds:.1f}\u00a0s"
    return f"{duration(seconds)}\u00a0{'min' if seconds < 3600 else 'h'}"


def _parameters(stamp: Stamp) -> str:
    shown = [
        code(without_credentials(f"{name} = {value!r}")) + (" (changed)" if name in stamp.changed else "")
        for name, value in stamp.parameters.items()
    ]
    return ", ".join(shown) or "none"


def _seeds(parameters: Mapping[str, Any]) -> str:
    seeds = {name: value for name, value in parameters.items() if "seed" in name}
    return (
        ", ".join(str(value) if name == "seed" else f"{name} {value}" for name, value in seeds.items()) or "none used"
    )


def _recipes(records: Sequence[Mapping[str, Any]]) -> str:
    """Every recipe that the chapter named, with all of its fields: enough to compute the page's numbers again."""
    found = {}
    for record in records:
        if record.get("kind") == "recipe":
            fields = ", ".join(f"{name} = {value}" for name, value in record["fields"].items())
            found[record["id"]] = f"{code(record['id'])}: {code(without_credentials(fields))}"
    return "; ".join(found.values()) or "none: all that decides the numbers stands above"


def _data_sources(records: Sequence[Mapping[str, Any]]) -> str:
    sources = []
    for record in records:
        if record.get("kind") == "data_source":
            mark = f" ({code(str(record['fingerprint']))})" if record.get("fingerprint") else ""
            sources.append(f"{without_credentials(str(record.get('source', 'unknown')))}{mark}")
    return "; ".join(dict.fromkeys(sources)) or "not recorded"
