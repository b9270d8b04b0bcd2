"""The whole tree of the real test graph, embedded by an encoder that a simulated world has taught."""

from __future__ import annotations

from btcnb.cluster import coarse_partition
from btcnb.cluster.evaluate import evaluation
from btcnb.data import load_graph, real_source
from btcnb.errors import ParameterError
from btcnb.experiments.recipe import Job, baseline
from btcnb.experiments.stages import StageTimer, trained
from btcnb.experiments.whole_tree import Numbers, whole_tree_numbers
from btcnb.learn import embed

METHODS = ("trained", "untrained")


def whole_tree_real(job: Job) -> Numbers:
    """As `whole_tree`, on the real test graph (`real_source`); its record names that graph in `data`."""
    if job.method not in METHODS:
        raise ParameterError(f"on the real graph there is no {job.method!r}; take one of {', '.join(METHODS)}.")
    laps, settings = StageTimer(), job.recipe.cluster
    with laps("graphs"):
        graph = load_graph(real_source(), "test")
    with laps("train"):
        run = trained(job.recipe if job.method == "trained" else baseline(job.recipe, job.method))
    with laps("embed"):
        X = embed(run.model, graph)
    with laps("coarse"):
        found = coarse_partition(
            graph, settings.max_size, settings.resolution, seed=job.seed, method=settings.coarse, progress=False
        )
    with laps("evaluate"):
        record = evaluation(X, graph, partition=found, config=settings, seed=job.seed, progress=False).record
    numbers: Numbers = {"DP": record["purity"], "NMI": record["nmi"], "ARI": record["ari"], "nodes": record["nodes"]}
    with laps("whole"):
        numbers |= whole_tree_numbers(X, graph, found, settings)
    return numbers | laps.record() | {"data": graph.fingerprint()}
