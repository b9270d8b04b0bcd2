"""Configurations: what they refuse, what they read of older files, and which run a record belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.experiments.encoder import read_encoder
from btcnb.experiments.sweep.grid import read_grid
from btcnb.experiments.sweep.records import run_id, run_of
from btcnb.learn import TrainConfig
from btcnb.learn.config import REMOVED

ROOT = Path(__file__).parents[2]
SMALL = TrainConfig(heads=2, hidden=4, output=4, anchors=8, fanout=(3, 2), epochs=1)
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": "gin"},
        {"alpha": 1.5},
        {"temperature": 0.0},
        {"temperature": INF},
        {"temperature": NAN},
        {"robustness": -0.1},
        {"robustness": 1.1},
        {"robustness": True},
        {"robustness": "0.5"},
        {"dropout": 1.0},
        {"num_negatives": 0},
        {"negatives": "hard"},
        {"rotation": "random"},
        {"epochs": True},
        {"epochs": 2.5},
        {"epochs": -1},
        {"symmetrise": 1},
        {"learning_rate": "0.1"},
        {"fanout": ()},
        {"fanout": "15"},
        {"fanout": (15, True)},
        {"fanout": (15, 0)},
        {"device": "abacus"},
        {"device": 3},
        {"edge_features": True, "encoder": "gcn"},
        {"edge_features": True, "encoder": "mlp"},
        {"warmth": 1},
    ],
    ids=str,
)
def test_settings_of_another_type_or_range_are_named(changes):
    with pytest.raises(ParameterError, match=next(iter(changes))):
        TrainConfig(**changes)


def test_numpy_numbers_are_numbers():
    config = TrainConfig(epochs=np.int64(3), alpha=np.float32(0.5), dropout=0, fanout=[np.int32(4)])
    assert (type(config.epochs), type(config.alpha), type(config.dropout)) == (int, float, float)
    assert config.fanout == (4,) and config == TrainConfig.from_json(config.to_json())


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
nested = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(json.loads(SMALL.to_json()))), nested)
def test_a_configuration_holds_what_its_types_say(name, value):
    try:
        made = TrainConfig.of({**json.loads(SMALL.to_json()), name: value})
    except BtcnbError:
        return
    assert type(getattr(made, name)) is type(getattr(SMALL, name))
    assert made == TrainConfig.from_json(made.to_json())  # no NaN inside


def test_a_configuration_survives_json():
    config = TrainConfig(encoder="sage", fanout=(4, 3), seed=7)
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(ParameterError, match="warmth"):
        TrainConfig.from_json('{"warmth": 1}')
    for text in ("", "3", "[1]", "{"):
        with pytest.raises(DataError, match="cannot be read"):
            TrainConfig.from_json(text)


def test_a_configuration_without_a_unit_is_of_the_time_of_satoshi():
    written = json.loads(TrainConfig(seed=7).to_json())
    assert written.pop("unit") == "bitcoin"
    assert TrainConfig.from_json(json.dumps(written)) == TrainConfig(seed=7, unit="satoshi")


@pytest.mark.parametrize("name", REMOVED)
def test_fields_of_older_files_are_ignored_at_their_only_value(name):
    assert TrainConfig.of({"seed": 7, name: REMOVED[name]}) == TrainConfig(seed=7)
    with pytest.raises(ParameterError, match=name):
        TrainConfig.of({"seed": 7, name: 0.5})
    with pytest.raises(ParameterError, match=name):
        TrainConfig(**{name: REMOVED[name]})


def test_the_shipped_encoder_holds_removed_fields_and_is_read():
    written = json.loads((ROOT / "src/btcnb/experiments/shipped/encoder.json").read_text())
    assert written["made"]["recipe"]["train.weight_decay"] == REMOVED["weight_decay"]
    found = read_encoder()
    assert found.digest == written["digest"] and found.threshold == written["threshold"]


GRIDS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("name", GRIDS)
def test_records_with_removed_fields_are_of_the_runs_they_were_made_for(name):
    """A record's id was computed when the fields existed; fields at their default do not count, so it stays."""
    lines = (ROOT / "results" / "sweeps" / f"{name}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    with_fields = [record for record in records if "train.weight_decay" in record]
    assert with_fields and all(run_of(record) == record["run"] for record in with_fields)
    wanted = {run_id(job) for job in read_grid(ROOT / "experiments" / f"{name}.yaml").jobs}
    assert wanted & {record["run"] for record in with_fields}
