"""Losses against their equations, the objectives of the baselines, and repulsion in the validation loss."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import planted

from btcnb.errors import DataError, ParameterError
from btcnb.learn import (
    CoinJoinGraph,
    Run,
    TrainConfig,
    baseline_config,
    coinjoin_repulsion,
    info_nce,
    prepare_arrays,
    train,
)


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


SHORT = TrainConfig(heads=2, hidden=8, output=8, anchors=64, fanout=(4, 3), steps_per_epoch=5)


@pytest.mark.parametrize("name", ["gae", "dgi"])
def test_unsupervised_objectives_beat_a_coin(name):
    config = replace(baseline_config(name, SHORT), learning_rate=1e-2)
    assert config.epochs == 20
    run = train(config, planted(seed=1), valid=planted(seed=2), progress=False)
    assert run.history["valid_loss"].min() < min(0.67, run.history["valid_loss"].iloc[0])  # a coin scores log 2 = 0.693


def test_an_untrained_encoder_is_one_of_zero_epochs():
    run = train(baseline_config("untrained", SHORT), planted(), progress=False)
    assert len(run.history) == 0 and run.record["epochs_run"] == 0
    assert run.history.columns[0] == "epoch"


def test_baselines_keep_shorter_runs_short():
    assert baseline_config("gae", replace(SHORT, epochs=3)).epochs == 3


def test_a_baseline_that_cannot_be_trained_is_named():
    with pytest.raises(ParameterError, match="baseline"):
        baseline_config("node2vec")
    empty = prepare_arrays(np.ones((4, 2)), np.zeros((2, 0)), [0, 0, 1, 1])
    with pytest.raises(DataError, match="no edge"):
        train(baseline_config("gae", SHORT), empty, progress=False)


SMALL = TrainConfig(
    heads=2, hidden=8, output=8, anchors=32, fanout=(4, 3), epochs=8, steps_per_epoch=3, rotate_every=2, seed=5,
    patience=100, coinjoin_weight=2.0,
)  # fmt: skip


def graphs() -> list[object]:
    return [planted(seed=seed) for seed in (1, 2, 3)]


def mixes(*seeds: int) -> list[CoinJoinGraph]:
    return [CoinJoinGraph(planted(clusters=3, size=8, seed=seed), np.arange(12)) for seed in seeds]


def twins() -> CoinJoinGraph:
    """Two inputs with the same features and no neighbours: whatever the weights, their cosine is 1."""
    width = planted(seed=1).x.shape[1]
    return CoinJoinGraph(prepare_arrays(np.ones((2, width)), np.empty((2, 0), dtype=np.int64)), np.array([0, 1]))


def both(config: TrainConfig, steering: list[CoinJoinGraph]) -> tuple[Run, Run]:
    """Trained with the same CoinJoins; steered by the contrastive loss alone, and by both terms."""
    shown = mixes(21, 22, 23)
    alone = train(config, graphs(), planted(seed=9), coinjoins=shown, progress=False)
    return alone, train(config, graphs(), planted(seed=9), shown, valid_coinjoins=steering, progress=False)


def assert_same_weights(one: Run, other: Run) -> None:
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name]), name


def test_the_validation_loss_holds_the_repulsion_by_hand() -> None:
    """Twins have cosine 1, so their repulsion is log(1 + e^(1/τ)), at every epoch, times λ."""
    alone, steered = both(SMALL, [twins()])
    gap = steered.history["valid_loss"] - alone.history["valid_loss"]
    expected = SMALL.coinjoin_weight * math.log1p(math.exp(1 / SMALL.coinjoin_temperature))
    assert gap.to_numpy() == pytest.approx(np.full(SMALL.epochs, expected), rel=1e-5)
    assert steered.record["best_repulsion"] == pytest.approx(expected, rel=1e-5)
    assert steered.record["best_epoch"] == alone.record["best_epoch"], "a constant decides nothing"


def test_coinjoins_that_steer_do_not_teach() -> None:
    """Weights of the last epoch are the same whoever steers, as long as the learning rate stays."""
    last = replace(SMALL, keep="last")
    alone, steered = both(last, mixes(31, 32))
    assert_same_weights(alone, steered)
    assert steered.history["train_loss"].tolist() == alone.history["train_loss"].tolist()
    assert_same_weights(steered, both(last, mixes(41))[1])


def test_the_epoch_is_picked_by_both_terms() -> None:
    """Where repulsion weighs much, the epoch with the lowest contrastive loss is not the best one any more."""
    heavy = replace(SMALL, epochs=12, coinjoin_weight=10.0)
    alone, steered = both(heavy, mixes(21, 22, 23))
    best = steered.record["best_epoch"]
    assert best == 1 + int(np.argmin(steered.history["valid_loss"])) != alone.record["best_epoch"]
    repulsion = (steered.history["valid_loss"] - alone.history["valid_loss"]).to_numpy()
    assert repulsion[best - 1] < repulsion[alone.record["best_epoch"] - 1]
    assert steered.record["best_repulsion"] == pytest.approx(repulsion[best - 1])


def test_runs_on_other_coinjoins_have_another_mark() -> None:
    marks = {both(replace(SMALL, epochs=1), steering)[1].record["data"] for steering in (mixes(31), mixes(32))}
    assert len(marks) == 2


@pytest.mark.parametrize(
    ("shown", "steering", "error", "message"),
    [
        ([], mixes(1), ParameterError, "only with valid and coinjoins"),
        (mixes(1), [CoinJoinGraph(planted(seed=1), np.array([3, 3]))], DataError, "fewer than two distinct"),
    ],
)
def test_what_cannot_repel_is_refused(shown: list, steering: list, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        train(SMALL, graphs(), planted(seed=9), shown, valid_coinjoins=steering, progress=False)


def test_repulsion_is_validated_on_a_validation_graph_only() -> None:
    with pytest.raises(ParameterError, match="only with valid and coinjoins"):
        train(SMALL, graphs(), coinjoins=mixes(1), valid_coinjoins=mixes(2), progress=False)


def test_a_resumed_run_keeps_the_repulsion_of_its_best_epoch(tmp_path: Path) -> None:
    given = {"coinjoins": mixes(21, 22), "valid_coinjoins": mixes(31), "progress": False}
    whole = train(SMALL, graphs(), planted(seed=9), **given)
    best = whole.record["best_epoch"]
    train(replace(SMALL, epochs=best), graphs(), planted(seed=9), directory=tmp_path, **given)
    resumed = train(SMALL, graphs(), planted(seed=9), directory=tmp_path, resume=True, **given)
    assert resumed.record["best_repulsion"] == whole.record["best_repulsion"] > 0
    assert resumed.history["valid_loss"].tolist() == whole.history["valid_loss"].tolist()
    assert_same_weights(resumed, whole)
