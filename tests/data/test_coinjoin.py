"""CoinJoin detectors: a typical mix of every protocol, and its near misses."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from builders import BTC, chain

from btcnb.data import PROTOCOLS, CoinJoinRates, Transactions, coinjoin_rules, detect_coinjoins
from btcnb.data.coinjoin.rules import PRECEDENCE
from btcnb.data.coinjoin.shape import wasabi2_denominations
from btcnb.errors import ParameterError


def one(inputs: list[int], outputs: list[int | None], types=None, names=None) -> Transactions:
    """A single transaction between distinct addresses i0, i1, … and o0, o1, …; an output None is an OP_RETURN."""
    names = names or {}
    coins = [(names.get(f"i{n}", f"i{n}"), value) for n, value in enumerate(inputs)]
    pays = [(None, 0) if value is None else (names.get(f"o{n}", f"o{n}"), value) for n, value in enumerate(outputs)]
    return chain(types=types).pay(coins, pays).build()


def names(txs: Transactions) -> tuple[str, str]:
    """What (published, improved) rules call the first transaction."""
    return detect_coinjoins(txs, "published")[0], detect_coinjoins(txs, "improved")[0]


def test_an_ordinary_payment_and_a_coinbase_have_no_name():
    txs = chain().coinbase("pool").pay("pool", {"a": BTC, "pool2": 49 * BTC}).build()
    for rules in ("published", "improved"):
        found = detect_coinjoins(txs, rules)
        assert found.tolist() == ["", ""]
        assert found.dtype == object
    assert len(detect_coinjoins(chain().build())) == 0


def test_rule_sets_know_the_same_protocols_and_nothing_else():
    txs = chain().build()
    for rules in ("published", "improved"):
        assert set(coinjoin_rules(txs, rules).columns) == set(PROTOCOLS)
    with pytest.raises(ParameterError, match="rules is 'better', but must be one of 'published', 'improved'"):
        detect_coinjoins(txs, "better")


def test_each_protocol_has_a_turn_in_both_rule_sets_and_a_rate():
    for rules, order in PRECEDENCE.items():
        assert sorted(order) == sorted(PROTOCOLS)
        assert tuple(coinjoin_rules(chain().build(), rules).columns) == order
    rates = [name.replace(".", "").replace("-", "_") for name in PROTOCOLS]
    assert sorted(rates) == sorted(field.name for field in fields(CoinJoinRates))


# JoinMarket -----------------------------------------------------------------------------------------------------

AMOUNT = 35_281_835
CHANGE = [9_894_772, 1_204_411, 63_000_128, 77_301, 20_000_111]
MAKERS = [AMOUNT + change for change in CHANGE]
WRAPPED = {f"{side}{n}": "scripthash" for side in "io" for n in range(10)}


def shuffled(values: list[int]) -> list[int]:
    """An order with the equal outputs scattered."""
    equal = [value for value in values if value == AMOUNT]
    other = [value for value in values if value != AMOUNT]
    order = [value for pair in zip(other, equal, strict=False) for value in pair]
    return order + equal[len(other) :] + other[len(equal) :]


def test_joinmarket_with_and_without_the_takers_change():
    assert names(one(MAKERS, shuffled([AMOUNT] * 5 + CHANGE))) == ("joinmarket", "joinmarket")
    assert names(one([*MAKERS[:4], AMOUNT + 3_000], shuffled([AMOUNT] * 5 + CHANGE[:4]))) == ("joinmarket",) * 2


@pytest.mark.parametrize(
    ("why", "transaction"),
    [
        ("change missing: a batch payment", lambda: one(MAKERS, [CHANGE[0]] + [AMOUNT] * 5)),
        ("an OP_RETURN", lambda: one(MAKERS, [*shuffled([AMOUNT] * 5 + CHANGE), None])),
        ("dust", lambda: one([10_000 + c for c in CHANGE], [10_000, *CHANGE[:4]] + [10_000] * 4)),
        ("two makers who leave dust", lambda: one(MAKERS, shuffled([AMOUNT] * 5 + [*CHANGE[:3], 27_299, 9_000]))),
        (
            "one who brings less than it takes",
            lambda: one([AMOUNT * 9] + [c + 1 for c in CHANGE[:4]], shuffled([AMOUNT] * 5 + CHANGE)),
        ),
        (
            "one who brings more than it can take, with change",
            lambda: one([AMOUNT + sum(CHANGE), *[AMOUNT] * 4], shuffled([AMOUNT] * 5 + CHANGE)),
        ),
        (
            "two participants of another type",
            lambda: one(MAKERS, shuffled([AMOUNT] * 5 + CHANGE), dict.fromkeys(["i2", "i3"], "witness_v1_taproot")),
        ),
        ("sorted as no JoinMarket is", lambda: one(MAKERS, sorted([AMOUNT] * 5 + CHANGE), WRAPPED)),
        (
            "three outputs of another type",
            lambda: one(MAKERS, shuffled([AMOUNT] * 5 + CHANGE), dict.fromkeys(["o1", "o2", "o3"], "scripthash")),
        ),
        (
            "two addresses on both sides",
            lambda: one(MAKERS, shuffled([AMOUNT] * 5 + CHANGE), names={"o0": "i0", "o3": "i1"}),
        ),
    ],
)
def test_what_only_looks_like_joinmarket(why, transaction):
    published, improved = names(transaction())
    assert improved == "", why
    assert published == "joinmarket", why  # the published rule takes it for one


def test_published_joinmarket_bounds():
    assert names(one([10, 11, 12], [5, 5, 5, 1, 2, 3]))[0] == "joinmarket"
    assert names(one([10, 11, 12], [5, 5, 5, 1, 2, 3, 4]))[0] == ""  # k < outputs / 2
    assert names(one([15, 16], [5, 5, 5]))[0] == ""  # k > distinct input addresses
    assert names(one([10, 11, 12], [5, 5, 5], names={"i2": "i0"}))[0] == ""
    assert names(one([10, 11, 12], [5, 5, 5, 1], names={"o3": "o0"}))[0] == ""  # an output address twice


def test_the_takers_two_outputs_may_go_to_another_kind_of_wallet():
    types = {"o1": "scripthash", "o2": "witness_v0_scripthash"}
    assert names(one(MAKERS, shuffled([AMOUNT] * 5 + CHANGE), types))[1] == "joinmarket"


# Wasabi 1 -------------------------------------------------------------------------------------------------------

BASE = 10_002_606
PEERS = [BASE + 4_000_000 + 10_007 * n for n in range(12)]
LEFT = [3_900_000 + 9_001 * n * (-1) ** n for n in range(9)]  # neither ascending nor descending


def test_wasabi_1_0():
    assert names(one(PEERS, [BASE] * 12 + LEFT + [480_000])) == ("wasabi1.0", "wasabi1.0")
    assert names(one([BASE] * 12, [BASE - 1_000] * 12)) == ("wasabi1.0",) * 2


def test_wasabi_1_drift_of_the_denomination():
    for base, expected in ((9_000_000, True), (11_000_000, True), (8_999_999, False), (11_000_001, False)):
        txs = one([base + 5_000_000 + n for n in range(12)], [base] * 12 + LEFT)
        assert (names(txs)[0] == "wasabi1.0") is expected
    for base, expected in ((8_000_000, True), (12_000_000, True), (7_999_999, False), (12_000_001, False)):
        txs = one([base + 5_000_000 + n for n in range(12)], LEFT[:1] + [base] * 12 + LEFT[1:])
        assert (names(txs)[1] == "wasabi1.0") is expected
        assert names(one([base + 5_000_000 + n for n in range(12)], [base] * 12 + LEFT))[1] == "wasabi1.0"  # in order


def test_wasabi_1_and_joinmarket_of_the_same_amount_differ_in_their_order():
    outputs = [BASE] * 6 + LEFT[:6]
    inputs = [BASE + left for left in LEFT[:6]]
    assert names(one(inputs, outputs)) == ("wasabi1.0", "wasabi1.0")
    scattered = [value for pair in zip(outputs[6:], outputs[:6], strict=True) for value in pair]
    assert names(one(inputs, scattered)) == ("wasabi1.0", "joinmarket")


def test_wasabi_1_bounds():
    assert names(one(PEERS, [BASE] * 12 + LEFT, {"i0": "scripthash"}))[1] == ""  # native SegWit only
    assert names(one([20_000_000] * 4, [BASE] * 4 + [5_000_000] * 2))[0] != "wasabi1.0"  # k >= 5
    many = [BASE * 5 // 35 + n for n in range(36)]
    assert names(one(many, [BASE] * 5))[0] == "joinmarket"  # 36 inputs > 7 × 5
    assert names(one(many[:35], [BASE - 5_000] * 5))[0] == "wasabi1.0"
    strangers = [15_000_000 + 3 * n for n in range(14)]
    assert names(one([60_000_000] * 12, [BASE] * 12 + strangers)) == ("", "")  # more change than peers


def test_before_its_release_wasabi_tried_other_denominations():
    equal, changes = [5_003_834] * 10, [980_000 - 7 * n * (-1) ** n for n in range(5)]
    inputs = [6_000_000 + 11 * n for n in range(10)]
    assert names(one(inputs, equal + changes)) == ("joinmarket", "wasabi1.0")  # by their order
    assert names(one(inputs, changes[:2] + equal + changes[2:])) == ("joinmarket", "")


def test_wasabi_1_1_has_exactly_doubled_levels():
    outputs = sorted([BASE] * 12 + [2 * BASE] * 6 + [4 * BASE] * 3 + LEFT + [480_000])
    inputs = sorted(2 * BASE + 9_000_000 + 10_007 * n for n in range(14))
    assert names(one(inputs, outputs)) == ("wasabi1.1", "wasabi1.1")
    once = [BASE] * 12 + [2 * BASE] + LEFT + [480_000]  # a level that one peer uses alone is just change
    assert names(one([peer + BASE for peer in PEERS], once))[1] == "wasabi1.0"


# Wasabi 2 -------------------------------------------------------------------------------------------------------

STANDARD = [4_782_969, 1_000_000, 531_441, 354_294, 131_072, 50_000, 20_000, 8_192]


def wasabi2_round(size: int) -> tuple[list[int], list[int]]:
    outputs = sorted([*(STANDARD * size)[:size], 777_001, 12_345], reverse=True)
    share = 2 * sum(outputs) // size**2
    inputs = [5_000 + share * (n + 1) for n in reversed(range(size))]
    return inputs, outputs


def test_wasabi_2_large_and_small_rounds():
    assert names(one(*wasabi2_round(60))) == ("wasabi2", "wasabi2")
    assert names(one(*wasabi2_round(24))) == ("", "wasabi2")
    assert names(one(*wasabi2_round(60), {f"o{n}": "witness_v1_taproot" for n in range(30)}))[1] == "wasabi2"


def test_what_only_looks_like_wasabi_2():
    inputs, outputs = wasabi2_round(60)
    assert names(one(inputs, outputs[::-1])) == ("wasabi2", "")  # not sorted from large to small
    assert names(one(inputs[::-1], outputs)) == ("wasabi2", "")
    assert names(one(inputs, outputs, {f"o{n}": "scripthash" for n in range(40)})) == ("wasabi2", "")
    assert names(one(inputs, outputs, {"i3": "scripthash"})) == ("wasabi2", "")
    assert names(one(inputs, outputs, names={f"i{n}": "i0" for n in range(40)})) == ("wasabi2", "")  # one sender
    assert names(one(inputs, [50_000] * 60)) == ("wasabi2", "")  # one denomination: a batch payment
    assert names(one(inputs, outputs, names={"o1": "o0"})) == ("", "")
    assert names(one([*inputs[:-1], 4_999], outputs)) == ("", "")


def test_published_wasabi_2_counts():
    inputs = [1_000_000 + n for n in range(50)]
    standard = STANDARD[:5]
    assert names(one(inputs, [*standard, *range(7_000, 7_006)]))[0] == "wasabi2"  # 5 of 11: at least (11 - 1) / 2
    assert names(one(inputs, [*standard, *range(7_000, 7_007)]))[0] == ""
    assert names(one(inputs, standard[:4]))[0] == ""  # fewer than inputs / 10
    assert names(one(inputs[:49], standard))[0] == ""


def test_denominations_are_the_six_series():
    values = wasabi2_denominations()
    assert len(values) == 79
    assert values[0] == 5_000
    assert values[-1] == 2**37
    assert {6_561, 8_192, 10_000, 13_122, 20_000, 50_000} <= set(values.tolist())
    assert (np.diff(values) > 0).all()


# Whirlpool ------------------------------------------------------------------------------------------------------

POOL = 5_000_000


def mix(participants: int, premix: int = 2, surplus: int = 5_000) -> tuple[list[int], list[int]]:
    return [POOL + surplus] * premix + [POOL] * (participants - premix), [POOL] * participants


def test_whirlpool_with_five_participants_and_in_surge_cycles():
    assert names(one(*mix(5))) == ("whirlpool", "whirlpool")
    for participants in range(6, 11):
        assert names(one(*mix(participants))) == ("joinmarket", "whirlpool")
    assert names(one(*mix(11)))[1] == ""
    assert names(one(*mix(4)))[1] == ""


def test_whirlpool_needs_premix_and_remix_of_a_pool():
    assert "whirlpool" not in names(one(*mix(5, premix=5)))
    inputs, outputs = mix(5, surplus=20_001)
    assert names(one(inputs, outputs)) == ("joinmarket", "whirlpool")
    assert names(one(*mix(5, surplus=110_001)))[1] == ""
    odd = POOL + 1
    assert "whirlpool" not in names(one([odd + 5_000] + [odd] * 4, [odd] * 5))
    assert names(one(inputs, outputs, names={"i1": "i0"}))[1] == ""
    assert names(one(*mix(5), {"i4": "pubkeyhash"}))[1] == ""


def test_a_participant_may_mix_into_a_multisig_wallet():
    assert names(one(*mix(8), {"o3": "witness_v0_scripthash"}))[1] == "whirlpool"


def tx0(premix: int = 3, value: int = POOL + 6_352, fee: int = 175_000, change: int | None = 958_381):
    rest = [fee] + ([change] if change else [])
    spendable = sorted([value] * premix + rest)
    return [sum(spendable) + 900], [None, *spendable]


def test_whirlpool_tx0():
    assert names(one(*tx0())) == ("whirlpool-tx0", "whirlpool-tx0")
    assert names(one(*tx0(premix=1, change=None))) == ("whirlpool-tx0",) * 2
    assert names(one(*tx0(fee=122_500))) == ("whirlpool-tx0",) * 2  # 30 % rebate
    assert names(one(*tx0(premix=76)))[0] == ""
    assert names(one(*tx0(premix=76)))[1] == "whirlpool-tx0"


def test_whirlpool_tx0_whose_change_nearly_makes_one_more_premix():
    assert names(one(*tx0(premix=4, change=POOL + 1_959))) == ("", "whirlpool-tx0")
    assert names(one(*tx0(premix=4, change=POOL + 9_690))) == ("", "whirlpool-tx0")


def test_what_only_looks_like_a_tx0():
    inputs, outputs = tx0()
    assert names(one(inputs, outputs[1:])) == ("whirlpool-tx0", "")  # no OP_RETURN
    assert names(one(inputs, [*outputs[1:], None]))[1] == ""  # outputs not in order
    assert names(one(*tx0(fee=300_000))) == ("whirlpool-tx0", "")  # fee out of range for ours, not for theirs
    assert names(one(*tx0(fee=80_000))) == ("", "")
    assert names(one([20_000_000], [None, 1_000_000, 1_100_000, 175_000, POOL + 300])) == ("", "")  # three others
    assert names(one(*tx0(), {"o2": "witness_v1_taproot", "o3": "witness_v1_taproot"}))[1] == ""
