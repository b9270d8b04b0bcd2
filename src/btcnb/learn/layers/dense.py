"""No graph at all, `mlp`: what a node's own features can do."""

from __future__ import annotations

from torch import Tensor, nn

from btcnb.learn.config import TrainConfig
from btcnb.learn.layers.block import Block


class DenseLayer(nn.Linear):
    """A linear layer on the targets' own rows; messages are ignored. The control that tells what the graph adds."""

    @classmethod
    def of(cls, config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[DenseLayer, int]:
        size = config.output if last else config.hidden
        return cls(width, size), size

    def plain(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        out: Tensor = self(x)
        return out

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        out: Tensor = self(block.rows(x))
        return out
