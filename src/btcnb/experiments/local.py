"""Many small pieces of a chain, each made a graph of its own, embedded by a trained encoder, and clustered every way.

    engine = LocalGraphs(model, heuristics, price_usd=price)
    for local in engine.run(pieces):                        # pieces: an iterable of `Transactions`
        local.labels["hybrid.average.silhouette"]           # one label per address of the piece

Piece → clusters → address graph → features scaled within that graph, as the paper does → embedding → trees → cuts. The
paper evaluates entity labels and CoinJoins this way. Several pieces are embedded side by side, and one distance matrix
serves all trees over a whole piece; the partitions are those of `build_graph`, `embed`, `linkage` with `cut_…`, and
`refine`, one piece at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.cluster import (
    CUTS,
    ClusterConfig,
    coarse_partition,
    cut_forest,
    cut_gap,
    cut_inconsistency,
    dendrograms,
    fill_zero_rows,
    flat,
    global_threshold,
    local_thresholds,
    merge_values,
    refine,
)
from btcnb.cluster.evaluate import evaluation
from btcnb.data import Transactions, build_graph
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import price_near
from btcnb.errors import DataError
from btcnb.learn import Encoder, PreparedGraph, disjoint_union, embed, prepare
from meanlink.linkage import DistanceMatrix

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
Clusters = Callable[[Transactions], IntArray]
"""Local transactions -> one label per address."""

PAPER_LINKAGES = ("average", "ward", "complete")
PAPER_CUTS = ("silhouette", "inconsistency", "inconsistency-height", "gap")
"""The paper's three cuts; the inconsistency cut in both readings, see `btcnb.cluster.cut_inconsistency`."""
GNN, HYBRID, HEURISTICS = "gnn", "hybrid", "heuristics"
NODES_AT_ONCE = 3_000
"""Nodes embedded side by side: enough to spare small graphs the price of a call, few enough to stay in fast memory."""


class Local(NamedTuple):
    """One piece, clustered. Arrays are aligned with the piece's addresses."""

    txs: Transactions
    labels: dict[str, IntArray]  # by name: `heuristics`, `gnn.LINKAGE.CUT`, `hybrid.LINKAGE.CUT`, see `names`
    rows: FloatArray  # (A, d) unit rows; zero rows have the direction that they share
    zero_rows: int
    x: FloatArray  # (A, F) features, scaled within the piece


@dataclass(frozen=True)
class LocalGraphs:
    """How pieces are clustered."""

    model: Encoder
    heuristics: Clusters
    price_usd: float | None = None
    """USD for one bitcoin, one for all pieces of a chain; None: the paper's at the piece's first block"""
    linkages: tuple[str, ...] = PAPER_LINKAGES
    cuts: tuple[str, ...] = PAPER_CUTS
    further: Mapping[str, Clusters] = field(default_factory=dict)
    """other clusterings by name: each is a row of its own, and `hybrid_on_NAME` refines it by `refined_by`"""
    refined_by: tuple[str, str] = ("average", "silhouette")
    """linkage and cut by which the further clusterings are refined"""

    def names(self) -> tuple[str, ...]:
        """Every clustering that a piece gets."""
        names = [f"{kind}.{linkage}.{cut}" for kind in (GNN, HYBRID) for linkage in self.linkages for cut in self.cuts]
        return (HEURISTICS, *names, *(name for each in self.further for name in (each, f"hybrid_on_{each}")))

    def run(self, pieces: Iterable[Transactions]) -> Iterator[Local]:
        """The pieces, in their order, with all their clusterings."""
        matrix: DistanceMatrix | None = None
        for group in self._groups(pieces):
            union, first = disjoint_union([graph for _, _, graph in group])
            rows = embed(self.model, union)
            for (txs, labels, graph), start in zip(group, first.tolist(), strict=True):
                embedded, zero_rows = _with_directions(rows[start : start + graph.num_nodes])
                matrix = DistanceMatrix(embedded, reuse=matrix)
                found = self._clustered(txs, labels, embedded, matrix)
                yield Local(txs, found, np.asarray(embedded, dtype=np.float32), zero_rows, graph.x.numpy())

    def _groups(self, pieces: Iterable[Transactions]) -> Iterator[list[tuple[Transactions, IntArray, PreparedGraph]]]:
        """Pieces with their heuristic clusters and graphs, so many at a time as are embedded at once."""
        group: list[tuple[Transactions, IntArray, PreparedGraph]] = []
        nodes = 0
        for txs in pieces:
            graph = self._graph(txs, labels := self.heuristics(txs))
            if group and nodes + graph.num_nodes > NODES_AT_ONCE:
                yield group
                group, nodes = [], 0
            group.append((txs, labels, graph))
            nodes += graph.num_nodes
        if group:
            yield group

    def _graph(self, txs: Transactions, labels: IntArray) -> PreparedGraph:
        """Its nodes are the addresses of the piece, all of them."""
        graph = build_graph(txs, labels, self.price_usd)
        if graph.num_nodes != txs.num_addresses:
            problem = f"{txs.num_addresses - graph.num_nodes} of a piece occur in none of its transactions"
            raise DataError(txs.source, "addresses", problem, "cut pieces by `select` or `sample_around`")
        config = self.model.config
        return prepare(graph, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit)

    def _clustered(
        self, txs: Transactions, labels: IntArray, rows: FloatArray, matrix: DistanceMatrix
    ) -> dict[str, IntArray]:
        found: dict[str, IntArray] = {HEURISTICS: labels}
        trees = {GNN: {linkage: whole_cuts(matrix, linkage, self.cuts) for linkage in self.linkages}}
        trees[HYBRID] = {linkage: inner_cuts(rows, labels, linkage, self.cuts) for linkage in self.linkages}
        for kind, by_linkage in trees.items():
            for linkage, by_cut in by_linkage.items():
                found |= {f"{kind}.{linkage}.{cut}": flat for cut, flat in by_cut.items()}
        linkage, cut = self.refined_by
        for name, clusters in self.further.items():
            found[name] = clusters(txs)
            found[f"hybrid_on_{name}"] = inner_cuts(rows, found[name], linkage, (cut,))[cut]
        return found


def _with_directions(embedded: FloatArray) -> tuple[FloatArray, int]:
    """Rows of zeros get the direction that they share; they are counted, without a warning for every piece."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fill_zero_rows(embedded, "fixed")


def whole_cuts(matrix: DistanceMatrix, linkage: str, cuts: Sequence[str]) -> dict[str, IntArray]:
    """Partition of the points by each of the rules, out of one tree over all of them."""
    if matrix.points < 2:
        return {cut: np.zeros(matrix.points, dtype=np.int64) for cut in cuts}
    Z = matrix.linkage(linkage)
    adaptive = cut_inconsistency(Z) if any(cut.startswith("inconsistency") for cut in cuts) else np.nan
    thresholds = {"inconsistency": adaptive, "inconsistency-height": adaptive}
    if "silhouette" in cuts:
        thresholds["silhouette"] = matrix.cut_silhouette(linkage)
    if "gap" in cuts:
        thresholds["gap"] = cut_gap(Z)
    return {cut: flat(Z, thresholds[cut], CUTS[cut].criterion) for cut in cuts}


def inner_cuts(rows: FloatArray, partition: IntArray, linkage: str, cuts: Sequence[str]) -> dict[str, IntArray]:
    """Partition of the points by each of the rules, as `refine` gives it: a tree in each cluster, one λ for all."""
    forest = dendrograms(rows, partition, linkage, progress=False)
    rules = {"inconsistency" if cut.startswith("inconsistency") else cut for cut in cuts}
    local = {rule: local_thresholds(rows, forest, rule, progress=False) for rule in rules}
    values = {kind: merge_values(forest, kind) for kind in {CUTS[cut].criterion for cut in cuts}}
    found = {}
    for cut in cuts:  # both readings of the inconsistency rule compare one threshold, with two things
        rule = "inconsistency" if cut.startswith("inconsistency") else cut
        threshold = global_threshold(forest.sizes, local[rule])
        found[cut] = cut_forest(forest, values[CUTS[cut].criterion], np.inf if np.isnan(threshold) else threshold)
    return found


def price_and_rules(txs: Transactions, price_usd: float | None = None) -> tuple[float | None, HeuristicConfig]:
    """USD for one bitcoin, None where nobody knows it, and the thresholds of the heuristics at that price.

    As graphs that encoders are trained on have it: a price that is given counts, else the paper's where the chain
    begins in one of its intervals. Without a price the heuristics take their default, and features have no dollars.
    """
    blocks = txs.transactions["block_number"]
    if price_usd is None and len(blocks):
        price_usd = price_near(int(blocks.iloc[0]))
    return price_usd, HeuristicConfig() if price_usd is None else HeuristicConfig(price_usd=price_usd)


def large_labels(
    model: Encoder, txs: Transactions, seed: int = 0, price_usd: float | None = None
) -> dict[str, IntArray]:
    """One label per address of the chain: heuristics, the paper's pipeline, and its refinement (average, silhouette).

    The pipeline is the paper's for large graphs: communities, a tree in each, one λ for all (Section 3.4).
    """
    price, config = price_and_rules(txs, price_usd)
    labels = heuristic_clusters(txs, config=config)
    graph = build_graph(txs, labels, price)
    node = graph.nodes["node_id"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zero rows share a direction; local graphs count theirs
        rows = embed(model, graph)
        communities = coarse_partition(graph, seed=seed)
        whole = evaluation(rows, graph, partition=communities, config=ClusterConfig(), seed=seed, progress=False)
        inner = refine(rows, graph.labels(), progress=False)
    found = {"gnn.average.silhouette": whole.partition, "hybrid.average.silhouette": inner.partition}
    return {HEURISTICS: labels} | {name: _of_addresses(flat, node, txs.num_addresses) for name, flat in found.items()}


def _of_addresses(flat: IntArray, node: IntArray, addresses: int) -> IntArray:
    """Labels by address id; an address that is no node stands alone."""
    out = np.arange(addresses, dtype=np.int64) + int(flat.max(initial=0)) + 1
    out[node] = flat
    return out
