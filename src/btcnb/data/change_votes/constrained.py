"""Merging clusters under constraints: pairs that must not end in one cluster block the merges that would join them.

Möser and Narayanan take merges in the order of the transactions. A merge that would join two clusters between which a
cannot-link stands is skipped; every other one is done, and the united cluster inherits the constraints of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.components import by_first
from btcnb.data.transactions import IntArray

OUTCOMES = ("merged", "joined", "blocked")
MERGED, JOINED, BLOCKED = range(3)
"""What became of a merge: done; nothing to do, both were in one cluster already; skipped because of a cannot-link."""

Pairs = tuple[npt.ArrayLike, npt.ArrayLike]


class Constrained(NamedTuple):
    """A partition of 0..size-1 and how it came about."""

    labels: IntArray  # (size,) groups numbered by their lowest member
    outcome: npt.NDArray[np.int8]  # (merges,) MERGED, JOINED or BLOCKED

    @property
    def counts(self) -> dict[str, int]:
        return {name: int((self.outcome == code).sum()) for code, name in enumerate(OUTCOMES)}


def constrained_merges(size: int, merges: Pairs, cannot_link: Pairs) -> Constrained:
    """Take the merges in their order, skipping those that would join two groups with a cannot-link between them.

    size:        things to group, 0..size-1
    merges:      two arrays; merge a[i] with b[i], i = 0, 1, …
    cannot_link: two arrays; c[j] and d[j] must not share a group. All are known before the first merge. A cannot-link
                 of a member with itself forbids nothing.

    Each group keeps the set of groups that it must not join. On a union the smaller set moves into the larger, so that
    n merges under m constraints take O((n + m) log m) steps.
    """
    parent = list(range(size))
    enemies: dict[int, set[int]] = {}
    for one, other in _rows(cannot_link):
        if one != other:
            enemies.setdefault(one, set()).add(other)
            enemies.setdefault(other, set()).add(one)
    outcome = []
    for one, other in _rows(merges):
        left, right = _root(parent, one), _root(parent, other)
        if left == right:
            outcome.append(JOINED)
        elif right in enemies.get(left, ()):
            outcome.append(BLOCKED)
        else:
            outcome.append(MERGED)
            _unite(parent, enemies, left, right)
    roots = np.array([_root(parent, each) for each in range(size)], dtype=np.int64)
    return Constrained(by_first(roots), np.array(outcome, dtype=np.int8))


def _rows(pairs: Pairs) -> list[list[int]]:
    left, right = pairs
    return np.column_stack([left, right]).astype(np.int64).tolist()


def _unite(parent: list[int], enemies: dict[int, set[int]], left: int, right: int) -> None:
    """Union of two roots; the one with more enemies stays root, and the other's enemies become its own."""
    if len(enemies.get(left, ())) < len(enemies.get(right, ())):
        left, right = right, left
    parent[right] = left
    for enemy in enemies.pop(right, ()):
        theirs = enemies[enemy]
        theirs.discard(right)
        theirs.add(left)
        enemies[left].add(enemy)  # a root with fewer enemies than `right` would not be the root


def _root(parent: list[int], member: int) -> int:
    """The root of a member; on the way every other link is shortened."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member
