"""Merging clusters under constraints: pairs that must not end in one cluster block the merges that would join them.

Möser and Narayanan take merges in the order of the transactions. A merge that would join two clusters between which a
cannot-link stands is skipped; every other one is done, and the united cluster inherits the constraints of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.checks import ids, whole
from btcnb.data.components import UnionFind, by_first
from btcnb.data.transactions import IntArray
from btcnb.errors import ParameterError

MERGED, JOINED, BLOCKED = 0, 1, 2
"""What became of a merge: done; nothing to do, both were in one cluster already; skipped because of a cannot-link."""

Pairs = tuple[npt.ArrayLike, npt.ArrayLike]


class Constrained(NamedTuple):
    """A partition of 0..size-1 and how it came about."""

    labels: IntArray  # (size,) groups numbered by their lowest member
    outcome: npt.NDArray[np.int8]  # (merges,) MERGED, JOINED or BLOCKED
    void: int  # cannot-links of a member with itself: they can forbid nothing

    @property
    def counts(self) -> dict[str, int]:
        return {name: int((self.outcome == code).sum()) for name, code in _NAMES.items()}


_NAMES = {"merged": MERGED, "joined": JOINED, "blocked": BLOCKED}


def constrained_merges(size: int, merges: Pairs, cannot_link: Pairs) -> Constrained:
    """Take the merges in their order, skipping those that would join two groups with a cannot-link between them.

    size:        things to group, 0..size-1
    merges:      two arrays; merge a[i] with b[i], i = 0, 1, …
    cannot_link: two arrays; c[j] and d[j] must not share a group. All are known before the first merge.

    Each group keeps the set of groups that it must not join. On a union the smaller set moves into the larger, so that
    n merges under m constraints take O((n + m) log m) steps.
    """
    number = whole("size", size)
    a, b = _pairs("merges", merges, number)
    c, d = _pairs("cannot_link", cannot_link, number)
    parent = list(range(number))
    enemies: dict[int, set[int]] = {}
    void = 0
    for one, other in zip(c.tolist(), d.tolist(), strict=True):
        if one == other:
            void += 1
            continue
        enemies.setdefault(one, set()).add(other)
        enemies.setdefault(other, set()).add(one)
    outcome = np.empty(len(a), dtype=np.int8)
    for place, (one, other) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        left, right = _root(parent, one), _root(parent, other)
        if left == right:
            outcome[place] = JOINED
        elif right in enemies.get(left, ()):
            outcome[place] = BLOCKED
        else:
            outcome[place] = MERGED
            _unite(parent, enemies, left, right)
    roots = np.array([_root(parent, each) for each in range(number)], dtype=np.int64)
    return Constrained(by_first(roots), outcome, void)


def naive_merges(size: int, merges: Pairs) -> IntArray:
    """Take all merges: one label per thing, groups numbered by their lowest member."""
    number = whole("size", size)
    groups = UnionFind(number)
    groups.union(*_pairs("merges", merges, number))
    return groups.labels()


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


def _pairs(name: str, pairs: Pairs, size: int) -> tuple[IntArray, IntArray]:
    if not isinstance(pairs, tuple | list) or len(pairs) != 2:
        raise ParameterError(f"{name} must be two arrays of equal length.")
    left, right = (ids(f"{name}[{side}]", values, size) for side, values in enumerate(pairs))
    if len(left) != len(right):
        raise ParameterError(f"{name} has {len(left)} ids on the left and {len(right)} on the right.")
    return left, right
