"""The first page's picture of the method: six steps, each with a small drawing of the same eight addresses.

The drawings are made of one tiny example: two owners with four addresses each, wrongly merged by one payment. The tree
is the average linkage of the drawn embeddings, and the cut lies halfway between its last two merges. Steps are a list,
so they stand side by side on a wide screen and below each other on a phone.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import average, fcluster, leaves_list
from scipy.spatial.distance import pdist

from btcnb.book.figures import COLOURS

OWNER = (0, 0, 0, 0, 1, 1, 1, 1)
PLACE = ((14, 22), (34, 12), (30, 38), (50, 30), (70, 48), (92, 36), (84, 66), (106, 56))
EDGES = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7))
"""Payments between the addresses; the one in the middle was signed by both owners."""
JOINT = (3, 4)
ANGLES = (204, 232, 176, 256, 322, 350, 17, 43)
"""Directions of the embeddings in degrees: cosine distance is all that the tree looks at."""
WIDTH, HEIGHT = 120.0, 80.0
_LINE = 'stroke="currentColor" stroke-opacity="0.55"'
_WRONG = f'stroke="{COLOURS[5]}" stroke-width="2.4" stroke-dasharray="5 3"'


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
        svg = f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" aria-hidden="true">{step.picture}</svg>'
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
