"""Graph attention, `gat`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import GATConv

from btcnb.learn.aggregation import dropout, segment_softmax, weighted_sums
from btcnb.learn.config import TrainConfig
from btcnb.learn.layers.block import Block


class AttentionConv(GATConv):
    """PyG's `GATConv`; attention can aggregate before it projects, since Σ α W x = W Σ α x.

    The sums then run over a few input features instead of heads × hidden, nothing of the size edges × hidden is made,
    and the matrix product runs over the targets alone.
    """

    @classmethod
    def of(cls, config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[AttentionConv, int]:
        size = config.output if last else config.hidden
        heads = 1 if last and config.output_heads == "one" else config.heads
        edge_dim = edge_channels or None
        conv = cls(width, size, heads, concat=not last, dropout=config.attention_dropout, edge_dim=edge_dim)
        return conv, size if last else heads * size

    def plain(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        out: Tensor = self(x, edge_index, edge_attr)
        return out

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        """x (S, F) to (D, heads · C), or (D, C) for the mean of heads: weights from logits, sums of x, then W."""
        heads, width = self.heads, self.out_channels
        weight = self.lin.weight.view(heads, width, -1)  # (H, C, F)
        to_source = torch.einsum("hcf,hc->fh", weight, self.att_src[0])  # a_s · W x = x · (Wᵀ a_s)
        to_target = torch.einsum("hcf,hc->fh", weight, self.att_dst[0])
        indptr, source, place = block.with_self_loops()
        count = indptr.diff()
        logits = (x @ to_source).index_select(0, source)  # (E+D, H)
        logits = logits + (block.rows(x) @ to_target).repeat_interleave(count, dim=0)
        if self.lin_edge is not None and block.edge_attr is not None:
            logits = logits + self._edge_logits(block.edge_attr, count, place, len(source))
        attention = segment_softmax(functional.leaky_relu(logits, self.negative_slope), indptr)
        attention = dropout(attention, self.dropout, self.training)
        sums = weighted_sums(x, attention, indptr, source)  # (D, H, F)
        if self.concat:
            out = torch.einsum("dhf,hcf->dhc", sums, weight).reshape(-1, heads * width)
        else:
            out = sums.flatten(1) @ weight.transpose(1, 2).reshape(-1, width) / heads
        return out if self.bias is None else out + self.bias

    def _edge_logits(self, edge_attr: Tensor, count: Tensor, place: Tensor, total: int) -> Tensor:
        """The edges' share of the logits, (E+D, H); a self-loop has the mean features of its target's in-edges."""
        weight = self.lin_edge.weight.view(self.heads, self.out_channels, -1)
        logits = edge_attr @ torch.einsum("hca,hc->ah", weight, self.att_edge[0])  # (E, H)
        target = torch.arange(len(count)).repeat_interleave(count - 1)
        mean = torch.zeros(len(count), self.heads, dtype=logits.dtype).index_add(0, target, logits)
        mean = mean / (count - 1).clamp(min=1).unsqueeze(1)
        out = torch.zeros(total, self.heads, dtype=logits.dtype).index_copy(0, place, logits)
        return out.index_copy(0, count.cumsum(0) - 1, mean)
