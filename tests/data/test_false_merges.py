"""Where false merges come from: by rule and mechanism, and along the path between two names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from builders import Chain, chain

from btcnb.data import SimulationConfig, Transactions, Truth, heuristic_merges, simulate
from btcnb.data.judging.entity_pairs import entity_counts
from btcnb.data.judging.links import false_positive_paths, mechanisms, where_false_merges_come_from, wrong_merges
from btcnb.errors import DataError


@dataclass(frozen=True)
class Telling(Truth):
    """Truth that names what went wrong, as a source may."""

    mechanism: Any = None


def told(story: Chain, names: dict[str, str], mechanism: list[str] | None = None) -> Transactions:
    """Owners are told by `owners`; `names` maps addresses to public names."""
    txs = story.build()
    assert txs.truth is not None
    label = np.array([names.get(address, "") for address in txs.addresses], dtype=object)
    truth = Telling(
        owner=txs.truth.owner,
        entities=txs.truth.entities,
        label=label,
        coinjoin=txs.truth.coinjoin,
        mechanism=None if mechanism is None else np.array(mechanism, dtype=object),
    )
    return replace(txs, truth=truth)


def custody() -> Chain:
    """0: a custodian pays for shop and bank at once; 1: the bank alone."""
    return chain().pay(["s1", "b1"], {"x": 2}).pay(["b1", "b2"], {"y": 2}).owners(shop="s1", bank="b1 b2")


def test_rules_and_mechanisms_of_wrong_merges() -> None:
    table = where_false_merges_come_from(told(custody(), {}, ["custody", ""]))
    assert table.to_dict("records") == [
        {"rule": "common_input", "mechanism": "custody", "wrong": 1, "transactions": 1, "of_wrong": 1.0, "of_rule": 0.5}
    ]


def test_without_a_told_mechanism_coinjoins_are_named() -> None:
    story = chain().pay(["a", "b"], {"x": 2}, coinjoin="joinmarket").pay(["a", "c"], {"y": 1})
    txs = story.owners(anna="a", bob="b", carl="c").build()
    assert mechanisms(txs).tolist() == ["coinjoin joinmarket", "ordinary"]
    table = where_false_merges_come_from(txs)
    assert set(table["mechanism"]) == {"coinjoin joinmarket", "ordinary"}
    assert table["of_wrong"].tolist() == [0.5, 0.5]
    assert wrong_merges(txs, heuristic_merges(txs)).all()


def test_unknown_owners_are_never_wrong() -> None:
    txs = chain().pay(["a", "b"], {"x": 2}).owners(anna="a").build()
    assert len(where_false_merges_come_from(txs)) == 0


def test_the_path_between_two_names_ends_in_the_wrong_transaction() -> None:
    """shop – (wrong) – b1 – (right) – b2: the pair is joined through transaction 0."""
    txs = told(custody().pay("z", {"s1": 1, "b2": 1}), {"s1": "shop", "b2": "bank"}, ["custody", "", ""])
    paths = false_positive_paths(txs, draws=1)
    assert paths.empty  # the last transaction has the pair, but no spent output leads from it to the others
    joined = told(
        chain()
        .pay("z", {"s1": 1, "b2": 1})
        .pay(["s1", "b1"], {"x": 2})
        .pay(["b2", "b1"], {"y": 2})
        .owners(shop="s1", bank="b1 b2"),
        {"s1": "shop", "b2": "bank"},
        ["", "custody", ""],
    )
    found = false_positive_paths(joined, draws=2)
    assert found[["graph", "draw", "tx", "rule", "mechanism"]].to_numpy().tolist() == [
        [0, 0, 1, "common_input", "custody"],
        [0, 1, 1, "common_input", "custody"],
    ]
    assert entity_counts(joined).mean["FP"] == 100


def test_one_owner_with_two_names_is_said_so() -> None:
    txs = told(chain().pay(["a", "b"], {"x": 2}).owners(firm="a b"), {"a": "brand", "b": "other brand"})
    found = false_positive_paths(txs, draws=1)
    assert found[["tx", "mechanism"]].to_numpy().tolist() == [[-1, "one owner, two names"]]


def test_every_false_positive_of_a_simulated_economy_has_its_row() -> None:
    txs = simulate(SimulationConfig.preset("tiny", seed=3))
    assert txs.truth is not None
    rng = np.random.default_rng(0)  # names that mean nothing: half of the pairs are false
    label = np.where(txs.truth.label != "", rng.choice(["p", "q"], txs.num_addresses).astype(object), "")
    txs = replace(txs, truth=replace(txs.truth, label=label))
    counts = entity_counts(txs, transactions=40, draws=2, seed=1)
    paths = false_positive_paths(txs, transactions=40, draws=2, seed=1)
    number = paths.groupby("draw").apply(lambda rows: len(rows[["graph", "pair"]].drop_duplicates()))
    assert number.tolist() == pytest.approx((counts.by_draw["FP"] * counts.by_draw["pairs"] / 100).tolist())
    assert number.min() > 0


def test_owners_are_needed() -> None:
    with pytest.raises(DataError, match="truth"):
        where_false_merges_come_from(chain().pay("a", {"b": 1}).build())
