"""A collapse taken apart, in chains small enough to follow by hand."""

import numpy as np
import pandas as pd
from builders import BTC, chain, ids

from btcnb.data import heuristic_merges
from btcnb.data.judging.collapse import chain_of_merges, marked, other_output, why_wrong, worst_collapse


def swept(prefix, number):
    return [f"{prefix}{position}" for position in range(number)]


def two_services(joint: bool):
    """Ann pays Bob from one coin; each has swept five addresses before. `joint`: they also sign together once."""
    story = (
        chain()
        .pay(swept("a", 5), {"a0": 10 * BTC})
        .pay(swept("b", 5), {"b0": 10 * BTC})
        .pay("a0", {"b0": 3 * BTC, "a9": 7 * BTC - 12_345}, change=1)
        .pay("c0", {"b0": 1 * BTC})
        .owners(ann=[*swept("a", 5), "a9"], bob=swept("b", 5), carl="c0")
    )
    return (story.pay(["a4", "b4"], {"a0": BTC, "b0": BTC}) if joint else story).build()


def guesses(txs):
    """The merges of the rules, and a guess of ours that the third transaction's change is a9."""
    name = ids(txs)
    merges = heuristic_merges(txs, ["common_input"])
    guess = pd.DataFrame({"tx": [2], "rule": ["change"], "address_a": [name["a0"]], "address_b": [name["a9"]]})
    return pd.concat([merges, guess]).sort_values("tx", kind="stable", ignore_index=True)


def test_a_transaction_that_two_owners_sign_is_the_culprit():
    txs = two_services(joint=True)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner, large=5)
    assert (found.tx, found.rule, found.by_hand) == (4, "common_input", False)
    assert {txs.addresses[end] for end in found.ends} == {"a4", "b4"}
    assert why_wrong(found, txs) == "the inputs that it merged had several signers"
    assert len(found.inside) == len(guesses(txs))


def test_where_no_rule_errs_one_mistake_is_made_by_hand():
    txs = two_services(joint=False)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner, large=5)
    assert found.by_hand
    assert {txs.addresses[end] for end in found.ends} == {"a0", "b0"}
    assert why_wrong(found, txs) == (
        "we made it take output 0 for change, but that was the payment; the change was output 1"
    )
    assert found.merges["wrong"].sum() == 1
    name = ids(txs)
    assert found.labels[name["a3"]] == found.labels[name["b3"]] != found.labels[name["a9"]]


def test_without_a_payment_to_a_stranger_there_is_no_story():
    txs = chain().pay(["a", "b"], {"c": BTC}).owners(ann="a b c").build()
    assert worst_collapse(txs, heuristic_merges(txs, ["common_input"]), txs.truth.owner) is None


def test_the_output_that_a_guess_did_not_take():
    txs = two_services(joint=False)
    merges = guesses(txs)
    expected = [ids(txs)["b0"] if rule == "change" else -1 for rule in merges["rule"]]
    assert other_output(txs, merges).tolist() == expected


def test_a_merge_with_an_unknown_owner_is_not_called_wrong():
    merges = pd.DataFrame({"tx": [0, 0], "rule": "common_input", "address_a": [0, 0], "address_b": [1, 2]})
    assert marked(merges, np.array([4, 5, -1]))["wrong"].tolist() == [True, False]


def test_the_chain_runs_from_owner_to_owner_over_one_wrong_link():
    txs = two_services(joint=False)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner, large=5)
    links = chain_of_merges(found, txs.truth.owner)
    assert links["wrong"].tolist() == [False, True, False]  # a sweep merges everybody with its first address
    assert links["to"].tolist()[:-1] == links["from"].tolist()[1:]
    owner = txs.truth.owner
    assert owner[links["from"].iloc[0]] != owner[links["to"].iloc[-1]]
