"""What a layer is given and what it must be able to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from btcnb.learn import kernels


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

    def to(self, device: torch.device) -> Block:
        """The same on another device."""
        if device.type == "cpu":
            return self
        moved: dict[str, Any] = {
            name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)

    def with_self_loops(self) -> tuple[Tensor, Tensor, Tensor]:
        """`indptr` and `source` with each target among its own sources, last; and the places of the old edges."""
        new = kernels.with_self_loops(self.indptr.numpy(), self.source.numpy(), self.first)
        return torch.from_numpy(new[0]), torch.from_numpy(new[1]), torch.from_numpy(new[2])


class Layer(Protocol):
    """A convolution with two ways through the same parameters, equal in outputs and gradients."""

    def aggregate_first(self, x: Tensor, block: Block) -> Tensor:
        """Compiled, on the CPU: rows x (S, F) to the targets of the block (D, C)."""
        ...

    def plain(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, degree: Tensor | None) -> Tensor:
        """PyG's own, on any device: rows x (S, F) to as many rows (S, C); degree (S) in the whole graph."""
        ...
