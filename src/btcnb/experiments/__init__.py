"""Part IV: recipes, their stages, and the experiments made of them.

Each name is imported on first use: reading records of runs needs neither torch nor numba.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btcnb.experiments.recipe import Recipe, baseline, recipe
    from btcnb.experiments.stages import coarse, community_baseline, compare, embeddings, forest, scores, trained

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
_HOMES = {"Recipe": "recipe", "baseline": "recipe", "recipe": "recipe"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"btcnb.experiments has no {name!r}")
    value = getattr(importlib.import_module(f"btcnb.experiments.{_HOMES.get(name, 'stages')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    """The function `recipe` has the name of its module: importing the module must not hide it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
