"""Shared runs: trained once, kept, and the same however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from btcnb.data.splits import load_split
from btcnb.errors import ParameterError
from btcnb.learn import (
    embed,
    reference_baseline_embeddings,
    reference_communities,
    reference_config,
    reference_embeddings,
    reference_run,
)
from btcnb.learn import reference as reference_module


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """One folder for this file: the tiny economy is simulated once."""
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path_factory.getbasetemp() / "reference-cache"))


def test_a_run_is_trained_once_and_read_afterwards(monkeypatch):
    first = reference_run("tiny", seed=1)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr(reference_module, "train", never)
    second = reference_run(size="tiny", seed=1, alpha=0.5)  # the default, said aloud
    assert second.record == first.record
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name])
    with pytest.raises(AssertionError, match="trained twice"):
        reference_run("tiny", seed=1, alpha=0.25)


def test_embeddings_are_those_of_the_run():
    X = reference_embeddings("tiny", seed=1, split="valid")
    graph = load_split("valid", "tiny")
    assert X.shape == (graph.num_nodes, 128) and X.dtype == np.float32
    np.testing.assert_allclose(X, embed(reference_run("tiny", seed=1).model, graph), atol=1e-6)
    untrained = reference_baseline_embeddings("untrained", "tiny", seed=1, split="valid")
    assert not np.allclose(untrained, X, atol=1e-3)


def test_communities_are_tuned_on_the_validation_graph():
    labels, resolution = reference_communities("leiden", "tiny")
    assert labels.shape == (load_split("test", "tiny").num_nodes,)
    assert 0.5 <= resolution <= 3.0


def test_presets_and_changes():
    assert reference_config("paper", seed=4) == reference_config("standard", seed=4)
    assert reference_config("quick", epochs=50).epochs == 50
    with pytest.raises(ParameterError, match="size"):
        reference_config("huge")
    with pytest.raises(ParameterError, match="epoch"):
        reference_config("quick", epoch=3)
