"""The 26 heuristics: a scenario for each, and a slow reading of the definitions as an oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import BTC, FINAL, RBF, chain

from btcnb import paper
from btcnb.data import SCRIPT_TYPES, SimulationConfig, Transactions, simulate
from btcnb.data.change_votes import (
    COLUMNS,
    EXTRA,
    FINGERPRINTS,
    HEURISTICS,
    UNIVERSAL,
    UNIVERSAL_COLUMNS,
    ChangeVotes,
    change_votes,
    has_vote,
    output_rows,
    published_votes,
    universal,
)
from btcnb.data.change_votes.votes import SINCE, transaction_flags
from btcnb.errors import ParameterError

MODERN = 600_000
TYPES = {
    "k": "pubkeyhash",
    "s": "scripthash",
    "w": "witness_v0_keyhash",
    "m": "witness_v0_scripthash",
    "b": "multisig",
    "u": "unknown",
}


def typed(*names: str) -> dict[str, str]:
    """Script type by the first letter of a name."""
    return {name: TYPES[name[0]] for name in names if name[0] in TYPES}


def spent(first: dict[str, object], second: dict[str, object], height: int = MODERN, **own: object) -> Transactions:
    """Transaction 0 pays x and y; x is spent by 1, y by 2, with the given fields."""
    story = chain(start_block=height).pay("in", {"x": 9, "y": 9}, **own)  # type: ignore[arg-type]
    for coin, fields in (("x", first), ("y", second)):
        story.pay(coin, **{"outputs": {"z": 9}, **fields})  # type: ignore[arg-type]
    return story.build()


def column(votes: ChangeVotes, name: str) -> np.ndarray:
    return votes.votes[:, HEURISTICS.index(name)]


def vote(txs: Transactions, name: str, smart: bool = True) -> int:
    votes = change_votes(txs, smart)
    assert votes.tx[0] == 0
    return int(column(votes, name)[0])


# universal ------------------------------------------------------------------------------------------------------


def test_change_is_smaller_than_every_input() -> None:
    votes = change_votes(
        chain()
        .pay([("a", 50), ("b", 30)], {"x": 60, "y": 20})  # 20 < 30 <= 60
        .pay([("c", 50), ("d", 30)], {"x": 21, "y": 29, "z": 30})  # three outputs: not eligible
        .pay([("e", 50), ("f", 30)], {"x": 30, "y": 29})  # fee 21: strictly smaller without, not with it
        .pay([("g", 90)], {"x": 60, "y": 20})  # one input: both are smaller
        .pay([("h", 50), ("i", 30)], {"x": 40, "y": 40})  # none is
        .build()
    )
    assert votes.tx.tolist() == [0, 2, 3, 4]
    assert column(votes, "optimal_change").tolist() == [1, 1, -1, -1]
    assert column(votes, "optimal_change_with_fee").tolist() == [1, -1, -1, -1]


def test_an_unknown_value_or_fee_makes_no_vote() -> None:
    txs = chain().pay([("a", 50), ("b", 30)], {"x": 60, "y": 20}).build()
    hidden = replace(txs, inputs=txs.inputs.assign(value=[50, -1]))
    assert vote(hidden, "optimal_change") == vote(hidden, "optimal_change_with_fee") == -1
    free = replace(txs, transactions=txs.transactions.assign(fee=-1))
    assert (vote(free, "optimal_change"), vote(free, "optimal_change_with_fee")) == (1, -1)


def test_change_has_the_script_type_of_the_inputs() -> None:
    def votes(inputs: list[str], outputs: list[str]) -> int:
        story = chain(types=typed(*inputs, *outputs)).pay(inputs, dict.fromkeys(outputs, 1))
        return vote(story.build(), "address_type")

    assert votes(["k1", "k2"], ["s1", "k3"]) == 1
    assert votes(["s1"], ["s2", "w3"]) == 0
    assert votes(["k1"], ["k2", "k3"]) == -1
    assert votes(["k1"], ["s2", "w3"]) == -1
    assert votes(["k1", "s1"], ["k2", "s2"]) == -1  # inputs of two types
    assert votes(["k1", "s1"], ["k2", "w2"]) == -1
    assert votes(["u1"], ["k2", "w2"]) == -1
    assert votes(["u1"], ["u2", "w2"]) == -1  # the type is not told: equal names mean nothing


def test_a_round_amount_is_the_payment() -> None:
    votes = change_votes(
        chain()
        .pay("a", {"x": 5_000, "y": 1_234_567})
        .pay("b", {"x": 33, "y": 20 * BTC})
        .pay("c", {"x": 700, "y": 900})
        .build()
    )
    columns = [column(votes, f"power_of_ten_{d}").tolist() for d in range(2, 8)]
    assert columns == [[1, 0, -1], [1, 0, -1], *[[-1, 0, -1]] * 4]


# fingerprints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "own", "alike", "unlike"),
    [
        ("fp_version", {"version": 2}, {"version": 3}, {"version": 1}),
        ("fp_locktime", {"lock_time": 5}, {"lock_time": 599_000}, {"lock_time": 0}),
        ("fp_locktime", {"lock_time": 5}, {"lock_time": 6}, {"lock_time": 1_600_000_000}),
        ("fp_locktime", {"lock_time": 0}, {"lock_time": 0}, {"lock_time": 500_000_000}),
        ("fp_rbf", {"sequence": RBF}, {"sequence": 0}, {"sequence": FINAL - 1}),
        ("fp_rbf", {"sequence": FINAL}, {"sequence": FINAL - 1}, {"sequence": RBF}),
        ("fp_absolute_fee", {"fee": 3}, {"outputs": {"p": 6}}, {"outputs": {"p": 5}}),
        ("fp_output_count", {}, {"outputs": {"p": 4, "q": 5}}, {"outputs": {"p": 9}}),
        ("fp_inout_count", {}, {"outputs": {"p": 4, "q": 5}}, {"outputs": {"p": 3, "q": 3, "r": 3}}),
        ("fp_ordered_inouts", {}, {"outputs": {"p": 4, "q": 5}}, {"outputs": {"p": 5, "q": 4}}),
    ],
)
def test_the_spender_that_looks_alike_spends_the_change(name: str, own: dict, alike: dict, unlike: dict) -> None:
    assert vote(spent(alike, unlike, **own), name) == 0
    assert vote(spent(unlike, alike, **own), name) == 1
    assert vote(spent(alike, alike, **own), name) == vote(spent(unlike, unlike, **own), name) == -1


@pytest.mark.parametrize(
    ("name", "own", "alike", "unlike"),
    [  # the first letter is the script type: (k)ey hash, (s)cript hash, (w)itness, witness script (m), (b)are multisig
        ("fp_segwit", ["w0"], "m1", "k1"),
        ("fp_segwit", ["k0"], "b1", "w1"),
        ("fp_possible_segwit", ["s0"], "w1", "k1"),
        ("fp_multisig", ["b0"], "m1", "k1"),
        ("fp_multisig", ["k0"], "w1", "s1"),
        ("fp_p2pkh", ["k0"], "k1", "s1"),
        ("fp_p2pkh", ["k0", "w0"], "k1", "w1"),
        ("fp_p2sh", ["s0"], "s1", "w1"),
        ("fp_p2wpkh", ["w0"], "w1", "s1"),
        ("fp_p2wsh", ["m0"], "m1", "w1"),
        ("fp_address_type", ["k0"], "k1", "w1"),
        ("fp_address_type", ["s0"], "s1", "m1"),
    ],
)
def test_the_spender_with_inputs_of_the_same_kind_spends_the_change(
    name: str, own: list[str], alike: str, unlike: str
) -> None:
    def votes(first: str, second: str) -> int:
        story = chain(start_block=MODERN, types=typed(*own, first, second), default_type="pubkey")
        txs = story.pay(own, {first: 9, second: 9}).pay(first, {"z": 9}).pay(second, {"z": 9}).build()
        return vote(txs, name)

    assert (votes(alike, unlike), votes(unlike, alike)) == (0, 1)
    assert votes(alike, alike + "'") == votes(unlike, unlike + "'") == -1


def test_the_vector_of_types_must_agree_as_a_whole() -> None:
    """Keys and witnesses among the inputs: neither spender has both."""
    story = chain(start_block=MODERN, types=typed("k0", "w0", "k1", "w1"))
    txs = story.pay(["k0", "w0"], {"k1": 9, "w1": 9}).pay("k1", {"z": 9}).pay("w1", {"z": 9}).build()
    assert vote(txs, "fp_address_type") == -1
    assert (vote(txs, "fp_p2pkh"), vote(txs, "fp_p2wpkh")) == (0, 1)


def test_equal_spenders_make_no_vote_and_absence_counts_as_agreement() -> None:
    assert vote(spent({"version": 1}, {"version": 1}, version=1), "fp_version") == -1
    assert vote(spent({"version": 2}, {"version": 2}, version=1), "fp_version") == -1  # both are ruled out
    assert vote(spent({"version": 2}, {"version": 1}, version=1), "fp_version") == 1


def test_classes_of_counts_are_one_two_and_more() -> None:
    """Two inputs and two outputs, as the first spender has; the second has three inputs."""
    story = chain(start_block=MODERN).pay(["a", "b"], {"x": 7, "y": 9})
    story.pay(["x", ("c", 1)], {"p": 4, "p2": 4}).pay(["y", ("d", 1), ("e", 1)], {"q": 4, "q2": 7})
    txs = story.build()
    assert (vote(txs, "fp_inout_count"), vote(txs, "fp_output_count")) == (0, -1)
    flags = transaction_flags(txs)
    assert flags["inputs"].tolist() == [2, 2, 3]
    assert flags["outputs"].tolist() == [2, 2, 2]


def test_the_fee_of_a_byte_is_a_whole_number() -> None:
    txs = spent(
        {"outputs": {"p": 1}, "virtual_size": 3}, {"outputs": {"q": 1}, "virtual_size": 2}, fee=5, virtual_size=2
    )
    assert transaction_flags(txs)["fee_per_byte"].tolist() == [2, 2, 4]
    assert vote(txs, "fp_relative_fee") == 0
    untold = replace(txs, transactions=txs.transactions.assign(fee=[5, 6, -1]))
    assert vote(untold, "fp_relative_fee") == vote(untold, "fp_absolute_fee") == -1


def test_zeroconf_spends_an_output_of_its_own_block() -> None:
    story = chain(start_block=MODERN).coinbase("c", value=16).pay("c", {"x": 7, "y": 9}, block="same")
    txs = story.pay("y", {"q": 9}, block="same").pay("x", {"p": 7}).build()
    assert transaction_flags(txs)["zeroconf"].tolist() == [0, 1, 1, 0]
    assert column(change_votes(txs), "fp_zeroconf").tolist() == [1]


def test_types_among_the_inputs() -> None:
    story = chain(
        start_block=MODERN, types=typed("k1", "k2", "s1", "s2", "w1", "m1", "b1", "u1"), default_type="pubkey"
    )
    for inputs in (["k1"], ["s1"], ["w1"], ["m1"], ["b1"], ["z"], ["k2", "w1"], ["u1"]):
        story.pay(inputs, {"z": 1})
    story.pay(["s2"], {"z": 1}, size=200, virtual_size=150)  # lighter: SegWit inside the script hash
    flags = transaction_flags(story.build())
    names = ("p2pkh", "p2sh", "p2wpkh", "p2wsh", "other", "segwit", "segwit_compatible", "multisig")
    told = {name: flags[name].tolist() for name in names}
    #        k  s  w  m  b  z kw   u  s in SegWit
    assert told == {
        "p2pkh": [1, 0, 0, 0, 0, 0, 1, -1, 0],
        "p2sh": [0, 1, 0, 0, 0, 0, 0, -1, 1],
        "p2wpkh": [0, 0, 1, 0, 0, 0, 1, -1, 0],
        "p2wsh": [0, 0, 0, 1, 0, 0, 0, -1, 0],
        "other": [0, 0, 0, 0, 0, 1, 0, -1, 0],
        "segwit": [0, 0, 1, 1, 0, 0, 1, -1, 1],
        "segwit_compatible": [0, 1, 1, 1, 0, 0, 1, -1, 1],
        "multisig": [0, 1, 0, 1, 1, 0, 0, -1, 0],
    }


def test_inputs_are_sorted_by_hash_and_position() -> None:
    def flag(*given: tuple[str, int]) -> int:
        txs = chain().pay([(f"i{n}", 1) for n in range(len(given))], {"x": 1, "y": 1}).build()
        hashes, places = zip(*given, strict=True)
        told = txs.inputs.assign(spent_transaction_hash=list(hashes), spent_output_index=list(places))
        return int(transaction_flags(replace(txs, inputs=told))["sorted"][0])

    assert flag(("aa", 1), ("aa", 2), ("b0", 0)) == 1
    assert flag(("aa", 2), ("aa", 1)) == 0
    assert flag(("b0", 0), ("aa", 5)) == 0
    inside = chain().pay([("z", 1)], {"a": 1}, hash="ff").pay([("y", 1)], {"b": 1}, hash="00")
    assert transaction_flags(inside.pay(["a", "b"], {"c": 2}).build())["sorted"].tolist() == [1, 1, 0]


def test_fingerprints_are_silent_while_an_output_is_unspent() -> None:
    story = chain(start_block=MODERN).pay("in", {"x": 7, "y": 9}, version=2).pay("x", {"p": 7}, version=2)
    votes = change_votes(story.build())
    assert not votes.both_spent[0]
    assert (votes.votes[0, len(UNIVERSAL) :] == -1).all()


def test_a_feature_counts_only_once_it_exists() -> None:
    """An old transaction whose coins are moved by old and by new software."""
    for name, field, since in (
        ("fp_version", {"version": 2}, SINCE["version"]),
        ("fp_rbf", {"sequence": RBF}, SINCE["rbf"]),
        ("fp_segwit", {"size": 200, "virtual_size": 150}, SINCE["segwit"]),
    ):
        before = spent({"version": 1}, {"version": 1, **field}, height=since - 1, version=1)
        if name == "fp_segwit":  # native SegWit inputs would show anyway
            before = replace(before, inputs=before.inputs.assign(script_type=SCRIPT_TYPES.index("pubkeyhash")))
        after = replace(before, transactions=before.transactions.assign(block_number=[since, since + 1, since + 2]))
        assert (vote(before, name), vote(before, name, smart=False), vote(after, name)) == (-1, 0, 0)


# the container --------------------------------------------------------------------------------------------------


def test_signs_per_output_row() -> None:
    votes = np.full((2, 26), -1, dtype=np.int8)
    votes[0, 0], votes[1, 0], votes[1, 3] = 0, 1, 0
    signed = ChangeVotes(np.array([4, 9]), votes, np.ones(2, dtype=bool)).signed()
    assert signed.shape == (4, 26)
    assert signed.dtype == np.int8
    assert signed[:, 0].tolist() == [1, -1, -1, 1]
    assert signed[:, 3].tolist() == [0, 0, 1, -1]
    assert not signed[:, 1].any()


def test_rows_of_chosen_transactions() -> None:
    votes = change_votes(CHAIN)
    chosen = votes.tx[[5, 2, 2]]
    assert votes.of(chosen).tx.tolist() == chosen.tolist()
    assert votes.of(chosen).votes.tolist() == votes.votes[[5, 2, 2]].tolist()
    coinbase = np.flatnonzero(CHAIN.transactions["is_coinbase"])[:1]
    with pytest.raises(ParameterError, match="no two outputs"):
        votes.of(coinbase)


def test_a_chain_without_payments_has_no_votes() -> None:
    for story in (chain(), chain().coinbase("m"), chain().pay("a", {"b": 1})):
        votes = change_votes(story.build())
        assert votes.votes.shape == (0, 26)
        assert votes.signed().shape == (0, 26)


# oracle ---------------------------------------------------------------------------------------------------------

CHAIN = simulate(SimulationConfig.preset("tiny", seed=5))


def slow_votes(txs: Transactions, flags: dict[str, np.ndarray], tx: int) -> list[int]:
    """One transaction at a time, with sets."""
    rows = [txs.inputs[txs.inputs["tx"] == tx], txs.outputs[txs.outputs["tx"] == tx]]
    inputs, outputs = (table.to_dict("records") for table in rows)
    fee, least = txs.transactions["fee"][tx], min(row["value"] for row in inputs)
    types = {row["script_type"] for row in inputs}
    sets = [
        {k for k in (0, 1) if outputs[k]["value"] < least},
        {k for k in (0, 1) if outputs[k]["value"] + fee < least},
        {k for k in (0, 1) if types == {outputs[k]["script_type"]}},
        *({k for k in (0, 1) if outputs[k]["value"] % 10**d} for d in range(2, 8)),
    ]
    spender = txs.spent_by()[rows[1].index.to_numpy()]
    for names in FINGERPRINTS.values():
        alike = {k for k in (0, 1) if all(flags[name][tx] == flags[name][spender[k]] for name in names)}
        sets.append(alike if (spender >= 0).all() else set())
    return [next(iter(found)) if len(found) == 1 else -1 for found in sets]


def test_votes_are_what_the_definitions_say_transaction_by_transaction() -> None:
    votes, flags = change_votes(CHAIN), transaction_flags(CHAIN)
    rng = np.random.default_rng(0)
    for place in rng.choice(len(votes), 60, replace=False):
        assert votes.votes[place].tolist() == slow_votes(CHAIN, flags, int(votes.tx[place]))
    assert (votes.votes >= 0).any(axis=0).sum() >= 20  # the sample exercises nearly all of them


# outputs as rows of numbers ---------------------------------------------------------------------------------------


def test_there_are_35_inputs_and_18_without_spending_transactions() -> None:
    assert (len(COLUMNS), len(EXTRA), len(UNIVERSAL_COLUMNS)) == (35, 9, 18)
    assert COLUMNS[: len(HEURISTICS)] == HEURISTICS
    assert (*UNIVERSAL, *EXTRA) == UNIVERSAL_COLUMNS


def test_nine_features_by_hand() -> None:
    story = chain(start_block=2016, types={"a": "pubkeyhash", "b": "witness_v0_keyhash"})
    txs = story.pay([("a", 50), ("b", 60)], {"x": 25, "y": 75}, version=1, lock_time=7, virtual_size=4).build()
    found = dict(zip(EXTRA, output_rows(txs, change_votes(txs))[:, len(HEURISTICS) :].T.tolist(), strict=True))
    assert found == {
        "value_share": [0.25, 0.75],
        "output_index": [0, 1],
        "fee_per_byte": [2, 2],  # 10 // 4
        "output_total": [100, 100],
        "version": [1, 1],
        "segwit": [1, 1],  # one input has a witness
        "locktime": [1, 1],
        "inputs": [2, 2],
        "epoch": [2, 2],  # 2016 // 1008
    }


def test_what_is_not_told_is_minus_one_and_nothing_is_nan() -> None:
    txs = chain(types={"u": "unknown"}).pay([("u", 9)], {"x": 0, "y": 0}).build()
    hidden = replace(txs, transactions=txs.transactions.assign(fee=-1))
    found = dict(zip(EXTRA, output_rows(hidden, change_votes(hidden))[:, len(HEURISTICS) :].T.tolist(), strict=True))
    assert found["fee_per_byte"] == found["segwit"] == [-1, -1]
    assert found["value_share"] == [0.5, 0.5]  # both are worth nothing


def test_rows_hold_signed_votes_and_features() -> None:
    txs = chain().pay("a", {"x": 5_000, "y": 1_234_567}).pay("b", {"p": 11, "q": 13}).build()
    votes = change_votes(txs)
    rows = output_rows(txs, votes)
    assert rows.shape == (4, 35) and rows.dtype == np.float32
    assert rows[:, COLUMNS.index("power_of_ten_3")].tolist() == [-1, 1, 0, 0]
    assert has_vote(rows).tolist() == [True, True, False, False]
    assert has_vote(rows, ("address_type",)).tolist() == [False] * 4
    assert universal(rows).shape == (4, 18)
    assert universal(rows)[:, -9:].tolist() == rows[:, -9:].tolist()
    assert np.isfinite(rows).all()


def test_a_chain_without_two_outputs_has_no_rows() -> None:
    txs = chain().coinbase("m").pay("a", {"b": 1}).build()
    assert output_rows(txs, change_votes(txs)).shape == (0, 35)


# published figures ----------------------------------------------------------------------------------------------


def test_the_published_table_has_our_columns_in_our_order() -> None:
    table = published_votes()
    assert tuple(table.index) == HEURISTICS
    assert (table["group"] == "universal").sum() == len(UNIVERSAL) == 9
    assert len(table) == paper.value("text", quantity="heuristics of moser")
    assert (table["TPR"] + table["FPR"] <= 1).all()
    assert table[["TPR", "FPR", "remaining"]].notna().all(axis=None)


def test_published_rates_and_precisions_agree() -> None:
    """Precision is right over given votes, TPR / (TPR + FPR); printed with three digits."""
    table = published_votes().dropna(subset="precision")
    ours = table["TPR"] / (table["TPR"] + table["FPR"])
    rounding = 0.0005 + 0.0001 / (table["TPR"] + table["FPR"])  # of the precision, and of both rates
    assert ((ours - table["precision"]).abs() <= rounding).all()
    assert len(table) == 19
