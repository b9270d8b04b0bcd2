"""The runs that chapters share: trained once on the book's five graphs, kept on disk, read by all.

run = reference_run("quick", seed=0)                       # the paper's GAT on the three training graphs
run = reference_run("quick", seed=0, encoder="sage")       # any field of TrainConfig can be changed
X = reference_embeddings("quick", seed=0, split="test")    # one unit row per node of the test graph
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.cache import cached
from btcnb.data.splits import load_split
from btcnb.errors import ParameterError
from btcnb.learn.baselines import baseline_config
from btcnb.learn.communities import communities, tune_resolution
from btcnb.learn.config import TrainConfig
from btcnb.learn.embedding import embed
from btcnb.learn.training import Run, train

TRAIN_SPLITS = ("train1", "train2", "train3")
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"epochs": 3, "steps_per_epoch": 2, "anchors": 64, "rotate_every": 1},
    "quick": {"epochs": 45, "steps_per_epoch": 10, "anchors": 256, "rotate_every": 5},
    "standard": {},
    "paper": {},
}
"""What each size changes in the paper's table: smaller graphs need fewer and smaller steps."""


def reference_config(size: str = "quick", seed: int = 0, **changes: Any) -> TrainConfig:
    """The configuration of a shared run: the paper's table, the size's preset, then `changes`."""
    if size not in PRESETS:
        raise ParameterError(f"size is {size!r}, but must be one of {', '.join(map(repr, PRESETS))}.")
    known = {field.name for field in fields(TrainConfig)}
    unknown = sorted(set(changes) - known)
    if unknown:
        raise ParameterError(f"unknown training parameter {unknown[0]!r}; known are {', '.join(sorted(known))}.")
    return TrainConfig(**{**PRESETS[size], "seed": seed, **changes})


def reference_run(size: str = "quick", seed: int = 0, **changes: Any) -> Run:
    """Train on the three training graphs of a size, steered by its validation graph."""
    return _run(size, reference_config(size, seed, **changes))


def reference_embeddings(
    size: str = "quick", seed: int = 0, split: str = "test", **changes: Any
) -> npt.NDArray[np.float32]:
    """Embeddings of a split by `reference_run(size, seed, **changes)`: unit rows, node order of the graph, (N, d)."""
    return _embeddings(size, reference_config(size, seed, **changes), split)


def reference_baseline(name: str, size: str = "quick", seed: int = 0, **changes: Any) -> Run:
    """A baseline encoder (`untrained`, `gae` or `dgi`) trained where the reference run is trained."""
    return _run(size, baseline_config(name, reference_config(size, seed, **changes)))


def reference_baseline_embeddings(
    name: str, size: str = "quick", seed: int = 0, split: str = "test", **changes: Any
) -> npt.NDArray[np.float32]:
    """Embeddings of a split by a baseline encoder, as `reference_embeddings`."""
    return _embeddings(size, baseline_config(name, reference_config(size, seed, **changes)), split)


@cached("data", "learn")
def reference_communities(
    method: str, size: str = "quick", seed: int = 0, split: str = "test"
) -> tuple[npt.NDArray[np.int64], float]:
    """Communities of a split by `louvain` or `leiden`, and the resolution, tuned on the size's validation graph."""
    chosen: Any = method
    resolution, _ = tune_resolution(load_split("valid", size), chosen, seed=seed)
    return communities(load_split(split, size), chosen, resolution, seed), resolution


@cached("data", "learn")
def _run(size: str, config: TrainConfig) -> Run:
    graphs = [load_split(name, size) for name in TRAIN_SPLITS]
    return train(config, graphs, valid=load_split("valid", size), progress=False)


@cached("data", "learn")
def _embeddings(size: str, config: TrainConfig, split: str) -> npt.NDArray[np.float32]:
    return embed(_run(size, config).model, load_split(split, size))
