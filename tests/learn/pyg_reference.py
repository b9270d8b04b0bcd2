"""The same encoder made of PyG's own convolutions: the reference for ours."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops, trim_to_layer
from torch_geometric.utils import degree as count_of

from btcnb.learn import Encoder


class PygEncoder(nn.Module):
    """PyG's layers with a copy of an encoder's weights, by name; no dropout of attention."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = [encoder]  # in a list, so that its parameters are not ours
        self.convs = nn.ModuleList(map(self.layer, encoder.convs))
        self.convs.load_state_dict(encoder.convs.state_dict())

    def layer(self, conv: nn.Module) -> nn.Module:
        encoder = self.encoder[0]
        match encoder.config.encoder:
            case "gat":
                edges = encoder.edge_channels or None
                return GATConv(conv.in_channels, conv.out_channels, conv.heads, conv.concat, edge_dim=edges)
            case "gcn":
                return GCNConv(conv.in_channels, conv.out_channels, normalize=False, add_self_loops=False)
            case "sage":
                return SAGEConv(conv.in_channels, conv.out_channels)
            case _:
                return nn.Linear(conv.in_features, conv.out_features)

    def convolve(self, layer: int, x: Tensor, edges: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        conv, kind = self.convs[layer], self.encoder[0].config.encoder
        if kind == "gcn":
            looped, _ = add_self_loops(edges, num_nodes=len(x))
            return conv(x, looped, gcn_weights(looped, degree, count_of(edges[1], len(x), torch.long)).to(x.dtype))
        if kind == "gat":
            return conv(x, edges, edge_attr)
        return conv(x) if kind == "mlp" else conv(x, edges)

    def forward(
        self,
        x: Tensor,
        edges: Tensor,
        edge_attr: Tensor | None = None,
        degree: Tensor | None = None,
        nodes_per_hop: list[int] | None = None,
        edges_per_hop: list[int] | None = None,
    ) -> Tensor:
        """Unit rows, with PyG's `trim_to_layer` where the numbers per hop are given."""
        for layer in range(len(self.convs)):
            if nodes_per_hop is not None:
                x, edges, edge_attr = trim_to_layer(layer, nodes_per_hop, edges_per_hop, x, edges, edge_attr)
            here = None if degree is None else degree[: len(x)]
            x = self.encoder[0].between(layer, self.convolve(layer, x, edges, edge_attr, here))
        return functional.normalize(x if nodes_per_hop is None else x[: nodes_per_hop[0]], dim=-1)


def gcn_weights(looped: Tensor, degree: Tensor | None, drawn: Tensor) -> Tensor:
    """Entries of D^-1/2 (A + I) D^-1/2 with true degrees; edges (not self-loops) times neighbours / drawn."""
    full = drawn if degree is None else degree
    scale = (full.double() + 1).rsqrt()
    share = (full / drawn.clamp(min=1))[looped[1]]
    return scale[looped[0]] * scale[looped[1]] * torch.where(looped[0] == looped[1], 1.0, share)
