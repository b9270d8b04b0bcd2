"""A dendrogram small enough to read: flagged merges that join many with many; the rest is folded away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.experiments.refiner import Refined

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

FLAGGED, AT_LEAST = 24, 11
"""Flagged merges drawn at most; where there are fewer than the second number, others fill up to it."""


@dataclass(frozen=True)
class Branch:
    """A node of the drawing.

    merge:     number of the merge in the whole tree, -1 for an end of the drawing
    height:    of the merge, 0 at an end
    addresses: below it, those left out included; first: the first leaf of the forest below it
    parts:     refined clusters among them; part: the first leaf's
    undone:    whether the merge is flagged; children: two, or none
    """

    merge: int
    height: float
    addresses: int
    first: int
    parts: int
    part: int
    undone: bool = False
    children: tuple[Branch, ...] = ()

    def ends(self) -> list[Branch]:
        """Ends of the drawing, from first to last."""
        found, stack = [], [self]
        while stack:
            node = stack.pop()
            stack += reversed(node.children)
            if not node.children:
                found.append(node)
        return found


@dataclass(frozen=True)
class Condensed:
    """The drawing of one cluster's tree; addresses and parts of the whole tree, whatever is drawn of it."""

    root: Branch
    addresses: int
    parts: int
    threshold: float

    @property
    def left_out(self) -> int:
        """Addresses that join in groups too small to be shown."""
        return self.addresses - sum(end.addresses for end in self.root.ends())


class _Tree:
    """One tree of a forest, with what the nodes hold; leaves 0..n-1, merge m is node n + m."""

    def __init__(self, found: Refined, t: int) -> None:
        self.Z = found.forest.tree(t)
        self.leaves = found.forest.leaves(t)
        self.n = len(self.leaves)
        self.children = self.Z[:, :2].astype(np.int64)
        self.threshold = float(found.thresholds[t])
        self.undone: BoolArray = self.Z[:, 2] >= self.threshold
        first_address = np.unique(found.leaf, return_index=True)[1]
        self.part = found.partition[first_address[self.leaves]]
        self.addresses = self._sums(found.leaf_sizes[self.leaves], 0)
        self.parts = self._sums(np.ones(self.n, dtype=np.int64), -1, ~self.undone)
        self.first = np.arange(2 * self.n - 1)
        for m, (a, b) in enumerate(self.children):
            self.first[self.n + m] = min(self.first[a], self.first[b])
        self.sides = self.addresses[self.children]

    def _sums(self, of_leaves: IntArray, less: int, where: Any = True) -> IntArray:
        """A number per node: that of its two children together, and `less` where the merge says so."""
        found = np.concatenate([of_leaves, np.zeros(self.n - 1, dtype=np.int64)])
        extra = np.where(where, less, 0) * np.ones(self.n - 1, dtype=np.int64)
        for m, (a, b) in enumerate(self.children):
            found[self.n + m] = found[a] + found[b] + extra[m]
        return found

    def most_suspicious(self) -> int:
        """The flagged merge with the largest excess times balance; the root where none is flagged."""
        if not self.undone.any():
            return self.n - 2
        balance = 4.0 * self.sides.prod(axis=1) / self.sides.sum(axis=1) ** 2.0
        return int(np.argmax(np.where(self.undone, (self.Z[:, 2] - self.threshold) * balance, -1.0)))

    def kept(self) -> BoolArray:
        """The merges to draw: flagged ones first, then those whose smaller side holds most addresses; and the way to
        the most suspicious one.

        A merge inside the smaller side of another is flagged only if that one is, and has a smaller side still. So
        whatever leads to a drawn merge on its larger side can be left out, and nothing drawn is lost with it.
        """
        number = min(max(int(self.undone.sum()), AT_LEAST), FLAGGED)
        keep = np.zeros(self.n - 1, dtype=bool)
        keep[np.lexsort((self.Z[:, 2], self.sides.min(axis=1), self.undone))[::-1][:number]] = True
        wanted = self.most_suspicious()
        keep[wanted] = True
        below = np.zeros(2 * self.n - 1, dtype=bool)
        below[self.n + wanted] = True
        for m in range(wanted + 1, self.n - 1):
            a, b = self.children[m]
            if below[a] or below[b]:
                below[self.n + m] = True
                here, other = (0, 1) if below[a] else (1, 0)
                keep[m] |= bool(self.sides[m, here] <= self.sides[m, other])
        return keep


def condensed(found: Refined, t: int) -> Condensed:
    """Tree t, of at least two leaves, with some two dozen ends at most."""
    tree = _Tree(found, t)
    keep = tree.kept()
    inside = np.zeros(2 * tree.n - 1, dtype=bool)  # whether a drawn merge lies at or below a node
    for m, (a, b) in enumerate(tree.children):
        inside[tree.n + m] = keep[m] or inside[a] or inside[b]
    made: dict[int, Branch] = {}
    for node in _downwards(tree, keep, inside):  # children come before the merges that join them
        m = node - tree.n
        if m >= 0 and keep[m]:
            pair = [_landing(tree, int(child), keep, inside) for child in tree.children[m]]
            pair.sort(key=lambda child: -made[child].addresses)
            made[node] = _branch(tree, node, m, tuple(made[child] for child in pair))
        else:
            made[node] = _branch(tree, node, -1, ())
    root = made[_landing(tree, 2 * tree.n - 2, keep, inside)]
    return Condensed(root, int(tree.addresses[-1]), int(tree.parts[-1]), tree.threshold)


def _landing(tree: _Tree, node: int, keep: BoolArray, inside: BoolArray) -> int:
    """The node that is drawn for a node: itself, or the first drawn merge along its larger sides."""
    while node >= tree.n and inside[node] and not keep[node - tree.n]:
        a, b = tree.children[node - tree.n]
        node = int(a if inside[a] else b)
    return node


def _downwards(tree: _Tree, keep: BoolArray, inside: BoolArray) -> list[int]:
    """Drawn nodes in an order in which children come first."""
    stack, found = [_landing(tree, 2 * tree.n - 2, keep, inside)], []
    while stack:
        node = stack.pop()
        found.append(node)
        if node >= tree.n and keep[node - tree.n]:
            stack += [_landing(tree, int(child), keep, inside) for child in tree.children[node - tree.n]]
    return found[::-1]


def _branch(tree: _Tree, node: int, merge: int, children: tuple[Branch, ...]) -> Branch:
    first = int(tree.first[node])
    return Branch(
        merge=merge,
        height=float(tree.Z[merge, 2]) if merge >= 0 else 0.0,
        addresses=int(tree.addresses[node]),
        first=int(tree.leaves[first]),
        parts=int(tree.parts[node]),
        part=int(tree.part[first]),
        undone=bool(tree.undone[merge]) if merge >= 0 else False,
        children=children,
    )
