"""The two losses of the paper, exact in float32 also where exponentials overflow or differences vanish."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from btcnb.errors import ParameterError


def info_nce(
    anchor: Tensor,
    positive: Tensor,
    negatives: Tensor,
    tau: float = 0.07,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    """The contrastive loss of the paper's equation 1.

    anchor (B, d), positive (B, d), negatives (B, p, d): unit rows, so that dot products are cosines. Returns the mean
    over anchors, or one value each, (B,).

    −log(e^s / (e^s + Σ e^{n_i})) = log(1 + Σ e^{n_i − s}): written so, a loss near zero keeps its digits.
    """
    _require_temperature(tau)
    close = (anchor * positive).sum(-1) / tau  # (B,)
    far = torch.einsum("bd,bpd->bp", anchor, negatives) / tau  # (B, p)
    loss = _log_one_plus_exp(torch.logsumexp(far - close.unsqueeze(1), dim=1))
    return loss if reduction == "none" else loss.mean()


def coinjoin_repulsion(anchor: Tensor, other: Tensor, tau: float = 0.30, graph: Tensor | None = None) -> Tensor:
    """The CoinJoin repulsion of the appendix: the mean over graphs of the mean over pairs of log(1 + exp(a·b / τ)).

    anchor, other (P, d): unit rows, the two inputs of each pair. graph (P,): which graph a pair belongs to, any
    integers; graphs weigh alike however many pairs they have. Without it all pairs belong to one graph.
    """
    _require_temperature(tau)
    loss = _log_one_plus_exp((anchor * other).sum(-1) / tau)  # (P,)
    if graph is None:
        return loss.mean()
    _, where, pairs = torch.unique(graph, return_inverse=True, return_counts=True)
    return (loss / pairs[where]).sum() / len(pairs)


def _log_one_plus_exp(value: Tensor) -> Tensor:
    return torch.logaddexp(value, torch.zeros_like(value))


def _require_temperature(tau: float) -> None:
    if not tau > 0:
        raise ParameterError(f"tau is {tau!r}, but a temperature must be above 0.")
