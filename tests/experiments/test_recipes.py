"""A recipe says all; a stage is computed again only when the part of the recipe that decides it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from btcnb.cluster import ClusterConfig
from btcnb.data import Source, load_graph
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
from btcnb.learn import TrainConfig
from btcnb.store.manage import entries

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
    fresh = stages._trained.__wrapped__(DATA, mine.train)
    assert run.history.drop(columns="seconds").equals(fresh.history.drop(columns="seconds"))
    assert all((a == b).all() for a, b in zip(run.model.parameters(), fresh.model.parameters(), strict=True))
    assert run.config == fresh.config


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
