"""Sampling the transaction DAG: hand-made DAGs, limits, determinism, and networkx as an oracle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from builders import chain
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import Transactions, sample_around, sample_from_coinbase
from btcnb.data.sampling import Surroundings
from btcnb.errors import DataError, ParameterError


def hashes(txs: Transactions) -> list[str]:
    return txs.transactions["hash"].tolist()


def line(length: int) -> Transactions:
    """cb -> t1 -> t2 -> …, one block each from block 100 on."""
    story = chain().coinbase("n0", value=100, hash="cb")
    for n in range(1, length):
        story.pay(f"n{n - 1}", {f"n{n}": 100}, hash=f"t{n}")
    return story.build()


def fan(children: int) -> Transactions:
    """A coinbase with many outputs, each spent by a child and that by a grandchild."""
    story = chain().coinbase({f"c{n}": 10 for n in range(children)}, hash="cb")
    for n in range(children):
        story.pay(f"c{n}", {f"g{n}": 10}, hash=f"child{n}")
    for n in range(children):
        story.pay(f"g{n}", {f"e{n}": 10}, hash=f"grandchild{n}")
    return story.build()


# from a coinbase ------------------------------------------------------------------------------------------------


def test_depth_counts_steps_from_the_coinbase():
    txs = line(6)
    assert hashes(sample_from_coinbase(txs, depth=0)) == ["cb"]
    assert hashes(sample_from_coinbase(txs, depth=2)) == ["cb", "t1", "t2"]
    assert hashes(sample_from_coinbase(txs, depth=15)) == ["cb", "t1", "t2", "t3", "t4", "t5"]


def test_edges_are_followed_forward_only():
    """Another coinbase that pays into a reached transaction is not entered."""
    txs = (
        chain()
        .coinbase("a", value=5, hash="cb1")
        .coinbase("b", value=5, hash="cb2")
        .pay(["a", "b"], {"x": 10}, hash="joint")
        .pay("x", {"y": 10}, hash="after")
        .build()
    )
    assert hashes(sample_from_coinbase(txs, coinbase="cb1")) == ["cb1", "joint", "after"]


def test_the_interval_is_respected():
    txs = line(6)  # blocks 100..105
    assert hashes(sample_from_coinbase(txs, end_block=103)) == ["cb", "t1", "t2", "t3"]
    assert hashes(sample_from_coinbase(txs, start_block=100, end_block=100)) == ["cb"]


def test_each_step_follows_at_most_so_many():
    txs = fan(20)
    sample = sample_from_coinbase(txs, max_expanded=7, seed=1)
    found = hashes(sample)
    children = {name.removeprefix("child") for name in found if name.startswith("child")}
    grandchildren = {name.removeprefix("grandchild") for name in found if name.startswith("grandchild")}
    assert len(children) == 7
    assert grandchildren == children  # only what was followed leads on
    assert len(sample) == 1 + 7 + 7
    kept = sample_from_coinbase(txs, max_expanded=7, seed=1, keep_unexpanded=True)
    assert len(kept) == 1 + 20 + 7
    assert len(sample_from_coinbase(txs, max_expanded=20)) == 41


def test_what_a_step_drops_a_later_step_may_find():
    """late spends both the coinbase and a child: dropped in the first step, reached in the second."""
    story = chain().coinbase({"a": 10, "b": 10}, hash="cb").pay("a", {"c": 10}, hash="child")
    txs = story.pay(["b", "c"], {"d": 20}, hash="late").build()
    ways = {tuple(hashes(sample_from_coinbase(txs, max_expanded=1, seed=seed))) for seed in range(20)}
    assert ways == {("cb", "child", "late"), ("cb", "late")}


def test_the_choice_depends_on_the_seed_and_on_nothing_else():
    txs = fan(30)
    samples = [sample_from_coinbase(txs, seed=seed, max_expanded=5) for seed in (1, 1, 2)]
    assert samples[0].fingerprint() == samples[1].fingerprint()
    assert samples[0].fingerprint() != samples[2].fingerprint()


def test_coinbases_are_drawn_uniformly_from_the_interval():
    story = chain(start_block=10)
    for n in range(6):
        story.coinbase(f"m{n}", hash=f"cb{n}")
    txs = story.build()
    drawn = [hashes(sample_from_coinbase(txs, seed=seed, start_block=11, end_block=14))[0] for seed in range(200)]
    names, counts = np.unique(drawn, return_counts=True)
    assert names.tolist() == ["cb1", "cb2", "cb3", "cb4"]
    assert counts.min() > 30


def test_coinbases_that_lead_nowhere_can_be_passed_over():
    story = chain()
    for n in range(10):
        story.coinbase(f"idle{n}")
    txs = story.coinbase("m", hash="cb").pay("m", {"x": 1}, hash="spend").build()
    for seed in range(5):
        assert hashes(sample_from_coinbase(txs, seed=seed, at_least=2)) == ["cb", "spend"]
    with pytest.raises(DataError, match=r"no coinbase reaches 3 transactions \(the best one 2\)"):
        sample_from_coinbase(txs, at_least=3)


def test_the_sample_is_a_selection_with_truth_and_loose_ends():
    txs = chain().coinbase("a", value=5, hash="cb").pay(["a", ("z", 9)], {"x": 14}, hash="t").owners(p="a x").build()
    sample = sample_from_coinbase(txs, coinbase=0, depth=1)
    assert sample.inputs["spent_output"].tolist() == [0, -1]
    assert sample.truth is not None
    assert sample.truth.owner.tolist() == [0, -1, 0]


def test_errors_of_sampling_from_a_coinbase():
    txs = line(3)
    with pytest.raises(DataError, match="no coinbase lies in the interval \\(blocks at hand: 100 to 102\\)"):
        sample_from_coinbase(txs, start_block=101)
    with pytest.raises(DataError, match="no coinbase"):
        sample_from_coinbase(chain().build())
    with pytest.raises(DataError, match="t1 is not a coinbase"):
        sample_from_coinbase(txs, coinbase="t1")
    with pytest.raises(DataError, match="not a coinbase inside the interval"):
        sample_from_coinbase(txs, coinbase="cb", start_block=101)
    with pytest.raises(DataError, match="transaction nope is unknown"):
        sample_from_coinbase(txs, coinbase="nope")


# around transactions --------------------------------------------------------------------------------------------


def test_surroundings_reach_both_ways():
    txs = line(9)
    assert hashes(sample_around(txs, "t4")) == [f"t{n}" for n in range(1, 8)]
    assert hashes(sample_around(txs, 4, depth=1)) == ["t3", "t4", "t5"]
    assert hashes(sample_around(txs, [0, "t8"], depth=1)) == ["cb", "t1", "t7", "t8"]


def test_surroundings_turn_around():
    """From one child over the shared parent to the siblings."""
    txs = fan(4)
    assert hashes(sample_around(txs, "child0", depth=2))[:5] == ["cb", "child0", "child1", "child2", "child3"]


def test_surroundings_are_capped_for_every_seed_on_its_own():
    txs = fan(40)
    one = sample_around(txs, "cb", depth=1, max_expanded=10)
    assert len(one) == 11
    both = sample_around(txs, ["cb", "grandchild3"], depth=1, max_expanded=10)
    assert set(hashes(both)) == set(hashes(one)) | {"child3", "grandchild3"}
    assert (
        sample_around(txs, "cb", seed=1, max_expanded=9).fingerprint()
        == sample_around(txs, [0, "cb"], seed=1, max_expanded=9).fingerprint()
    )
    assert (
        sample_around(txs, "cb", seed=2, max_expanded=9).fingerprint()
        != sample_around(txs, "cb", seed=1, max_expanded=9).fingerprint()
    )


def test_surroundings_know_where_they_came_from():
    txs = fan(40)
    around = Surroundings.of(txs, max_expanded=9, seed=2)
    for tx in (0, 7, 60):
        piece = around.piece(tx)
        assert tx in piece.transactions
        assert piece.txs.fingerprint() == sample_around(txs, tx, max_expanded=9, seed=2).fingerprint()
        assert txs.transactions["hash"].to_numpy()[piece.transactions].tolist() == hashes(piece.txs)
        assert txs.addresses[piece.addresses].tolist() == piece.txs.addresses.tolist()


def test_an_interrupted_search_leaves_no_trace(monkeypatch: pytest.MonkeyPatch):
    """A search marks what it has seen; the next one must not take these marks for its own."""
    around = Surroundings.of(fan(40), max_expanded=9)
    before = around.ids(0)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "concatenate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            around.ids(0)
    assert around.ids(0).tolist() == before.tolist()


def test_unknown_seeds_are_named():
    txs = line(3)
    for seed in ("beef", 3, -1):
        with pytest.raises(DataError, match=f"transaction {seed} is unknown"):
            sample_around(txs, [0, seed])
    with pytest.raises(ParameterError, match="at least one seed"):
        sample_around(txs, [])


# oracle ---------------------------------------------------------------------------------------------------------


@st.composite
def dags(draw) -> Transactions:
    """Coinbases and payments that spend random earlier outputs."""
    story, free, made = chain(), [], 0
    for _ in range(draw(st.integers(2, 25))):
        outputs = {f"o{made + n}": 0 for n in range(draw(st.integers(1, 3)))}  # amounts play no part here
        made += len(outputs)
        if not free or draw(st.integers(0, 3)) == 0:
            story.coinbase(outputs)
        else:
            inputs = draw(st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True))
            story.pay(inputs, outputs)
            free = [name for name in free if name not in inputs]
        free += list(outputs)
    return story.build()


def network(txs: Transactions) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(txs)))
    spent = txs.inputs[txs.inputs["spent_output"] >= 0]
    parents = txs.outputs["tx"].to_numpy()[spent["spent_output"].to_numpy()]
    graph.add_edges_from(zip(parents.tolist(), spent["tx"].tolist(), strict=True))
    return graph


@settings(max_examples=30, deadline=None)
@given(dags(), st.integers(0, 4), st.data())
def test_without_a_cap_it_is_networkx_breadth_first_search(txs, depth, data):
    graph, names = network(txs), np.array(hashes(txs))
    start = data.draw(st.sampled_from(np.flatnonzero(txs.transactions["is_coinbase"]).tolist()))
    expected = nx.single_source_shortest_path_length(graph, start, cutoff=depth)
    assert hashes(sample_from_coinbase(txs, coinbase=start, depth=depth)) == names[sorted(expected)].tolist()
    around = data.draw(st.integers(0, len(txs) - 1))
    expected = nx.single_source_shortest_path_length(graph.to_undirected(), around, cutoff=depth)
    assert hashes(sample_around(txs, around, depth=depth)) == names[sorted(expected)].tolist()
