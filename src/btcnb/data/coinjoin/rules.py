"""CoinJoin rules, protocol by protocol: those of the paper's graph-construction pipeline, and ours.

`published`: the detectors of the pipeline, rule by rule as published, the narrowest first (the JoinMarket rule also
fires on most mixes of the others). All ask for distinct output addresses; OP_RETURN outputs, which have no address, are
not counted as outputs.

`improved`: ours. What is added is not finer thresholds but structure that the software cannot avoid: the order in which
outputs are written, the one script type that a protocol's participants share, the number of change outputs that n
participants can have, and that every participant must have brought the amount that it takes out. What is not known of
an input never speaks against a mix. Each rule is a list of conditions with names, so that it can say what it misses.

To add a protocol: its two rules, an entry in `PROTOCOL_RULES`, and its place in both orders of `PRECEDENCE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from btcnb.data.coinjoin.shape import (
    FITTED,
    JOINMARKET_FEE_SHARE,
    JOINMARKET_LEAST_CHANGE,
    NULLDATA,
    P2PKH,
    P2SH,
    P2WPKH,
    UNKNOWN_TYPE,
    WASABI1_DENOMINATION,
    WASABI1_INPUTS_PER_PEER,
    WASABI2_LEAST,
    WHIRLPOOL_POOL_FEES,
    BoolArray,
    Fitted,
    Rows,
    Shape,
)
from btcnb.data.transactions import IntArray, Transactions
from btcnb.gates import choice

Conditions = dict[str, BoolArray]
"""What a rule misses where it does not fire, in a few words -> who meets it, one bool per transaction."""

ORDER_BITS = 10.0
"""Amounts are sorted on purpose, not by accident, where a shuffle would sort them less than once in 2^10 times."""

# --- JoinMarket: a taker pays makers for mixing one amount of the taker's choice ---

JOINMARKET_LEAST_PARTICIPANTS = 3
"""A taker and two makers; the software's default is more."""
JOINMARKET_TYPES = (P2PKH, P2SH, P2WPKH)
"""One script type at a time is in use among makers: P2PKH, then P2SH-wrapped, since 2020 native SegWit."""


def published_joinmarket(s: Shape) -> BoolArray:
    """At least three equal outputs, which make up half of the outputs."""
    return s.outputs_distinct & (s.k >= 3) & (2 * s.k >= s.outputs) & (s.k <= s.input_addresses)


def improved_joinmarket(s: Shape, fitted: Fitted) -> Conditions:
    """n equal outputs, n or n − 1 changes, in no order; one script type, no address twice; everybody can pay."""
    # All but one participant spend from and are paid to one type; that one's inputs and two outputs may differ.
    one_type = (s.main_inputs >= s.k - 1) & (s.main_outputs >= s.outputs - 2) & np.isin(s.main_type, JOINMARKET_TYPES)
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than three participants": (s.k >= JOINMARKET_LEAST_PARTICIPANTS) & (s.inputs >= s.k),
        "changes do not match participants": one_change_each(s),
        "fewer input addresses than participants": s.input_addresses >= s.k,
        "an OP_RETURN output": s.nulldata == 0,
        "amount below the dust threshold": s.value >= JOINMARKET_LEAST_CHANGE,
        # Makers refuse dust as change; the taker's is dropped only below a tenth of that.
        "makers' change below the dust threshold": s.small_others <= 1,
        # Fresh addresses, but for the one that the taker names.
        "pays addresses that it spends from": s.shared <= 1,
        "participants of several script types": one_type & (s.input_types <= 2),
        "not everybody can pay the amount": everybody_can_pay(s),
        "inputs do not divide among the changes": s.placed,
        "outputs are sorted, JoinMarket shuffles": ~(s.outputs_ascend | s.outputs_descend),
    }


def one_change_each(s: Shape) -> BoolArray:
    """n equal outputs and a change for every maker; the taker has one unless it empties its coins."""
    return (s.outputs == 2 * s.k) | (s.outputs == 2 * s.k - 1)


def everybody_can_pay(s: Shape) -> BoolArray:
    """n groups of inputs, each worth the amount, need sum of min(input, amount) >= n × amount."""
    return s.coverage >= (1 - JOINMARKET_FEE_SHARE) * s.k * s.value


# --- Wasabi 1: many peers take equal amounts near 0.1 BTC; version 1.1 adds levels that double the amount ---
#
# How a round is written (WalletWasabi, `CoordinatorRound`): equal outputs of the base denomination, which is the least
# that any peer has left; then, in 1.1, levels at 2, 4, … times the denomination that was announced, each of two peers
# at least; one change per peer, unless it is too small; the coordinator's fee. Versions up to the middle of 2019 leave
# the outputs in that order, later ones sort them by amount, smallest first. Native SegWit only.

WASABI1_LEAST_PEERS = 5
WASABI1_PUBLISHED_DRIFT = 0.1
"""Relative distance of the denomination from 0.1 BTC that the published rules allow."""
WASABI1_DRIFT = 0.2
"""Relative distance of the denomination from 0.1 BTC that the Dumplings project allows (0.1 ± 0.02 BTC)."""
WASABI1_MANY_PEERS = 20
"""From so many equal outputs on, no JoinMarket taker would have found enough makers."""
WASABI1_LEAST_OTHERS = 2
"""A change and the coordinator's fee: with one output beside the equal ones, their order says nothing."""


def published_wasabi10(s: Shape) -> BoolArray:
    """At least five equal outputs near 0.1 BTC, which make up half of the outputs or all but the coordinator's."""
    return _published_peers(s) & (2 * s.k >= s.outputs - 1)


def published_wasabi11(s: Shape) -> BoolArray:
    """As 1.0, with outputs near the doubled denominations instead of the half rule."""
    return _published_peers(s) & (s.levels >= s.outputs - s.k - 1)


def improved_wasabi10(s: Shape, fitted: Fitted) -> Conditions:
    """Equal outputs written first, whatever they are worth; or near 0.1 BTC, and then no JoinMarket."""
    # Where nearly all inputs are worth about what is taken out, and none exactly, they come from earlier rounds.
    remix = s.mirrored >= s.k - 1
    first = s.leading & ((s.outputs - s.k >= WASABI1_LEAST_OTHERS) | remix)
    # JoinMarket shuffles, and has exactly one change for all or all but one: what differs from that is told apart.
    no_joinmarket = ~one_change_each(s) | (s.k >= WASABI1_MANY_PEERS)
    return _improved_peers(s, s.outputs - s.k) | {
        "neither equal outputs first nor 0.1 BTC": first | _near_tenth(s, WASABI1_DRIFT),
        "written in JoinMarket's shape": first | no_joinmarket,
    }


def improved_wasabi11(s: Shape, fitted: Fitted) -> Conditions:
    """As 1.0, but with levels of doubled denominations, or sorted by amount."""
    # A single level may be an accident unless it is close to twice the base; two that double exactly are none.
    levels = (s.chain >= 2) | ((s.chain == 1) & (s.level_gap <= fitted.level_gap))
    sorted_ = s.outputs_ascend & (s.output_order >= ORDER_BITS)
    others = s.outputs - s.k - np.where(levels, s.doubled, 0)
    return _improved_peers(s, others) | {"neither levels nor sorted outputs": levels | sorted_}


def _near_tenth(s: Shape, drift: float) -> BoolArray:
    return np.abs(s.value_near_tenth - WASABI1_DENOMINATION) <= drift * WASABI1_DENOMINATION


def _published_peers(s: Shape) -> BoolArray:
    inputs = (s.k <= s.input_addresses) & (s.inputs <= WASABI1_INPUTS_PER_PEER * s.k)
    return s.outputs_distinct & (s.k >= WASABI1_LEAST_PEERS) & inputs & _near_tenth(s, WASABI1_PUBLISHED_DRIFT)


def _improved_peers(s: Shape, others: IntArray) -> Conditions:
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than five peers": s.k >= WASABI1_LEAST_PEERS,
        "fewer input addresses than peers": s.k <= s.input_addresses,
        "more than seven inputs a peer": s.inputs <= WASABI1_INPUTS_PER_PEER * s.k,
        "not native SegWit only": s.segwit_keys & (s.nulldata == 0),
        "more changes than peers": others <= s.k + 1,
        "not everybody can pay the amount": everybody_can_pay(s),
    }


# --- Wasabi 2 (WabiSabi): wallets split what they bring into standard denominations ---

WASABI2_LEAST_INPUTS = 3
"""The largest coordinator asked for 50 and more, its successors for 20, test networks for a handful."""
WASABI2_ODD_BITS = 10.0
"""Evidence, in bits, of an amount like 2 · 3^12 satoshi, which nobody pays by accident."""
WASABI2_HABIT_BITS = 7.0
"""Most that sorted inputs can say: many a wallet spends its largest coins first."""


def published_wasabi2(s: Shape) -> BoolArray:
    """At least 50 inputs, and enough outputs with standard denominations."""
    enough = (2 * s.standard >= s.outputs - 1) & (10 * s.standard >= s.inputs)
    known = (s.unknown_inputs == 0) & (s.least_input >= WASABI2_LEAST)
    return s.outputs_distinct & (s.inputs >= 50) & known & enough


def improved_wasabi2(s: Shape, fitted: Fitted) -> Conditions:
    """Both sides sorted from large to small, and no accident; P2WPKH or Taproot; most outputs standard."""
    known = s.unknown_inputs < s.inputs
    bits = np.minimum(s.input_order, WASABI2_HABIT_BITS) + s.output_order + WASABI2_ODD_BITS * s.odd_values
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than three inputs": s.inputs >= WASABI2_LEAST_INPUTS,
        "one sender": 2 * s.input_addresses >= s.inputs,
        "an OP_RETURN output": s.nulldata == 0,
        # Some coordinators let a wallet pay a stranger, of any type, out of the round.
        "not P2WPKH or Taproot": s.input_keys & (s.key_outputs >= fitted.standard_share * s.outputs),
        "an input below 5,000 satoshi": ~known | (s.least_input >= WASABI2_LEAST),
        "not sorted from large to small": s.inputs_descend & s.outputs_descend,
        "sorted perhaps by accident": bits >= ORDER_BITS,
        "too few standard denominations": s.standard >= fitted.standard_share * s.outputs,
    }


# --- Whirlpool: a Tx0 cuts one user's coins to a pool's size, mixes shuffle equal coins among five users or more ---

WHIRLPOOL_LATER_POOL_FEES = {2_500_000: 125_000, 25_000_000: 1_250_000}
"""Pools of a later operator (2025), 0.025 and 0.25 BTC; their fee is taken as 5 %, as in the two smallest pools."""
POOL_FEES = WHIRLPOOL_POOL_FEES | WHIRLPOOL_LATER_POOL_FEES
WHIRLPOOL_SURPLUS = 110_000
"""Satoshi that a premix brings for the miner at most, as the Dumplings project has it (0.0011 BTC)."""
WHIRLPOOL_PARTICIPANTS = (5, 10)
"""Surge cycles, from May 2023, let more than five participants into a mix."""


def published_whirlpool(s: Shape) -> BoolArray:
    """Five in, five out, one pool value; inputs are worth the pool value (remix) or up to 20,000 more (premix)."""
    five = (s.inputs == 5) & (s.outputs == 5) & (s.input_addresses == 5) & (s.k == 5)
    paid = (s.least_input == s.value) & (s.largest_input > s.value) & (s.largest_input <= s.value + 20_000)
    pool = np.isin(s.value, list(WHIRLPOOL_POOL_FEES))
    return s.outputs_distinct & five & pool & paid & (s.unknown_inputs == 0)


def improved_whirlpool(s: Shape, fitted: Fitted) -> Conditions:
    """n in, n out (5 to 10), all worth one pool value; at least one remix, at least one premix that pays the miner."""
    low, high = WHIRLPOOL_PARTICIPANTS
    n = s.inputs
    return {
        "an address is paid twice": s.outputs_distinct,
        "not 5 to 10 inputs and as many outputs": (n >= low) & (n <= high) & (s.outputs == n) & (s.nulldata == 0),
        "outputs are not one pool's": (s.k == s.outputs) & np.isin(s.value, list(POOL_FEES)),
        "an input address twice": s.input_addresses == n,
        # Outputs may be of any type: some users mix straight into a multisig wallet.
        "inputs not native SegWit": np.isin(s.input_type, (P2WPKH, UNKNOWN_TYPE)),
        "inputs are not one pool's": (s.below_value == 0) & (s.largest_input <= s.value + WHIRLPOOL_SURPLUS),
        "no remix or no premix": (s.at_value + s.unknown_inputs >= 1) & (s.at_value < n),
    }


class Tx0Limits(NamedTuple):
    """What a rule asks of a Tx0. Columns with one row per pool, then what holds for all pools."""

    pool: IntArray  # satoshi
    surplus: IntArray  # most that a premix output is worth beyond the pool's value
    fee_low: npt.NDArray[np.float64]
    fee_high: npt.NDArray[np.float64]
    most_premix: int
    premix_type: int  # script type of premix outputs, -1 for any
    change_in_band: bool  # whether another output may be worth as much as premix: change nearly can


def _tx0_limits(fees: dict[int, int], fee_factors: tuple[float, float], surplus: int, **limits: Any) -> Tx0Limits:
    """Pools with their fees, and the factors between which a paid fee may lie; the rest as the fields."""
    pool = np.array(sorted(fees, reverse=True), dtype=np.int64)
    low, high = np.outer(fee_factors, [fees[int(value)] for value in pool])
    return Tx0Limits(pool, np.minimum(surplus, pool), low, high, **limits)


PUBLISHED_TX0 = _tx0_limits(
    WHIRLPOOL_POOL_FEES, (0.5, 3.0), 11_000, most_premix=75, premix_type=-1, change_in_band=False
)
# Partner rates and rebates lower the pool fee; the fees of the first years were 1.43 times today's. The client of 2020
# capped premix outputs at 600, later ones at 70.
IMPROVED_TX0 = _tx0_limits(
    POOL_FEES, (0.5, 1.5), WHIRLPOOL_SURPLUS, most_premix=600, premix_type=P2WPKH, change_in_band=True
)


def published_tx0(s: Shape) -> BoolArray:
    """Premix outputs of one value, at most two more outputs, one of them near the pool's fee."""
    return s.outputs_distinct & _enters_a_pool(s.rows, PUBLISHED_TX0)


def improved_tx0(s: Shape, fitted: Fitted) -> Conditions:
    """One OP_RETURN, equal premix outputs, the pool fee, at most one change; outputs in ascending order (BIP 69)."""
    return {
        "an address is paid twice": s.outputs_distinct,
        "not exactly one OP_RETURN output": s.nulldata == 1,
        "outputs not in ascending order": s.outputs_ascend,
        "not premix, pool fee and at most one change": _enters_a_pool(s.rows, IMPROVED_TX0),
    }


@njit(cache=True)
def _enters_a_pool(rows: Rows, limits: Tx0Limits) -> BoolArray:
    """Per transaction, whether for some pool its outputs are premix, a fee, and little else.

    Premix: the outputs worth pool value + 1 .. + surplus; they all have one value, there are not too many of them, and
    at most two other outputs that can be spent, of which one is worth about the pool's fee.
    """
    start, value, kind = rows.out_start, rows.out_value, rows.out_type
    found = np.zeros(len(start) - 1, dtype=np.bool_)
    for t in range(len(found)):
        for p in range(len(limits.pool)):
            low, high = limits.pool[p] + 1, limits.pool[p] + limits.surplus[p]
            tried = 0
            for candidate in range(start[t], start[t + 1]):
                if not low <= value[candidate] <= high or found[t]:
                    continue
                tried += 1
                if tried > 3:  # at most two outputs are not premix: one of the first three in the band must be
                    break
                premix, others, fee_paid, fits = 0, 0, False, True
                for i in range(start[t], start[t + 1]):
                    if kind[i] == NULLDATA:
                        continue
                    if value[i] == value[candidate]:
                        premix += 1
                        fits &= limits.premix_type < 0 or kind[i] == limits.premix_type
                    else:
                        others += 1
                        fits &= limits.change_in_band or not low <= value[i] <= high
                        fee_paid |= limits.fee_low[p] <= value[i] <= limits.fee_high[p]
                found[t] = fits and fee_paid and premix <= limits.most_premix and others <= 2
    return found


# --- all protocols ---


class ProtocolRules(NamedTuple):
    """Both rules of a protocol; the improved one fires where all its conditions are met."""

    published: Callable[[Shape], BoolArray]
    improved: Callable[[Shape, Fitted], Conditions]


PROTOCOL_RULES = {
    "joinmarket": ProtocolRules(published_joinmarket, improved_joinmarket),
    "wasabi1.0": ProtocolRules(published_wasabi10, improved_wasabi10),
    "wasabi1.1": ProtocolRules(published_wasabi11, improved_wasabi11),
    "wasabi2": ProtocolRules(published_wasabi2, improved_wasabi2),
    "whirlpool": ProtocolRules(published_whirlpool, improved_whirlpool),
    "whirlpool-tx0": ProtocolRules(published_tx0, improved_tx0),
}
PROTOCOLS = tuple(PROTOCOL_RULES)
"""The names that `detect_coinjoins` gives. A Tx0 prepares one user's coins for a mix; the others join several users."""
PRECEDENCE = {
    "published": ("whirlpool", "whirlpool-tx0", "wasabi2", "wasabi1.0", "wasabi1.1", "joinmarket"),
    # What satisfies the published rule 1.0 also satisfies 1.1, whose levels count the base denomination too.
    "improved": ("whirlpool", "whirlpool-tx0", "wasabi2", "wasabi1.1", "wasabi1.0", "joinmarket"),
}
"""Of the rules that fire, the first in its rule set's order names the transaction."""
RULE_SETS = tuple(PRECEDENCE)


def detect_coinjoins(txs: Transactions, rules: str = "improved", fitted: Fitted = FITTED) -> npt.NDArray[Any]:
    """One name out of `PROTOCOLS` per transaction, "" for none (object array of str).

    rules:  `published` for the rules of the paper's pipeline, `improved` for ours
    fitted: what the improved rules learnt from real mixes; another one shows what they owe to a file (see `fit`)
    """
    return _names(coinjoin_rules(txs, rules, fitted))


def coinjoin_rules(txs: Transactions, rules: str = "improved", fitted: Fitted = FITTED) -> pd.DataFrame:
    """Which rules fire, before precedence: one row per transaction, one bool column per rule in order of evaluation."""
    return _fires(Shape.of(txs), choice("rules", rules, RULE_SETS), fitted)


def coinjoin_refusals(txs: Transactions) -> pd.DataFrame:
    """Why the improved rules do not give the name that the published ones give.

    One row per such transaction and reason: `tx` (its id), `published` (the name it is refused), `improved` (the name
    it gets instead, "" for none), `reason` (a condition of the improved rule of the refused name that it does not meet,
    or that another rule comes first). Every such transaction has at least one.
    """
    shape = Shape.of(txs)
    published, improved = (_names(_fires(shape, rules, FITTED)) for rules in RULE_SETS)
    rows = []
    for name, protocol in PROTOCOL_RULES.items():
        refused = np.flatnonzero((published == name) & (improved != name))
        unmet = {why: ~met[refused] for why, met in protocol.improved(shape, FITTED).items()}
        unmet["another rule comes first"] = ~np.logical_or.reduce(list(unmet.values()))
        for why, here in unmet.items():
            rows += [(int(tx), name, str(improved[tx]), why) for tx in refused[here]]
    return pd.DataFrame(sorted(rows), columns=["tx", "published", "improved", "reason"])


def _fires(shape: Shape, rules: str, fitted: Fitted) -> pd.DataFrame:
    """One column per rule, those first that name first."""
    found = {}
    for name in PRECEDENCE[rules]:
        protocol = PROTOCOL_RULES[name]
        met = [protocol.published(shape)] if rules == "published" else [*protocol.improved(shape, fitted).values()]
        found[name] = np.logical_and.reduce(met)
    return pd.DataFrame(found)


def _names(fires: pd.DataFrame) -> npt.NDArray[Any]:
    names = np.full(len(fires), "", dtype=object)
    for name in reversed(fires.columns):  # earlier rules overwrite later ones
        names[fires[name].to_numpy()] = name
    return names
