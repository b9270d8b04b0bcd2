"""The paper's encoder: GAT, GCN and GraphSAGE convolutions with PyG's parameters, and an MLP as a control.

Parameters have PyG's names, shapes and initialisation, so weights can be exchanged with `GATConv`, `GCNConv` and
`SAGEConv`, which are the reference in the tests. Every convolution aggregates before it projects: Σ α W x = W Σ α x.
The sums then run over the few input features, nothing of the size edges × hidden is made on the CPU, and the matrix
product runs over the targets alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn.config import Architecture, TrainConfig
from btcnb.learn.kernels import dropout, segment_softmax, targets_of, weighted_sums

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """The in-edges of a run of D targets, which are rows `first : first + D` of the layer's input.

    indptr (D+1): bounds of each target's edges; source (E): rows of the input; edge_attr (E, A) or None;
    degree (S): in-degrees in the whole graph, or None to count them in the block.
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
        """`indptr` (D+1) and `source` (E+D) with each target as its own last source; places of the old edges (E)."""
        number = torch.arange(self.targets + 1, device=self.source.device)
        indptr = self.indptr + number
        edges = torch.arange(len(self.source), device=self.source.device)
        place = edges + targets_of(self.indptr, len(edges))
        source = self.source.new_empty(len(edges) + self.targets)
        source[place] = self.source
        source[indptr[1:] - 1] = self.first + number[:-1]
        return indptr, source, place


def moved(item: T, device: torch.device) -> T:
    """A dataclass with its tensors on a device."""
    tensors = {name: value.to(device) for name, value in vars(item).items() if isinstance(value, Tensor)}
    return replace(item, **tensors)  # type: ignore[type-var]


class AttentionConv(nn.Module):
    """Graph attention, `gat`: PyG's `GATConv` with self-loops.

    Heads are concatenated, or averaged where `concat` is off. The logit of an edge is LeakyReLU(a_s·Wx_j + a_t·Wx_i),
    with a·Wx = x·(Wᵀa), so it needs no projected neighbours.
    """

    def __init__(
        self, in_channels: int, out_channels: int, heads: int, concat: bool, dropout: float, edge_channels: int
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.dropout = concat, dropout
        self.lin = _glorot_linear(in_channels, heads * out_channels)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        self.lin_edge = _glorot_linear(edge_channels, heads * out_channels) if edge_channels else None
        self.att_edge = nn.Parameter(torch.empty(1, heads, out_channels)) if edge_channels else None
        self.bias = nn.Parameter(torch.zeros(heads * out_channels if concat else out_channels))
        for layer in (self.lin, self.lin_edge):  # PyG draws matrices twice: equal seeds give PyG's weights
            if layer is not None:
                _glorot(layer.weight)
        for vector in (self.att_src, self.att_dst, self.att_edge):
            if vector is not None:
                _glorot(vector)

    def forward(self, x: Tensor, block: Block) -> Tensor:
        """x (S, F) to (D, heads · C), or (D, C) for the mean of heads."""
        heads, width = self.heads, self.out_channels
        weight = self.lin.weight.view(heads, width, -1)  # (H, C, F)
        to_source = torch.einsum("hcf,hc->fh", weight, self.att_src[0])
        to_target = torch.einsum("hcf,hc->fh", weight, self.att_dst[0])
        indptr, source, place = block.with_self_loops()
        count = indptr.diff()
        logits = (x @ to_source).index_select(0, source)  # (E+D, H)
        own = block.rows(x) @ to_target
        logits = logits + own.repeat_interleave(count, dim=0, output_size=len(source))
        if self.lin_edge is not None and self.att_edge is not None and block.edge_attr is not None:
            edge_weight = self.lin_edge.weight.view(heads, width, -1)
            to_edge = torch.einsum("hca,hc->ah", edge_weight, self.att_edge[0])
            logits = logits + _with_means(block.edge_attr @ to_edge, count, place)
        attention = segment_softmax(functional.leaky_relu(logits, 0.2), indptr)
        attention = dropout(attention, self.dropout, self.training)
        sums = weighted_sums(x, attention, indptr, source)  # (D, H, F)
        if self.concat:
            return torch.einsum("dhf,hcf->dhc", sums, weight).reshape(-1, heads * width) + self.bias
        return sums.flatten(1) @ weight.transpose(1, 2).reshape(-1, width) / heads + self.bias


def _with_means(logits: Tensor, count: Tensor, place: Tensor) -> Tensor:
    """Logits of edges (E, H) and of self-loops, (E+D, H): a self-loop has the mean of its target's in-edges."""
    target = torch.arange(len(count), device=logits.device).repeat_interleave(count - 1, output_size=len(logits))
    mean = logits.new_zeros(len(count), logits.shape[1]).index_add(0, target, logits)
    mean = mean / (count - 1).clamp(min=1).unsqueeze(1)
    out = logits.new_zeros(len(logits) + len(count), logits.shape[1]).index_copy(0, place, logits)
    return out.index_copy(0, count.cumsum(0) - 1, mean)


class GraphConv(nn.Module):
    """Graph convolution, `gcn`: PyG's `GCNConv` with the degrees of the whole graph, even inside a sample.

    A sample knows 15 of a hub's thousand neighbours; degrees counted inside it would change with the sample and with
    trimming. Here D^-1/2 (A + I) D^-1/2 uses true degrees, and a sum over k drawn out of d neighbours is scaled by d/k:
    unbiased, and equal to the full sum when all are drawn.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = _glorot_linear(in_channels, out_channels)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        _glorot(self.lin.weight)  # twice, as PyG does

    def forward(self, x: Tensor, block: Block) -> Tensor:
        """x (S, F) to (D, C)."""
        indptr, source, _ = block.with_self_loops()
        count = indptr.diff()
        degree = block.degree
        if degree is None:  # the block holds all nodes and all their in-edges
            degree = functional.pad(count - 1, (block.first, len(x) - block.first - block.targets))
        target = block.first + targets_of(indptr, len(source))
        share = block.rows(degree) / (count - 1).clamp(min=1)  # neighbours / drawn
        share = share.repeat_interleave(count, output_size=len(source))
        scale = (degree.double() + 1).rsqrt()
        weight = scale[source] * scale[target] * torch.where(source == target, 1.0, share)
        sums = weighted_sums(x, weight.to(x.dtype).unsqueeze(1), indptr, source).squeeze(1)  # (D, F)
        return sums @ self.lin.weight.T + self.bias


class MeanConv(nn.Module):
    """GraphSAGE with the mean, `sage`: PyG's `SAGEConv`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin_l = skip_init(nn.Linear, in_channels, out_channels)
        self.lin_r = skip_init(nn.Linear, in_channels, out_channels, bias=False)
        matrix = math.sqrt(6 / ((1 + math.sqrt(5) ** 2) * in_channels))
        for _ in range(2):  # twice, as PyG does
            self.lin_l.weight.data.uniform_(-matrix, matrix)
            self.lin_l.bias.data.uniform_(-1 / math.sqrt(in_channels), 1 / math.sqrt(in_channels))
            self.lin_r.weight.data.uniform_(-matrix, matrix)

    def forward(self, x: Tensor, block: Block) -> Tensor:
        """x (S, F) to (D, C)."""
        count = block.indptr.diff()
        weight = (1.0 / count.clamp(min=1)).to(x.dtype)
        weight = weight.repeat_interleave(count, output_size=len(block.source)).unsqueeze(1)
        means = weighted_sums(x, weight, block.indptr, block.source).squeeze(1)  # (D, F)
        out: Tensor = self.lin_l(means) + self.lin_r(block.rows(x))
        return out


class DenseLayer(nn.Linear):
    """A linear layer on the targets' own rows, `mlp`. It ignores messages: the control that shows what a graph adds."""

    def forward(self, x: Tensor, block: Block) -> Tensor:  # type: ignore[override]
        """x (S, F) to (D, C)."""
        return super().forward(block.rows(x))


def _glorot_linear(in_channels: int, out_channels: int) -> nn.Linear:
    layer: nn.Linear = skip_init(nn.Linear, in_channels, out_channels, bias=False)
    _glorot(layer.weight)
    return layer


def _glorot(value: Tensor) -> None:
    bound = math.sqrt(6.0 / (value.size(-2) + value.size(-1)))
    value.data.uniform_(-bound, bound)


PLAIN_LAYERS: dict[Architecture, type[nn.Module]] = {"gcn": GraphConv, "sage": MeanConv, "mlp": DenseLayer}
"""Layers that need nothing but the widths of input and output."""


def _layer(config: TrainConfig, width: int, edge_channels: int, last: bool) -> tuple[nn.Module, int]:
    """A convolution for rows of `width` numbers, and the width of its output."""
    size = config.output if last else config.hidden
    if config.encoder != "gat":
        return PLAIN_LAYERS[config.encoder](width, size), size
    heads = 1 if last and config.output_heads == "one" else config.heads
    conv = AttentionConv(width, size, heads, not last, config.attention_dropout, edge_channels)
    return conv, size if last else heads * size


class Encoder(nn.Module):
    """Convolutions with Leaky ReLU and dropout between them, unit rows at the end."""

    def __init__(self, config: TrainConfig, in_channels: int, edge_channels: int = 0) -> None:
        super().__init__()
        self.config, self.in_channels = config, in_channels
        self.edge_channels = edge_channels if config.encoder == "gat" else 0
        if config.edge_features and not edge_channels:
            raise ParameterError("edge_features is set, but edge_channels is 0: prepare the graph with edge features.")
        self.convs = nn.ModuleList()
        self.widths: list[int] = []  # of the output of each convolution
        for layer in range(config.layers):
            before = self.widths[-1] if layer else in_channels
            conv, width = _layer(config, before, self.edge_channels, layer == config.layers - 1)
            self.convs.append(conv)
            self.widths.append(width)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        degree: Tensor | None = None,
        nodes_per_hop: list[int] | None = None,
        edges_per_hop: list[int] | None = None,
        unit: bool = True,
    ) -> Tensor:
        """Unit-norm embeddings, (N, output), or (seeds, output) when the numbers per hop of a sample are given.

        With these, layer l leaves out the nodes and edges that no later layer needs, as PyG's `trim_to_layer` does.
        A row that the last layer left at zero stays zero. `unit=False` returns the rows as the last layer made them.
        """
        self.require_edge_features(0 if edge_attr is None else edge_attr.shape[1], "encoder")
        edge_index, edge_attr = _sorted_by_target(edge_index, edge_attr)
        for layer in range(len(self.convs)):
            targets, edges = len(x), edge_index.shape[1]
            if nodes_per_hop is not None and edges_per_hop is not None:  # layer l feeds the seeds through hops left
                targets = sum(nodes_per_hop[: len(self.convs) - layer])
                edges = sum(edges_per_hop[: len(self.convs) - layer])
            block = Block(
                indptr=_indptr(edge_index[1, :edges], targets),
                source=edge_index[0, :edges],
                edge_attr=None if edge_attr is None else edge_attr[:edges],
                degree=None if degree is None else degree[: len(x)],
            )
            x = self.between(layer, self.convs[layer](x, block))
        return functional.normalize(x, dim=-1) if unit else x

    def between(self, layer: int, x: Tensor) -> Tensor:
        """What follows convolution `layer`: activation and dropout, nothing after the last."""
        if layer == len(self.convs) - 1:
            return x
        return dropout(functional.leaky_relu(x), self.config.dropout, self.training)

    def require_edge_features(self, number: int, name: str = "graph") -> None:
        """Refuse a graph with another number of edge features than the model has seen; a model without ignores them."""
        if self.edge_channels and number != self.edge_channels:
            problem = f"{number or 'none'} per edge, but the model was made for {self.edge_channels}"
            raise DataError(name, "edge features", problem, "prepare the graph as the training graphs were")

    def to_store(self) -> dict[str, Any]:
        """Everything that makes the encoder, as plain values and arrays; nothing of the device it was on."""
        weights = {name: value.detach().cpu().numpy().copy() for name, value in self.state_dict().items()}
        return {
            "config": self.config.to_json(),
            "in_channels": self.in_channels,
            "edge_channels": self.edge_channels,
            "weights": weights,
        }

    @classmethod
    def from_store(cls, parts: dict[str, Any], source: str = "encoder") -> Encoder:
        """The inverse of `to_store`, ready to embed; `DataError` where parts are missing or do not fit together."""
        try:
            with torch.random.fork_rng(devices=[]):  # the drawn weights are replaced
                encoder = cls(TrainConfig.from_json(parts["config"]), parts["in_channels"], parts["edge_channels"])
            encoder.load_state_dict({name: torch.as_tensor(value) for name, value in parts["weights"].items()})
        except (BtcnbError, LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            problem = f"parts do not make an encoder ({' '.join(str(error).split())[:160].rstrip('.:')})"
            raise DataError(source, "model", problem, "train again, or name a file that btcnb wrote") from error
        if not all(bool(torch.isfinite(value).all()) for value in encoder.state_dict().values()):
            raise DataError(source, "weights", "not finite", "train again")
        return encoder.eval()


def _sorted_by_target(edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Edges sorted by target. Batches and `PreparedGraph` have them so; the check would stall other devices."""
    target = edge_index[1]
    if target.device.type == "cpu" and bool((target[1:] >= target[:-1]).all()):
        return edge_index, edge_attr
    order = torch.argsort(target, stable=True)
    return edge_index[:, order], None if edge_attr is None else edge_attr[order]


def _indptr(target: Tensor, targets: int) -> Tensor:
    """Bounds of each target's edges, (targets+1), from sorted targets."""
    counts = target.new_zeros(targets + 1).index_add(0, target + 1, torch.ones_like(target))
    return counts.cumsum(0)
