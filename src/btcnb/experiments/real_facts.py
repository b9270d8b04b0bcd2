"""What can be said of a real graph without owners: its structure, its homophily, what trivial clusters score, leaks.

Each function gives plain numbers by name, for a record: the files behind them are not part of the book.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import gates, theory
from btcnb.cluster import ari, nmi, scored_nodes
from btcnb.cluster.scores import ami
from btcnb.data import AddressGraph
from btcnb.data.calibration import graph_structure
from btcnb.learn import Encoder, layer_outputs
from btcnb.theory.homophily import weak_components

IntArray = npt.NDArray[np.int64]
Plain = dict[str, float | int | None]

SIZE_BANDS = (1, 2, 3, 10, 100, 1_000)
"""Smallest sizes of the bands in which clusters are counted; each ends where the next begins."""
VERDICTS = ("reproduced", "partly", "not reproduced")


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


def leak_verdict(shared: pd.DataFrame) -> tuple[str, str]:
    """Verdict and evidence on “no transaction is in two graphs and nothing leaks”, from `shared_between`.

    Reproduced: no two roles share a transaction or an address. Partly: no transaction, but addresses. Not reproduced:
    a transaction stands in two graphs.
    """
    gates.instance("shared", shared, pd.DataFrame)
    transactions, addresses = int(shared["transactions"].sum()), int(shared["addresses"].sum())
    verdict = VERDICTS[2] if transactions else VERDICTS[1] if addresses else VERDICTS[0]
    last = shared[shared["second"] == "test"]
    seen = 100 * float(last["of_second"].max()) if len(last) else 0.0
    evidence = (
        f"{transactions:,} transactions and {addresses:,} addresses stand in two of five real graphs; of the test "
        f"graph's addresses up to {seen:.1f} % were seen in one other"
    )
    return verdict, evidence


def _finite(value: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None
