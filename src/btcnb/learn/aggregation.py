"""Neighbourhood sums and softmaxes that torch can differentiate through."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from btcnb.learn import kernels


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, indptr: Tensor, source: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, indptr, source)
        return torch.from_numpy(kernels.weighted_sums(*_arrays(x, weight, indptr, source)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, weight, indptr, source = _arrays(*ctx.saved_tensors)
        (grad,) = _arrays(grads[0])
        by_x = by_weight = None
        if ctx.needs_input_grad[0]:
            by_x = torch.from_numpy(kernels.weighted_sums_backward_x(grad, weight, indptr, source, len(x)))
        if ctx.needs_input_grad[1]:
            by_weight = torch.from_numpy(kernels.weighted_sums_backward_weight(grad, x, indptr, source))
        return by_x, by_weight, None, None


class _SegmentSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, indptr: Tensor) -> Tensor:
        softmax = torch.from_numpy(kernels.segment_softmax(*_arrays(logits, indptr)))
        ctx.save_for_backward(softmax, indptr)
        return softmax

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        softmax, indptr = _arrays(*ctx.saved_tensors)
        (grad,) = _arrays(grads[0])
        return torch.from_numpy(kernels.segment_softmax_backward(grad, softmax, indptr)), None


def weighted_sums(x: Tensor, weight: Tensor, indptr: Tensor, source: Tensor) -> Tensor:
    """Σ over the in-edges e of each target: weight[e, h] · x[source[e]].

    x (S, F), weight (E, H), indptr (D+1), source (E), edges sorted by target; returns (D, H, F). No tensor of the size
    edges × features is ever made.
    """
    out: Tensor = _WeightedSums.apply(x, weight, indptr, source)  # type: ignore[no-untyped-call]
    return out


def segment_softmax(logits: Tensor, indptr: Tensor) -> Tensor:
    """Softmax of logits (E, H) over the in-edges of each target."""
    out: Tensor = _SegmentSoftmax.apply(logits, indptr)  # type: ignore[no-untyped-call]
    return out


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """As torch's: zero a `share` of the values and scale up the rest, while training.

    On the CPU the mask grows from one draw of torch's generator; drawing every value from it took a third of a
    training step.
    """
    if not training or share == 0:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, share)
    seed = int(torch.randint(1 << 62, ()))
    return x * torch.from_numpy(kernels.keep_mask(x.numel(), 1.0 - share, seed)).view(x.shape)


def _arrays(*tensors: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)
