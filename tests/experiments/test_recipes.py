"""A recipe says all; a stage is computed again only when the part of the recipe that decides it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from btcnb.cluster import ClusterConfig
from btcnb.data import DEFAULT_RULES, AddressGraph, Source, heuristic_clusters, load_graph, load_transactions
from btcnb.errors import ParameterError
from btcnb.experiments import (
    baseline,
    coarse,
    community_baseline,
    compare,
    embeddings,
    forest,
    recipe,
    scores,
    stages,
    trained,
)
from btcnb.learn import TrainConfig, embed, train
from btcnb.store.kept import entries

DATA = Source(size="tiny", seed=3)


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def kept(name: str) -> int:
    return sum(entry.function.endswith(f".{name}") for entry in entries())


def test_a_recipe_is_the_papers_settings_at_a_size_with_changes() -> None:
    mine = recipe(DATA, seed=2, encoder="sage", cut="gap", anchors=None)
    assert mine.train == TrainConfig(seed=2, encoder="sage", epochs=3, steps_per_epoch=2, anchors=64, rotate_every=1)
    assert mine.cluster == ClusterConfig(cut="gap")
    assert recipe(Source(size="paper")).train == TrainConfig()


def test_names_that_training_and_clustering_share_are_trainings() -> None:
    mine = recipe(DATA, alpha=0.25, cluster=ClusterConfig(alpha=2.0))
    assert (mine.train.alpha, mine.cluster.alpha) == (0.25, 2.0)


def test_unknown_fields_are_named() -> None:
    with pytest.raises(ParameterError, match=r"no field 'epoch'; it has .*epochs"):
        recipe(DATA, epoch=3)


def test_the_short_name_tells_recipes_apart() -> None:
    assert recipe(DATA).id == recipe(Source(size="tiny", seed=3)).id
    others = [recipe(DATA, seed=1), recipe(replace(DATA, seed=4)), recipe(DATA, n_min=5), recipe(DATA, epochs=2)]
    assert len({recipe(DATA).id, *(other.id for other in others)}) == 5
    flat = recipe(DATA).flat()
    assert flat["source.seed"] == 3
    assert flat["train.fanout"] == "15 5"
    assert all(value is None or isinstance(value, int | float | str) for value in flat.values())


def test_ids_of_recipes_never_change() -> None:
    blocks = ((1, 2), (3, 4), (5, 6), (7, 8), (9, 10))
    ids = {
        "0878b5018148": recipe(DATA),
        "7b871599a1a7": recipe(DATA, seed=2, encoder="sage", cut="gap"),
        "4651963c93a6": recipe(Source(size="paper")),
        "d0157b0f0e41": recipe(DATA, supervision=["change"]),
        "cace46a78ec0": baseline(recipe(DATA), "gae"),
        "d1cf722ab754": recipe(Source("etl", ("a.parquet",), intervals=blocks, price_usd=3.5)),
    }
    assert {made.id: made for made in ids.values()} == ids


def test_supervision_is_a_set_of_rules_in_the_order_of_the_rules() -> None:
    mine = recipe(DATA, supervision=["change", "common_input", "change"])
    assert mine.supervision == ("common_input", "change")
    assert mine.flat()["supervision"] == "common_input change"
    assert mine == recipe(DATA, supervision=("common_input", "change"))
    assert mine.id != recipe(DATA).id != recipe(DATA, supervision=["deposit"]).id
    usual = recipe(DATA)
    assert usual.supervision == DEFAULT_RULES and usual.flat()["supervision"] == " ".join(DEFAULT_RULES)
    assert usual.id == recipe(DATA, supervision=DEFAULT_RULES[::-1]).id == recipe(DATA, supervision=None).id
    assert baseline(mine, "gae").supervision == mine.supervision


@pytest.mark.parametrize(
    ("supervision", "message"),
    [
        ((), "supervision is empty; name some of common_input, change"),
        (("inputs",), "a rule of supervision is 'inputs', but must be one of 'common_input'"),
        (("change", 3), "a rule of supervision is 3"),
        ("change", "supervision is 'change', but must be a list"),
        (7, "supervision is 7, but must be a list"),
    ],
)
def test_supervision_that_says_nothing_is_refused(supervision: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        recipe(DATA, supervision=supervision)


def test_the_labels_of_training_are_those_of_the_rules() -> None:
    usual = load_graph(DATA, "train1")
    inputs = stages.training_graph(DATA, "train1", ("common_input",))
    expected = heuristic_clusters(load_transactions(DATA, "train1"), ("common_input",))
    assert np.array_equal(inputs.labels(), expected)
    assert inputs.labels().max() > usual.labels().max(), "fewer rules, more clusters"
    assert inputs.nodes.equals(usual.nodes) and inputs.edges.equals(usual.edges)
    assert stages.training_graph(DATA, "train1").fingerprint() == usual.fingerprint()


def test_labels_find_their_nodes_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes 10, 30, 20 have labels 0, 0, 1; the table of clusters lists them as 20, 10, 30."""
    nodes = pd.DataFrame({"node_id": [10, 30, 20]})
    clusters = pd.DataFrame({"node_id": [20, 10, 30], "alias": [7, 8, 9]})
    graph = AddressGraph(nodes, pd.DataFrame({"a": [10], "b": [20]}), clusters)
    monkeypatch.setattr(stages, "load_graph", lambda source, role: graph)
    monkeypatch.setattr(stages, "load_clusters", lambda source, role, rules: np.array([0, 0, 1]))
    found = stages.training_graph(DATA, "train1", ("common_input",))
    assert found.clusters["alias"].tolist() == [1, 0, 0]
    assert found.labels().tolist() == [0, 0, 1]
    assert graph.labels().tolist() == [0, 1, 2], "the graph itself is left alone"


def test_stages_are_computed_once_and_for_their_own_part_of_the_recipe() -> None:
    mine = recipe(DATA)
    graph = load_graph(DATA, "test")
    X = embeddings(mine)
    assert X.shape == (graph.num_nodes, 128)
    first = scores(mine)
    again = scores(replace(mine, cluster=ClusterConfig(cut="gap")))
    assert first["purity"] == again["purity"]
    assert (kept("_trained"), kept("_embeddings"), kept("_coarse"), kept("_scores")) == (1, 1, 1, 2)
    assert np.array_equal(coarse(mine), stages._coarse(DATA, "test", "igraph", 65_000, 1.0))
    assert len(forest(mine).members) == graph.num_nodes


def test_a_kept_run_is_the_run() -> None:
    mine = recipe(DATA)
    run = trained(mine)
    fresh = stages._trained.__wrapped__(DATA, mine.train, mine.supervision)
    assert run.history.drop(columns="seconds").equals(fresh.history.drop(columns="seconds"))
    assert all((a == b).all() for a, b in zip(run.model.parameters(), fresh.model.parameters(), strict=True))
    assert run.config == fresh.config


def test_supervision_decides_the_model_and_is_judged_on_the_same_graph() -> None:
    mine = recipe(DATA, supervision=("common_input",))
    usual = scores(recipe(DATA))
    before = kept("_trained"), kept("_coarse")
    found = scores(mine)
    assert (kept("_trained"), kept("_coarse")) == (before[0] + 1, before[1]), "other labels, another model"
    assert not np.array_equal(embeddings(mine), embeddings(recipe(DATA)))
    graphs = [stages.training_graph(DATA, role, ("common_input",)) for role in (*stages.TRAINING, "valid")]
    by_hand = train(mine.train, graphs[:3], valid=graphs[3], progress=False)
    assert np.array_equal(embeddings(mine), embed(by_hand.model, load_graph(DATA, "test")))
    assert found["nodes"] == usual["nodes"] and found["purity"] != usual["purity"]


def test_baselines_are_scored_beside_the_encoder() -> None:
    mine = recipe(DATA)
    assert baseline(mine, "untrained").train.epochs == 0
    found, resolution = community_baseline(DATA, "leiden")
    assert found.shape == (load_graph(DATA, "test").num_nodes,)
    assert 0.5 <= resolution <= 3.0
    table = compare(mine, ("leiden", "untrained", "trained"))
    assert list(table.index) == ["Leiden", "Random GAT", "GAT"]
    assert table["DP"].isna().tolist() == [True, False, False]
    assert table.loc["GAT", "NMI"] == scores(mine)["nmi"]
    with pytest.raises(ParameterError, match="no method 'node2vec'"):
        compare(mine, ("node2vec",))
