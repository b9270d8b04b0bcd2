"""Part III: encoders, neighbour sampling, contrastive tuples, losses, training, embeddings, baselines."""

from typing import TYPE_CHECKING, Any

from btcnb.learn.checkpoints import load_model
from btcnb.learn.config import BASELINES, TrainConfig, baseline_config
from btcnb.learn.embed import embed, layer_outputs
from btcnb.learn.encoder import Encoder
from btcnb.learn.graphs import PreparedGraph, disjoint_union, prepare, prepare_arrays
from btcnb.learn.objectives import CoinJoinGraph, coinjoin_repulsion, info_nce
from btcnb.learn.sampler import Batch, BatchSampler, Tuples, TupleSampler
from btcnb.learn.train import Run, train

if TYPE_CHECKING:
    from btcnb.learn.pyg import NeighbourSampler

__all__ = [
    "BASELINES",
    "Batch",
    "BatchSampler",
    "CoinJoinGraph",
    "Encoder",
    "NeighbourSampler",
    "PreparedGraph",
    "Run",
    "TrainConfig",
    "TupleSampler",
    "Tuples",
    "baseline_config",
    "coinjoin_repulsion",
    "disjoint_union",
    "embed",
    "info_nce",
    "layer_outputs",
    "load_model",
    "prepare",
    "prepare_arrays",
    "train",
]


def __getattr__(name: str) -> Any:
    """`NeighbourSampler` is imported when it is first asked for, because importing PyG takes seconds."""
    if name != "NeighbourSampler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from btcnb.learn.pyg import NeighbourSampler

    return NeighbourSampler
