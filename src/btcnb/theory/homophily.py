"""Homophily of labels on a graph: the cut ratio and its permutation test, connected groups, and controls.

The cut ratio is the share of edges that join two clusters. The test (paper, appendix "Approaching the theoretical
conditions") permutes the labels of a small share of the nodes among themselves, many times, and asks how often the
permuted labels cut fewer edges than the original ones. It gives two numbers that answer different questions. The
p-value asks whether labels and graph are related at all. The z-score compares the mean loss to its spread. Nearly
every permuted node loses its edges inside its cluster, so the spread is that of a sum of internal degrees: see
`predicted_z`.

The paper also expects the addresses of one user to form connected subgraphs (section 4.1) and to lie close together
(section 5.1). In a graph with hubs a node of high degree is close to everything, so groups are compared with groups of
the same sizes and degrees that have nothing else in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb.errors import ParameterError
from btcnb.theory.laplacian import FloatArray, IntArray, cluster_codes

SizeBand = tuple[int, int]
Endpoints = Literal["both", "either"]

PAPER_BANDS: tuple[SizeBand, ...] = ((10, 100), (100, 1000), (1000, 5000))
"""The paper's bands of cluster sizes, low ≤ size < high."""

CLASS = 20
"""A stand-in is drawn from at least this many nodes: if fewer have the same degree, the nearest degrees join them."""


def cut_ratio(edge_index: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Share of the edges (columns of `edge_index`, shape (2, E)) whose two ends carry different labels.

    0 is perfect homophily; NaN without edges.
    """
    a, b = np.asarray(labels)[np.asarray(edge_index, dtype=np.int64)]
    return float(np.mean(a != b)) if len(a) else float("nan")


def band_subgraph(
    edge_index: npt.ArrayLike, labels: npt.ArrayLike, band: SizeBand, *, endpoints: Endpoints = "both"
) -> tuple[IntArray, IntArray]:
    """Edges (2, E') and labels of the part of the graph in clusters of size low ≤ size < high, nodes renumbered.

    `endpoints="both"` keeps the edges with both ends in such clusters (the induced subgraph, our reading of
    "restricted to subgraphs of size 10–100"); `"either"` keeps those with at least one end there.
    """
    codes, sizes = cluster_codes(labels)
    edges = np.asarray(edge_index, dtype=np.int64)
    inside = (sizes[codes] >= band[0]) & (sizes[codes] < band[1])
    ends = inside[edges]
    edges = edges[:, ends.all(axis=0) if endpoints == "both" else ends.any(axis=0)]
    kept = inside.copy()
    kept[edges] = True
    position = np.cumsum(kept) - 1
    return position[edges], codes[kept]


@dataclass(frozen=True)
class CutRatioTest:
    """Outcome of the permutation test."""

    observed: float
    """cut ratio of the labels as they are"""
    permuted: FloatArray
    """cut ratio of every trial, shape (trials,)"""
    share: float
    """share of the nodes whose labels are permuted"""

    @property
    def mean(self) -> float:
        return float(self.permuted.mean())

    @property
    def std(self) -> float:
        return float(self.permuted.std(ddof=1))

    @property
    def z(self) -> float:
        """(observed − mean) / std, the paper's z-score: negative when permuting cuts more edges; 0 if no trial
        changes anything."""
        shift = self.observed - self.mean
        if self.std > 1e-12:
            return shift / self.std
        return float(np.sign(shift) * np.inf) if abs(shift) > 1e-12 else 0.0

    @property
    def p_value(self) -> float:
        """The paper's p-value: the share of trials that are strictly more homophilic than the original."""
        return float(np.mean(self.permuted < self.observed))

    @property
    def p_value_valid(self) -> float:
        """(1 + trials at least as homophilic) / (1 + trials): never zero, and valid as a Monte-Carlo p-value."""
        return float((1 + (self.permuted <= self.observed).sum()) / (1 + len(self.permuted)))

    @property
    def skewness(self) -> float:
        """Third standardised moment of the trials; a normal distribution has 0."""
        spread = self.permuted - self.mean
        return float((spread**3).mean() / max((spread**2).mean() ** 1.5, 1e-300))


def cut_ratio_test(
    edge_index: npt.ArrayLike, labels: npt.ArrayLike, share: float = 0.01, trials: int = 300, seed: int = 0
) -> CutRatioTest:
    """The cut ratio after permuting the labels of a random `share` of the nodes among themselves, `trials` times.

    A trial looks only at the edges of permuted nodes, about 2·share·E of them.
    """
    codes, _ = cluster_codes(labels)
    edges = np.asarray(edge_index, dtype=np.int64)
    chosen = round(share * len(codes))
    if chosen < 2:  # nothing would be permuted, and the p-value would be 0
        raise ParameterError(f"share {share} is {chosen} of {len(codes)} nodes, but at least 2 nodes must be permuted.")
    a, b = edges[:, edges[0] != edges[1]]  # a self-loop is never cut
    ends = (np.concatenate([a, b]), np.concatenate([b, a]))
    parallel = coo_array((np.ones(2 * len(a), dtype=np.int32), ends), shape=(len(codes),) * 2).tocsr()
    cut = int((codes[a] != codes[b]).sum())
    changes = np.empty(trials, dtype=np.int64)
    rng = np.random.default_rng(seed)
    permuted, marked = codes.copy(), np.zeros(len(codes), dtype=np.bool_)
    for trial in range(trials):
        nodes = rng.choice(len(codes), chosen, replace=False, shuffle=False)
        permuted[nodes], marked[nodes] = rng.permutation(codes[nodes]), True
        changes[trial] = _cut_change(nodes, codes, permuted, marked, parallel.indptr, parallel.indices, parallel.data)
        permuted[nodes], marked[nodes] = codes[nodes], False
    number = edges.shape[1]
    return CutRatioTest(cut / number, (cut + changes) / number, share)


@njit(cache=True)
def _cut_change(
    nodes: IntArray,
    codes: IntArray,
    permuted: IntArray,
    marked: npt.NDArray[np.bool_],
    start: npt.NDArray[np.int32],
    neighbour: npt.NDArray[np.int32],
    parallel: npt.NDArray[np.int32],
) -> int:
    """Change in the number of cut edges from labels `codes` (n,) to `permuted` (n,), which differ at `nodes` only.

    `marked` (n,) is true at `nodes`. The neighbours of u are neighbour[start[u] : start[u + 1]], with the numbers of
    `parallel` edges.
    """
    change = 0
    for u in nodes:
        for entry in range(start[u], start[u + 1]):
            v = neighbour[entry]
            if marked[v] and v < u:  # an edge between two permuted nodes counts once, from its smaller end
                continue
            change += parallel[entry] * (int(permuted[u] != permuted[v]) - int(codes[u] != codes[v]))
    return change


def predicted_z(edge_index: npt.ArrayLike, labels: npt.ArrayLike, share: float = 0.01) -> float:
    """The z-score of the test if permuted nodes only lose internal edges: −√(m / (1 − share)) / CV(internal degree).

    m = share·n nodes are drawn without replacement and each loses its internal degree d; the loss then has mean
    m·mean(d) and variance m·(1 − share)·var(d). The strength of homophily (the scale of d) cancels.
    """
    codes, _ = cluster_codes(labels)
    edges = np.asarray(edge_index, dtype=np.int64)
    internal = edges[:, (codes[edges[0]] == codes[edges[1]]) & (edges[0] != edges[1])]
    degree = np.bincount(internal.ravel(), minlength=len(codes)).astype(np.float64)
    if degree.std() == 0:
        return float("-inf") if degree.any() else 0.0
    number = round(share * len(codes))
    return float(-np.sqrt(number / (1 - share)) * degree.mean() / degree.std(ddof=1))


def cantelli(z: float) -> float:
    """1 / (1 + z²) for z < 0: no distribution has more probability at or below its mean + z standard deviations."""
    return 1.0 / (1.0 + z * z) if z < 0 else 1.0


def weak_components(edge_index: npt.ArrayLike, num_nodes: int) -> IntArray:
    """Per node the number of its component, edges (2, E) taken in both directions."""
    a, b = np.asarray(edge_index, dtype=np.int64)
    matrix = coo_array((np.ones(len(a)), (a, b)), shape=(num_nodes, num_nodes))
    return connected_components(matrix, directed=False)[1].astype(np.int64)


def group_pieces(edge_index: npt.ArrayLike, groups: npt.ArrayLike) -> pd.DataFrame:
    """Per group with two or more nodes: size, pieces (components of its induced subgraph), largest (share of the group
    in its largest piece), connected. Indexed by group.

    groups: (N,) number of each node's group; negative: in none.
    """
    codes, edges = np.asarray(groups), np.asarray(edge_index, dtype=np.int64)
    inside = edges[:, (codes[edges[0]] == codes[edges[1]]) & (codes[edges[0]] >= 0)]
    pieces = pd.DataFrame({"group": codes, "piece": weak_components(inside, len(codes))})[codes >= 0]
    sizes = pieces.value_counts().reset_index(name="size")
    found = sizes.groupby("group")["size"].agg(size="sum", pieces="count", largest="max")
    found = found[found["size"] >= 2]
    return found.assign(largest=found["largest"] / found["size"], connected=found["pieces"] == 1)


def degree_stand_ins(degree: npt.ArrayLike, nodes: npt.ArrayLike, seed: int, least: int = CLASS) -> IntArray:
    """For each entry of `nodes` another node of the same degree, drawn uniformly and independently.

    Where fewer than `least` nodes have that degree, those of the nearest ranks by degree join the draw, so that hubs
    get other hubs as stand-ins. A node never stands in for itself.
    """
    degrees, wanted = np.asarray(degree), np.asarray(nodes)
    order = np.argsort(degrees, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranked, own = degrees[order], rank[wanted]
    low, high = (np.searchsorted(ranked, degrees[wanted], side=side) for side in ("left", "right"))
    half = min(least, len(degrees)) // 2
    few = high - low < min(least, len(degrees))
    start = np.clip(own - half, 0, max(len(degrees) - 2 * half, 0))
    low = np.where(few, np.minimum(low, start), low)
    high = np.where(few, np.maximum(high, np.minimum(start + 2 * half, len(degrees))), high)
    drawn = low + np.random.default_rng(seed).integers(0, high - low - 1)  # one fewer: the node itself is skipped
    return order[drawn + (drawn >= own)]


def degree_matched_groups(degree: npt.ArrayLike, groups: npt.ArrayLike, seed: int) -> IntArray:
    """Groups of the same sizes and nearly the same degrees with other members: memberships are exchanged among
    `CLASS` nodes of neighbouring degree rank. Nodes in no group stay there.
    """
    degrees, codes = np.asarray(degree), np.asarray(groups, dtype=np.int64)
    rng = np.random.default_rng(seed)
    members = np.flatnonzero(codes >= 0)
    tie = rng.permutation(len(members))  # nodes of one degree are in random order
    ranked = members[np.lexsort((tie, degrees[members]))]
    block = np.arange(len(ranked)) // CLASS
    shuffled = ranked[np.lexsort((rng.random(len(ranked)), block))]
    exchanged = codes.copy()
    exchanged[ranked] = codes[shuffled]
    return exchanged
