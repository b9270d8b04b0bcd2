"""Local graphs a second, from sampling to scores, with a trained encoder; and the plain path, one function at a time.

    python benchmarks/local_graphs.py                   # size quick: 200 labelled transactions, two processes
    python benchmarks/local_graphs.py --size tiny --dry # a look

Encoder and economy are made first, which is not part of the time. Then as many processes as there are cores (two at
most), each on one thread, share the labelled transactions. Measured are the whole of Table 2 (three linkages, four
cuts, inside and outside of heuristic clusters) and its average linkage alone. To reach: 20 graphs a second on 2 cores.
The plain path (`build_graph`, `embed`, `linkage`, `cut_…`, `refine`) clusters a few of the same graphs, one at a time.
Writes results/benchmarks/local_graphs.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from typing import Any

import numpy as np
from _measure import Run, in_child, rows, show, stage, write

from btcnb.cluster import CUTS, cut_silhouette, flat, linkage, refine
from btcnb.data import Source, build_graph, heuristic_clusters, load_transactions
from btcnb.data.judging.entity_pairs import entity_graphs, interval_config
from btcnb.experiments import recipe, trained
from btcnb.experiments.local import PAPER_CUTS, PAPER_LINKAGES
from btcnb.experiments.pairs import INTERVAL, entity_trial, judged_source
from btcnb.experiments.sweep.run import ONE_THREAD, one_thread
from btcnb.learn import embed

WANTED = 20.0
WORLD = 1


def made(size: str) -> tuple[Any, Any]:
    """The encoder of a world and the transactions of another one; out of the store, where it has them."""
    source = Source(size=size, seed=WORLD)
    txs = load_transactions(judged_source(source), INTERVAL, sampled=False)
    return trained(recipe(source, WORLD)).model, txs


def keep(size: str) -> int:
    """Have the store ready; the encoder itself stays there."""
    return len(made(size)[1])


def share(size: str, linkages: tuple[str, ...], graphs: int, seed: int, ready: Any, begin: Any) -> None:
    """One process: warm up, wait for the others, then its graphs."""
    with one_thread():
        model, txs = made(size)
        entity_trial(model, txs, 3, seed=99, linkages=linkages)
        ready.put(seed)
        begin.wait()
        entity_trial(model, txs, graphs, seed=seed, linkages=linkages)


def engine(size: str, linkages: tuple[str, ...], graphs: int, processes: int) -> float:
    """Graphs a second."""
    context = multiprocessing.get_context("spawn")
    ready, begin = context.Queue(), context.Event()
    each = graphs // processes
    workers = [
        context.Process(target=share, args=(size, linkages, each, seed, ready, begin)) for seed in range(processes)
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.get()
    with stage("engine"):
        started = time.perf_counter()
        begin.set()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - started
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a process failed")
    return processes * each / seconds


def plain(size: str, linkages: tuple[str, ...], graphs: int) -> float:
    """Graphs a second by the public functions, in one process."""
    with one_thread():
        model, txs = made(size)
        config = interval_config(txs)
        for wanted in (1, graphs):  # the first is to warm up
            started = time.perf_counter()
            for graph in entity_graphs(txs, transactions=wanted, seed=0):
                labels = heuristic_clusters(graph.txs, config=config)
                X = embed(model, build_graph(graph.txs, labels, config.price_usd))
                if len(X) > 1:
                    one_by_one(X, labels, linkages)
        return graphs / (time.perf_counter() - started)


def one_by_one(X: np.ndarray, labels: np.ndarray, linkages: tuple[str, ...]) -> None:
    for method in linkages:
        Z = linkage(X, method)
        flat(Z, cut_silhouette(X, Z))
        for name in PAPER_CUTS:
            refine(X, labels, method=method, cut=name, progress=False)
            flat(Z, 0.5, CUTS[name].criterion)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="quick", help="size of the simulated economies")
    parser.add_argument("--graphs", type=int, default=200, help="labelled transactions")
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    processes = min(2, os.cpu_count() or 1)
    in_child(keep, options.size)
    records: list[dict[str, Any]] = []
    for task, linkages in (("table", PAPER_LINKAGES), ("average", ("average",))):
        ours = in_child(engine, options.size, linkages, options.graphs, processes)
        theirs = in_child(plain, options.size, linkages, max(options.graphs // 20, 2))
        records += _records(task, ours, theirs, options.size, options.graphs, processes)
    show(records, ["task", "graphs", "processes", "graphs_per_second", "plain_per_second", "speed_up", "reached"])
    if not options.dry:
        write("local_graphs", records)


def _records(task: str, ours: Run, theirs: Run, size: str, graphs: int, processes: int) -> list[dict[str, Any]]:
    found: dict[str, Any] = {}
    if ours.error is None and theirs.error is None:
        found = {"graphs_per_second": ours.value, "plain_per_second": theirs.value}
        found["speed_up"] = ours.value / processes / theirs.value  # a process against a process
        found["wanted"], found["reached"] = WANTED, ours.value >= WANTED
    return rows("local_graphs", ours, task=task, size=size, graphs=graphs, processes=processes, **found)


if __name__ == "__main__":
    main()
