"""Two-layer encoders made of PyG's convolutions, with a faster way through the same parameters.

Attention can aggregate before it projects: Σ α W x = W Σ α x. The sums then run over a few input features instead of
heads × hidden, nothing of the size edges × hidden is made, and the matrix product runs over the targets alone.
`forward` goes that way, `plain` calls PyG's own convolution; both share all parameters and agree in outputs and
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops

from btcnb.learn import kernels
from btcnb.learn.aggregation import dropout, segment_softmax, weighted_sums
from btcnb.learn.config import TrainConfig


@dataclass(frozen=True)
class Block:
    """The in-edges of a run of targets, which are rows `first : first + D` of the layer's input.

    indptr (D+1), source (E) rows of the input, edge_attr (E, A) or None, degree (S): in-degrees in the whole graph.
    """

    indptr: Tensor
    source: Tensor
    first: int = 0
    edge_attr: Tensor | None = None
    degree: Tensor | None = None

    @property
    def targets(self) -> int:
        return len(self.indptr) - 1

    def rows(self, x: Tensor) -> Tensor:
        """The targets' own rows of x, (D, F)."""
        return x[self.first : self.first + self.targets]

    def with_self_loops(self) -> tuple[Tensor, Tensor, Tensor]:
        """`indptr` and `source` with each target among its own sources, last; and the places of the old edges."""
        new = kernels.with_self_loops(self.indptr.numpy(), self.source.numpy(), self.first)
        return torch.from_numpy(new[0]), torch.from_numpy(new[1]), torch.from_numpy(new[2])


class AttentionConv(GATConv):
    """PyG's `GATConv`, plus `aggregate_first`."""

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


class ConvolutionConv(GCNConv):
    """PyG's `GCNConv`, with the degrees of the whole graph even inside a sample.

    A sample knows 15 of a hub's thousand neighbours; degrees counted inside it would change with the sample and with
    trimming. Here D^-1/2 (A + I) D^-1/2 uses true degrees, and a sum over k drawn out of d neighbours is scaled by d/k:
    unbiased, and equal to the full sum when all are drawn.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, normalize=False, add_self_loops=False)

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


class MeanConv(SAGEConv):
    """PyG's `SAGEConv` with the mean: it aggregates before it projects by nature."""

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        count = block.indptr.diff()
        weight = (1.0 / count.clamp(min=1)).to(x.dtype).repeat_interleave(count).unsqueeze(1)
        means = weighted_sums(x, weight, block.indptr - block.indptr[0], block.source).squeeze(1)  # (D, F)
        out: Tensor = self.lin_l(means) + self.lin_r(block.rows(x))
        return out


class Encoder(nn.Module):
    """The paper's encoder: convolutions with Leaky ReLU and dropout between them, unit rows at the end."""

    def __init__(self, config: TrainConfig, in_channels: int, edge_channels: int = 0) -> None:
        super().__init__()
        self.config = config
        self.in_channels = in_channels
        self.edge_channels = edge_channels
        self.convs = nn.ModuleList()
        width = in_channels
        for layer in range(config.layers):
            conv, width = _convolution(config, width, edge_channels, last=layer == config.layers - 1)
            self.convs.append(conv)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        degree: Tensor | None = None,
        nodes_per_hop: list[int] | None = None,
        edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """Unit-norm embeddings, (N, output), or (seeds, output) when the numbers per hop of a sample are given.

        With these, layer l leaves out the nodes and edges that no later layer needs, as PyG's `trim_to_layer` does.
        """
        return functional.normalize(self.raw(x, edge_index, edge_attr, degree, nodes_per_hop, edges_per_hop), dim=-1)

    def raw(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        degree: Tensor | None = None,
        nodes_per_hop: list[int] | None = None,
        edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """The same before rows are scaled to unit norm."""
        edge_index, edge_attr = _sorted_by_target(edge_index, edge_attr)
        for layer in range(len(self.convs)):
            if nodes_per_hop is None or edges_per_hop is None:
                targets, edges = len(x), edge_index.shape[1]
            else:  # layer l feeds the seeds through the hops that are left
                targets = sum(nodes_per_hop[: len(self.convs) - layer])
                edges = sum(edges_per_hop[: len(self.convs) - layer])
            block = Block(
                indptr=_indptr(edge_index[1, :edges], targets),
                source=edge_index[0, :edges],
                edge_attr=None if edge_attr is None else edge_attr[:edges],
                degree=None if degree is None else degree[: len(x)],
            )
            x = self.between(layer, self.convolve(layer, x, block))
        return x

    def convolve(self, layer: int, x: Tensor, block: Block) -> Tensor:
        """One convolution, aggregate first: rows x (S, F) to the targets of `block` (D, C)."""
        out: Tensor = self.convs[layer].aggregate_first(x, block)  # type: ignore[operator]
        return out

    def between(self, layer: int, x: Tensor) -> Tensor:
        """What follows convolution `layer`: activation and dropout, nothing after the last."""
        if layer == len(self.convs) - 1:
            return x
        return dropout(functional.leaky_relu(x), self.config.dropout, self.training)

    def plain(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, degree: Tensor | None = None
    ) -> Tensor:
        """PyG's own convolutions on all nodes and edges, untrimmed: (N, output), unit rows. The yardstick."""
        for layer, conv in enumerate(self.convs):
            if isinstance(conv, AttentionConv):
                out = conv(x, edge_index, edge_attr)
            elif isinstance(conv, ConvolutionConv):
                drawn = torch.bincount(edge_index[1], minlength=len(x))
                full = drawn if degree is None else degree
                looped, _ = add_self_loops(edge_index, num_nodes=len(x))
                share = (full / drawn.clamp(min=1))[looped[1]]
                out = conv(x, looped, symmetric_weights(looped[0], looped[1], full, share).to(x.dtype))
            else:
                out = conv(x, edge_index)
            x = self.between(layer, out)
        return functional.normalize(x, dim=-1)


def _convolution(config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[nn.Module, int]:
    """One layer and the width of its output."""
    size = config.output if last else config.hidden
    if config.encoder == "gcn":
        return ConvolutionConv(width, size), size
    if config.encoder == "sage":
        return MeanConv(width, size), size
    heads = 1 if last and config.output_heads == "one" else config.heads
    options: dict[str, Any] = {"dropout": config.attention_dropout, "edge_dim": edge_channels or None}
    conv = AttentionConv(width, size, heads=heads, concat=not last, **options)
    return conv, size if last else heads * size


def _sorted_by_target(edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Edges sorted by target, as every sampler and `PreparedGraph` has them already."""
    target = edge_index[1]
    if bool((target[1:] >= target[:-1]).all()):
        return edge_index, edge_attr
    order = torch.argsort(target, stable=True)
    return edge_index[:, order], None if edge_attr is None else edge_attr[order]


def _indptr(target: Tensor, targets: int) -> Tensor:
    counts = np.bincount(target.numpy(), minlength=targets)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))


def _own_degree(block: Block, nodes: int) -> Tensor:
    """In-degrees counted in the block itself: right when it holds all nodes and all their in-edges."""
    degree = torch.zeros(nodes, dtype=torch.long)
    degree[block.first : block.first + block.targets] = block.indptr.diff()
    return degree
