"""The cut ratio and its permutation test (paper, appendix "Approaching the theoretical conditions").

The cut ratio is the share of edges that join two clusters. The test permutes the labels of a small share of the nodes
among themselves, again and again, and asks how often the permuted labels cut fewer edges than the original ones.

Two numbers come out, and they answer different questions. The p-value asks whether labels and graph are related at
all. The z-score compares the mean loss to its spread, and since nearly every permuted node simply loses its edges
inside its cluster, the spread is that of a sum of internal degrees: see `predicted_z`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray, IntArray, as_edge_index, as_labels

SizeBand = tuple[int, int]
Endpoints = Literal["both", "either"]

PAPER_BANDS: tuple[SizeBand, ...] = ((10, 100), (100, 1000), (1000, 5000))
"""The paper's bands of cluster sizes, low ≤ size < high."""


def cut_ratio(
    edge_index: npt.ArrayLike,
    labels: npt.ArrayLike,
    band: SizeBand | None = None,
    *,
    endpoints: Endpoints = "both",
) -> float:
    """Share of the edges (columns of `edge_index`, shape (2, E)) whose two ends carry different labels; 0 is perfect
    homophily.

    band: only edges at clusters of a size low ≤ size < high, in the reading of `endpoints` (see `band_subgraph`); NaN
    where there is none.
    """
    if band is not None:
        edge_index, labels = band_subgraph(edge_index, labels, band, endpoints=endpoints)
        if not edge_index.size:
            return float("nan")
    codes, _ = as_labels(labels)
    edges = as_edge_index(edge_index, len(codes))
    _require_edges(edges)
    return float(np.mean(codes[edges[0]] != codes[edges[1]]))


def cut_ratio_by_size(
    edge_index: npt.ArrayLike,
    labels: npt.ArrayLike,
    bands: tuple[SizeBand, ...] = PAPER_BANDS,
    *,
    endpoints: Endpoints = "both",
) -> dict[SizeBand, float]:
    """Cut ratio of the part of the graph that belongs to clusters of a size in each band; NaN where a band has no
    edge."""
    gates.instance("bands", bands, (tuple, list))  # type: ignore[arg-type]
    checked = [_band(band) for band in bands]
    return {band: cut_ratio(edge_index, labels, band, endpoints=endpoints) for band in checked}


def band_subgraph(
    edge_index: npt.ArrayLike, labels: npt.ArrayLike, band: SizeBand, *, endpoints: Endpoints = "both"
) -> tuple[IntArray, IntArray]:
    """Edges (2, E') and labels of the part of the graph in clusters of size low ≤ size < high, nodes renumbered.

    `endpoints="both"` keeps the edges with both ends in such clusters (the induced subgraph, our reading of
    "restricted to subgraphs of size 10–100"); `"either"` keeps those with at least one end there.
    """
    gates.choice("endpoints", endpoints, get_args(Endpoints))
    band = _band(band)
    codes, sizes = as_labels(labels)
    edges = as_edge_index(edge_index, len(codes))
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

    @property
    def mean(self) -> float:
        return float(self.permuted.mean())

    @property
    def std(self) -> float:
        return float(self.permuted.std(ddof=1))

    @property
    def z(self) -> float:
        """(observed − mean) / std, the paper's z-score: negative when permuting cuts more edges. 0 if nothing ever
        changes."""
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
    """Permute the labels of a random `share` of the nodes among themselves, `trials` times, and recompute the cut
    ratio.

    Only the edges that touch a permuted node are looked at, so a trial costs about 2·share·E edge visits.
    """
    codes, _ = as_labels(labels)
    edges = as_edge_index(edge_index, len(codes))
    _require_edges(edges)
    share, trials = gates.real("share", share, "(0, 1]"), gates.whole("trials", trials, "[2, 100000000]")
    seed = gates.whole("seed", seed, "[0, inf)")
    chosen = round(share * len(codes))
    if chosen < 2:
        raise ParameterError(
            f"a share of {share} is {chosen} of {len(codes)} nodes; at least 2 nodes must be permuted."
        )
    state = _State(codes, codes.copy(), np.zeros(len(codes), dtype=np.bool_), *_incidence(edges, len(codes)))
    cut = int((codes[edges[0]] != codes[edges[1]]).sum())
    changes = np.empty(trials, dtype=np.int64)
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        nodes = rng.choice(len(codes), chosen, replace=False, shuffle=False)
        changes[trial] = _cut_change(nodes, rng.permutation(codes[nodes]), state)
    number = edges.shape[1]
    return CutRatioTest(cut / number, (cut + changes) / number, share)


def predicted_z(edge_index: npt.ArrayLike, labels: npt.ArrayLike, share: float = 0.01) -> float:
    """The z-score the test will give when permuted nodes only lose internal edges: −√(m / (1 − share)) / CV(internal
    degree).

    m = share·n nodes are drawn without replacement and each loses its internal degree d; the loss then has mean
    m·mean(d) and variance m·(1 − share)·var(d). The strength of homophily (the scale of d) cancels.
    """
    share = gates.real("share", share, "(0, 1)")
    codes, _ = as_labels(labels)
    edges = as_edge_index(edge_index, len(codes))
    internal = edges[:, (codes[edges[0]] == codes[edges[1]]) & (edges[0] != edges[1])]
    degree = np.bincount(internal.ravel(), minlength=len(codes)).astype(np.float64)
    if degree.std() == 0:
        return float("-inf") if degree.any() else 0.0
    number = round(share * len(codes))
    return float(-np.sqrt(number / (1 - share)) * degree.mean() / degree.std(ddof=1))


def cantelli(z: float) -> float:
    """The largest probability that any distribution can leave at or below its mean + z standard deviations, z < 0: 1
    / (1 + z²)."""
    z = gates.real("z", z, "[-inf, inf]")
    return 1.0 / (1.0 + z * z) if z < 0 else 1.0


def _band(band: SizeBand) -> SizeBand:
    """Two whole numbers, low < high."""
    if not isinstance(band, tuple | list) or len(band) != 2:
        raise ParameterError(f"band is {band!r}, but must be two sizes, low and high.")
    low = gates.whole("the low end of a band", band[0])
    return low, gates.whole("the high end of a band", band[1], f"({low}, inf)")


def _require_edges(edges: IntArray) -> None:
    if not edges.shape[1]:
        raise DataError("edge_index", "edges", "there is no edge", "a cut ratio needs at least one")


def _incidence(edges: IntArray, num_nodes: int) -> tuple[IntArray, IntArray]:
    """For each node, the other ends of its edges, as CSR. A self-loop is never cut and is left out."""
    proper = edges[:, edges[0] != edges[1]]
    ends = np.concatenate([proper[0], proper[1]])
    start = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=num_nodes), out=start[1:])
    neighbour = np.empty(len(ends), dtype=np.int64)
    _fill(proper[0], proper[1], start[:-1].copy(), neighbour)
    return start, neighbour


@njit(cache=True)
def _fill(a: IntArray, b: IntArray, cursor: IntArray, neighbour: IntArray) -> None:
    for edge in range(len(a)):
        u, v = a[edge], b[edge]
        neighbour[cursor[u]] = v
        cursor[u] += 1
        neighbour[cursor[v]] = u
        cursor[v] += 1


class _State(NamedTuple):
    """Labels (n,), a copy to be changed and changed back, marks (n,), and the other ends of a node's edges as CSR."""

    codes: IntArray
    replaced: IntArray
    marked: npt.NDArray[np.bool_]
    start: IntArray
    neighbour: IntArray


@njit(cache=True)
def _cut_change(nodes: IntArray, new: IntArray, state: _State) -> int:
    """Change in the number of cut edges when `nodes` take the labels `new`. Leaves the state as it found it."""
    codes, replaced, marked = state.codes, state.replaced, state.marked
    start, neighbour = state.start, state.neighbour
    for i in range(len(nodes)):
        replaced[nodes[i]] = new[i]
        marked[nodes[i]] = True
    change = 0
    for u in nodes:
        for entry in range(start[u], start[u + 1]):
            v = neighbour[entry]
            if marked[v] and v < u:  # an edge between two permuted nodes is counted from its smaller end
                continue
            change += int(replaced[u] != replaced[v]) - int(codes[u] != codes[v])
    for u in nodes:
        replaced[u] = codes[u]
        marked[u] = False
    return change
