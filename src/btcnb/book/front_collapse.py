"""The first page's picture of a collapse: one heuristic cluster of a simulated economy, its addresses by true owner.

Nothing is drawn by hand: the cluster is looked for, its merges are those of the rules, and the caption counts them.
The drawing takes the page's own text colour, so it reads in light and dark mode.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import TypeAlias

import numpy as np
import pandas as pd

from btcnb.book.figures import COLOURS
from btcnb.data import Source, Transactions, heuristic_merges, simulate
from btcnb.data.components import components
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.data.judging.links import marked
from btcnb.errors import DataError

WORLD = Source(size="tiny", seed=1)
"""The economy of the picture; the interval is that of the test graph."""
ROLE = "test"
OWNERS, ADDRESSES, LEAST = (2, 4), (20, 80), 4
"""A cluster worth a picture: so many owners, so many addresses, and at least so many of each owner."""
WIDTH, GAP, TEXT = 360.0, 14.0, 13.0
SHAPES = ("circle", "square", "diamond", "triangle")

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Scene:
    """A cluster: `owner` of each of its addresses, by name, and its merges (address_a, address_b, wrong, tx)."""

    owner: pd.Series[str]
    merges: pd.DataFrame

    @property
    def caption(self) -> str:
        wrong = self.merges[self.merges["wrong"]]
        right, joint, strangers = len(self.merges) - len(wrong), wrong["tx"].nunique(), self.owner.nunique()
        several = f"The {len(wrong)} dashed ones, of {joint} transactions, are wrong"
        mistake = several if joint > 1 else "The dashed one, of a single transaction, is wrong"
        return (
            f"One cluster of a simulated economy: {len(self.owner)} addresses of {strangers} owners, each with a "
            f"colour and a shape. Thin lines are {right} right merges of the heuristics. {mistake}: to the "
            "heuristics, everything in the dotted frame is one “user”."
        )


def scene(txs: Transactions) -> Scene:
    """The cluster of a size for a picture that the fewest wrong merges have made; of several, the largest."""
    if txs.truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    owner = txs.truth.owner
    merges = marked(heuristic_merges(txs, config=interval_config(txs)), owner)
    labels = components(txs.num_addresses, merges["address_a"].to_numpy(), merges["address_b"].to_numpy())
    known = pd.DataFrame({"label": labels, "owner": owner})[owner >= 0]
    sizes = known.groupby(["label", "owner"]).size().groupby("label").agg(["size", "sum", "min"])
    fits = sizes[sizes["size"].between(*OWNERS) & sizes["sum"].between(*ADDRESSES) & (sizes["min"] >= LEAST)]
    if fits.empty:
        raise DataError(txs.source, "clusters", "none has collapsed so that a picture shows it", "take another world")
    misled = merges.loc[merges["wrong"], "address_a"].to_numpy()
    wrong = pd.Series(labels[misled]).value_counts()
    order = fits.assign(wrong=wrong.reindex(fits.index)).sort_values(["wrong", "sum"], ascending=[True, False])
    best = order.index[0]
    members = np.flatnonzero((labels == best) & (owner >= 0))
    kinds = txs.truth.entities["kind"].to_numpy()
    names = pd.Series([f"{kinds[owner[member]]} {owner[member]}" for member in members], index=members)
    inside = merges["address_a"].isin(members) & merges["address_b"].isin(members)
    return Scene(names, merges.loc[inside, ["address_a", "address_b", "wrong", "tx"]])


def collapse_svg() -> str:
    """The picture of the cluster that `scene` finds in `WORLD`, with its caption as the description."""
    return draw(scene(simulate(WORLD.economy(ROLE))))


def draw(shown: Scene) -> str:
    """The scene as SVG: two owners a row, the largest first, each as a disc of addresses with its name below."""
    counts = shown.owner.value_counts(sort=True)
    groups = {str(name): shown.owner.index[shown.owner == name] for name in counts.index}
    place, labels, step, height = _layout(groups)
    lines = shown.merges[["address_a", "address_b", "wrong"]].itertuples(index=False)
    ends = [(place[a], place[b], bool(wrong)) for a, b, wrong in lines]
    right, wrong = (
        " ".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b, mistaken in ends if mistaken == which)
        for which in (False, True)
    )
    frame = f'x="2" y="2" width="{WIDTH - 4:.0f}" height="{height - 4:.0f}" rx="14" stroke-opacity="0.6"'
    body = [
        f'<rect {frame} fill="none" stroke="currentColor" stroke-dasharray="2 4"/>',
        f'<path d="{right}" fill="none" stroke="currentColor" stroke-opacity="0.3" stroke-width="0.8"/>',
        *(
            _marks(SHAPES[i % len(SHAPES)], [place[address] for address in group], COLOURS[i], 0.4 * step)
            for i, group in enumerate(groups.values())
        ),
        f'<path d="{wrong}" fill="none" stroke="{COLOURS[5]}" stroke-width="2.2" stroke-dasharray="6 3"/>',
        *(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{TEXT:g}" fill="currentColor">'
            f"{html.escape(name)}: {len(groups[name])}</text>"
            for name, (x, y) in labels.items()
        ),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" '
            'aria-label="A heuristic cluster that holds several owners">',
            f"<desc>{html.escape(shown.caption)}</desc>",
            *body,
            "</svg>\n",
        ]
    )


def _layout(groups: Mapping[str, pd.Index[int]]) -> tuple[dict[int, Point], dict[str, Point], float, float]:
    """Where addresses and names stand, the distance between neighbours in a disc, and the height of it all.

    A disc is a sunflower: address i at an angle of i golden sections, √i steps from the middle.
    """
    names = list(groups)
    rows = [names[i : i + 2] for i in range(0, len(names), 2)]
    size = {name: sqrt(len(group)) + 0.6 for name, group in groups.items()}  # radius of a disc, in steps
    step = min((WIDTH - GAP * (len(row) + 1)) / (2 * sum(size[name] for name in row)) for row in rows)
    place: dict[int, Point] = {}
    labels: dict[str, Point] = {}
    top = GAP
    for row in rows:
        high = 2 * step * max(size[name] for name in row)
        room = (WIDTH - 2 * step * sum(size[name] for name in row)) / (len(row) + 1)
        x = 0.0
        for name in row:
            x += room + step * size[name]
            for i, address in enumerate(groups[name]):
                turn, far = i * pi * (3 - sqrt(5)), step * sqrt(i)
                place[int(address)] = (x + far * cos(turn), top + high / 2 + far * sin(turn))
            labels[name] = (x, top + high + TEXT)
            x += step * size[name]
        top += high + TEXT + GAP
    return place, labels, step, top


def _marks(shape: str, places: Sequence[Point], colour: str, r: float) -> str:
    """Addresses of one owner as one path; dots and squares are the ends of lines without length."""
    w = 1.3 * r
    corners = {
        "diamond": f"m0 {-w:.1f}l{w:.1f} {w:.1f} {-w:.1f} {w:.1f} {-w:.1f} {-w:.1f}z",
        "triangle": f"m0 {-1.2 * r:.1f}l{1.2 * r:.1f} {2.2 * r:.1f}h{-2.4 * r:.1f}z",
    }
    drawn = "".join(f"M{x:.1f} {y:.1f}{corners.get(shape, 'h0')}" for x, y in places)
    if shape in corners:
        return f'<path d="{drawn}" fill="{colour}"/>'
    cap = "round" if shape == "circle" else "square"
    return f'<path d="{drawn}" stroke="{colour}" stroke-width="{2 * r:.1f}" stroke-linecap="{cap}"/>'
