"""Repulsion in the validation loss: its value by hand, what it decides, and what it must not touch."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from planted import planted

from btcnb.errors import DataError, ParameterError
from btcnb.learn import CoinJoinGraph, Run, TrainConfig, prepare_arrays, train

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
