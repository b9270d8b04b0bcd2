"""Facts of real graphs, by hand on small ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import chain, ids
from real_graph import (
    cluster_size_shares,
    homophily_facts,
    look_up,
    rayleigh_facts,
    service_pairs,
    services_of,
    sides,
    structure_facts,
    trivial_scores,
)

from btcnb.data import Source, Transactions, build_graph, load_graph
from btcnb.errors import DataError
from btcnb.experiments import recipe, trained
from btcnb.experiments.refine import Refiner, refined


def payments() -> Transactions:
    """Two components: a and a2 pay b together, a keeps change c; x pays y. Rules tie a, a2 and, as change, c."""
    return chain().pay(["a", "a2"], {"b": 70, "c": 30}).pay("z", {"b": 5}).pay("x", {"y": 3}).build()


def test_structure_by_hand() -> None:
    graph = build_graph(payments())
    found = structure_facts(graph)
    assert (found["transactions"], found["nodes"], found["edges"], found["components"]) == (3, 7, 6, 2)
    assert found["largest degree"] == 3 and found["mean degree"] == pytest.approx(12 / 7)
    assert found["nodes in the largest component, %"] == pytest.approx(500 / 7)
    assert found["clusters of two and more"] == 1 and found["largest cluster"] == 3
    assert found["cut ratio overall, %"] == pytest.approx(100 * 4 / 6), "a–c and a2–c stay inside"
    shares = cluster_size_shares(graph)
    assert list(shares) == ["1", "2", "3–9", "10–99", "100–999", "1,000 and more"]
    assert shares["1"] == pytest.approx(400 / 7) and shares["3–9"] == pytest.approx(300 / 7)


def test_clusters_that_nobody_learnt_score_something() -> None:
    scores = trivial_scores(build_graph(payments()), min_degree=0)
    assert scores["components"]["clusters"] == 2 and scores["every address alone"]["clusters"] == 7
    assert scores["every address alone"]["ARI"] == 0.0 and scores["every address alone"]["NMI"] > 0.5
    assert 0.0 < scores["components"]["ARI"] < 1.0


def test_homophily_and_smoothness_of_a_small_world() -> None:
    graph = load_graph(Source(size="tiny", seed=7), "test")
    found = homophily_facts(graph, trials=20)
    assert next(iter(found)) == "overall" and len(found) == 4
    assert found["overall"]["z"] < 0 and found["overall"]["edges"] == graph.num_edges
    assert found["clusters 1000-5000"]["cut ratio, %"] is None, "there is no such cluster"
    stages = rayleigh_facts(graph, {"mine": trained(recipe(Source(size="tiny", seed=7), 1)).model})["mine"]
    assert len(stages) >= 3 and all(each["quotient"] > 0 for each in stages.values())


def labels(*rows: tuple[str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["address", "label", "actor"])


def test_services_are_actors_or_labels_and_unknown_addresses_are_counted() -> None:
    told = labels(("a", "Shop hot", "shop"), ("b", "SHOP", ""), ("b2", "Other", ""), ("gone", "Shop", "shop"))
    services, absent = services_of(np.array(["b2", "a", "none", "b"], dtype=object), told)
    assert services.tolist() == ["other", "shop", "", "shop"] and absent == 1
    with pytest.raises(DataError, match="actor"):
        services_of(np.array(["a"], dtype=object), told[["address", "label"]])


def test_an_actor_counts_before_a_label_without_one() -> None:
    services, _ = services_of(np.array(["a"], dtype=object), labels(("a", "somebody", ""), ("a", "x", "shop")))
    assert services.tolist() == ["shop"]


def test_pairs_of_services_before_and_after() -> None:
    """Six addresses; before, s s t | s, t: after, s s | t | s, t."""
    services = np.array(["s", "s", "t", "s", "t", ""], dtype=object)
    told = service_pairs(services, np.array([0, 0, 0, 1, 2, 0]), np.array([0, 0, 1, 2, 3, 0]))
    assert (told["labelled addresses"], told["services"]) == (5, 2)
    assert (told["pairs of one service"], told["pairs of two services"]) == (4, 6)
    assert told["pairs of one service in one cluster, before"] == 1
    assert told["pairs of one service in one cluster, after"] == 1, "s and s stay together"
    assert told["pairs of two services in one cluster, before"] == 2
    assert told["pairs of two services in one cluster, after"] == 0
    assert told["clusters with two services, before"] == 1 and told["clusters with two services, after"] == 0
    none = service_pairs(np.array(["", ""], dtype=object), np.array([0, 0]), np.array([0, 1]))
    assert none["labelled addresses"] == 0 and none["pairs of one service in one cluster, after"] == 0


def test_suspicious_merges_name_the_transaction_that_tied_the_two_sides() -> None:
    """a, a2 and b, b2 are pairs by their own payments; one joint payment in block 102 makes them one cluster."""
    txs = (
        chain().pay(["a", "a2"], {"p": 9}).pay(["b", "b2"], {"q": 9}).pay(["a2", "b"], {"r": 9}, hash="5" * 64).build()
    )
    name = ids(txs)
    nodes = np.array([name[each] for each in ("a", "a2", "b", "b2")])
    X = np.array([[1, 0], [0.99, 0.1], [0, 1], [0.1, 0.99]])
    found = refined(X, np.zeros(4, dtype=np.int64), Refiner(threshold_rule="fixed", threshold=0.5))
    table = look_up(txs, found, nodes)
    assert len(table) == 1
    (line,) = table.itertuples()
    assert (line.block, line.transaction, line.rule) == (102, "5" * 64, "common_input")
    assert (line.addresses, line.of, line.links) == (2, 4, 1)
    assert len(look_up(txs, found, nodes, least=2)) == 1 and look_up(txs, found, nodes, least=3).empty
    first, second = sides(found.forest, 0, 2)
    assert {frozenset(first.tolist()), frozenset(second.tolist())} == {frozenset({0, 1}), frozenset({2, 3})}
