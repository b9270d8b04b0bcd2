"""The embedded graph that the benchmarks of evaluation and coarse partition share: the one place that knows whence."""

from __future__ import annotations

from typing import Any

from btcnb.data import Source, load_graph
from btcnb.experiments import recipe, trained
from btcnb.learn import embed


def graph_and_model(size: str, split: str) -> tuple[Any, Any]:
    """A simulated graph of a size, and the shared encoder of size `quick`: an evaluation costs the same whoever trained
    it. Both are kept in the store, so that only the first call makes them.
    """
    model = trained(recipe(Source.of("simulated", size="quick"))).model
    return load_graph(Source.of("simulated", size=size), split), model


def embedded(graph: Any, model: Any) -> Any:
    """Embeddings (N, d) of a graph."""
    return embed(model, graph)
