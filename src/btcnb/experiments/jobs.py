"""One run of a sweep, said completely: which recipe, whose encoder, what is measured.

Job("gat", seed=1, recipe=recipe(Source(seed=1), seed=1))
"""

from __future__ import annotations

from dataclasses import dataclass

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.experiments.recipe import Recipe

METHODS: dict[str, str] = {
    "trained": "the recipe's encoder, trained",
    "untrained": "the same encoder with the weights it starts from",
    "gae": "the same encoder trained as a graph auto-encoder",
    "dgi": "the same encoder trained by deep graph infomax",
    "features": "scaled features as they are: no graph, no training",
    "shuffled": "the trained encoder's clusters, dealt out to nodes at random",
    "agreeing": "three encoders side by side (trained, trained on common inputs, untrained)",
    "louvain": "Louvain's communities",
    "leiden": "Leiden's communities",
}
COMMUNITIES = ("louvain", "leiden")
NO_EMBEDDING = (*COMMUNITIES, "shuffled")
"""Methods that are flat clusters and nothing else: there is nothing to refine by."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep: a recipe, the method that takes its encoder's place, and what is measured."""

    row: str
    seed: int
    recipe: Recipe
    method: str = "trained"
    measure: str = "scores"

    def __post_init__(self) -> None:
        gates.text("row", self.row)
        gates.whole("seed", self.seed, "[0, 2147483647]")
        gates.instance("recipe", self.recipe, Recipe)
        gates.choice("method", self.method, METHODS)
        gates.text("measure", self.measure)
        if self.measure == "refinement" and self.method in NO_EMBEDDING:
            raise ParameterError(
                f"the measure 'refinement' needs an embedding, but the method {self.method!r} has none; "
                f"take one of {', '.join(name for name in METHODS if name not in NO_EMBEDDING)}."
            )
