"""A trained encoder beside the paper's baselines, scored alike."""

from __future__ import annotations

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.cluster import ari, nmi, scored_nodes
from btcnb.data import ROLES, load_graph
from btcnb.errors import ParameterError
from btcnb.experiments.recipe import Recipe, baseline
from btcnb.experiments.stages import community_baseline, scores

METHODS = {
    "louvain": "Louvain",
    "leiden": "Leiden",
    "untrained": "Random GAT",
    "gae": "GAE",
    "dgi": "DGI",
    "trained": "GAT",
}
"""Methods by name, and what the paper's table of the ablation calls them."""
COMMUNITIES = ("louvain", "leiden")


def compare(recipe: Recipe, methods: tuple[str, ...] = tuple(METHODS), role: str = "test") -> pd.DataFrame:
    """DP, NMI and ARI against the heuristic clusters, a row for each method, as the paper's table of the ablation.

    Communities have no dendrogram, so their DP is NaN. Only nodes of the recipe's smallest degree or more are scored.
    """
    gates.instance("recipe", recipe, Recipe), gates.choice("role", role, ROLES)
    methods = tuple(gates.text("a method", name) for name in gates.items("methods", methods))
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise ParameterError(f"there is no method {unknown[0]!r:.80}; there are {', '.join(METHODS)}.")
    rows = {METHODS[name]: _row(recipe, name, role) for name in methods}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["DP", "NMI", "ARI"])


def _row(recipe: Recipe, name: str, role: str) -> tuple[float, float, float]:
    if name in COMMUNITIES:
        graph = load_graph(recipe.source, role)
        found, _ = community_baseline(recipe.source, name, recipe.train.seed, role)
        mask, labels = scored_nodes(graph, recipe.cluster.min_degree), graph.labels()
        return np.nan, nmi(labels[mask], found[mask]), ari(labels[mask], found[mask])
    result = scores(recipe if name == "trained" else baseline(recipe, name), role)
    return result["purity"], result["nmi"], result["ari"]
