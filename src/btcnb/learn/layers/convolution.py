"""Graph convolution, `gcn`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.utils import add_self_loops
from torch_geometric.utils import degree as count_of

from btcnb.learn.aggregation import weighted_sums
from btcnb.learn.config import TrainConfig
from btcnb.learn.layers.block import Block


class ConvolutionConv(GCNConv):
    """PyG's `GCNConv`, with the degrees of the whole graph even inside a sample.

    A sample knows 15 of a hub's thousand neighbours; degrees counted inside it would change with the sample and with
    trimming. Here D^-1/2 (A + I) D^-1/2 uses true degrees, and a sum over k drawn out of d neighbours is scaled by d/k:
    unbiased, and equal to the full sum when all are drawn.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, normalize=False, add_self_loops=False)

    @classmethod
    def of(cls, config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[ConvolutionConv, int]:
        size = config.output if last else config.hidden
        return cls(width, size), size

    def plain(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        drawn = count_of(edge_index[1], len(x), torch.long)
        full = drawn if degree is None else degree
        looped, _ = add_self_loops(edge_index, num_nodes=len(x))
        share = (full / drawn.clamp(min=1))[looped[1]]
        out: Tensor = self(x, looped, symmetric_weights(looped[0], looped[1], full, share).to(x.dtype))
        return out

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        indptr, source, _ = block.with_self_loops()
        count = indptr.diff()
        degree = _own_degree(block, len(x)) if block.degree is None else block.degree
        target = torch.arange(block.first, block.first + block.targets).repeat_interleave(count)
        share = (block.rows(degree) / (count - 1).clamp(min=1)).repeat_interleave(count)
        weight = symmetric_weights(source, target, degree, share).to(x.dtype).unsqueeze(1)
        sums = weighted_sums(x, weight, indptr, source).squeeze(1)  # (D, F)
        out = sums @ self.lin.weight.T
        return out if self.bias is None else out + self.bias


def symmetric_weights(source: Tensor, target: Tensor, degree: Tensor, share: Tensor) -> Tensor:
    """Entries of D^-1/2 (A + I) D^-1/2, (E,), float64; edges (not self-loops) times `share`, neighbours / drawn."""
    scale = (degree.double() + 1).rsqrt()
    return scale[source] * scale[target] * torch.where(source == target, 1.0, share)


def _own_degree(block: Block, nodes: int) -> Tensor:
    """In-degrees counted in the block itself: right when it holds all nodes and all their in-edges."""
    degree = torch.zeros(nodes, dtype=torch.long)
    degree[block.first : block.first + block.targets] = block.indptr.diff()
    return degree
