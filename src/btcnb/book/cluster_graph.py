"""A heuristic cluster as a graph: its addresses, numbered, and their immediate neighbours (the paper's Figure 3)."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from btcnb import gates
from btcnb.book.inks import KEPT
from btcnb.book.style import COLOURS, MARKERS
from btcnb.data import AddressGraph
from btcnb.errors import DataError

OUTSIDE = "#b5b5b5"
"""Colour of neighbours: they belong to other clusters."""
MOST = 40
"""Neighbours drawn at most: those with the most edges into the cluster."""
HALO = [withStroke(linewidth=1.6, foreground="#222222")]
"""Around white numbers on discs of any colour."""
WIDTH, HEIGHT, MARGIN = 760.0, 420.0, 18.0


class Neighbourhood(NamedTuple):
    """A small drawing of a part of a graph.

    nodes (m,): positions in the graph, the cluster's own `members` first; edges (e, 2): rows of `nodes`; place (m, 2):
    where they are drawn, in [-1, 1]; left_out: neighbours that are not drawn
    """

    nodes: Any
    members: int
    edges: Any
    place: Any
    left_out: int


def neighbourhood(graph: AddressGraph, members: npt.ArrayLike, most: int = MOST, seed: int = 0) -> Neighbourhood:
    """The subgraph induced by some nodes and their immediate neighbours, laid out by springs (the same every time)."""
    inside = np.unique(gates.array("members", members, 1, "iu").astype(np.int64))
    if not len(inside) or inside[0] < 0 or inside[-1] >= gates.instance("graph", graph, AddressGraph).num_nodes:
        raise DataError("members", "nodes", "are none, or lie outside the graph", "give positions of nodes")
    edges = graph.edge_index()
    touching = edges[:, np.isin(edges, inside).any(axis=0)]
    others, counts = np.unique(touching[~np.isin(touching, inside)], return_counts=True)
    chosen = np.sort(others[np.argsort(-counts, kind="stable")[: gates.whole("most", most, "[0, 10000]")]])
    nodes = np.concatenate([inside, chosen])
    kept = touching[:, np.isin(touching, nodes).all(axis=0)]
    order = np.argsort(nodes)
    rows = order[np.searchsorted(nodes[order], kept)]
    pairs = np.unique(np.sort(rows, axis=0), axis=1).T
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    drawn = nx.Graph()
    drawn.add_nodes_from(range(len(nodes)))
    drawn.add_edges_from(map(tuple, pairs.tolist()))
    place = nx.spring_layout(drawn, seed=seed, k=1.6 / np.sqrt(max(len(nodes), 1)), iterations=120)
    return Neighbourhood(
        nodes, len(inside), pairs, np.array([place[i] for i in range(len(nodes))]), len(others) - len(chosen)
    )


def draw_neighbourhood(ax: Axes, drawn: Neighbourhood, groups: npt.ArrayLike) -> None:
    """Draw a cluster and its neighbours: each group of members (m,) in a colour and a shape of its own, numbered."""
    codes, place = np.asarray(groups), np.asarray(drawn.place)
    for a, b in drawn.edges:
        ax.plot(*place[[a, b]].T, color="#cccccc", lw=0.8, zorder=1)
    outside = place[drawn.members :]
    ax.scatter(outside[:, 0], outside[:, 1], s=18, color=OUTSIDE, zorder=2)
    for code in np.unique(codes):
        look: dict[str, Any] = {"color": COLOURS[code % (len(COLOURS) - 1)], "marker": MARKERS[code % len(MARKERS)]}
        group = place[: drawn.members][codes == code]
        ax.scatter(group[:, 0], group[:, 1], s=150, zorder=3, edgecolor="#222222", **look)
    for number, at in enumerate(place[: drawn.members]):
        look = {"fontsize": 7.5, "color": "white", "zorder": 4, "path_effects": HALO, "gid": f"{KEPT}-number-{number}"}
        ax.annotate(str(number), at, ha="center", va="center", **look)
    ax.set_aspect("equal")
    ax.axis("off")


def neighbourhood_svg(drawn: Neighbourhood, leaves: Sequence[int], names: Sequence[str]) -> str:
    """The same as SVG whose members can be painted anew: circles of class `node` with `data-leaf`, see
    `dendrogram_html`.

    leaves: for each member its place from the left in the dendrogram; names: what a pointer reads out, one per member
    """
    low, high = drawn.place.min(axis=0), drawn.place.max(axis=0)
    scale = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN]) / np.maximum(high - low, 1e-9)
    at = MARGIN + (drawn.place - low) * scale
    parts = [
        f'<line x1="{at[a, 0]:.1f}" y1="{at[a, 1]:.1f}" x2="{at[b, 0]:.1f}" y2="{at[b, 1]:.1f}" stroke="currentColor" '
        'stroke-opacity="0.3"/>'
        for a, b in drawn.edges
    ]
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{OUTSIDE}"/>' for x, y in at[drawn.members :]]
    for number, (x, y) in enumerate(at[: drawn.members]):
        parts.append(
            f'<circle class="node" data-leaf="{leaves[number]}" cx="{x:.1f}" cy="{y:.1f}" r="10" stroke="currentColor">'
            f"<title>{html.escape(names[number])}</title></circle>"
            f'<text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" font-size="11" fill="#fff" '
            f'stroke="#222" stroke-width="2" paint-order="stroke" '
            f'pointer-events="none">{number}</text>'
        )
    alt = f"The cluster's {drawn.members} addresses, numbered, and {len(at) - drawn.members} neighbours, grey"
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{alt}">'
    return f"{head}\n{''.join(parts)}\n</svg>"
