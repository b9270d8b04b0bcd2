"""Clusters of Möser and Narayanan: merges by hand with a forest whose mind is known, trials, and real blocks."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from payments import Chain, chain, chain_of, groups, ids

from btcnb.data.change_votes import HEURISTICS, ChangeVotes, published_votes
from btcnb.errors import DataError
from btcnb.experiments.change_forest import ChangeForest, ForestConfig, train_forest
from btcnb.experiments.moser import (
    ChangeDecisions,
    change_decisions,
    cluster_numbers,
    confused,
    confusion_sweep,
    moser_clusters,
    right_merges,
)
from btcnb.experiments.moser_measure import (
    chain_votes,
    entity_clusterings,
    entity_scores,
    kept_apart,
    pooled_scores,
    rank_agreement,
    vote_numbers,
)


@dataclass(frozen=True)
class Oracle(ChangeForest):
    """A forest that says what it is told: probabilities of both outputs by transaction, NaN elsewhere."""

    said: dict[int, tuple[float, float]] = field(default_factory=dict)

    def probabilities(self, txs: Any, votes: ChangeVotes) -> Any:
        silent = (np.nan, np.nan)
        return np.array([self.said.get(int(tx), silent) for tx in votes.tx], dtype=np.float64).reshape(-1, 2)


def oracle(**said: tuple[float, float]) -> Oracle:
    """`t3=(0.995, 0.001)`: what the forest thinks of the outputs of transaction 3."""
    told = {int(name[1:]): chance for name, chance in said.items()}
    return Oracle(None, None, ForestConfig(), 0.9977, said=told)  # type: ignore[arg-type]


def story() -> Chain:
    """0: a pays shop, change c. 1: b pays shop, change d. 2: c and d pay, each to a service."""
    return chain().pay("a", {"shop": 7, "c": 2}).pay("b", {"shop2": 7, "d": 2})


# merges ---------------------------------------------------------------------------------------------------------


def test_the_sure_change_joins_its_senders() -> None:
    txs = story().build()
    forest = oracle(t0=(0.001, 0.998), t1=(0.5, 0.998))
    assert groups(txs, moser_clusters(txs, forest).labels) == {
        *(frozenset(x) for x in (["a", "c"], ["b", "d"], ["shop"], ["shop2"]))
    }


def test_an_unspent_output_needs_the_higher_threshold() -> None:
    """0.995 is enough where both outputs are spent, and not where one is not."""
    txs = chain().pay("a", {"x": 7, "c": 2}).pay("b", {"y": 7, "d": 2}).pay("y", {"z": 7}).pay("d", {"w": 2}).build()
    found = change_decisions(txs, oracle(t0=(0.1, 0.995), t1=(0.1, 0.995)))
    assert (found.tx.tolist(), found.full.tolist(), found.change.tolist()) == ([0, 1], [False, True], [-1, 1])


def test_both_above_or_none_is_no_answer_and_all_is_counted() -> None:
    txs = story().pay("e", {"x": 1, "y": 1}).pay("f", {"v": 1, "w": 1}).build()
    found = change_decisions(txs, oracle(t0=(0.999, 0.9985), t1=(0.4, 0.6), t2=(0.9999, 0.001)))
    assert found.change.tolist() == [-1, -1, 0]
    assert found.not_change.tolist() == [[False, False], [False, False], [False, True]]
    assert found.counts == {
        "eligible": 4,
        "silent": 1,
        "undecided": 1,
        "both_above": 1,
        "decided": 1,
        "forbidden": 1,
    }


def test_a_cannot_link_stops_the_wrong_merge() -> None:
    """Two services, hot and cold; user u pays both. The forest once takes the payment to cold for change."""
    txs = (
        chain()
        .pay("u", {"hot": 7, "c": 2})  # 0: right, and hot is surely a payment
        .pay("c", {"d": 1, "cold": 1})  # 1: wrong: cold is taken for change
        .pay([("cold", 2)], {"hot": 1, "k": 1})  # 2: wrong again: it would join cold with hot
        .build()
    )
    forest = oracle(t0=(0.001, 0.999), t1=(0.5, 0.999), t2=(0.999, 0.5))
    naive = moser_clusters(txs, forest, how="naive")
    assert frozenset(["u", "c", "cold", "hot"]) in groups(txs, naive.labels)
    made = moser_clusters(txs, forest)
    assert groups(txs, made.labels) == {frozenset(["u", "c", "cold"]), *(frozenset([x]) for x in ("hot", "d", "k"))}
    assert {name: made.counts[name] for name in ("merges", "merged", "blocked", "joined", "cannot_links")} == {
        "merges": 3,
        "merged": 2,
        "blocked": 1,
        "joined": 0,
        "cannot_links": 1,
    }


def test_what_common_inputs_show_is_left_alone_and_counted() -> None:
    """The change of 0 is co-spent with a later: nothing is to be merged, and the shop is not either."""
    txs = chain().pay("a", {"shop": 7, "c": 2}).pay(["c", ("a", 1)], {"z": 3}).build()
    made = moser_clusters(txs, oracle(t0=(0.999, 0.001)))
    assert (made.counts["decided"], made.counts["known"], made.counts["merges"]) == (1, 1, 0)
    assert (made.labels == made.base).all()


def test_nothing_to_decide_leaves_the_common_inputs() -> None:
    for txs in (chain().build(), chain().coinbase("m").pay(["a", "b"], {"c": 1}).build()):
        made = moser_clusters(txs, oracle())
        assert made.labels.tolist() == made.base.tolist()
        assert made.counts["merges"] == 0


def test_decisions_of_a_chain_serve_its_pieces() -> None:
    txs = story().pay("shop", {"q": 3, "r": 4}).build()
    whole = change_decisions(txs, oracle(t0=(0.001, 0.999), t1=(0.001, 0.999), t2=(0.999, 0.5)))
    keep = np.array([1, 2])
    piece = whole.local(keep)
    assert (piece.tx.tolist(), piece.change.tolist()) == ([0, 1], [1, 0])
    local = txs.select(keep)
    assert frozenset(["b", "d"]) in groups(local, moser_clusters(local, oracle(), decisions=piece).labels)
    assert whole.local(np.empty(0, dtype=np.int64)).tx.tolist() == []


def test_a_trained_forest_clusters_a_chain_it_never_saw() -> None:
    forest = train_forest([chain_of(40)], ForestConfig(trees=10))
    txs = chain(start_block=600_000).pay("a", {"x": 2_000_000, "c": 765_431}).pay("x", {"y": 2_000_000}, version=1)
    txs = txs.pay("c", {"v": 765_431}).build()
    assert frozenset(["a", "c"]) in groups(txs, moser_clusters(txs, forest).labels)


# trials ---------------------------------------------------------------------------------------------------------


def decided(*change: int) -> ChangeDecisions:
    n = len(change)
    chance = np.array([{0: (0.999, 0.2), 1: (0.2, 0.999), -1: (0.4, 0.3)}[c] for c in change])
    return ChangeDecisions(
        np.arange(n), chance, np.array(change), chance < 0.01, np.ones(n, dtype=bool), {"eligible": n}
    )


def test_right_merges_by_hand() -> None:
    txs = chain()
    for name in "abcd":
        txs.pay(name, {f"{name}1": 1, f"{name}2": 1}, change=1)
    found = right_merges(txs.build(), decided(1, 0, -1, 1))
    assert found == {"merges": 3, "precision": pytest.approx(2 / 3), "recall": 0.5}
    nothing = right_merges(txs.build(), decided(-1, -1, -1, -1))
    assert nothing["merges"] == 0 and np.isnan(nothing["precision"]) and nothing["recall"] == 0
    sweep = [right_merges(txs.build(), decided(1, 0, -1, 1).above(at))["merges"] for at in (0.5, 0.99, 0.9999)]
    assert sweep == [3, 3, 0]


def test_decisions_turned_round() -> None:
    given = decided(1, 0, -1)
    assert confused(given, 0.0).change.tolist() == given.change.tolist()
    turned = confused(given, 1.0)
    assert turned.change.tolist() == [0, 1, -1]
    assert turned.probability[0].tolist() == [0.999, 0.2] and turned.probability[2].tolist() == [0.4, 0.3]
    assert confused(given, 0.5, seed=1).change.tolist() == confused(given, 0.5, seed=1).change.tolist()


def named(story: Chain, **names: str) -> Any:
    """A chain with owners, and public names of some addresses."""
    txs = story.build()
    assert txs.truth is not None
    label = np.full(txs.num_addresses, "", dtype=object)
    for name, addresses in names.items():
        label[np.isin(txs.addresses, addresses.split())] = name
    return replace(txs, truth=replace(txs.truth, label=label))


def test_wrong_merges_throw_services_together() -> None:
    """Three customers pay an exchange and a shop by turns; all decisions turned round join exchange and shop."""
    tale = chain().owners(anna="a a1", exchange="hot", shop="s")
    txs = named(tale.pay("a", {"hot": 5, "a1": 4}, change=1).pay("a1", {"s": 3, "a2": 1}, change=1), e="hot", s="s")
    forest = oracle(t0=(0.1, 0.999), t1=(0.1, 0.999))
    decisions = change_decisions(txs, forest)
    numbers = cluster_numbers(txs, np.arange(txs.num_addresses), np.zeros(txs.num_addresses, dtype=np.int64))
    assert (numbers["services"], numbers["swallowed"], numbers["most_owners"]) == (2, 2, 3)
    found = confusion_sweep(txs, forest, decisions, (0.0, 1.0))
    assert found[0.0]["naive"]["swallowed"] == found[0.0]["moser"]["swallowed"] == 1
    assert found[1.0]["naive"]["largest"] == 0.5  # a with hot, a1 with s: two of four addresses with an owner


def test_pairs_of_a_coinjoin_kept_apart_by_hand() -> None:
    """Inputs of Anna (two), Ben and Carl: five pairs of two owners, of which labels part three."""
    txs = chain().owners(anna="a1 a2", ben="b", carl="c").pay(["a1", "a2", "b", "c"], {"x": 4}, coinjoin="wasabi2")
    built = txs.build()
    place = ids(built)
    labels = np.zeros(built.num_addresses, dtype=np.int64)
    assert kept_apart(built, labels) == 0.0
    labels[place["c"]] = 1
    assert kept_apart(built, labels) == pytest.approx(3 / 5)
    assert np.isnan(kept_apart(chain().owners(a="a").pay("a", {"b": 1}).build(), np.zeros(2, dtype=np.int64)))
    with pytest.raises(DataError, match=r"truth\.coinjoin"):
        kept_apart(story().build(), np.zeros(6, dtype=np.int64))


def test_labels_are_scored_on_the_same_pairs_for_all() -> None:
    """One transaction with two addresses of the exchange among its inputs and one of the shop among its outputs."""
    tale = chain().owners(e="h1 h2", s="s").pay(["h1", "h2"], {"s": 5, "k": 4})
    txs = named(tale, exchange="h1 h2", shop="s")
    makers = {"together": lambda graph: np.zeros(graph.txs.num_addresses, dtype=np.int64)}
    makers |= entity_clusterings(txs, oracle(), change_decisions(txs, oracle()))
    found = entity_scores(txs, makers, transactions=5, draws=2)
    wanted = {"TP": 1 / 3, "FP": 2 / 3, "FN": 0, "TN": 0, "bACC": 0.5, "F1": 0.25, "pairs": 6, "graphs": 1}
    together = {key: value for key, value in found.items() if key.startswith("together.")}
    assert together == pytest.approx({f"together.{key}": value for key, value in wanted.items()})
    assert found["common.bACC"] == found["moser.bACC"] == found["moser_local.bACC"] == 1.0
    assert {found[f"{name}.pairs"] for name in makers} == {6}


# votes ----------------------------------------------------------------------------------------------------------


def test_votes_of_two_chains_are_counted_together() -> None:
    one, two = chain_of(3), chain_of(1, name="v")
    table = pooled_scores([chain_votes(one), chain_votes(two)])
    assert table.loc["power_of_ten_5", ["coverage", "TPR", "FPR"]].tolist() == [1, 1, 0]
    three, single = (pooled_scores([chain_votes(each)])["coverage"] for each in (one, two))
    assert table["coverage"].to_numpy() == pytest.approx((3 * three + single).to_numpy() / 4)
    flat = vote_numbers(table)
    assert len([name for name in flat if name.endswith(".TPR")]) == len(HEURISTICS)
    assert flat["votes.fp_version.TPR"] == 1


def test_ranks_beside_the_published_ones() -> None:
    theirs = published_votes()
    same = pd.DataFrame({"TPR": theirs["TPR"], "FPR": -theirs["FPR"], "comparable": theirs["remaining"] ** 2})
    assert rank_agreement(same) == {"TPR": 1.0, "FPR": -1.0, "coverage": 1.0}
    assert np.isnan(rank_agreement(same.assign(TPR=0.5))["TPR"])


# real blocks ----------------------------------------------------------------------------------------------------


def real_blocks() -> Path:
    folder = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data") / "mainnet-blocks"
    if not folder.exists():
        pytest.skip("no real blocks at hand: set BTCNB_REAL_DATA to a folder with mainnet-blocks")
    return folder


def test_real_blocks_reveal_and_vote() -> None:
    """One real block: votes fire about as often as published, and every merge ends somewhere."""
    from btcnb.data import read_blocks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # previous outputs are missing: that is known
        txs = read_blocks(sorted(real_blocks().glob("*.bin"))[0])
    found = chain_votes(txs, both_spent=False)
    assert found.revealed.steps["eligible"] > 100
    table = pooled_scores([found])
    published = published_votes()
    assert abs(table.loc["power_of_ten_3", "remaining"] - published.loc["power_of_ten_3", "remaining"]) < 0.2
    forest = train_forest([chain_of(30)], ForestConfig(trees=5))
    made = moser_clusters(txs, forest)
    assert made.counts["merged"] + made.counts["joined"] + made.counts["blocked"] == made.counts["merges"]
