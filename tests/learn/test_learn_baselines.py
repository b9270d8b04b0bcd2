"""Baselines: objectives that beat chance, encoders that are left untrained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted import planted

from btcnb.errors import DataError, ParameterError
from btcnb.learn import TrainConfig, baseline_config, prepare_arrays, train

SMALL = TrainConfig(heads=2, hidden=8, output=8, anchors=64, fanout=(4, 3), steps_per_epoch=5)


@pytest.mark.parametrize("name", ["gae", "dgi"])
def test_unsupervised_objectives_beat_a_coin(name):
    config = replace(baseline_config(name, SMALL), learning_rate=1e-2)
    assert config.epochs == 20
    run = train(config, planted(seed=1), valid=planted(seed=2), progress=False)
    assert run.history["valid_loss"].min() < min(0.67, run.history["valid_loss"].iloc[0])  # a coin scores log 2 = 0.693


def test_an_untrained_encoder_is_one_of_zero_epochs():
    run = train(baseline_config("untrained", SMALL), planted(), progress=False)
    assert len(run.history) == 0 and run.record["epochs_run"] == 0
    assert run.history.columns[0] == "epoch"


def test_baselines_keep_shorter_runs_short():
    assert baseline_config("gae", replace(SMALL, epochs=3)).epochs == 3


def test_bad_requests_are_named():
    with pytest.raises(ParameterError, match="baseline"):
        baseline_config("node2vec")
    empty = prepare_arrays(np.ones((4, 2)), np.zeros((2, 0)), [0, 0, 1, 1])
    with pytest.raises(DataError, match="no edge"):
        train(baseline_config("gae", SMALL), empty, progress=False)
