"""Looking after the store: what is in it, how large it is, what can go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from btcnb.compiled import compiled_folder
from btcnb.store.entries import MANIFEST, code_of, library_versions, read_manifest, store_folder
from btcnb.store.reads import unchanged

DAMAGED, STALE, CURRENT = "damaged", "stale", "current"


@dataclass(frozen=True)
class Entry:
    """One kept result.

    state: `current` while code, versions and files are those it was made with; `stale` when they are not (it can only
        be used again if they return); `damaged` when it cannot be read
    """

    folder: Path
    function: str
    arguments: str
    size: int  # bytes
    seconds: float  # that it took to compute
    created: str  # UTC, ISO 8601
    state: str

    @property
    def age_days(self) -> float:
        try:
            return (datetime.now(UTC) - datetime.fromisoformat(self.created)).total_seconds() / 86_400
        except ValueError:
            return float("inf")


def entries(folder: Path | None = None) -> Iterator[Entry]:
    """Every entry, by function."""
    root = folder or store_folder()
    for place in sorted(root.glob("*/*/")) if root.is_dir() else []:
        if place.name.startswith("."):
            continue
        manifest = read_manifest(place)
        size = sum(item.stat().st_size for item in place.iterdir() if item.is_file())
        if manifest is None:
            yield Entry(place, place.parent.name, "", size, 0.0, "", DAMAGED)
        else:
            given = ", ".join(f"{name}={_short(value)}" for name, value in manifest["arguments"].items())
            yield Entry(
                place, manifest["function"], given, size, manifest["seconds"], manifest["created"], _state(manifest)
            )


def prune(older_than_days: float | None = None, everything: bool = False, folder: Path | None = None) -> list[Entry]:
    """Remove entries that are stale or damaged; or older than so many days; or all. Return what went.

    Entries that a process is computing right now, and what interrupted ones left behind, are told apart by their locks.
    """
    root = folder or store_folder()
    gone = []
    for entry in list(entries(root)):
        old = older_than_days is not None and entry.age_days > older_than_days
        if (everything or old or entry.state != CURRENT) and _remove(entry.folder):
            gone.append(entry)
    _remove_leftovers(root.glob("*/.*.part"))
    _remove_old_kernels()
    return gone


def _state(manifest: dict[str, Any]) -> str:
    code, libraries = code_of(manifest["function"], manifest["kinds"])
    if code is not None and (code != manifest["code"] or library_versions(libraries) != manifest["libraries"]):
        return STALE
    return CURRENT if unchanged(manifest["files"]) else STALE


def _remove(folder: Path) -> bool:
    try:
        with FileLock(folder.with_suffix(".lock"), timeout=0):
            (folder / MANIFEST).unlink(missing_ok=True)  # first: half an entry must not look like a whole one
            shutil.rmtree(folder)
    except Timeout:
        return False
    folder.with_suffix(".lock").unlink(missing_ok=True)
    return True


def _remove_leftovers(parts: Iterable[Path]) -> None:
    for part in parts:
        lock = part.with_name(part.name.split(".")[1] + ".lock")
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(part, ignore_errors=True)
        except Timeout:
            continue


def _remove_old_kernels() -> None:
    current = compiled_folder()
    for folder in current.parent.glob("*") if current else []:
        if folder != current:
            shutil.rmtree(folder, ignore_errors=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"
