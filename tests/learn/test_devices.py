"""Training by torch's operations gives what the compiled loops give, and everything moves to its device."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch
from planted import planted

from btcnb.errors import ParameterError
from btcnb.learn import BASELINES, CoinJoinGraph, Encoder, TrainConfig, embed, kernels, layer_outputs, train
from btcnb.learn.config import Architecture, Objective
from btcnb.learn.objectives import OBJECTIVES, GraphBatches, encode

SMALL = TrainConfig(
    heads=2, hidden=8, output=8, anchors=32, fanout=(4, 3), epochs=4, steps_per_epoch=3, rotate_every=2, seed=5
)
ARCHITECTURES = get_args(Architecture)


def graphs(**options: bool) -> list[object]:
    return [planted(seed=seed, **options) for seed in (1, 2)]


@pytest.mark.parametrize(
    "changes",
    [
        *({"encoder": encoder, "objective": objective} for encoder, objective in product(ARCHITECTURES, OBJECTIVES)),
        {"edge_features": True},
        {"output_heads": "one"},
        {"fanout": (4, 3, 2)},
        {"fanout": (6,)},
    ],
    ids=str,
)
def test_runs_of_both_ways_agree(changes, monkeypatch):
    """Without dropout, whose masks other devices draw differently."""
    config = replace(SMALL, dropout=0.0, attention_dropout=0.0, **changes)
    edges = config.edge_features
    valid = planted(seed=9, edge_features=edges)

    def run() -> object:
        return train(config, graphs(edge_features=edges), valid, progress=False)

    compiled = run()
    rows, stages = embed(compiled.model, valid), layer_outputs(compiled.model, valid)
    monkeypatch.setattr(kernels, "COMPILED", ())
    other = run()
    for column in ("train_loss", "valid_loss"):
        np.testing.assert_allclose(other.history[column], compiled.history[column], atol=1e-5)
    np.testing.assert_allclose(embed(other.model, valid), rows, atol=1e-5)
    np.testing.assert_allclose(embed(compiled.model, valid, 40), rows, atol=1e-6)
    for name, value in layer_outputs(compiled.model, valid).items():
        np.testing.assert_allclose(value, stages[name], atol=1e-5)


def test_repulsion_and_dropout_run_by_torchs_operations(monkeypatch):
    coinjoins = [CoinJoinGraph(planted(clusters=3, size=8, seed=21), np.arange(12))]
    ours = train(SMALL, graphs(), coinjoins=coinjoins, progress=False)
    monkeypatch.setattr(kernels, "COMPILED", ())
    other = train(SMALL, graphs(), coinjoins=coinjoins, progress=False)
    assert 0 < abs(ours.history["train_loss"] - other.history["train_loss"]).max() < 1.0  # other masks, the same loss


@pytest.mark.parametrize("changes", [*({"encoder": name} for name in ARCHITECTURES), {"edge_features": True}], ids=str)
def test_a_batch_follows_the_encoder_to_its_device(changes):
    """`meta` stands in for a GPU: it computes shapes, and complains when tensors are on different devices."""
    config = replace(SMALL, **changes)
    graph = planted(edge_features=config.edge_features)
    encoder = Encoder(config, 6, 2 if config.edge_features else 0).to("meta")
    for training in (False, True):
        batch = GraphBatches(graph, config).draw(np.arange(5), 0)
        out = encode(encoder.train(training), batch)
        assert out.device.type == "meta" and out.shape == (5, 8)


def test_a_device_that_is_not_there_is_named():
    assert TrainConfig(device="cpu").torch_device().type == "cpu"
    assert TrainConfig().torch_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("meta", *(() if torch.cuda.is_available() else ("cuda", "cuda:3"))):
        with pytest.raises(ParameterError, match=f"device is '{name}'"):
            TrainConfig(device=name).torch_device()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_run_on_a_gpu_agrees_with_the_cpu_and_hands_back_a_model_without_a_device(tmp_path):
    config = replace(SMALL, dropout=0.0, attention_dropout=0.0)
    gpu, cpu = (train(replace(config, device=name), graphs(), progress=False) for name in ("cuda", "cpu"))
    assert gpu.model.device.type == "cpu" and gpu.record["device"].startswith("cuda")
    np.testing.assert_allclose(gpu.history["train_loss"], cpu.history["train_loss"], atol=1e-3)
    np.testing.assert_allclose(embed(gpu.model, graphs()[0]), embed(cpu.model, graphs()[0]), atol=1e-2)


def test_a_run_may_be_resumed_elsewhere(tmp_path, monkeypatch):
    config = replace(SMALL, dropout=0.0, attention_dropout=0.0)
    train(replace(config, epochs=2), graphs(), directory=tmp_path, progress=False)
    whole = train(config, graphs(), progress=False)
    monkeypatch.setattr(kernels, "COMPILED", ())
    resumed = train(replace(config, device="cpu"), graphs(), directory=tmp_path, resume=True, progress=False)
    np.testing.assert_allclose(resumed.history["train_loss"], whole.history["train_loss"], atol=1e-5)


def test_registries_hold_what_the_configuration_names():
    assert set(OBJECTIVES) == set(get_args(Objective))
    assert set(BASELINES) == {"untrained", "gae", "dgi"}
    for name in ARCHITECTURES:
        assert Encoder(replace(SMALL, encoder=name), 6).convs
