"""PyG's own convolutions give what the compiled ones give, and everything moves to the device it is sent to."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from planted import planted
from torch.fx.experimental import _config

from btcnb.errors import ParameterError
from btcnb.learn import CoinJoinGraph, Encoder, TrainConfig, embed, layer_outputs, train
from btcnb.learn.baselines import BASELINES
from btcnb.learn.config import Architecture, Objective
from btcnb.learn.devices import device_of
from btcnb.learn.layers import ENCODERS
from btcnb.learn.objectives import OBJECTIVES, GraphBatches, encode

SMALL = TrainConfig(
    heads=2, hidden=8, output=8, anchors=32, fanout=(4, 3), epochs=4, steps_per_epoch=3, rotate_every=2, seed=5
)


def graphs(**options: bool) -> list[object]:
    return [planted(seed=seed, **options) for seed in (1, 2)]


@pytest.mark.parametrize(
    "changes",
    [
        *({"encoder": encoder, "objective": objective} for encoder in ENCODERS for objective in OBJECTIVES),
        {"edge_features": True},
        {"output_heads": "one"},
        {"fanout": (4, 3, 2)},
        {"fanout": (6,)},
    ],
    ids=str,
)
def test_plain_and_compiled_runs_agree(changes):
    """With the dropout of activations, whose masks agree; those of attention are drawn in PyG's own order."""
    config = replace(SMALL, attention_dropout=0.0, **changes)
    edges = config.edge_features
    valid = planted(seed=9, edge_features=edges)
    runs = [
        train(replace(config, convolutions=way), graphs(edge_features=edges), valid, progress=False)
        for way in ("compiled", "plain")
    ]
    for column in ("train_loss", "valid_loss"):
        np.testing.assert_allclose(runs[1].history[column], runs[0].history[column], atol=1e-5)
    assert [run.record["convolutions"] for run in runs] == ["compiled", "plain"]
    np.testing.assert_allclose(embed(runs[1].model, valid), embed(runs[0].model, valid), atol=1e-5)
    same = Encoder.from_store({**runs[0].model.to_store(), "config": runs[1].config.to_json()})
    np.testing.assert_allclose(embed(same, valid, 40), embed(runs[0].model, valid), atol=1e-5)
    for name, value in layer_outputs(same, valid).items():
        np.testing.assert_allclose(value, layer_outputs(runs[0].model, valid)[name], atol=1e-5)


def test_repulsion_and_attention_dropout_run_plain():
    coinjoins = [CoinJoinGraph(planted(clusters=3, size=8, seed=21), np.arange(12))]
    ours, plain = (
        train(replace(SMALL, convolutions=way), graphs(), coinjoins=coinjoins, progress=False)
        for way in ("compiled", "plain")
    )
    assert abs(ours.history["train_loss"] - plain.history["train_loss"]).max() < 1.0  # other masks, the same loss


@pytest.mark.parametrize("changes", [*({"encoder": name} for name in ENCODERS), {"edge_features": True}], ids=str)
def test_a_batch_follows_the_encoder_to_its_device(changes):
    """`meta` stands in for a GPU: it computes shapes, and complains when tensors are on different devices."""
    config = replace(SMALL, **changes)
    graph = planted(edge_features=config.edge_features)
    encoder = Encoder(config, 6, 2 if config.edge_features else 0).to("meta")
    assert not encoder.compiled
    for training in (False, True):
        batch = GraphBatches(graph, config).draw(np.arange(5), 0)
        with _config.patch(meta_nonzero_assume_all_nonzero=True):
            out = encode(encoder.train(training), batch)
        assert out.device.type == "meta" and out.shape == (5, 8)


def test_a_device_that_is_not_there_is_named():
    assert device_of(TrainConfig(device="cpu")).type == "cpu"
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert device_of(TrainConfig()).type == expected
    assert device_of(TrainConfig(convolutions="compiled")).type == "cpu"
    for name in ("meta", *(() if torch.cuda.is_available() else ("cuda", "cuda:3"))):
        with pytest.raises(ParameterError, match=f"device is '{name}'"):
            device_of(TrainConfig(device=name))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_run_on_a_gpu_agrees_with_the_cpu_and_hands_back_a_model_without_a_device(tmp_path):
    config = replace(SMALL, dropout=0.0, attention_dropout=0.0)
    gpu, cpu = (train(replace(config, device=name), graphs(), progress=False) for name in ("cuda", "cpu"))
    assert gpu.model.device.type == "cpu" and gpu.record["device"].startswith("cuda")
    np.testing.assert_allclose(gpu.history["train_loss"], cpu.history["train_loss"], atol=1e-3)
    np.testing.assert_allclose(embed(gpu.model, graphs()[0]), embed(cpu.model, graphs()[0]), atol=1e-2)


def test_a_run_may_be_resumed_elsewhere(tmp_path):
    config = replace(SMALL, attention_dropout=0.0)
    train(replace(config, epochs=2), graphs(), directory=tmp_path, progress=False)
    resumed = train(
        replace(config, convolutions="plain", device="cpu"), graphs(), directory=tmp_path, resume=True, progress=False
    )
    whole = train(config, graphs(), progress=False)
    np.testing.assert_allclose(resumed.history["train_loss"], whole.history["train_loss"], atol=1e-5)


def test_registries_hold_what_the_configuration_names():
    assert set(ENCODERS) == set(get_args(Architecture))
    assert set(OBJECTIVES) == set(get_args(Objective))
    assert set(BASELINES) == {"untrained", "gae", "dgi"}
