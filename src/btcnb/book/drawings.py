"""Drawings of transactions, clusters and trees, and examples of transactions that are worth a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.patheffects import withStroke
from scipy.cluster import hierarchy

from btcnb.book.figures import COLOURS, KEPT, MARKERS
from btcnb.data import AddressGraph
from btcnb.data.transactions import Transactions

BTC = 100_000_000  # satoshi
GREY = "#bbbbbb"
OUTSIDE = "#b5b5b5"
"""Colour of neighbours: they belong to other clusters."""

Mask = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


# Transactions


def owner_names(txs: Transactions) -> npt.NDArray[np.object_]:
    """Per address: kind and number of its owner, `unknown` where the owner is not known; the address without truth."""
    if txs.truth is None:
        return txs.addresses
    kind = txs.truth.entities["kind"].tolist()
    return np.array([f"{kind[o]} {o}" if o >= 0 else "unknown" for o in txs.truth.owner.tolist()], dtype=object)


def plain_shape(txs: Transactions, inputs: int, outputs: int) -> Mask:
    """Per transaction: so many inputs and outputs, all of different known addresses."""
    fits = (np.diff(txs.input_offsets()) == inputs) & (np.diff(txs.output_offsets()) == outputs)
    ends = pd.concat(
        [table.loc[fits[table["tx"].to_numpy()], ["tx", "address"]] for table in (txs.inputs, txs.outputs)]
    )
    distinct = ends[ends["address"] >= 0].groupby("tx")["address"].nunique()
    return fits & (distinct.reindex(range(len(txs)), fill_value=0).to_numpy() == inputs + outputs)


def example_payment(txs: Transactions) -> int:
    """A payment of two inputs and two outputs, a round sum where the change is known; the next best otherwise."""
    value, first = txs.outputs["value"].to_numpy(), txs.output_offsets()[:-1]
    shaped = (np.diff(txs.input_offsets()) == 2) & (np.diff(txs.output_offsets()) == 2)
    truth = txs.truth
    if truth is not None and truth.change is not None and truth.coinjoin is not None:
        two = np.flatnonzero(shaped & (truth.change >= 0) & (truth.coinjoin == ""))
        paid = value[first[two] + 1 - truth.change[two]]
        returned = value[first[two] + truth.change[two]]
        two = two[(paid % 100_000 == 0) & (returned % 1_000 != 0)]
        if len(two):
            return int(two[len(two) // 2])
    ordinary = ~txs.transactions["is_coinbase"].to_numpy()
    for choice in (plain_shape(txs, 2, 2), shaped, ordinary, np.ones(len(txs), dtype=bool)):
        fits = np.flatnonzero(choice)
        if len(fits):
            return int(fits[len(fits) // 2])
    raise ValueError("there is no transaction at all")


def uneven_payment(txs: Transactions) -> int | None:
    """A payment from two addresses to two others, one input a few times the other; None where there is none.

    Such a payment shows how inputs share an output. The next best has two inputs and two outputs of any amounts.
    """
    fits = plain_shape(txs, 2, 2)
    value, first = txs.inputs["value"].to_numpy(), txs.input_offsets()[:-1]
    for tx in np.flatnonzero(fits).tolist():
        less, more = sorted(value[first[tx] : first[tx] + 2].tolist())
        if less > 0 and 1.5 < more / less < 6:
            return tx
    return int(fits.argmax()) if fits.any() else None


def payer_shades(txs: Transactions, tx: int, payer: str, others: str) -> npt.NDArray[np.object_]:
    """A colour per address: the owner of the transaction's first input, and everybody else; grey without truth."""
    senders = txs.inputs.loc[txs.inputs["tx"] == tx, "address"].to_numpy()
    if txs.truth is None or not len(senders) or senders[0] < 0:
        return np.full(txs.num_addresses, GREY, dtype=object)
    return np.where(txs.truth.owner == txs.truth.owner[senders[0]], payer, others).astype(object)


def say_nothing(ax: Axes, text: str) -> None:
    """An empty plate that says why it is empty."""
    ax.clear()
    ax.axis("off")
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)


def draw_transaction(
    ax: Axes, txs: Transactions, tx: int, names: Sequence[str] | None = None, colours: Sequence[str] | None = None
) -> None:
    """One transaction: a box for each input on the left, for each output on the right, amounts in BTC.

    `names` and `colours` have one entry per address id (say, its owner); without them the address itself is written.
    """
    inputs, outputs = (table[table["tx"] == tx][["address", "value"]].to_numpy() for table in (txs.inputs, txs.outputs))
    height = max(len(inputs), len(outputs))
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.2, height + 0.2)
    ax.axis("off")
    middle = FancyBboxPatch((4.4, height / 2 - 0.3), 1.2, 0.6, boxstyle="round,pad=0.05", fc=COLOURS[0], ec="none")
    ax.add_patch(middle)
    ax.text(5, height / 2, f"tx {tx}", color="white", ha="center", va="center", fontsize=9)
    for rows, left, tip in ((inputs, 0.1, (3.4, 4.4)), (outputs, 6.6, (5.6, 6.6))):
        for position, (address, value) in enumerate(rows):
            y = height - (position + 0.5) * height / len(rows)
            colour = "#dddddd" if colours is None or address < 0 else colours[address]
            ax.add_patch(FancyBboxPatch((left, y - 0.28), 3.3, 0.56, boxstyle="round,pad=0.04", fc=colour, alpha=0.35))
            text = "nobody (data)" if address < 0 else str(txs.addresses[address] if names is None else names[address])
            ax.text(left + 0.1, y, text[:22], va="center", fontsize=8.5)
            ax.text(left + 3.2, y, f"{value / BTC:.8f}", va="center", ha="right", fontsize=8.5, family="monospace")
            start, end = ((tip[0], y), (tip[1], height / 2)) if left < 5 else ((tip[0], height / 2), (tip[1], y))
            ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color="#777777", lw=1))


def draw_dag(ax: Axes, txs: Transactions) -> None:
    """The transaction graph: time runs to the right, an arrow is a coin that moves on, double circles are coinbases.

    A transaction stands in the layer of its longest path from a source.
    """
    spent = txs.inputs[txs.inputs["spent_output"] >= 0]
    parents = txs.outputs["tx"].to_numpy()[spent["spent_output"].to_numpy()]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(txs)))
    graph.add_edges_from(zip(parents.tolist(), spent["tx"].tolist(), strict=True))
    layers = {i: sorted(members, reverse=True) for i, members in enumerate(nx.topological_generations(graph))}
    place = nx.multipartite_layout(graph, subset_key=layers)
    coinbase = txs.transactions["is_coinbase"].to_numpy()
    colours = [COLOURS[1] if each else COLOURS[4] for each in coinbase]
    rings = np.flatnonzero(coinbase).tolist()
    nx.draw_networkx_nodes(graph, place, ax=ax, nodelist=rings, node_size=620, node_color="none", edgecolors="black")
    nx.draw_networkx_nodes(graph, place, ax=ax, node_size=380, node_color=colours, edgecolors="black")
    nx.draw_networkx_labels(graph, place, ax=ax, font_size=8)
    nx.draw_networkx_edges(graph, place, ax=ax, node_size=620, edge_color="#777777", arrowstyle="-|>", arrowsize=11)
    ax.axis("off")


# Clusters and trees


def scatter_clusters(ax: Axes, points: npt.ArrayLike, labels: npt.ArrayLike, **style: Any) -> None:
    """Points (n, 2), each cluster in a colour and a shape of its own (eight of each, then from the start)."""
    at, codes = np.asarray(points), np.asarray(labels)
    for code in np.unique(codes):
        look = {"color": COLOURS[code % len(COLOURS)], "marker": MARKERS[code % len(MARKERS)], "zorder": 3}
        ax.scatter(*at[codes == code].T, **(look | style))


def cliques_in_a_ring(clusters: int, size: int) -> FloatArray:
    """Places (clusters · size, 2) for a drawing of equal cliques: a circle of circles, the first one on top."""
    middle = 2 * np.pi * (np.arange(clusters) / clusters + 0.25)
    own = 2 * np.pi * np.arange(size) / size
    x = np.cos(middle)[:, None] + 0.5 * np.cos(own)
    y = np.sin(middle)[:, None] + 0.5 * np.sin(own)
    return np.column_stack([x.ravel(), y.ravel()])


def edge_lines(place: FloatArray, i: npt.ArrayLike, j: npt.ArrayLike) -> FloatArray:
    """All edges (i, j) as one poly-line (2, 3·edges) with gaps: far smaller in a page than one line per edge."""
    first, second = np.asarray(i), np.asarray(j)
    ends = np.full((len(first), 3, 2), np.nan)
    ends[:, 0], ends[:, 1] = place[first], place[second]
    return ends.reshape(-1, 2).T.round(2)


def spectral_plane(U: FloatArray, place: FloatArray) -> FloatArray:
    """Spectral embeddings (n, k ≥ 2) as points (n, 2), turned to lie like `place`, the drawing of the graph.

    Only directions at a right angle to the embedding of the constant vector are shown: it tells no two nodes apart.
    """
    k = U.shape[1]
    constant = U.sum(axis=0) / np.linalg.norm(U.sum(axis=0))
    basis = np.linalg.svd(np.eye(k) - np.outer(constant, constant))[0][:, : k - 1]
    left, _, right = np.linalg.svd(basis.T @ U.T @ place[:, : k - 1], full_matrices=False)
    flat = U @ basis @ (left @ right)
    return np.column_stack([flat, np.zeros(len(flat))])[:, :2]


def draw_tree(
    ax: Axes,
    Z: Any,
    threshold: float | None = None,
    leaf_colours: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Draw the linkage matrix Z; merges at the threshold or above are dashed and grey.

    leaf_colours, names: one for each leaf, in the order of the points
    Returns the leaves from left to right.
    """
    drawn = hierarchy.dendrogram(Z, no_plot=True)
    order = drawn["leaves"]
    for x, heights in zip(np.array(drawn["icoord"]) / 10 - 0.5, drawn["dcoord"], strict=True):
        undone = threshold is not None and heights[1] >= threshold
        style: dict[str, Any] = {"color": "#8a8a8a", "ls": "--"} if undone else {"color": COLOURS[0], "ls": "-"}
        ax.plot(x, heights, lw=1.5, **style)
    if leaf_colours is not None:
        below = np.full(len(order), -0.015 * Z[-1, 2])
        ax.scatter(np.arange(len(order)), below, c=[leaf_colours[i] for i in order], s=26, clip_on=False, zorder=3)
    if threshold is not None:
        ax.axhline(threshold, color="#111111", lw=1.2, ls=":")
    ax.set_xticks(np.arange(len(order)), [names[i] for i in order] if names is not None else [""] * len(order))
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="x", visible=False)
    return order


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


def neighbourhood(graph: AddressGraph, members: npt.ArrayLike, most: int = 40, seed: int = 0) -> Neighbourhood:
    """The subgraph induced by some nodes and their immediate neighbours, laid out by springs (the same every time).

    most: neighbours drawn at most, those with the most edges into the cluster
    """
    inside = np.unique(np.asarray(members, dtype=np.int64))
    edges = graph.edge_index()
    touching = edges[:, np.isin(edges, inside).any(axis=0)]
    others, counts = np.unique(touching[~np.isin(touching, inside)], return_counts=True)
    chosen = np.sort(others[np.argsort(-counts, kind="stable")[:most]])
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
    halo = [withStroke(linewidth=1.6, foreground="#222222")]  # around white numbers on discs of any colour
    for number, at in enumerate(place[: drawn.members]):
        look = {"fontsize": 7.5, "color": "white", "zorder": 4, "path_effects": halo, "gid": f"{KEPT}-number-{number}"}
        ax.annotate(str(number), at, ha="center", va="center", **look)
    ax.set_aspect("equal")
    ax.axis("off")
