"""How well a method recovers the heuristic clusters of a test graph: one row of the paper's ablation table."""

from __future__ import annotations

from typing import Any

from btcnb.cache import cached
from btcnb.cluster import ari, evaluate, nmi, scored_nodes
from btcnb.data import load_split
from btcnb.learn import reference_baseline_embeddings, reference_communities, reference_embeddings

COMMUNITIES = ("louvain", "leiden")
NETWORKS = ("untrained", "gae", "dgi", "contrastive")


@cached("data", "learn", "cluster", "experiments")
def baseline_scores(method: str, size: str = "quick", seed: int = 0, **changes: Any) -> dict[str, float]:
    """DP, NMI and ARI on the test graph against its heuristic clusters, counting nodes of degree 2 and more.

    method: one of `COMMUNITIES` (which have no dendrogram, so DP is NaN) or `NETWORKS`
    changes: fields of `TrainConfig` that differ from the size's preset
    """
    graph = load_split("test", size)
    if method in COMMUNITIES:
        found, mask, truth = reference_communities(method, size, seed)[0], scored_nodes(graph), graph.labels()
        return {"DP": float("nan"), "NMI": nmi(found[mask], truth[mask]), "ARI": ari(found[mask], truth[mask])}
    if method == "contrastive":
        embeddings = reference_embeddings(size, seed, **changes)
    else:
        embeddings = reference_baseline_embeddings(method, size, seed, **changes)
    record = evaluate(embeddings, graph)
    return {"DP": float(record["purity"]), "NMI": float(record["nmi"]), "ARI": float(record["ari"])}
