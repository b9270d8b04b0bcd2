"""The state of a long linkage on disk, written in one step, so that a run that was killed can go on.

A checkpoint belongs to its rows: a digest of them, and of everything that decides a bit of the result, stands in it.
The rows themselves do not, nor the clusters' sums, which the recorded merges make again.
"""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from btcnb.cluster._distance import Table
from btcnb.cluster._neighbours import LENGTH, Lists
from btcnb.cluster._stages import State
from btcnb.errors import DataError

FORMAT = 1
EVERY = 120.0
"""Seconds between two checkpoints."""

_NUMBERS = ("merges", "turn", "radius")
_MADE = ("pairs", "heights", "turns")  # of which only what is made is kept
_OTHERS = ("seen", "fresh", "todo")


def mark_of(table: Table) -> str:
    """A digest of rows, their numbers and the settings of a linkage; `table` as it is before the first merge."""
    said = hashlib.blake2b(f"btcnb linkage {FORMAT} average {LENGTH} {table.sums.shape}".encode(), digest_size=32)
    for part in table:
        said.update(np.ascontiguousarray(part).reshape(-1).data)
    return said.hexdigest()


class Checkpoint:
    """One file. `save` writes it if the last writing is `every` seconds ago; `remove` is for the end."""

    def __init__(self, path: str | Path, table: Table, every: float = EVERY, now: Callable[[], float] = time.monotonic):
        self.path, self.mark, self.every, self.now = Path(path), mark_of(table), every, now
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.written = now()
        if not self.path.parent.is_dir():
            raise DataError(self.path, "folder", "does not exist", "name a file in a folder that does")

    def load(self) -> State | None:
        """The state to go on from; None if there is none."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as kept:
                found: dict[str, Any] = {name: kept[name] for name in kept.files}  # zip files know their checksums
            mark = str(found.pop("mark"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            problem = f"is no checkpoint, or not a whole one ({error!s:.120})"
            raise DataError(self.path, "file", problem, "delete it and start again") from None
        if mark != self.mark:
            problem = "is the checkpoint of other rows or other settings"
            raise DataError(self.path, "rows", problem, "name another file, or delete this one")
        try:
            return _state(found, len(found["seen"]))
        except (KeyError, ValueError, TypeError) as error:
            problem = f"lacks a part ({error!s:.120})"
            raise DataError(self.path, "file", problem, "delete it and start again") from None

    def save(self, state: State) -> None:
        if self.now() - self.written < self.every:
            return
        parts: dict[str, Any] = {name: getattr(state, name) for name in (*_NUMBERS, *_OTHERS)}
        parts |= {name: getattr(state, name)[: state.merges] for name in _MADE}
        parts |= {f"lists.{name}": part for name, part in zip(Lists._fields, state.lists, strict=True)}
        try:
            with self.partial.open("wb") as file:
                np.savez(file, mark=self.mark, **parts)
                file.flush()
                os.fsync(file.fileno())
            self.partial.replace(self.path)
        except OSError as error:
            self.partial.unlink(missing_ok=True)
            problem = f"cannot be written ({error.strerror})"
            raise DataError(self.path, "file", problem, "make room, or name another file") from None
        self.written = self.now()

    def remove(self) -> None:
        for path in (self.path, self.partial):
            path.unlink(missing_ok=True)


def _state(found: dict[str, Any], n: int) -> State:
    state = State.new(n)
    lists: tuple[Any, ...] = state.lists
    for field, part in zip(Lists._fields, lists, strict=True):
        part[:] = found[f"lists.{field}"]
    state.merges, state.turn, state.radius = int(found["merges"]), int(found["turn"]), float(found["radius"])
    for name in _MADE:
        getattr(state, name)[: state.merges] = found[name]
    state.seen[:] = found["seen"]
    state.fresh, state.todo = found["fresh"].astype(np.int32), found["todo"].astype(np.int32)
    return state
