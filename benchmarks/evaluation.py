"""The whole evaluation of a paper-size graph: features, embedding, Leiden, linkage in each community, cut, scores.

    python benchmarks/evaluation.py                 # the simulated test graph at the paper's size
    python benchmarks/evaluation.py --size quick    # a look

The encoder is the shared run of size `quick`, trained on small graphs: an evaluation costs the same whoever trained it.
Simulating the graph is not part of the time (benchmarks/data.py measures that). To reach: 10 minutes and 6 GB on two
idle cores.
Writes results/benchmarks/evaluation.json.
"""

from __future__ import annotations

import argparse
from typing import Any

from _embedded import embedded, graph_and_model
from _measure import in_child, rows, show, stage, write

from btcnb.cluster import evaluate

MINUTES, GIGABYTES = 10.0, 6.0


def made(size: str, split: str) -> None:
    """Have the graph and the encoder on disk, so that the measured process only reads them."""
    graph_and_model(size, split)


def measure(size: str, split: str) -> dict[str, Any]:
    graph, model = graph_and_model(size, split)
    found: dict[str, Any] = {"nodes": graph.num_nodes, "edges": graph.num_edges, "source": graph.meta["source"]}
    with stage("whole evaluation"):
        with stage("embed"):
            X = embedded(graph, model)
        with stage("evaluate"):
            scores = evaluate(X, graph, progress=False)
    return found | {key: value for key, value in scores.items() if key != "nodes"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="paper", help="size of the simulated graph: tiny, quick, standard, paper")
    parser.add_argument("--split", default="test", help="which of the five graphs")
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    ready = in_child(made, options.size, options.split)
    if ready.error:
        raise SystemExit(ready.error)
    run = in_child(measure, options.size, options.split, warm_up=(measure, "tiny", options.split))
    if run.error:
        raise SystemExit(run.error)
    whole = run["whole evaluation"]
    value = run.value
    value["wanted_minutes"], value["wanted_gb"] = MINUTES, GIGABYTES
    value["reached"] = whole.seconds <= 60 * MINUTES and whole.peak_mb <= 1024 * GIGABYTES
    records = rows("evaluation", run, size=options.size, split=options.split, **value)
    show(records, ["stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    print({key: round(found, 4) for key, found in value.items() if isinstance(found, float)})
    print(
        f"{value['nodes']:,} nodes, {value['edges']:,} edges, {value['communities']:,} communities (largest "
        f"{value['largest_community']:,}): {whole.seconds / 60:.1f} minutes and {whole.peak_mb / 1024:.1f} GB, wanted "
        f"{MINUTES:.0f} minutes and {GIGABYTES:.0f} GB: {'reached' if value['reached'] else 'not reached'}"
    )
    if not options.dry:
        write("evaluation", records)


if __name__ == "__main__":
    main()
