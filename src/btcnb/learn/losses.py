"""The two losses of the paper, exact in float32 also where exponentials overflow or differences vanish."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from btcnb import gates
from btcnb.errors import DataError

Reduction = Literal["mean", "sum", "none"]

NO_ROBUSTNESS = 1e-30
"""Up to here q is as good as 0: the losses differ by less than any digit, and float32 would soon call it 0 itself."""


def info_nce(
    anchor: Tensor,
    positive: Tensor,
    negatives: Tensor,
    tau: float = 0.07,
    reduction: Reduction = "mean",
    robustness: float = 0.0,
) -> Tensor:
    """The contrastive loss of the paper's equation 1.

    anchor (B, d), positive (B, d), negatives (B, p, d): unit rows, so that dot products are cosines. Returns the mean
    over anchors, their sum, or (`none`) one value each, (B,).

    With s the positive's dot product over τ and n those of the negatives,
    −log(exp s / (exp s + Σ exp n)) = log(1 + Σ exp(n − s)): written so, a loss near zero keeps its digits.

    robustness: q. With P the probability that the loss gives to the positive, 0 is −log P (the paper's), anything above
        is the generalised cross-entropy (1 − P^q) / q, whose pull on a positive is P^q times the paper's: pairs that
        look wrong, as false merges do, pull less.
    """
    robustness = gates.real("robustness", robustness, "[0, 1]")
    tau = gates.real("tau, a temperature,", tau, "(0, inf)")
    gates.choice("reduction", reduction, get_args(Reduction))
    _require_rows("anchor", anchor, None)
    _require_rows("positive", positive, anchor)
    if not isinstance(negatives, Tensor) or negatives.ndim != 3 or not negatives.shape[1]:
        raise DataError("loss", "negatives", _seen(negatives), "pass a tensor of shape (anchors, at least 1, width)")
    _require_rows("negatives", negatives[:, 0], anchor)
    close = (anchor * positive).sum(-1) / tau  # (B,)
    far = torch.einsum("bd,bpd->bp", anchor, negatives) / tau  # (B, p)
    loss = _log_one_plus_exp(torch.logsumexp(far - close.unsqueeze(1), dim=1))
    if robustness > NO_ROBUSTNESS:
        loss = -torch.expm1(-robustness * loss) / robustness
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def coinjoin_repulsion(anchor: Tensor, other: Tensor, tau: float = 0.30, graph: Tensor | None = None) -> Tensor:
    """The CoinJoin repulsion of the appendix: the mean over graphs of the mean over pairs of log(1 + exp(a·b / τ)).

    anchor, other (P, d): unit rows, the two inputs of each pair. graph (P,): which graph a pair belongs to, any
    integers; graphs weigh alike however many pairs they have. Without it all pairs belong to one graph.
    """
    tau = gates.real("tau, a temperature,", tau, "(0, inf)")
    _require_rows("anchor", anchor, None)
    _require_rows("other", other, anchor)
    loss = _log_one_plus_exp((anchor * other).sum(-1) / tau)  # (P,)
    if graph is None:
        return loss.mean()
    if not isinstance(graph, Tensor) or graph.shape != loss.shape or graph.is_floating_point() or graph.is_complex():
        raise DataError("loss", "graph", _seen(graph), "pass a tensor with one integer per pair")
    _, where, pairs = torch.unique(graph.to(loss.device), return_inverse=True, return_counts=True)
    return (loss / pairs[where]).sum() / len(pairs)


def _log_one_plus_exp(value: Tensor) -> Tensor:
    return torch.logaddexp(value, torch.zeros_like(value))


def _require_rows(name: str, value: Any, like: Tensor | None) -> None:
    if not isinstance(value, Tensor) or value.ndim != 2 or not value.is_floating_point() or not value.numel():
        raise DataError("loss", name, _seen(value), "pass a tensor of floats with one row each, at least one")
    if like is not None and (value.shape != like.shape or value.dtype != like.dtype):
        raise DataError("loss", name, f"{_seen(value)}, anchor {_seen(like)}", "pass as many rows of the same width")


def _seen(value: Any) -> str:
    return f"is {value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else f"is a {type(value).__name__}"
