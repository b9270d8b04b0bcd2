"""The entity protocol: scenarios whose four counts one can see, and the drawing of pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from builders import BTC, Chain, chain

from btcnb.data import SimulationConfig, Transactions, Truth, heuristic_clusters, sample_around, simulate
from btcnb.data.judging.entity_pairs import COUNTS, _draw, entity_counts, entity_graphs, local_heuristics, pair_counts
from btcnb.errors import DataError


def named(story: Chain, **names: str) -> Transactions:
    """Public names of addresses, written as name="address address"."""
    txs = story.build()
    label = np.full(txs.num_addresses, "", dtype=object)
    for name, addresses in names.items():
        label[np.isin(txs.addresses, addresses.split())] = name
    return replace(txs, truth=Truth(owner=np.full(txs.num_addresses, -1), label=label))


def four(txs: Transactions, **options: object) -> list[float]:
    return entity_counts(txs, **options).mean[list(COUNTS)].tolist()  # type: ignore[arg-type]


def test_a_pair_of_one_name_that_pays_together_is_a_true_positive() -> None:
    assert four(named(chain().pay(["a", "b"], {"x": 5}), exchange="a b")) == [100, 0, 0, 0]


def test_a_pair_of_two_names_that_pays_together_is_a_false_positive() -> None:
    assert four(named(chain().pay(["a", "b"], {"x": 5}), exchange="a", shop="b")) == [0, 100, 0, 0]


def test_sender_and_receiver_are_apart() -> None:
    txs = chain().pay("a", {"x": 5})
    assert four(named(txs, exchange="a x")) == [0, 0, 100, 0]
    assert four(named(txs, exchange="a", shop="x")) == [0, 0, 0, 100]


def test_the_surroundings_count_but_nothing_beyond() -> None:
    """Two receivers are joined by a transaction that spends both: seen where a path leads there, else not."""
    near = chain().pay("s", {"a": 5, "b": 5}).pay(["a", "b"], {"x": 10})
    assert four(named(near, exchange="a b")) == [100, 0, 0, 0]
    far = chain().pay("s", {"a": 5, "b": 5}).pay([("a", 1), ("b", 1)], {"x": 2})  # spends coins from outside
    assert four(named(far, exchange="a b")) == [50, 0, 50, 0]  # both transactions have the pair; only one joins it


def test_a_third_of_three_pairs() -> None:
    story = chain().pay(["a", "b"], {"x": 5})
    counts = entity_counts(named(story, exchange="a b", shop="x"), draws=3)
    assert counts.mean[list(COUNTS)].tolist() == pytest.approx([100 / 3, 0, 0, 200 / 3])
    assert counts.by_draw[list(COUNTS)].nunique().tolist() == [1, 1, 1, 1]  # three pairs are all taken, in every draw
    assert counts.by_draw["pairs"].tolist() == [3, 3, 3]
    assert counts.mean["bACC"] == 100
    assert counts.transactions == 1


def test_pairs_of_the_graph_reach_beyond_the_transaction() -> None:
    story = chain().pay(["a", "b"], {"x": 5}).pay("x", {"y": 5})
    txs = named(story, exchange="a b", shop="y")
    assert [len(graph.pairs[0]) for graph in entity_graphs(txs, draws=1)] == [1]
    assert [len(graph.pairs[0]) for graph in entity_graphs(txs, draws=1, pairs="graph")] == [3]


def test_one_name_alone_is_no_pair_and_an_address_paid_twice_is_one() -> None:
    txs = named(chain().pay("a", [("x", 3), ("x", 2)]), exchange="x")
    with pytest.raises(DataError, match="no transaction has two labelled addresses"):
        entity_counts(txs)


def test_at_most_five_pairs_a_graph_and_only_distinct_ones() -> None:
    story = chain().pay([f"a{n}" for n in range(9)], {"x": 9})
    txs = named(story, exchange=" ".join(f"a{n}" for n in range(9)))
    (graph,) = entity_graphs(txs, draws=4)
    for drawn in graph.pairs:
        assert len({tuple(pair) for pair in drawn.tolist()}) == len(drawn) == 5
    assert len({drawn.tobytes() for drawn in graph.pairs}) > 1


def test_every_pair_is_drawn_equally_often() -> None:
    addresses = np.array([3, 5, 7, 11, 13])
    drawn = np.concatenate([_draw(addresses, np.random.default_rng(seed)) for seed in range(2000)])
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    assert [tuple(pair) for pair in pairs.tolist()] == list(combinations(addresses.tolist(), 2))
    assert counts.sum() == 10_000
    assert np.abs(counts - 1000).max() < 150  # five standard deviations


def test_numbers_of_pairs_are_unfolded_exactly_in_large_sets() -> None:
    addresses = np.arange(60_000)
    for seed in range(50):
        i, j = _draw(addresses, np.random.default_rng(seed)).T
        assert (i < j).all()
        assert (j < 60_000).all()


CHAIN = simulate(SimulationConfig.preset("tiny", seed=3))


def test_graphs_are_the_surroundings_with_labelled_pairs_of_the_drawn_transaction() -> None:
    graphs = list(entity_graphs(CHAIN, transactions=20, draws=2, seed=4))
    assert len({graph.transaction for graph in graphs}) == 20
    for graph in graphs:
        assert graph.txs.fingerprint() == sample_around(CHAIN, graph.transaction, seed=4).fingerprint()
        table = [side[side["tx"] == graph.transaction]["address"] for side in (CHAIN.inputs, CHAIN.outputs)]
        for pairs, same in zip(graph.pairs, graph.same, strict=True):
            whole = graph.addresses[pairs]
            assert np.isin(whole, np.concatenate(table)).all()
            names = CHAIN.truth.label[whole]
            assert (names != "").all()
            assert (same == (names[:, 0] == names[:, 1])).all()


def test_the_default_clusters_are_the_heuristics_with_the_price_of_the_chain() -> None:
    judge = local_heuristics(CHAIN)
    expected, seen = np.zeros(4, dtype=int), 0
    for graph in entity_graphs(CHAIN, transactions=30, draws=1):
        labels = heuristic_clusters(graph.txs)  # the default price is that of the first interval, this chain's
        assert np.array_equal(judge(graph.txs), labels)
        expected += pair_counts(labels, graph.pairs[0], graph.same[0])
        seen += 1
    counts = entity_counts(CHAIN, transactions=30, draws=1)
    assert counts.mean[list(COUNTS)].tolist() == pytest.approx((100 * expected / expected.sum()).tolist())
    assert counts.transactions == seen == 30


def test_other_clusterings_are_judged_on_the_same_pairs() -> None:
    together = entity_counts(CHAIN, transactions=30, cluster=lambda txs: np.zeros(txs.num_addresses, dtype=np.int64))
    apart = entity_counts(CHAIN, transactions=30, cluster=lambda txs: np.arange(txs.num_addresses))
    assert (together.by_draw[["FN", "TN"]] == 0).all(axis=None)
    assert (apart.by_draw[["TP", "FP"]] == 0).all(axis=None)
    assert together.by_draw["TP"].tolist() == apart.by_draw["FN"].tolist()
    assert together.mean["bACC"] == apart.mean["bACC"] == 50


def test_what_is_drawn_depends_on_the_seed_only() -> None:
    first, again, other = (
        [(graph.transaction, graph.pairs[0].tolist()) for graph in entity_graphs(CHAIN, transactions=15, seed=seed)]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_names_are_needed() -> None:
    with pytest.raises(DataError, match=r"truth\.label"):
        entity_counts(chain().pay("a", {"b": BTC}).build())
