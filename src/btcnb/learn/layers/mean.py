"""GraphSAGE with the mean, `sage`."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import SAGEConv

from btcnb.learn.aggregation import weighted_sums
from btcnb.learn.config import TrainConfig
from btcnb.learn.layers.block import Block


class MeanConv(SAGEConv):
    """PyG's `SAGEConv` with the mean: it aggregates before it projects by nature."""

    @classmethod
    def of(cls, config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[MeanConv, int]:
        size = config.output if last else config.hidden
        return cls(width, size), size

    def plain(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        out: Tensor = self(x, edge_index)
        return out

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        count = block.indptr.diff()
        weight = (1.0 / count.clamp(min=1)).to(x.dtype).repeat_interleave(count).unsqueeze(1)
        means = weighted_sums(x, weight, block.indptr - block.indptr[0], block.source).squeeze(1)  # (D, F)
        out: Tensor = self.lin_l(means) + self.lin_r(block.rows(x))
        return out
