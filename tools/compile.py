"""Compile the hot loops once, by running the package on a tiny simulated world; nothing but the compiled code is kept.

The installation calls it. Without it the first chapters of a fresh clone compile the same loops side by side.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor


def data() -> None:
    """Simulation, heuristics, CoinJoins, votes on change, graphs, and a training with its scores."""
    from btcnb.data import (
        HeuristicConfig,
        Source,
        detect_coinjoins,
        features,
        heuristic_clusters,
        load_graph,
        load_transactions,
    )
    from btcnb.data.change_votes import change_votes, revealed_change
    from btcnb.data.landmarks import landmarks
    from btcnb.experiments import recipe, scores

    chain = load_transactions(Source(size="tiny", seed=1), "train1", sampled=False)
    for rules in ("published", "improved"):
        detect_coinjoins(chain, rules)
    heuristic_clusters(chain, config=HeuristicConfig())
    change_votes(chain), revealed_change(chain)
    graph = load_graph(Source(size="tiny", seed=1), "valid")
    features(graph), landmarks(graph, 4)
    scores(recipe(Source.of("simulated", size="tiny", seed=1), seed=1))


def trees() -> None:
    """Linkages, cuts and scores of many points and of one matrix, and what the theory measures on graphs."""
    import numpy as np

    from btcnb import theory
    from btcnb.cluster import ami, cut, cut_gap, cut_silhouette, dendrogram_purity, linkage, refine, silhouette
    from meanlink.linkage import DistanceMatrix

    rng = np.random.default_rng(0)
    parts = np.arange(300) % 7
    for dtype in (np.float32, np.float64):
        X = rng.normal(size=(300, 16)).astype(dtype)
        for method in ("average", "ward"):
            Z = linkage(X, method, progress=False)
            cut(Z, cut_silhouette(X, Z)), cut_gap(Z), dendrogram_purity(Z, parts)
        silhouette(X, parts), ami(parts, np.arange(300) % 5), refine(X, parts, progress=False)
        DistanceMatrix(X).cut_silhouette()
    edges = rng.integers(0, 300, (2, 900))
    theory.cut_ratio_test(edges, parts, share=0.2, trials=20, seed=0)
    theory.laplacian_distance(theory.laplacian(theory.adjacency(edges, 300)), theory.ideal_laplacian(parts))


def large_trees() -> None:
    """What only trees of many points take: the search for neighbours, and some levels of the result."""
    import numpy as np

    from btcnb.cluster import linkage, silhouette_levels

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 16))[rng.integers(200, size=6_000)] + 0.1 * rng.normal(size=(6_000, 16))
    Z = linkage(X, progress=False)
    silhouette_levels(X, Z, clusters=[700, 1_400])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BTCNB_CACHE"] = folder  # the tiny world is nobody's
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            for part in [pool.submit(part) for part in (data, trees, large_trees)]:
                part.result()


if __name__ == "__main__":
    main()
