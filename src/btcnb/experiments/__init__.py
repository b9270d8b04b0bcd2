"""Part IV: recipes, their stages, and the experiments made of them."""

from btcnb.experiments.compare import compare
from btcnb.experiments.recipe import Recipe, baseline, recipe
from btcnb.experiments.stages import coarse, community_baseline, embeddings, forest, scores, trained

__all__ = [
    "Recipe",
    "baseline",
    "coarse",
    "community_baseline",
    "compare",
    "embeddings",
    "forest",
    "recipe",
    "scores",
    "trained",
]
