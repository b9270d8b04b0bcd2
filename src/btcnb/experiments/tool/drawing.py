"""What the pictures of the report show, as plain numbers; the template writes them as SVG without scripts.

A dendrogram is condensed first: drawn are flagged merges that join many with many, the rest is folded away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy

from btcnb.data.tables import plain
from btcnb.experiments.refine import Refined

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

FLAGGED, AT_LEAST = 24, 11
"""Flagged merges drawn at most; where there are fewer than the second number, others fill up to it."""
WIDTH, ROW, LABEL = 390.0, 17.0, 166.0
LEFT, TOP, BOTTOM = 12.0, 22.0, 40.0
COLOURS = 6
"""Colours of parts in the style sheet, `p0` to `p5`; `mixed` is the colour of several parts together."""
BINS = 36
MOST_LETTERS = 14


class Ends(NamedTuple):
    """Ends of a drawing, (k,) each: addresses and refined parts below them, the first leaf of the forest, its part."""

    addresses: IntArray
    parts: IntArray
    first: IntArray
    part: IntArray


class Condensed(NamedTuple):
    """The drawing of one cluster's tree: a linkage matrix over k ends, the side with more addresses on the left.

    addresses, part, undone: of each of its k - 1 merges the addresses below, the part of the first of them, and whether
        it is flagged
    all_addresses, all_parts: of the whole tree, whatever is drawn of it
    """

    Z: FloatArray
    ends: Ends
    addresses: IntArray
    part: IntArray
    undone: BoolArray
    all_addresses: int
    all_parts: int
    threshold: float

    @property
    def left_out(self) -> int:
        """Addresses that join in groups too small to be shown."""
        return self.all_addresses - int(self.ends.addresses.sum())


def condensed(found: Refined, t: int) -> Condensed:
    """Tree t of a refinement, of at least two leaves, with some two dozen ends at most."""
    Z, leaves, threshold = found.forest.tree(t), found.forest.leaves(t), float(found.thresholds[t])
    n, children, undone = len(leaves), Z[:, :2].astype(np.int64), Z[:, 2] >= threshold
    size = np.concatenate([found.leaf_sizes[leaves], np.zeros(n - 1, dtype=np.int64)])
    parts, first = np.ones(2 * n - 1, dtype=np.int64), np.arange(2 * n - 1)
    for m, (a, b) in enumerate(children):
        size[n + m], first[n + m] = size[a] + size[b], min(first[a], first[b])
        parts[n + m] = parts[a] + parts[b] - (not undone[m])
    keep = _drawn(Z, children, size, threshold)
    stands = np.full(2 * n - 1, -1)  # the topmost drawn merge at or below a node, -1 where none is drawn
    sides: list[IntArray] = []
    for m, pair in enumerate(children):
        below = np.where(stands[pair] >= 0, stands[pair], pair)
        stands[n + m] = n + m if keep[m] else stands[pair].max() if stands[pair].min() < 0 else stands[pair[0]]
        if keep[m]:
            sides.append(below[np.argsort(-size[below], kind="stable")])
    merges, nodes = np.flatnonzero(keep), np.array(sides)
    ends = np.setdiff1d(nodes, n + merges)
    place = np.zeros(2 * n - 1)
    place[ends], place[n + merges] = np.arange(len(ends)), len(ends) + np.arange(len(merges))
    drawn = np.column_stack([place[nodes], Z[merges, 2], np.ones(len(merges))])
    address = np.unique(found.leaf, return_index=True)[1][leaves]  # the first of each leaf
    part = found.partition[address[first]]
    of_ends = Ends(size[ends], parts[ends], leaves[first[ends]], part[ends])
    of_merges = (size[n + merges], part[n + merges], undone[merges])
    return Condensed(drawn, of_ends, *of_merges, int(size[-1]), int(parts[-1]), threshold)


def _drawn(Z: FloatArray, children: IntArray, size: IntArray, threshold: float) -> BoolArray:
    """The merges to draw: flagged ones first, then those whose smaller side holds most addresses; and the way to the
    most suspicious one.

    A merge inside the smaller side of another is flagged only if that one is, and has a smaller side still. So whatever
    leads to a drawn merge on its larger side can be left out, and nothing drawn is lost with it.
    """
    n, sides, undone = len(Z) + 1, size[children], Z[:, 2] >= threshold
    number = min(max(int(undone.sum()), AT_LEAST), FLAGGED)
    keep = np.zeros(n - 1, dtype=bool)
    keep[np.lexsort((Z[:, 2], sides.min(axis=1), undone))[::-1][:number]] = True
    wanted = n - 2
    if undone.any():
        balance = 4.0 * sides.prod(axis=1) / sides.sum(axis=1) ** 2.0
        wanted = int(np.argmax(np.where(undone, (Z[:, 2] - threshold) * balance, -1.0)))
    keep[wanted] = True
    node = n + wanted
    for m in range(wanted + 1, n - 1):
        if node in children[m]:
            here = int(children[m, 1] == node)
            keep[m] |= bool(sides[m, here] <= sides[m, 1 - here])
            node = n + m
    return keep


def short(text: str, most: int = MOST_LETTERS) -> str:
    """Beginning and end of an address; the middle says least."""
    text = plain(text)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def dendrogram(tree: Condensed, name_of: Callable[[int], str]) -> dict[str, Any]:
    """A tree from its root on the left to its ends on the right; `name_of` gives an example address of a leaf."""
    drawn = hierarchy.dendrogram(tree.Z, no_plot=True, link_color_func=str)  # the "colour" of a merge is its number
    ends, finite = tree.ends, math.isfinite(tree.threshold)
    colour: dict[int, str] = {}
    for end in drawn["leaves"]:
        colour.setdefault(int(ends.part[end]), f"p{len(colour) % COLOURS}")
    x = Scale(WIDTH - LABEL, LEFT, 1.06 * max(float(tree.Z[-1, 2]), tree.threshold if finite else 0.0, 1e-9))
    number, places, heights = (drawn[key] for key in ("color_list", "icoord", "dcoord"))
    merges = []
    for node, place, height in zip(number, places, heights, strict=True):
        m = int(node) - len(ends.part)
        a, b = TOP + ROW * place[0] / 10, TOP + ROW * place[2] / 10
        sides = [tree.addresses[c - len(ends.part)] if c >= len(ends.part) else ends.addresses[c]
                 for c in tree.Z[m, :2].astype(int)]  # fmt: skip
        merges.append(
            {
                "kind": "undone" if tree.undone[m] else colour[int(tree.part[m])],
                "path": f"M{x(height[0])} {a:.1f}H{x(height[1])}V{b:.1f}H{x(height[3])}",
                "height": height[1],
                "sides": [int(side) for side in sides],
                "undone": bool(tree.undone[m]),
                "x": x(height[1]),
                "y": (a + b) / 2,
            }
        )
    rows = [
        {
            "y": TOP + ROW * (row + 0.5),
            "kind": colour[int(ends.part[end])] if ends.parts[end] == 1 else "mixed",
            "name": name_of(int(ends.first[end])),
            "addresses": int(ends.addresses[end]),
            "parts": int(ends.parts[end]),
        }
        for row, end in enumerate(drawn["leaves"])
    ]
    at = x(tree.threshold) if finite else None
    return {
        "tree": tree,
        "height": TOP + ROW * len(rows) + BOTTOM,
        "bottom": TOP + ROW * len(rows),
        "right": WIDTH - LABEL,
        "merges": merges,
        "ends": rows,
        "ticks": [(x(tick), tick) for tick in ticks(x.top)],
        "cut": at,
        "anchor": None if at is None else "start" if at < WIDTH / 3 else "end" if at > WIDTH - LABEL - 40 else "middle",
    }


def histogram(kept: FloatArray, undone: FloatArray, threshold: float) -> dict[str, Any]:
    """How high all merges are, those kept and those flagged; the number of merges on a logarithmic scale."""
    base, finite = 140.0, math.isfinite(threshold)
    top = 1.02 * max(float(np.concatenate([kept, undone]).max()), threshold if finite else 0.0, 1e-9)
    edges = np.linspace(0.0, top, BINS + 1)
    counts = [np.histogram(values, edges)[0] for values in (kept, undone)]
    decades = max(math.ceil(math.log10(max(int(max(count.max() for count in counts)), 1) + 1)), 1)
    left = 14.0 + 6.4 * len(f"{10**decades:,}")
    x = Scale(left, WIDTH - 8, top)

    def y(number: float) -> float:
        return round(base - (base - 20) * math.log10(1 + number) / math.log10(1 + 10**decades), 1)

    bars = []
    for count, kind, share in zip(counts, ("kept", "flagged"), (0.86, 0.6), strict=True):
        for i in np.flatnonzero(count).tolist():
            middle, wide = (x(edges[i]) + x(edges[i + 1])) / 2, (x(edges[i + 1]) - x(edges[i])) * share
            box = {"x": middle - wide / 2, "y": y(count[i]), "width": wide, "height": base - y(count[i])}
            bars.append({"kind": kind, "number": int(count[i]), "low": edges[i], "high": edges[i + 1], **box})
    return {
        "left": left,
        "right": WIDTH - 8,
        "base": base,
        "grid": [(y(10**power), 10**power) for power in range(decades + 1)],
        "bars": bars,
        "ticks": [(x(tick), tick) for tick in ticks(top)],
        "cut": x(threshold) if finite else None,
    }


class Scale(NamedTuple):
    """From a value, 0 to `top`, to a place on the page."""

    zero: float
    end: float
    top: float

    def __call__(self, value: float) -> float:
        return round(self.zero + (self.end - self.zero) * value / self.top, 1)


def ticks(top: float) -> list[float]:
    """Round numbers from 0 up to `top`, four or five of them."""
    raw = top / 4
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * scale >= raw * 0.8) * scale
    return [round(step * i, 12) for i in range(math.floor(top / step) + 1)]
