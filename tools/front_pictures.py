"""Draw the two pictures of the book's first page, `book/front/`: a collapse, and the method in six steps.

    python tools/front_pictures.py            # --check: write nothing; fail if a picture is out of date

Nothing is drawn by hand. The collapse is one heuristic cluster of a simulated economy, its addresses by true owner: the
cluster is looked for, its merges are those of the rules, and the caption counts them. The six steps show one tiny
example, two owners with four addresses each, wrongly merged by one payment: the tree is the average linkage of the
drawn embeddings, and the cut lies halfway between its last two merges. Steps are a list, so they stand side by side on
a wide screen and below each other on a phone. Drawings take the page's own text colour: they read in light and dark
mode.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import average, fcluster, leaves_list
from scipy.spatial.distance import pdist

from btcnb.book.figures import COLOURS
from btcnb.book.reading import chapter_pages
from btcnb.data import Source, Transactions, heuristic_merges, simulate
from btcnb.data.components import components
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.data.judging.links import marked
from btcnb.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
WORLD = Source(size="tiny", seed=1)
"""The economy of the picture; the interval is that of the test graph."""
ROLE = "test"
OWNERS, ADDRESSES, LEAST = (2, 4), (20, 80), 4
"""A cluster worth a picture: so many owners, so many addresses, and at least so many of each owner."""
COLLAPSE_WIDTH, GAP, TEXT = 360.0, 14.0, 13.0
SHAPES = ("circle", "square", "diamond", "triangle")

Point: TypeAlias = tuple[float, float]
OWNER = (0, 0, 0, 0, 1, 1, 1, 1)
PLACE = ((14, 22), (34, 12), (30, 38), (50, 30), (70, 48), (92, 36), (84, 66), (106, 56))
EDGES = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7))
"""Payments between the addresses; the one in the middle was signed by both owners."""
JOINT = (3, 4)
ANGLES = (204, 232, 176, 256, 322, 350, 17, 43)
"""Directions of the embeddings in degrees: cosine distance is all that the tree looks at."""
STEP_WIDTH, STEP_HEIGHT = 120.0, 80.0
_LINE = 'stroke="currentColor" stroke-opacity="0.55"'
_WRONG = f'stroke="{COLOURS[5]}" stroke-width="2.4" stroke-dasharray="5 3"'


# The collapse


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
    frame = f'x="2" y="2" width="{COLLAPSE_WIDTH - 4:.0f}" height="{height - 4:.0f}" rx="14" stroke-opacity="0.6"'
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
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLLAPSE_WIDTH:.0f} {height:.0f}" role="img" '
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
    step = min((COLLAPSE_WIDTH - GAP * (len(row) + 1)) / (2 * sum(size[name] for name in row)) for row in rows)
    place: dict[int, Point] = {}
    labels: dict[str, Point] = {}
    top = GAP
    for row in rows:
        high = 2 * step * max(size[name] for name in row)
        room = (COLLAPSE_WIDTH - 2 * step * sum(size[name] for name in row)) / (len(row) + 1)
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


# The six steps


@dataclass(frozen=True)
class Step:
    """A stage of the method: its name, what happens, its drawing, and the page that tells about it."""

    name: str
    words: str
    picture: str
    page: str


def pipeline_html(pages: dict[str, str]) -> str:
    """The steps as an ordered list of links; `pages` gives a chapter's page, as seen from the first page."""
    items = []
    for step in steps():
        svg = f'<svg viewBox="0 0 {STEP_WIDTH:.0f} {STEP_HEIGHT:.0f}" aria-hidden="true">{step.picture}</svg>'
        words = f"<b>{html.escape(step.name)}</b> <span>{html.escape(step.words)}</span>"
        items.append(f'<li><a href="{html.escape(pages[step.page])}">{svg}{words}</a></li>')
    return '<ol class="pipeline" aria-label="The method in six steps">\n' + "\n".join(items) + "\n</ol>\n"


def steps() -> list[Step]:
    """The six steps of the method, in order."""
    tree, threshold = _tree()
    cut = fcluster(tree, threshold, criterion="distance")
    marks, plain = _addresses(OWNER), _addresses([0] * len(OWNER))
    return [
        Step("Transactions", "Addresses pay and sign together.", _payments(JOINT) + marks, "01"),
        Step("Heuristics", "Who signs together is one user: here, wrongly.", _outline(range(8)) + plain, "02"),
        Step("Graph", "Payments are edges, clusters are labels.", _payments() + plain, "03"),
        Step("Embeddings", "A graph network places addresses that behave alike close together.", _embeddings(), "08"),
        Step("Tree", "Nearest embeddings merge first: a dendrogram.", _branches(tree, threshold), "09"),
        Step("Cut", "Merges above λ are suspicious: a split.", _split(cut) + _addresses(cut - cut.min()), "13"),
    ]


def _tree() -> tuple[np.ndarray, float]:
    """The average linkage of the embeddings, and a cut between its last two merges."""
    turn = np.radians(np.array(ANGLES))
    tree = average(pdist(np.column_stack([np.cos(turn), np.sin(turn)]), "cosine"))
    return tree, float(tree[-2:, 2].mean())


def _addresses(groups: Sequence[int] | np.ndarray, place: Sequence[tuple[float, float]] = PLACE) -> str:
    made = []
    for (x, y), group in zip(place, groups, strict=True):
        colour = COLOURS[int(group)]
        if group == 0:
            made.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        else:
            made.append(f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{colour}"/>')
    return "".join(made)


def _payments(joint: tuple[int, int] | None = None) -> str:
    made = []
    for a, b in EDGES:
        (x1, y1), (x2, y2) = PLACE[a], PLACE[b]
        look = _WRONG if (a, b) == joint else _LINE
        made.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {look}/>')
    return "".join(made)


def _outline(members: Sequence[int] | range) -> str:
    """A frame around some addresses: what counts as one user."""
    at = np.array([PLACE[member] for member in members], dtype=float)
    (left, top), (right, bottom) = at.min(axis=0) - 10, at.max(axis=0) + 10
    size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
    return f'<rect x="{left:.1f}" y="{top:.1f}" {size} rx="12" fill="none" {_LINE} stroke-dasharray="2 3"/>'


def _split(cut: np.ndarray) -> str:
    return "".join(_outline(np.flatnonzero(cut == part).tolist()) for part in np.unique(cut))


def _embeddings() -> str:
    """Points on the circle of directions."""
    turn = np.radians(np.array(ANGLES))
    at = [(60 + 32 * x, 40 - 32 * y) for x, y in zip(np.cos(turn), np.sin(turn), strict=True)]
    return f'<circle cx="60" cy="40" r="32" fill="none" {_LINE}/>' + _addresses(OWNER, at)


def _branches(tree: np.ndarray, threshold: float) -> str:
    """The dendrogram, leaves below; what lies above the threshold is dashed, and the threshold a line with its name."""
    n, order = len(tree) + 1, leaves_list(tree)
    x, y = np.zeros(2 * n - 1), np.full(2 * n - 1, 68.0)
    x[order] = 12 + 96 * np.arange(n) / (n - 1)
    made = []
    for m, (left, right, height, _) in enumerate(tree):
        a, b = int(left), int(right)
        x[n + m], y[n + m] = (x[a] + x[b]) / 2, 68 - 58 * height / tree[-1, 2]
        path = f"M{x[a]:.1f} {y[a]:.1f}V{y[n + m]:.1f}H{x[b]:.1f}V{y[b]:.1f}"
        made.append(f'<path d="{path}" fill="none" {_WRONG if height > threshold else _LINE}/>')
    at = 68 - 58 * threshold / tree[-1, 2]
    made.append(f'<line x1="4" y1="{at:.1f}" x2="108" y2="{at:.1f}" stroke="currentColor" stroke-dasharray="1 3"/>')
    made.append(f'<text x="110" y="{at + 4:.1f}" font-size="12" fill="currentColor">λ</text>')
    return "".join(made) + _addresses(OWNER, [(float(x[i]), 70.0) for i in range(n)])


def pictures() -> dict[Path, str]:
    """Both pictures by their path; the collapse takes a small simulation, a few seconds."""
    pages = {number: f"../notebooks/{page}" for number, page in chapter_pages().items()}
    folder = ROOT / "book" / "front"
    return {folder / "collapse.svg": collapse_svg(), folder / "pipeline.html": pipeline_html(pages)}


def main(arguments: Sequence[str]) -> int:
    made = pictures()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        print(*(f"out of date: {path.relative_to(ROOT)}" for path in stale), sep="\n")
        return len(stale)
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
