"""The store's entries: what is kept, how large it is, what can go."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from btcnb.compiled import compiled_folder
from btcnb.store.kept import FORMAT, VALUE, code_today, read_manifest, remove, store_folder
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
        """Infinite where the time is not known."""
        if not self.created:
            return float("inf")
        return (datetime.now(UTC) - datetime.fromisoformat(self.created)).total_seconds() / 86_400


def entries(folder: Path | None = None) -> Iterator[Entry]:
    """Every entry, by function. Of the kept values only the size is checked: hashing gigabytes would take minutes."""
    root = folder or store_folder()
    for place in sorted(root.glob("*/*/")) if root.is_dir() else []:
        if place.name.startswith("."):
            continue
        size = sum(item.stat().st_size for item in place.iterdir() if item.is_file())
        manifest = read_manifest(place) or {}
        given = ", ".join(f"{name}={value}" for name, value in manifest.get("shown", {}).items())
        yield Entry(
            folder=place,
            function=manifest.get("function", place.parent.name),
            arguments=given,
            size=size,
            seconds=manifest.get("seconds", 0.0),
            created=manifest.get("created", ""),
            state=_state(place, manifest),
        )


def prune(older_than_days: float | None = None, everything: bool = False, folder: Path | None = None) -> list[Entry]:
    """Remove entries that are stale or damaged; or older than so many days; or all. Return what was removed.

    Locks tell entries that a process is computing right now from what interrupted processes left behind.
    """
    root = folder or store_folder()
    gone = []
    for entry in list(entries(root)):
        old = older_than_days is not None and entry.age_days > older_than_days
        if (everything or old or entry.state != CURRENT) and _remove_unlocked(entry.folder, entry.folder.name):
            entry.folder.with_suffix(".lock").unlink(missing_ok=True)
            gone.append(entry)
    for partial in root.glob("*/.*.part"):
        _remove_unlocked(partial, partial.name.split(".")[1])
    kernels = compiled_folder()
    for other in kernels.parent.glob("*") if kernels else []:
        if other != kernels:
            shutil.rmtree(other, ignore_errors=True)
    return gone


def _state(place: Path, manifest: dict[str, Any]) -> str:
    if manifest and manifest.get("format") != FORMAT:
        return STALE
    value = place / VALUE
    if not manifest or not value.is_file() or value.stat().st_size != manifest["size"]:
        return DAMAGED
    today = code_today(frozenset(manifest["modules"])) == (manifest["code"], manifest["libraries"])
    return CURRENT if today and unchanged(manifest["files"]) else STALE


def _remove_unlocked(folder: Path, entry: str) -> bool:
    try:
        with FileLock(folder.with_name(f"{entry}.lock"), timeout=0):
            remove(folder)
    except Timeout:
        return False
    return True
