"""Local graphs in groups, with one matrix for all cuts, against the public functions one piece at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from btcnb.cluster import cut, cut_gap, cut_inconsistency, cut_silhouette, flat, linkage, refine
from btcnb.data import Source, Transactions, build_graph, heuristic_clusters, load_transactions, sample_around
from btcnb.errors import DataError
from btcnb.experiments import baseline, recipe, trained
from btcnb.experiments import local as module
from btcnb.experiments.local import PAPER_CUTS, PAPER_LINKAGES, Local, LocalGraphs
from btcnb.learn import Encoder, embed

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain

RECIPE = recipe(Source(size="tiny", seed=3), seed=3)
PRICE = 9_000.0


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def model(own_store: None) -> Encoder:
    return trained(RECIPE).model


@pytest.fixture(scope="module")
def pieces(own_store: None) -> list[Transactions]:
    txs = load_transactions(Source(size="tiny", seed=4), "test", sampled=False)
    return [sample_around(txs, start, max_expanded=25) for start in (40, 300, 301, 700, 1200)]


def same(first: np.ndarray, other: np.ndarray) -> bool:
    both = len(np.unique(np.stack([first, other]), axis=1).T)
    return both == len(np.unique(first)) == len(np.unique(other))


def one_by_one(model: Encoder, txs: Transactions) -> dict[str, np.ndarray]:
    """The plain path: every partition by the public functions."""
    labels = heuristic_clusters(txs)
    graph = build_graph(txs, labels, PRICE)
    X = embed(model, graph)
    found = {"heuristics": labels}
    for method in PAPER_LINKAGES:
        Z = linkage(X, method)
        found |= {
            f"gnn.{method}.silhouette": cut(Z, cut_silhouette(X, Z)),
            f"gnn.{method}.gap": cut(Z, cut_gap(Z)),
            f"gnn.{method}.inconsistency": flat(Z, cut_inconsistency(Z), "inconsistent"),
            f"gnn.{method}.inconsistency-height": cut(Z, cut_inconsistency(Z)),
        }
        for name in PAPER_CUTS:
            refined = refine(X, graph.labels(), method=method, cut=name, progress=False)
            found[f"hybrid.{method}.{name}"] = refined.partition
    return found


def test_labels_are_those_of_the_public_functions_one_by_one(model: Encoder, pieces: list[Transactions]) -> None:
    engine = LocalGraphs(model, heuristic_clusters, PRICE)
    found = list(engine.run(iter(pieces)))
    assert [local.txs.fingerprint() for local in found] == [txs.fingerprint() for txs in pieces]
    for local, txs in zip(found, pieces, strict=True):
        expected = one_by_one(model, txs)
        assert tuple(local.labels) == engine.names() and local.labels.keys() == expected.keys()
        for name, labels in expected.items():
            assert labels.shape == (txs.num_addresses,)
            assert same(local.labels[name], labels), name


def test_features_are_scaled_within_each_piece(model: Encoder, pieces: list[Transactions]) -> None:
    """The rows of a piece do not depend on its company."""
    engine = LocalGraphs(model, heuristic_clusters, PRICE, linkages=("average",), cuts=("gap",))
    together = [local.rows for local in engine.run(pieces)]
    alone = [next(engine.run([txs])).rows for txs in pieces]
    for first, other in zip(together, alone, strict=True):
        assert first == pytest.approx(other, abs=1e-5)


def test_groups_do_not_change_labels(
    model: Encoder, pieces: list[Transactions], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = LocalGraphs(model, heuristic_clusters, PRICE, linkages=("average",))
    usual = [local.labels for local in engine.run(pieces)]
    monkeypatch.setattr(module, "NODES_AT_ONCE", 1)
    single = [local.labels for local in engine.run(pieces)]
    for first, other in zip(usual, single, strict=True):
        for name in engine.names():
            assert same(first[name], other[name]), name


def test_a_further_clustering_has_a_row_and_is_refined(model: Encoder, pieces: list[Transactions]) -> None:
    def halves(txs: Transactions) -> np.ndarray:
        return np.arange(txs.num_addresses) % 2

    engine = LocalGraphs(
        model, heuristic_clusters, PRICE, linkages=("average",), cuts=("gap",), further={"halves": halves}
    )
    assert engine.names()[-2:] == ("halves", "hybrid_on_halves")
    local: Local = next(engine.run(pieces))
    X = embed(model, build_graph(pieces[0], heuristic_clusters(pieces[0]), PRICE))
    assert np.array_equal(local.labels["halves"], halves(pieces[0]))
    expected = refine(X, halves(pieces[0]), progress=False).partition
    assert same(local.labels["hybrid_on_halves"], expected)


def test_graphs_of_one_and_two_nodes_are_clustered_too(model: Encoder) -> None:
    lonely = chain().coinbase("a").build()
    pair = chain().pay("a", {"b": 5}).build()
    for txs in (lonely, pair):
        local = next(LocalGraphs(model, heuristic_clusters, PRICE).run([txs]))
        assert all(labels.shape == (txs.num_addresses,) for labels in local.labels.values())


def test_zero_rows_are_counted_and_quiet(pieces: list[Transactions], recwarn: pytest.WarningsRecorder) -> None:
    model = trained(baseline(RECIPE, "untrained")).model
    with np.errstate(all="ignore"):
        found = list(LocalGraphs(model, heuristic_clusters, PRICE, linkages=("average",)).run(pieces))
    graphs = [build_graph(txs, heuristic_clusters(txs), PRICE) for txs in pieces]
    assert [local.zero_rows for local in found] == [int((~embed(model, graph).any(axis=1)).sum()) for graph in graphs]
    assert not [each for each in recwarn if "zeros" in str(each.message)]


def test_encoders_that_see_edges_and_landmarks_are_served(pieces: list[Transactions]) -> None:
    config = replace(RECIPE.train, edge_features=True, landmarks=2)
    model = Encoder(config, 22, 9).eval()
    local = next(LocalGraphs(model, heuristic_clusters, PRICE, ("average",), ("gap",)).run(pieces))
    X = embed(model, build_graph(pieces[0], heuristic_clusters(pieces[0]), PRICE))
    assert local.rows == pytest.approx(X, abs=1e-5)


def test_a_piece_with_addresses_that_do_not_occur_is_refused(model: Encoder, pieces: list[Transactions]) -> None:
    more = replace(pieces[0], addresses=np.append(pieces[0].addresses, "nobody"), truth=None)
    with pytest.raises(DataError, match="1 of a piece occur in none of its transactions"):
        next(LocalGraphs(model, heuristic_clusters, PRICE).run([more]))
