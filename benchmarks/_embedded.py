"""The embedded graph that the benchmarks of evaluation and coarse partition share: the one place that knows whence."""

from __future__ import annotations

from typing import Any

from btcnb.data.splits import load_split

from btcnb.learn import embed, prepare, reference_run


def graph_and_model(size: str, split: str) -> tuple[Any, Any]:
    """A simulated graph of a size, and the shared encoder of size `quick`: an evaluation costs the same whoever trained
    it. Both are kept on disk, so that only the first call makes them.
    """
    return load_split(split, size), reference_run("quick").model


def embedded(graph: Any, model: Any) -> Any:
    """Embeddings (N, d) of a graph."""
    return embed(model, prepare(graph))
