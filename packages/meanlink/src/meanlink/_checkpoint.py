"""The state of a long linkage on disk, written in one step, so that a run that was killed can go on.

A checkpoint belongs to its rows: it holds a digest of them and of everything that decides a bit of the result. It holds
neither the rows nor the sums of clusters, which the recorded merges make again.
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

from meanlink._neighbours import LENGTH, Lists, Table
from meanlink._stages import State

FORMAT = 3

EVERY = 120.0
"""Seconds between two checkpoints."""

_NUMBERS = ("merges", "turn", "radius")
_MADE = ("pairs", "heights", "turns")  # of which only the merges made so far are kept
_OTHERS = ("seen", "fresh", "todo")


def digest_of(table: Table) -> str:
    """A digest of rows, their numbers and the settings; `table` as it is before the first merge."""
    digest = hashlib.blake2b(f"meanlink {FORMAT} {LENGTH} {table.sums.shape}".encode(), digest_size=32)
    for part in table:
        digest.update(np.ascontiguousarray(part).reshape(-1).data)
    return digest.hexdigest()


class Checkpoint:
    """One file. `save` writes it if the last writing is `every` seconds ago; `remove` is for the end."""

    def __init__(self, path: str | Path, table: Table, every: float = EVERY, now: Callable[[], float] = time.monotonic):
        self.path, self.digest, self.every, self.now = Path(path), digest_of(table), every, now
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.written = now()
        if not self.path.parent.is_dir():
            raise ValueError(f"The folder of the checkpoint {self.path} does not exist.")

    def load(self) -> State | None:
        """The state to go on from; None if there is none."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as kept:
                found: dict[str, Any] = {name: kept[name] for name in kept.files}  # zip files know their checksums
            fits = str(found.pop("digest")) == self.digest
            state = _restored(found) if fits else None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} is no checkpoint, or not a whole one ({error!s:.120}); delete it.") from None
        if not fits:
            raise ValueError(f"{self.path} is the checkpoint of other rows or settings; name another file.")
        return state

    def save(self, state: State) -> None:
        """Write the state if it is time."""
        if self.now() - self.written < self.every:
            return
        parts: dict[str, Any] = {name: getattr(state, name) for name in (*_NUMBERS, *_OTHERS)}
        parts |= {name: getattr(state, name)[: state.merges] for name in _MADE}
        parts |= {f"lists.{name}": part for name, part in zip(Lists._fields, state.lists, strict=True)}
        try:
            with self.partial.open("wb") as file:
                np.savez(file, digest=self.digest, **parts)
                file.flush()
                os.fsync(file.fileno())
            self.partial.replace(self.path)
        except OSError as error:
            self.partial.unlink(missing_ok=True)
            raise ValueError(f"The checkpoint {self.path} cannot be written ({error.strerror}).") from None
        self.written = self.now()

    def remove(self) -> None:
        """Delete the file, if there is one."""
        for path in (self.path, self.partial):
            path.unlink(missing_ok=True)


def _restored(found: dict[str, Any]) -> State:
    state = State.new(len(found["seen"]))
    lists: tuple[Any, ...] = state.lists
    for field, part in zip(Lists._fields, lists, strict=True):
        np.copyto(part, found[f"lists.{field}"])
    state.merges, state.turn = int(found["merges"]), int(found["turn"])
    state.radius = float(found["radius"])
    for name in _MADE:
        getattr(state, name)[: state.merges] = found[name]
    state.seen[:] = found["seen"]
    state.fresh, state.todo = found["fresh"].astype(np.int32), found["todo"].astype(np.int32)
    return state
