"""Part III: encoders, neighbour sampling, contrastive tuples, losses, training, embeddings, baselines."""

from btcnb.learn.baselines import baseline_config
from btcnb.learn.checkpoints import load_model
from btcnb.learn.config import TrainConfig
from btcnb.learn.embedding import embed, layer_outputs
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph, prepare, prepare_arrays
from btcnb.learn.losses import coinjoin_repulsion, info_nce
from btcnb.learn.objectives import CoinJoinGraph
from btcnb.learn.sampler import NeighbourSampler, neighbour_sampler
from btcnb.learn.training import Run, train
from btcnb.learn.tuples import Tuples, TupleSampler

__all__ = [
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
    "embed",
    "info_nce",
    "layer_outputs",
    "load_model",
    "neighbour_sampler",
    "prepare",
    "prepare_arrays",
    "train",
]
