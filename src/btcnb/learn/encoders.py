"""The paper's encoder: PyG's convolutions with a compiled way through the same parameters."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.utils import trim_to_layer

from btcnb import gates
from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn.aggregation import dropout
from btcnb.learn.config import SEE_EDGES, TrainConfig
from btcnb.learn.layers import ENCODERS, Block, Layer
from btcnb.store import storable


@storable("encoder")
class Encoder(nn.Module):
    """Convolutions with Leaky ReLU and dropout between them, unit rows at the end.

    On the CPU the convolutions run compiled; on another device, or with `config.convolutions = "plain"`, they are
    PyG's own. Both ways share all parameters and agree in outputs and gradients.
    """

    def __init__(self, config: TrainConfig, in_channels: int, edge_channels: int = 0) -> None:
        super().__init__()
        self.config = gates.instance("config", config, TrainConfig)
        self.in_channels = gates.whole("in_channels", in_channels, "[1, 1000000]")
        edge_channels = gates.whole("edge_channels", edge_channels, "[0, 1000000]")
        self.edge_channels = edge_channels if config.encoder in SEE_EDGES else 0
        if config.edge_features and not edge_channels:
            raise ParameterError("edge_features is set, but edge_channels is 0: prepare the graph with edge features.")
        self.convs = nn.ModuleList()
        width = self.in_channels
        for layer in range(config.layers):
            conv, width = ENCODERS[config.encoder](config, width, self.edge_channels, layer == config.layers - 1)
            self.convs.append(cast(nn.Module, conv))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def compiled(self) -> bool:
        """Whether the convolutions run compiled."""
        return self.config.convolutions != "plain" and self.device.type == "cpu"

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
        A row that the last layer left at zero stays zero.
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
        self._require(x, edge_index, edge_attr, degree)
        if not self.compiled:
            return self._plain(x, edge_index, edge_attr, degree, nodes_per_hop, edges_per_hop)
        edge_index, edge_attr = _sorted_by_target(edge_index, edge_attr)
        for layer in range(len(self.convs)):
            if nodes_per_hop is None or edges_per_hop is None:
                targets, edges = len(x), edge_index.shape[1]
            else:  # layer l feeds the seeds through the hops that are left
                targets = sum(nodes_per_hop[: len(self.convs) - layer])
                edges = sum(edges_per_hop[: len(self.convs) - layer])
            if edges and (int(edge_index[0, :edges].max()) >= len(x) or int(edge_index[1, :edges].max()) >= targets):
                raise DataError("encoder", "nodes_per_hop", "an edge leaves its hop", "pass the numbers of the sample")
            block = Block(
                indptr=_indptr(edge_index[1, :edges], targets),
                source=edge_index[0, :edges],
                edge_attr=None if edge_attr is None else edge_attr[:edges],
                degree=None if degree is None else degree[: len(x)],
            )
            x = self.between(layer, self.convolve(layer, x, block))
        return x

    def plain(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        degree: Tensor | None = None,
        nodes_per_hop: list[int] | None = None,
        edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """As `forward`, by PyG's own convolutions and `trim_to_layer`, whatever the device. The yardstick."""
        self._require(x, edge_index, edge_attr, degree)
        return functional.normalize(self._plain(x, edge_index, edge_attr, degree, nodes_per_hop, edges_per_hop), dim=-1)

    def _plain(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        degree: Tensor | None,
        nodes_per_hop: list[int] | None,
        edges_per_hop: list[int] | None,
    ) -> Tensor:
        for layer in range(len(self.convs)):
            if nodes_per_hop is not None and edges_per_hop is not None:
                x, edge_index, edge_attr = trim_to_layer(layer, nodes_per_hop, edges_per_hop, x, edge_index, edge_attr)
            here = None if degree is None else degree[: len(x)]
            x = self.between(layer, self.layer(layer).plain(x, edge_index, edge_attr, here))
        return x if nodes_per_hop is None else x[: nodes_per_hop[0]]

    def convolve(self, layer: int, x: Tensor, block: Block) -> Tensor:
        """One convolution: rows x (S, F) to the targets of `block` (D, C)."""
        if self.compiled:
            return self.layer(layer).aggregate_first(x, block)
        own = torch.arange(block.first, block.first + block.targets, device=x.device)
        nodes, place = torch.unique(torch.cat([own, block.source]), return_inverse=True)
        target = place[: block.targets]
        edge_index = torch.stack([place[block.targets :], target.repeat_interleave(block.indptr.diff())])
        degree = None if block.degree is None else block.degree[nodes]
        return self.layer(layer).plain(x[nodes], edge_index, block.edge_attr, degree)[target]

    def layer(self, layer: int) -> Layer:
        return cast(Layer, self.convs[layer])

    def between(self, layer: int, x: Tensor) -> Tensor:
        """What follows convolution `layer`: activation and dropout, nothing after the last."""
        if layer == len(self.convs) - 1:
            return x
        return dropout(functional.leaky_relu(x), self.config.dropout, self.training)

    def require_edge_features(self, number: int, name: str = "graph") -> None:
        """A model that learnt to see edge features must see as many; one that did not ignores them."""
        if self.edge_channels and number != self.edge_channels:
            problem = f"{number or 'none'} an edge, but the model was made for {self.edge_channels}"
            raise DataError(name, "edge features", problem, "prepare the graph as the training graphs were")

    def _require(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> None:
        """Shapes, types and node positions: compiled loops read what they are told to."""
        for name, value in (("x", x), ("edge_index", edge_index), ("edge_attr", edge_attr), ("degree", degree)):
            if not isinstance(value, Tensor) and not (value is None and name in ("edge_attr", "degree")):
                raise DataError("encoder", name, f"is a {type(value).__name__}", "pass a tensor")
        wanted = next(self.parameters()).dtype
        if x.ndim != 2 or x.shape[1] != self.in_channels or x.dtype != wanted:
            problem = f"{x.dtype} of shape {tuple(x.shape)}"
            raise DataError("encoder", "x", problem, f"pass {wanted} with {self.in_channels} columns")
        if edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.dtype != torch.int64:
            problem = f"{edge_index.dtype} of shape {tuple(edge_index.shape)}"
            raise DataError("encoder", "edge_index", problem, "pass int64 of shape (2, edges)")
        if edge_index.device.type == "cpu" and edge_index.numel():
            low, high = edge_index.aminmax()
            if int(low) < 0 or int(high) >= len(x):
                raise DataError("encoder", "edge_index", f"names node {int(high)} of {len(x)}", "give every node a row")
        self.require_edge_features(0 if edge_attr is None or edge_attr.ndim != 2 else edge_attr.shape[1], "encoder")
        if edge_attr is not None and edge_attr.shape[:-1] != edge_index.shape[1:]:
            raise DataError("encoder", "edge_attr", f"shape {tuple(edge_attr.shape)}", "pass one row per edge")
        if degree is not None and degree.shape != (len(x),):
            raise DataError("encoder", "degree", f"shape {tuple(degree.shape)}", "pass one number per node")

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
            with torch.random.fork_rng(devices=[]):  # weights are drawn only to be replaced
                config = TrainConfig.from_json(parts["config"])
                encoder = cls(config, parts["in_channels"], parts["edge_channels"])
            encoder.load_state_dict({name: torch.as_tensor(value) for name, value in parts["weights"].items()})
        except (BtcnbError, LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            problem = f"parts do not make an encoder ({_first_line(error)})"
            raise DataError(source, "model", problem, "train again, or name a file that btcnb wrote") from error
        if not all(bool(torch.isfinite(value).all()) for value in encoder.state_dict().values()):
            raise DataError(source, "weights", "not finite", "train again")
        return encoder.eval()


def _first_line(error: Exception) -> str:
    """What an error says, in one short line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[min(1, len(lines) - 1)].strip().rstrip(".:")[:160]


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
