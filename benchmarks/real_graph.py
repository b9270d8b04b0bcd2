"""What can be said of a real graph without owners: its structure, its homophily, what trivial clusters score, leaks.

Each function gives plain numbers by name, for a record: the files behind them are not part of the book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import gates, theory
from btcnb.cluster import Forest, ari, nmi, scored_nodes
from btcnb.cluster.scores import ami
from btcnb.data import DEFAULT_RULES, AddressGraph, HeuristicConfig, Transactions, heuristic_merges
from btcnb.data.calibration import graph_structure
from btcnb.errors import DataError
from btcnb.experiments.refine import Refined
from btcnb.learn import Encoder, layer_outputs
from btcnb.theory.homophily import weak_components

IntArray = npt.NDArray[np.int64]
Plain = dict[str, float | int | None]

SIZE_BANDS = (1, 2, 3, 10, 100, 1_000)
"""Smallest sizes of the bands in which clusters are counted; each ends where the next begins."""


def structure_facts(graph: AddressGraph) -> Plain:
    """Counts, degrees, components and clusters of a graph, and the ratios of `graph_structure`."""
    gates.instance("graph", graph, AddressGraph)
    labels, edges = graph.labels(), graph.edge_index()
    degree = np.bincount(edges.ravel(), minlength=graph.num_nodes)
    component = np.bincount(weak_components(edges, graph.num_nodes))
    sizes = np.bincount(labels)
    several = sizes[sizes > 1]
    counts: Plain = {
        "transactions": int(graph.meta.get("transactions", 0)),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "clusters": len(sizes),
        "clusters of two and more": len(several),
        "largest cluster": int(sizes.max()),
        "mean degree": 2 * graph.num_edges / graph.num_nodes,
        "largest degree": int(degree.max()),
        "nodes of degree 2 and more, %": 100 * float((degree >= 2).mean()),
        "components": len(component),
        "nodes in the largest component, %": 100 * float(component.max()) / graph.num_nodes,
        "nodes in clusters of two and more, %": 100 * float(several.sum()) / graph.num_nodes,
    }
    return counts | {name: _finite(value) for name, value in graph_structure(graph).items()}


def cluster_size_shares(graph: AddressGraph) -> dict[str, float]:
    """Share (in %) of the nodes that lie in clusters of a size, by band: `1`, `2`, `3–9`, …, `1,000 and more`."""
    sizes = np.bincount(graph.labels())
    held = np.bincount(np.searchsorted(SIZE_BANDS, sizes, side="right") - 1, sizes, minlength=len(SIZE_BANDS))
    ends = [*(high - 1 for high in SIZE_BANDS[1:]), None]
    names = [_band(low, high) for low, high in zip(SIZE_BANDS, ends, strict=True)]
    return {name: 100 * float(value) / graph.num_nodes for name, value in zip(names, held, strict=True)}


def _band(low: int, high: int | None) -> str:
    return f"{low:,} and more" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"


def homophily_facts(graph: AddressGraph, share: float = 0.01, trials: int = 300, seed: int = 0) -> dict[str, Plain]:
    """By part of the graph (`overall`, `clusters 10-100`, …): cut ratio in %, z, p and p as a valid test, predicted z.

    The parts are those of the paper; one without an edge, or too small to permute, has no numbers.
    """
    edges, labels = graph.edge_index(), graph.labels()
    parts = {"overall": (edges, labels)}
    for low, high in theory.PAPER_BANDS:
        parts[f"clusters {low}-{high}"] = theory.band_subgraph(edges, labels, (low, high))
    return {name: _tested(*part, share, trials, seed) for name, part in parts.items()}


def _tested(edges: IntArray, labels: IntArray, share: float, trials: int, seed: int) -> Plain:
    told: Plain = {"nodes": len(labels), "edges": int(edges.shape[1])}
    if not edges.size or round(share * len(labels)) < 2:
        return told | dict.fromkeys(("cut ratio, %", "z", "p", "p, valid", "z predicted"))
    found = theory.cut_ratio_test(edges, labels, share=share, trials=trials, seed=seed)
    return told | {
        "cut ratio, %": 100 * found.observed,
        "z": _finite(found.z),
        "p": found.p_value,
        "p, valid": found.p_value_valid,
        "z predicted": _finite(theory.predicted_z(edges, labels, share)),
    }


def rayleigh_facts(graph: AddressGraph, models: Mapping[str, Encoder]) -> dict[str, dict[str, Plain]]:
    """By model and stage of the network: Rayleigh quotient of what it puts out on the graph, and the centred one."""
    L = theory.laplacian(theory.adjacency(graph.edge_index(), graph.num_nodes))
    found = {}
    for name, model in models.items():
        outputs = layer_outputs(model, graph)
        stages = theory.stage_quotients(L, {stage: rows for stage, rows in outputs.items() if stage != "unit rows"})
        found[name] = {
            each.name: Plain({"quotient": each.rayleigh, "centred": each.rayleigh_centred}) for each in stages
        }
    return found


def trivial_scores(graph: AddressGraph, min_degree: int = 2) -> dict[str, Plain]:
    """What clusters score that nobody had to learn: connected components, and every address alone."""
    scored = scored_nodes(graph, min_degree)
    theirs = graph.labels()[scored]
    partitions = {
        "components": weak_components(graph.edge_index(), graph.num_nodes)[scored],
        "every address alone": np.arange(int(scored.sum())),
    }
    return {
        name: {"clusters": len(np.unique(p)), "NMI": nmi(theirs, p), "AMI": ami(theirs, p), "ARI": ari(theirs, p)}
        for name, p in partitions.items()
    }


def _finite(value: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


IntArray = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]


def services_of(names: Texts, labels: pd.DataFrame) -> tuple[Texts, int]:
    """The service behind each address (object array (n,), "" where nobody says), and how many labelled addresses of
    the file are not among them.

    A service is the actor of a label, else the label itself, without case: "Huobi" and "huobi" are one. Of several
    labels of one address the first that names an actor counts.
    """
    for column in ("address", "label", "actor"):
        if column not in gates.instance("labels", labels, pd.DataFrame):
            raise DataError("labels", column, "column is missing", "give what read_labels gives")
    named = labels.assign(service=np.where(labels["actor"] != "", labels["actor"], labels["label"]))
    named = named.iloc[np.argsort((labels["actor"] == "").to_numpy(), kind="stable")].drop_duplicates("address")
    service = named.set_index("address")["service"].str.lower()
    absent = len(service) - int(service.index.isin(pd.Index(names)).sum())
    return service.reindex(pd.Index(names)).fillna("").to_numpy(dtype=object), absent


def service_pairs(services: Texts, before: IntArray, after: IntArray) -> dict[str, int]:
    """Pairs of labelled addresses: how many have one service or two, how many share a cluster before and after.

    services: (n,), "" where none is known; before, after: clusters (n,)
    """
    known = np.flatnonzero(services != "")
    who = pd.factorize(services[known])[0]
    told = {"labelled addresses": len(known), "services": int(who.max(initial=-1)) + 1}
    same_all = _pairs(who)
    told["pairs of one service"] = same_all
    told["pairs of two services"] = len(known) * (len(known) - 1) // 2 - same_all
    for name, clusters in (("before", before), ("after", after)):
        held = clusters[known]
        one = _pairs(pd.factorize(pd.Series(list(zip(who, held, strict=True))))[0])
        told[f"pairs of one service in one cluster, {name}"] = one
        told[f"pairs of two services in one cluster, {name}"] = _pairs(pd.factorize(held)[0]) - one
        told[f"clusters with two services, {name}"] = _with_two(who, held)
    return told


def _pairs(codes: IntArray) -> int:
    sizes = np.bincount(codes) if len(codes) else np.zeros(1, dtype=np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def _with_two(who: IntArray, held: IntArray) -> int:
    return int((pd.Series(who).groupby(held).agg("nunique") > 1).sum()) if len(who) else 0


def sides(forest: Forest, tree: int, merge: int) -> tuple[IntArray, IntArray]:
    """Positions of the leaves on the two sides of a merge (a row of `forest.tree(tree)`), the smaller side last."""
    Z, leaves = forest.tree(tree), forest.leaves(tree)
    found = [leaves[_below(Z, int(node))] for node in Z[merge, :2]]
    first, second = sorted(found, key=len, reverse=True)
    return first, second


def _below(Z: npt.NDArray[np.float64], node: int) -> IntArray:
    """Leaves of a node of a linkage matrix over n leaves: itself below n, else those of its two children."""
    n, open_, found = len(Z) + 1, [node], []
    while open_:
        top = open_.pop()
        if top < n:
            found.append(top)
        else:
            open_ += [int(Z[top - n, 0]), int(Z[top - n, 1])]
    return np.array(sorted(found), dtype=np.int64)


def look_up(
    txs: Transactions,
    found: Refined,
    nodes: IntArray,
    config: HeuristicConfig | None = None,
    least: int = 1,
    most: int = 10,
) -> pd.DataFrame:
    """The most suspicious merges, one a cluster, with the transaction by which the rules first tied the two together.

    found: a refinement whose leaves are addresses; nodes: (n,), address id in `txs` of each of its points
    least: addresses that the smaller side must have
    Columns: suspicion, height, threshold, addresses (of the smaller side), of (addresses of the cluster), links
    (transactions by which rules tie the smaller side to the rest of its cluster), block, transaction (hash of the
    first of them), rule.
    """
    gates.instance("txs", txs, Transactions), gates.whole("least", least), gates.whole("most", most, "[1, 1000]")
    merges = heuristic_merges(txs, DEFAULT_RULES, config)
    place = {int(label): tree for tree, label in enumerate(found.forest.clusters)}
    rows = []
    large = found.flagged[found.flagged["size_right"] >= least]
    for line in large.drop_duplicates("cluster").head(most).itertuples():
        tree = place[int(line.cluster)]  # type: ignore[arg-type]
        small = sides(found.forest, tree, _row_of(found.forest, tree, line))[1]
        rest = np.setdiff1d(found.forest.leaves(tree), small)
        ties = _ties(merges, nodes[small], nodes[rest])
        if ties.empty:
            raise DataError("merges", "rules", "tie the two sides nowhere", "give the rules that made the clusters")
        first = txs.transactions.iloc[int(ties["tx"].iloc[0])]
        rows.append(
            (
                float(line.suspicion), float(line.height), float(line.threshold),  # type: ignore[arg-type]
                len(small), len(small) + len(rest), int(ties["tx"].nunique()),
                int(first["block_number"]), str(first["hash"]), str(ties["rule"].iloc[0]),
            )
        )  # fmt: skip
    columns = ["suspicion", "height", "threshold", "addresses", "of", "links", "block", "transaction", "rule"]
    return pd.DataFrame(rows, columns=columns)


def _row_of(forest: Forest, tree: int, line: Any) -> int:
    """The row of the tree that a line of `flagged` tells of: by its height, then by what lies on its sides."""
    Z = forest.tree(tree)
    rows = np.flatnonzero(np.isclose(Z[:, 2], line.height, rtol=0, atol=1e-12))
    for row in rows.tolist():
        members = [set(part.tolist()) for part in sides(forest, tree, row)]
        if any(line.left in one and line.right in two for one, two in (members, members[::-1])):
            return int(row)
    raise DataError("flagged", "merge", "is not in its tree", "give the table that belongs to the forest")


def _ties(merges: pd.DataFrame, small: Sequence[int] | IntArray, rest: Sequence[int] | IntArray) -> pd.DataFrame:
    """Merges between an address of the one set and one of the other."""
    a, b = merges["address_a"], merges["address_b"]
    crossing = (a.isin(small) & b.isin(rest)) | (a.isin(rest) & b.isin(small))
    return merges[crossing]
