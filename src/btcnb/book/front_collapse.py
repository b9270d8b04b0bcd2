"""The first page's picture of a collapse: one heuristic cluster of a simulated economy, its addresses by true owner.

Nothing is drawn by hand: the cluster is looked for, its merges are those of the rules, and the caption counts them.
The drawing takes the page's own text colour, so it reads in light and dark mode.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from math import cos, pi, sin, sqrt

import numpy as np
import pandas as pd

from btcnb.book.style import COLOURS
from btcnb.data import Source, Transactions, heuristic_merges, simulate
from btcnb.data.against_owners import components
from btcnb.data.collapses import marked
from btcnb.data.entity_pairs import interval_config
from btcnb.errors import DataError

WORLD = Source(size="tiny", seed=7)
"""The economy of the picture; the interval is that of the test graph."""
ROLE = "test"
OWNERS, ADDRESSES, LEAST = (2, 4), (14, 70), 3
"""A cluster worth a picture: so many owners, so many addresses, and at least so many of each owner."""
WIDTH, STEP, RADIUS, TEXT = 360.0, 7.5, 4.6, 13.0
SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True)
class Scene:
    """A cluster: `owner` of each of its addresses, by name, and its merges (address_a, address_b, wrong, tx)."""

    owner: pd.Series[str]
    merges: pd.DataFrame

    @property
    def caption(self) -> str:
        wrong = self.merges[self.merges["wrong"]]
        right, joint, strangers = len(self.merges) - len(wrong), wrong["tx"].nunique(), self.owner.nunique()
        count = f"{joint} transaction{'s' * (joint != 1)}"
        return (
            f"One cluster of a simulated economy: {len(self.owner)} addresses of {strangers} owners, each with a "
            f"colour and a shape. Thin lines are the {right} right merges of the heuristics. The {len(wrong)} dashed "
            f"one{'s' * (len(wrong) != 1)}, from {count}, joined strangers, and the dotted frame is one *user*."
        )


def scene(txs: Transactions) -> Scene:
    """The cluster with the most owners that is small enough for a picture; of several, the most evenly mixed one."""
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
    best = fits.sort_values(["size", "min", "sum"], ascending=[False, False, True], kind="stable").index[0]
    members = np.flatnonzero((labels == best) & (owner >= 0))
    kinds = txs.truth.entities["kind"].to_numpy()
    names = pd.Series([f"{kinds[owner[member]]} {owner[member]}" for member in members], index=members)
    inside = merges["address_a"].isin(members) & merges["address_b"].isin(members)
    return Scene(names, merges.loc[inside, ["address_a", "address_b", "wrong", "tx"]])


def collapse_svg() -> str:
    """The picture of the cluster that `scene` finds in `WORLD`, with its caption as the description."""
    return draw(scene(simulate(WORLD.economy(ROLE))))


def draw(shown: Scene) -> str:
    """The scene as SVG: owners side by side, the largest first, each as a disc of addresses."""
    groups = [shown.owner.index[shown.owner == name] for name in shown.owner.value_counts(sort=True).index]
    radii = [STEP * sqrt(len(group)) + 2 * RADIUS for group in groups]
    height = 2 * max(radii) + TEXT + 24
    gap = (WIDTH - 2 * sum(radii)) / (len(groups) + 1)
    scale = min(1.0, (WIDTH - 12 * (len(groups) + 1)) / (2 * sum(radii)))
    gap = max(gap, 12.0)
    parts, place, x = [], {}, 0.0
    for number, (group, radius) in enumerate(zip(groups, radii, strict=True)):
        x += gap + radius * scale
        for i, address in enumerate(group):
            turn, far = i * pi * (3 - sqrt(5)), STEP * sqrt(i) * scale
            place[address] = (x + far * cos(turn), height / 2 - TEXT / 2 + far * sin(turn))
            parts.append(_mark(SHAPES[number], *place[address], COLOURS[number]))
        name = html.escape(str(shown.owner[group[0]]))
        parts.append(
            f'<text x="{x:.1f}" y="{height - 8:.1f}" text-anchor="middle" font-size="{TEXT:g}" fill="currentColor">'
            f"{name}</text>"
        )
        x += radius * scale
    lines = [
        _line(place[a], place[b], wrong)
        for a, b, wrong in shown.merges[["address_a", "address_b", "wrong"]].itertuples(index=False)
    ]
    frame = (
        f'<rect x="2" y="2" width="{WIDTH - 4:.0f}" height="{height - TEXT - 14:.1f}" rx="14" fill="none" '
        'stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="2 4"/>'
    )
    body = "\n".join([frame, *sorted(lines), *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">\n'
        f"<title>A heuristic cluster that holds several owners</title>\n<desc>{html.escape(shown.caption)}</desc>\n"
        f"{body}\n</svg>\n"
    )


def _line(a: tuple[float, float], b: tuple[float, float], wrong: bool) -> str:
    look = (
        f'stroke="{COLOURS[5]}" stroke-width="2.4" stroke-dasharray="6 3"'
        if wrong
        else 'stroke="currentColor" stroke-opacity="0.35"'
    )
    return f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" {look}/>'


def _mark(shape: str, x: float, y: float, colour: str) -> str:
    r = RADIUS
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" fill="{colour}"/>'
    corners = {
        "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
        "diamond": ((0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)),
        "triangle": ((0, -1.2 * r), (1.2 * r, r), (-1.2 * r, r)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'
