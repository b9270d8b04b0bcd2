"""The convolutions that an encoder can be made of.

A new one is a file of its own with a class like `MeanConv` (a `Layer` with a class method `of`), one line here, and its
name in `config.Architecture`, by which mypy checks the keys.
"""

from __future__ import annotations

from collections.abc import Callable

from btcnb.learn.config import Architecture, TrainConfig
from btcnb.learn.layers.attention import AttentionConv
from btcnb.learn.layers.block import Block, Layer
from btcnb.learn.layers.convolution import ConvolutionConv
from btcnb.learn.layers.dense import DenseLayer
from btcnb.learn.layers.mean import MeanConv

MakeLayer = Callable[[TrainConfig, int, int, bool], tuple[Layer, int]]
"""(configuration, width of the input, edge features, whether it is the last) to a layer and the width of its output."""

ENCODERS: dict[Architecture, MakeLayer] = {
    "gat": AttentionConv.of,
    "gcn": ConvolutionConv.of,
    "sage": MeanConv.of,
    "mlp": DenseLayer.of,
}

__all__ = ["ENCODERS", "Block", "Layer", "MakeLayer"]
