"""Rules that hold where they were not written: levels that nearly double, inputs of which little is known, other pools,
reuse, any order where the protocol shuffles; and a reason for every name that is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import chain
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from btcnb.data import (
    SCRIPT_TYPES,
    SimulationConfig,
    Transactions,
    coinjoin_refusals,
    detect_coinjoins,
    simulate,
)
from btcnb.data.coinjoin import Fitted
from btcnb.data.coinjoin.lists import Listed
from btcnb.data.coinjoin.scores import fit

UNKNOWN = SCRIPT_TYPES.index("unknown")


def one(inputs, outputs, types=None, names=None) -> Transactions:
    """A transaction between distinct addresses i0, i1, … and o0, o1, …; `names` gives some of them other names."""
    names = names or {}
    coins = [(names.get(f"i{n}", f"i{n}"), value) for n, value in enumerate(inputs)]
    pays = [(names.get(f"o{n}", f"o{n}"), value) for n, value in enumerate(outputs)]
    return chain(types=types).pay(coins, pays).build()


def hidden(txs: Transactions, which=slice(None), *, whole: bool = False) -> Transactions:
    """The same with the values of some inputs unknown; `whole`: their addresses and script types, too."""
    inputs = txs.inputs.copy()
    for name, value in {"value": -1, **({"address": -1, "script_type": UNKNOWN} if whole else {})}.items():
        column = inputs[name].to_numpy().copy()
        column[which] = value
        inputs[name] = column
    return replace(txs, inputs=inputs)


def said(txs: Transactions) -> str:
    return str(detect_coinjoins(txs, "improved")[0])


def reasons(txs: Transactions) -> set[str]:
    return set(coinjoin_refusals(txs)["reason"])


# Wasabi 1.1: levels that nearly double --------------------------------------------------------------------------

LEVELS = [10_989_962] * 12 + [21_977_160] * 6 + [43_954_320] * 4 + [87_908_640] * 2  # seen in August 2021
CHANGES = [51_408, 302_916, 603_136, 790_040, 892_477, 1_192_444, 2_328_573, 3_085_888, 4_687_974, 9_012_001]
PEERS = [40_000_000 + 10_007 * n for n in range(10)] + [150_000_000, 161_000_000]


def test_levels_that_nearly_double_are_wasabi_1_1_whatever_the_order():
    for outputs in (sorted(LEVELS + CHANGES), LEVELS + CHANGES, CHANGES[:5] + LEVELS[::-1] + CHANGES[5:]):
        assert said(one(PEERS, outputs)) == "wasabi1.1"
        assert said(hidden(one(PEERS, outputs))) == "wasabi1.1"
        assert said(hidden(one(PEERS, outputs), whole=True)) == "wasabi1.1"


def test_levels_may_outnumber_what_peers_could_have_as_change():
    """12 peers leave 12 changes and a fee at most: 24 other outputs are too many unless levels are told apart."""
    many = [10_989_962] * 12 + [21_977_160] * 9 + [43_954_320] * 9 + CHANGES[:6]
    assert said(one([90_000_000 + n for n in range(12)], sorted(many))) == "wasabi1.1"
    strangers = [21_977_160 + 1_009 * n for n in range(18)]
    assert said(one([90_000_000 + n for n in range(12)], sorted([10_989_962] * 12 + strangers + CHANGES[:6]))) == ""


def test_a_single_level_must_be_near_twice_the_base_and_how_near_is_fitted():
    scattered = [CHANGES[3], *[10_000_000] * 9, CHANGES[0], 19_990_000, CHANGES[6], 19_990_000, *CHANGES[7:9]]
    txs = one([30_000_000 + 7 * n for n in range(9)], scattered)  # base 0.05 % above half of the level
    assert said(txs) == "wasabi1.1"
    assert detect_coinjoins(txs, "improved", Fitted(level_gap=0.0004))[0] == "wasabi1.0"
    assert detect_coinjoins(txs, "improved", Fitted(level_gap=0.0006))[0] == "wasabi1.1"


def test_constants_are_fitted_to_the_lists_that_are_given():
    def fitted(*lists: tuple[str, Transactions]) -> Fitted:
        return fit(Listed("archive", "file", (protocol,), mixes) for protocol, mixes in lists)

    rounds = one(PEERS, sorted(LEVELS + CHANGES))
    gap = 2 * 10_989_962 / 21_977_160 - 1
    assert fitted(("wasabi1.1", rounds)) == pytest.approx((10 * gap, 0.8))
    assert fitted(("wasabi2", rounds), ("joinmarket", rounds)) == fitted() == Fitted()
    outputs = sorted([1_000_000] * 6 + [531_441] * 6 + [50_000] * 7 + [777_001], reverse=True)  # 19 of 20 standard
    assert fitted(("wasabi2", one([2_000_000 - n for n in range(20)], outputs))) == pytest.approx((0.0, 0.5))


def test_early_rounds_of_any_amount_have_their_equal_outputs_first():
    inputs = [5_003_000 + 211 * n for n in range(11)] + [34_982_887]
    outputs = [5_005_131] * 12
    assert said(one(inputs, [*outputs, 29_960_000])) == "wasabi1.0"  # nearly all inputs come from an earlier round
    moved = one([1_000_000] * 11 + [82_900], [1_000_000] * 11 + [82_152])  # coins of one size change their wallet
    assert said(moved) == ""
    assert reasons(moved) >= {"changes do not match participants"}


# JoinMarket on a test network -----------------------------------------------------------------------------------

AMOUNT = 40_000
COINS = [2_000_000, 3_500_000, 8_000_000, 1_200_000, 950_000, 5_000_000]


def joinmarket(participants: int, sweep: bool = False, seed: int = 0) -> tuple[list[int], list[int]]:
    """Inputs and outputs of a round of up to six: makers earn 100 satoshi each, the taker (last) pays them."""
    rng = np.random.default_rng(seed)
    coins = COINS[:participants]
    changes = [coin - AMOUNT + 100 for coin in coins[:-1]]
    if sweep:
        coins = [*coins[:-1], AMOUNT + 100 * (participants - 1) + 700]
    else:
        changes.append(coins[-1] - AMOUNT - 100 * (participants - 1) - 700)
    outputs = [AMOUNT] * participants + changes
    while outputs == sorted(outputs) or outputs[:participants] == [AMOUNT] * participants:
        outputs = [outputs[i] for i in rng.permutation(len(outputs))]
    return coins, outputs


@pytest.mark.parametrize("participants", [3, 4, 5, 6])
@pytest.mark.parametrize("sweep", [False, True])
@pytest.mark.parametrize("unknown", [0, 1, 3, 6])
@pytest.mark.parametrize("kind", ["witness_v0_keyhash", "scripthash", "pubkeyhash"])
def test_joinmarket_is_recognised_whatever_is_known_of_its_inputs(participants, sweep, unknown, kind):
    inputs, outputs = joinmarket(participants, sweep)
    types = {f"{side}{n}": kind for side in "io" for n in range(12)}
    txs = one(inputs, outputs, types)
    for whole in (False, True):
        assert said(hidden(txs, slice(0, unknown), whole=whole)) == "joinmarket"
        assert detect_coinjoins(hidden(txs, slice(0, unknown), whole=whole), "published")[0] == "joinmarket"


def test_joinmarket_with_reuse_and_with_one_participant_of_another_type():
    inputs, outputs = joinmarket(5)
    assert said(one([*inputs, 77_000], outputs, names={"i5": "i0"})) == "joinmarket"  # a maker's coins on one address
    assert said(one(inputs, outputs, names={"o2": "i4"})) == "joinmarket"  # the taker is paid where it spent
    assert said(one([sum(inputs[:2]), *inputs[2:]], outputs)) == ""  # four bring coins, five take
    odd = dict.fromkeys(
        ["i2", f"o{outputs.index(AMOUNT)}", f"o{outputs.index(inputs[2] - AMOUNT + 100)}"], "scripthash"
    )
    assert said(one(inputs, outputs, odd)) == "joinmarket"


def test_equal_changes_do_not_hide_a_joinmarket():
    """Makers of a test network often hold coins of one size."""
    coins, change = [5_000_000] * 5, 5_000_000 - AMOUNT + 100
    outputs = [change, AMOUNT, AMOUNT, change, change, AMOUNT, 4_958_900, AMOUNT, change, AMOUNT]
    assert said(one(coins, outputs)) == "joinmarket"


def test_a_batch_of_equal_payments_is_no_joinmarket_for_a_reason():
    """Three customers get the same amount; two large coins pay for all, and sums give it away once they are known."""
    coins, payments = (
        [10_741_256, 7_127_408, 10_741_257, 667_480],
        [7_128_059, 7_152_480, 678_792, 7_152_480, 7_152_480],
    )
    batch = one(coins, payments)
    assert said(batch) == ""
    assert reasons(batch) == {"inputs do not divide among the changes"}
    ordered = one(coins, sorted(payments))
    assert said(hidden(ordered)) == ""
    assert reasons(hidden(ordered)) == {"outputs are sorted, JoinMarket shuffles"}


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 6), st.booleans(), st.permutations(range(12)), st.permutations(range(6)), st.booleans())
def test_joinmarket_and_whirlpool_do_not_depend_on_the_order(participants, sweep, order, coins, unknown):
    inputs, outputs = joinmarket(participants, sweep)
    outputs = [outputs[i] for i in order if i < len(outputs)]
    inputs = [inputs[i] for i in coins if i < len(inputs)]
    assume(outputs not in (sorted(outputs), sorted(outputs, reverse=True)))
    assume(outputs[:participants] != [AMOUNT] * participants)  # the order in which early Wasabi writes
    txs = one(inputs, outputs)
    assert said(hidden(txs) if unknown else txs) == "joinmarket"
    pool = [100_000, 104_000, 100_000, 100_000, 103_500, 100_000]
    mix = one([pool[i] for i in coins], [100_000] * 6)
    assert said(hidden(mix, slice(0, 3)) if unknown else mix) == "whirlpool"


# Whirlpool of other years ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [100_000, 1_000_000, 5_000_000, 50_000_000, 2_500_000, 25_000_000])
@pytest.mark.parametrize("participants", range(5, 11))
def test_every_pool_and_surge_cycle_with_and_without_values(pool, participants):
    txs = one([pool + 5_000] * 2 + [pool] * (participants - 2), [pool] * participants)
    for unknown in (0, 1, participants - 1, participants):
        assert said(hidden(txs, slice(0, unknown))) == "whirlpool"
        assert said(hidden(txs, slice(0, unknown), whole=True)) == "whirlpool"


def test_known_inputs_still_tell_what_is_no_whirlpool():
    pool = 1_000_000
    assert said(hidden(one([pool - 1, *[pool + 5_000] * 4], [pool] * 5), slice(1, 5))) == ""
    assert said(hidden(one([pool + 110_001, *[pool] * 4], [pool] * 5), slice(1, 5))) == ""
    assert said(one([pool] * 5, [pool] * 5)) == ""


# Wasabi 2 of few inputs -----------------------------------------------------------------------------------------


def test_wasabi_2_of_few_inputs_of_unknown_values():
    outputs = [1_594_323, 1_594_323, 1_062_882, 1_062_882, 1_000_000, 531_441, 50_000, 44_100]
    inputs = [3_500_000, 2_000_000, 1_000_000, 500_000, 450_000, 8_192]
    assert said(one(inputs, outputs)) == "wasabi2"
    assert said(hidden(one(inputs, outputs), whole=True)) == "wasabi2"
    assert said(hidden(one(inputs[::-1], outputs), slice(1, 6))) == "wasabi2"  # one known value is in any order
    assert said(one(inputs[::-1], outputs)) == ""
    assert said(one([4_500_000, 3_000_000, 1_000_000], outputs)) == "wasabi2"
    assert said(one([5_500_000, 3_000_000], outputs)) == ""


def test_round_payments_in_descending_order_are_no_wasabi_2_unless_inputs_say_so():
    """A payer who sorts: nine equal round amounts and the rest have ten orders only."""
    txs = one([9_000_000 - 3 * n for n in range(7)], [5_000_000] * 9 + [999_123])
    assert said(txs) == "wasabi2"  # 7! orders of inputs, and theirs is the one
    assert said(hidden(txs)) == ""


def test_a_wallet_may_pay_a_stranger_out_of_a_round():
    outputs = sorted([*[1_594_323] * 5, *[531_441] * 6, *[50_000] * 6, 2_222_222], reverse=True)
    inputs = [3_000_000 - 11 * n for n in range(12)]
    assert said(one(inputs, outputs, {"o0": "pubkeyhash"})) == "wasabi2"
    assert said(one(inputs, outputs, {"i0": "pubkeyhash"})) == ""


# reasons --------------------------------------------------------------------------------------------------------


def test_reasons_name_the_condition_and_the_other_name():
    surge = one([100_000] * 6 + [104_000] * 2, [100_000] * 8)
    told = coinjoin_refusals(surge)
    assert told[["published", "improved"]].drop_duplicates().to_numpy().tolist() == [["joinmarket", "whirlpool"]]
    assert "changes do not match participants" in set(told["reason"])
    mix = one([15_000_000 + n for n in range(6)], [10_000_000] * 6 + CHANGES[-6:])
    assert coinjoin_refusals(mix).empty  # both say Wasabi
    assert coinjoin_refusals(chain().build()).empty


def test_when_a_rule_that_fires_comes_second_that_is_the_reason():
    outputs = sorted([10_000_000] * 8 + [531_441] * 7 + [50_000] * 2, reverse=True)
    txs = one([12_000_000 - 7 * n for n in range(9)], outputs)
    assert detect_coinjoins(txs, "published")[0] == "wasabi1.0"
    assert said(txs) == "wasabi2"
    assert reasons(txs) == {"another rule comes first"}


@pytest.mark.parametrize("seed", [0, 1])
def test_on_a_simulated_chain_ours_recognise_what_is_a_coinjoin_and_say_why_the_rest_is_none(seed):
    txs = simulate(SimulationConfig.preset("tiny", seed=seed))
    assert txs.truth is not None
    joint = txs.truth.coinjoin.astype(str) != ""
    published, improved = (detect_coinjoins(txs, rules) != "" for rules in ("published", "improved"))
    assert improved[joint & published].all()
    assert improved[~joint].sum() * 10 <= published[~joint].sum()
    told = coinjoin_refusals(txs)
    assert set(told.loc[told["improved"] == "", "tx"]) == set(np.flatnonzero(published & ~improved))


def test_unknown_inputs_never_take_a_name_away_on_a_simulated_chain():
    """Wasabi 2 apart, whose inputs' order is evidence: what is hidden cannot speak against a mix."""
    txs = simulate(SimulationConfig.preset("tiny"))
    known, blind = (detect_coinjoins(each, "improved") for each in (txs, hidden(txs, whole=True)))
    mixes = ~np.isin(known, ["", "wasabi2"])
    assert (blind[mixes] != "").all()
