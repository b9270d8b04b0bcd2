"""Losses against equations evaluated directly in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.learn import coinjoin_repulsion, info_nce


def unit(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=shape)), dim=-1)


def direct_info_nce(anchor, positive, negatives, tau):
    close = np.exp((anchor * positive).sum(-1) / tau)
    far = np.exp(np.einsum("bd,bpd->bp", anchor, negatives) / tau).sum(1)
    return -np.log(close / (close + far))


def test_one_anchor_by_hand():
    """Cosines 0.5 and 0 at τ = 0.5: −log(e / (e + 1))."""
    anchor = torch.tensor([[1.0, 0.0]])
    positive = torch.tensor([[0.5, math.sqrt(0.75)]])
    negatives = torch.tensor([[[0.0, 1.0]]])
    assert info_nce(anchor, positive, negatives, tau=0.5).item() == pytest.approx(-math.log(math.e / (math.e + 1)))


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.05, 0.07, 0.5, 2.0]))
@settings(max_examples=80, deadline=None)
def test_info_nce_in_float32_keeps_the_digits_of_float64(seed, p, tau):
    rng = np.random.default_rng(seed)
    vectors = unit(rng, 8, 5), unit(rng, 8, 5), unit(rng, 8, p, 5)
    expected = direct_info_nce(*(v.numpy() for v in vectors), tau)
    ours = info_nce(*(v.float() for v in vectors), tau, reduction="none").double().numpy()
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=1e-12)  # relative: also where the loss is tiny
    assert info_nce(*vectors, tau).item() == pytest.approx(expected.mean())
    assert info_nce(*vectors, tau, reduction="sum").item() == pytest.approx(expected.sum())


def test_tiny_losses_and_cold_temperatures_survive():
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[[-1.0, 0.0]]])
    assert info_nce(a, a, b, tau=0.07).item() == pytest.approx(math.exp(-2 / 0.07), rel=1e-4)
    cold = info_nce(a, -a, -b, tau=1e-3)  # exp(2000) overflows even a double
    assert cold.item() == pytest.approx(2000.0)
    a.requires_grad_()
    info_nce(a, -a.detach(), -b, tau=1e-3).backward()
    assert bool(torch.isfinite(a.grad).all())


def by_hand(q: float, kind: torch.dtype = torch.float64) -> float:
    """The loss of one anchor with cosines 0.5 and 0 at τ = 0.5, where P = e / (e + 1)."""
    rows = ([[1.0, 0.0]], [[0.5, math.sqrt(0.75)]], [[[0.0, 1.0]]])
    return info_nce(*(torch.tensor(row, dtype=kind) for row in rows), tau=0.5, robustness=q).item()


def test_robust_losses_by_hand():
    """At q = 1 the loss is 1 − P = 1 / (e + 1), at 1/2 it is 2 (1 − √P), towards 0 it is the paper's −log P."""
    assert by_hand(1.0) == pytest.approx(1 / (math.e + 1), rel=1e-6)
    assert by_hand(0.5) == pytest.approx(2 * (1 - math.sqrt(math.e / (math.e + 1))), rel=1e-6)
    for q in (0.0, 1e-320, 1e-50, 1e-31, 1e-29, 1e-9):
        assert by_hand(q) == pytest.approx(math.log(1 + 1 / math.e), rel=1e-6)
        assert by_hand(q, torch.float32) == pytest.approx(by_hand(q), rel=1e-6)


@given(st.integers(0, 10_000), st.floats(1e-6, 1.0), st.sampled_from([0.07, 0.5, 2.0]))
@settings(max_examples=80, deadline=None)
def test_robust_losses_are_the_generalised_cross_entropy(seed, q, tau):
    rng = np.random.default_rng(seed)
    vectors = unit(rng, 8, 5), unit(rng, 8, 5), unit(rng, 8, 3, 5)
    paper = direct_info_nce(*(v.numpy() for v in vectors), tau)
    ours = info_nce(*vectors, tau, "none", q).numpy()
    np.testing.assert_allclose(ours, -np.expm1(-q * paper) / q, rtol=1e-9, atol=1e-14)  # -log P near 1 is rough
    paper = info_nce(*vectors, tau, "none").numpy()
    assert (ours <= paper * (1 + 1e-12)).all(), "never more than the paper's"
    assert (ours >= paper - q * paper**2 / 2 - 1e-12 * paper).all(), "and as near to it as q is small"
    in_float32 = info_nce(*(v.float() for v in vectors), tau, "none", q).double().numpy()
    np.testing.assert_allclose(in_float32, ours, rtol=2e-5, atol=1e-12)
    assert info_nce(*vectors, tau, "mean", q).item() == pytest.approx(ours.mean())
    assert info_nce(*vectors, tau, "sum", q).item() == pytest.approx(ours.sum())


@given(st.integers(0, 10_000), st.floats(1e-6, 1.0))
@settings(max_examples=40, deadline=None)
def test_a_positive_that_looks_wrong_pulls_less(seed, q):
    """The gradient of an anchor's loss is P^q times the paper's, for all three kinds of rows."""
    rng = np.random.default_rng(seed)
    vectors = [v.requires_grad_() for v in (unit(rng, 6, 4), unit(rng, 6, 4), unit(rng, 6, 2, 4))]
    paper = torch.autograd.grad(info_nce(*vectors, 0.2, "sum"), vectors)
    robust = torch.autograd.grad(info_nce(*vectors, 0.2, "sum", q), vectors)
    share = torch.exp(-q * info_nce(*vectors, 0.2, "none").detach())  # P^q
    for ours, theirs in zip(robust, paper, strict=True):
        torch.testing.assert_close(ours, theirs * share.reshape(-1, *[1] * (ours.ndim - 1)))


def test_tiny_and_huge_losses_survive_robustness():
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[[-1.0, 0.0]]])
    assert info_nce(a, a, b, 0.07, robustness=0.7).item() == pytest.approx(math.exp(-2 / 0.07), rel=1e-4)
    a.requires_grad_()
    hopeless = info_nce(a, -a.detach(), -b, 1e-3, robustness=0.7)  # P = e^-2000: no more than 1 / q, and no pull
    assert hopeless.item() == pytest.approx(1 / 0.7)
    hopeless.backward()
    assert not a.grad.any()


def test_gradients_of_both_losses():
    rng = np.random.default_rng(0)
    tensors = [v.requires_grad_() for v in (unit(rng, 4, 3), unit(rng, 4, 3), unit(rng, 4, 2, 3))]
    assert torch.autograd.gradcheck(lambda *v: info_nce(*v, tau=0.3), tensors)
    assert torch.autograd.gradcheck(lambda *v: info_nce(*v, tau=0.3, robustness=0.7), tensors)
    graph = torch.tensor([0, 0, 0, 1])
    assert torch.autograd.gradcheck(lambda a, b: coinjoin_repulsion(a, b, 0.3, graph), tensors[:2])


def test_repulsion_weighs_graphs_not_pairs():
    """Graph 9 has three pairs of equal vectors, graph 4 one orthogonal pair: the mean of log(1+e^{1/τ}) and log 2."""
    a = torch.tensor([[1.0, 0.0]] * 4)
    b = torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    graph = torch.tensor([9, 9, 9, 4])
    expected = (math.log1p(math.exp(1 / 0.3)) + math.log(2)) / 2
    assert coinjoin_repulsion(a, b, 0.30, graph).item() == pytest.approx(expected, rel=1e-6)
    assert coinjoin_repulsion(a[:3], b[:3]).item() == pytest.approx(math.log1p(math.exp(1 / 0.3)), rel=1e-6)
