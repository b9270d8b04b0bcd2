"""A dendrogram small enough to read: flagged merges that join many with many; the rest is folded away."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.tables import plain
from btcnb.experiments.refine import Refined

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


WIDTH, ROW, LABEL = 390.0, 17.0, 166.0
LEFT, TOP, BOTTOM = 12.0, 22.0, 40.0
COLOURS = 6
"""Colours of parts in the style sheet, `p0` to `p5`; `mixed` is the colour of several parts together."""
BINS = 36
MOST_LETTERS = 14


def esc(value: Any) -> str:
    """Text from data for a page: one line, nothing in it that a browser acts on."""
    return html.escape(plain(value), quote=True)


def short(text: str, most: int = MOST_LETTERS) -> str:
    """Beginning and end of an address; the middle says least."""
    text = plain(text)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def dendrogram(tree: Condensed, name_of: Callable[[int], str], title: str, cut: str = "λ") -> str:
    """A tree from its root on the left to its ends on the right; `name_of` gives an example address of a leaf.

    cut: what the threshold is called
    """
    ends = tree.root.ends()
    colour = _colours(ends)
    height = TOP + ROW * len(ends) + BOTTOM
    lambda_ = tree.threshold if math.isfinite(tree.threshold) else 0.0
    right, top = WIDTH - LABEL, 1.06 * max(tree.root.height, lambda_, 1e-9)

    def x(value: float) -> float:
        return round(right - (right - LEFT) * value / top, 1)

    place = {id(end): TOP + ROW * (row + 0.5) for row, end in enumerate(ends)}
    parts = _axis(x, top, TOP + ROW * len(ends))
    parts += _merges(tree.root, place, x, colour)
    parts += [_end(end, place[id(end)], right, colour[end.part], name_of(end.first)) for end in ends]
    if math.isfinite(tree.threshold):
        parts.append(_cut(x(tree.threshold), TOP + ROW * len(ends), f"{cut} = {tree.threshold:.3f}"))
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{esc(title)}">'
    return f"{head}{''.join(parts)}</svg>"


def _colours(ends: Sequence[Branch]) -> dict[int, str]:
    """A class per refined part, in order of appearance."""
    found: dict[int, str] = {}
    for end in ends:
        found.setdefault(end.part, f"p{len(found) % COLOURS}")
    return found


def _merges(root: Branch, place: dict[int, float], x: Callable[[float], float], colour: dict[int, str]) -> list[str]:
    """Brackets, from the ends to the root; `place` gets the row of every merge."""
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        if node.children:
            order.append(node)
            stack += node.children
    lines = []
    for node in reversed(order):
        a, b = (place[id(child)] for child in node.children)
        place[id(node)] = (a + b) / 2
        here = x(node.height)
        xa, xb = (x(child.height) for child in node.children)
        kind = "undone" if node.undone else colour[node.part]
        sides = " and ".join(f"{child.addresses:,}" for child in node.children)
        said = f"height {node.height:.3f}, joins {sides} addresses{': flagged' if node.undone else ''}"
        lines.append(f'<path class="merge {kind}" d="M{xa} {a:.1f}H{here}V{b:.1f}H{xb}"><title>{said}</title></path>')
        if node.undone:
            lines.append(f'<circle class="joint" cx="{here}" cy="{place[id(node)]:.1f}" r="3"/>')
    start = place[id(root)]
    lines.append(f'<path class="stem" d="M{x(root.height)} {start:.1f}H{LEFT - 6}"/>')
    return lines


def _end(end: Branch, y: float, right: float, colour: str, name: str) -> str:
    kind = colour if end.parts == 1 else "mixed"
    number = f"{end.addresses:,} in {end.parts:,} parts" if end.parts > 1 else f"{end.addresses:,} addresses"
    said = f"{short(name, 90)}, {number if end.addresses > 1 else 'one address'}"
    shown = f" ×{end.addresses:,}" if end.addresses > 1 else ""
    shown += f" in {end.parts:,}" if end.parts > 1 else ""
    return (
        f'<g><title>{esc(said)}</title><circle class="end {kind}" cx="{right}" cy="{y:.1f}" r="4"/>'
        f'<text class="name" x="{right + 9}" y="{y + 3.5:.1f}">{esc(short(name))}'
        f'<tspan class="times">{esc(shown)}</tspan></text></g>'
    )


def _cut(x: float, bottom: float, words: str) -> str:
    anchor = "start" if x < WIDTH / 3 else "end" if x > WIDTH - LABEL - 40 else "middle"
    return (
        f'<line class="cut" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom + 4:.1f}"/>'
        f'<text class="cut-name" x="{x}" y="{TOP - 10}" text-anchor="{anchor}">{esc(words)}</text>'
    )


def _axis(x: Callable[[float], float], top: float, bottom: float) -> list[str]:
    parts = [f'<line class="axis" x1="{x(top)}" x2="{x(0.0)}" y1="{bottom + 4:.1f}" y2="{bottom + 4:.1f}"/>']
    for tick in ticks(top):
        at = x(tick)
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{bottom + 4:.1f}" y2="{bottom + 8:.1f}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 19:.1f}" text-anchor="middle">{tick:g}</text>')
    middle = (x(top) + x(0.0)) / 2
    label = "cosine distance at which two sides merge"
    parts.append(f'<text class="tick" x="{middle:.1f}" y="{bottom + 33:.1f}" text-anchor="middle">{label}</text>')
    return parts


def ticks(top: float) -> list[float]:
    """Round numbers from 0 up to `top`, four or five of them."""
    raw = top / 4
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * scale >= raw * 0.8) * scale
    return [round(step * i, 12) for i in range(math.floor(top / step) + 1)]


def heights_picture(kept: Any, undone: Any, threshold: float) -> str:
    """How high all merges are, those kept and those flagged; the number of merges on a logarithmic scale."""
    width, height, base = WIDTH, 182.0, 140.0
    every = np.concatenate([kept, undone])
    top = 1.02 * max(float(every.max(initial=0.0)), threshold if math.isfinite(threshold) else 0.0, 1e-9)
    edges = np.linspace(0.0, top, BINS + 1)
    counts = [np.histogram(values, edges)[0] for values in (kept, undone)]
    most = max(int(max(count.max() for count in counts)), 1)
    decades = max(math.ceil(math.log10(most + 1)), 1)
    left = 14.0 + 6.4 * len(f"{10**decades:,}")

    def x(value: float) -> float:
        return round(left + (width - left - 8) * value / top, 1)

    def y(number: float) -> float:
        return round(base - (base - 20) * math.log10(1 + number) / math.log10(1 + 10**decades), 1)

    parts = []
    for power in range(decades + 1):
        at = y(10**power)
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 8}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{left - 5}" y="{at + 4}" text-anchor="end">{10**power:,}</text>')
    for count, kind, share in zip(counts, ("bar", "bar undone-bar"), (0.86, 0.6), strict=True):
        for i in np.flatnonzero(count):
            wide = (x(edges[i + 1]) - x(edges[i])) * share
            at = (x(edges[i]) + x(edges[i + 1])) / 2 - wide / 2
            said = f"{count[i]:,} {'flagged' if kind != 'bar' else 'kept'}, height {edges[i]:.3f} to {edges[i + 1]:.3f}"
            box = f'x="{at:.1f}" y="{y(count[i])}" width="{wide:.1f}" height="{base - y(count[i]):.1f}"'
            parts.append(f'<rect class="{kind}" {box}><title>{said}</title></rect>')
    parts.append(f'<line class="axis" x1="{left}" x2="{width - 8}" y1="{base}" y2="{base}"/>')
    parts += [
        f'<text class="tick" x="{x(tick)}" y="{base + 14}" text-anchor="middle">{tick:g}</text>' for tick in ticks(top)
    ]
    label = f'<text class="tick" x="{(left + width - 8) / 2}" y="{base + 30}" text-anchor="middle">'
    parts.append(f"{label}cosine distance of the merge</text>")
    parts.append(f'<text class="tick" x="{left - 5}" y="10" text-anchor="end">merges</text>')
    if math.isfinite(threshold):
        at = x(threshold)
        parts.append(f'<line class="cut" x1="{at}" x2="{at}" y1="4" y2="{base}"/>')
        side, anchor = (-4, "end") if at > width - 80 else (4, "start")
        parts.append(f'<text class="cut-name" x="{at + side}" y="14" text-anchor="{anchor}">λ = {threshold:.3f}</text>')
    said = f"Heights of {len(every):,} merges, {len(undone):,} of them flagged"
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{said}">{"".join(parts)}</svg>'
