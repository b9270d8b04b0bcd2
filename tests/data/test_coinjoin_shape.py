"""Shapes of transactions against brute-force measurements, and what must hold of every honest mix."""

from __future__ import annotations

from collections import Counter
from math import factorial, inf, log2, prod

import pytest
from builders import chain
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from btcnb.data import Transactions
from btcnb.data.coinjoin.shape import MEASURED, NULLDATA, P2TR, P2WPKH, UNKNOWN_TYPE, Shape, wasabi2_denominations

VALUES = st.sampled_from([0, 7, 8_192, 50_000, 10_000_000, 20_000_000, 10_500_000, 21_000_000, 40_000_000])
KINDS = st.sampled_from([P2WPKH, P2TR, UNKNOWN_TYPE, 1])
INPUTS = st.tuples(st.integers(-1, 6), st.one_of(VALUES, st.just(-1)), KINDS)
OUTPUTS = st.tuples(st.integers(-1, 6), VALUES, st.one_of(KINDS, st.just(NULLDATA)))


def transaction(inputs, outputs) -> Transactions:
    """One transaction with rows of (address, value, script type)."""
    txs = chain().pay([(f"a{n}", 10) for n in range(7)], {"b": 1}).build()
    sides = []
    for rows, blank in ((inputs, txs.inputs), (outputs, txs.outputs)):
        columns = {"address": [a for a, _, _ in rows], "value": [v for _, v, _ in rows]}
        kinds = {"script_type": [kind for *_, kind in rows], "index": range(len(rows))}
        sides.append(blank.iloc[[0] * len(rows)].assign(**columns, **kinds))
    sides[0] = sides[0].assign(spent_output=-1)
    return Transactions.checked(txs.transactions, *sides, txs.addresses)


@settings(max_examples=120, deadline=None)
@given(st.lists(INPUTS, max_size=7), st.lists(OUTPUTS, max_size=10))
def test_shape_equals_a_brute_force_count(inputs, outputs):
    shape = Shape.of(transaction(inputs, outputs))
    measured = {name: float(getattr(shape, name)[0]) for name in MEASURED}
    expected = {**of_inputs(inputs), **of_outputs(outputs), **of_types(inputs, outputs), **of_both(inputs, outputs)}
    assert measured == pytest.approx({name: float(value) for name, value in expected.items()}, abs=1e-9)


def orders(values) -> float:
    """log2 of how many different rows the values can be written in."""
    return log2(factorial(len(values)) // prod(factorial(count) for count in Counter(values).values()))


def of_inputs(inputs) -> dict[str, float]:
    values = [v for _, v, _ in inputs if v >= 0]
    addresses = [a for a, _, _ in inputs if a >= 0]
    return {
        "inputs": len(inputs),
        "input_addresses": len(set(addresses)) + len(inputs) - len(addresses),
        "unknown_inputs": len(inputs) - len(values),
        "least_input": min(values, default=-1),
        "largest_input": max(values, default=-1),
        "inputs_descend": values == sorted(values, reverse=True),
        "input_order": orders(values),
    }


def frequent(outputs) -> tuple[Counter, int, int, int]:
    """Counts of spendable values, how often the commonest occurs, the largest such, the one nearest 0.1 BTC."""
    counts = Counter(v for _, v, kind in outputs if kind != NULLDATA)
    k = max(counts.values(), default=0)
    modes = [value for value, count in counts.items() if count == k]
    near = min(modes, key=lambda v: (abs(v - 10_000_000), v)) if modes else 0
    return counts, k, max(modes, default=0), near


def of_outputs(outputs) -> dict[str, float]:
    values = [v for _, v, _ in outputs]
    spendable = [v for _, v, kind in outputs if kind != NULLDATA]
    addresses = [a for a, _, _ in outputs if a >= 0]
    counts, k, value, near = frequent(outputs)
    standard = [v for v in spendable if v in set(wasabi2_denominations().tolist())]
    chains = [(0, 0, 0)]  # outputs on the levels, lowest level, levels
    for lowest in counts:
        if near and 1.5 * near < lowest <= 2 * near and counts[lowest] >= 2:
            levels = [counts[lowest]]
            while min(levels[-1], counts[lowest * 2 ** len(levels)]) >= 2:
                levels.append(min(levels[-1], counts[lowest * 2 ** len(levels)]))
            chains.append((sum(levels), lowest, len(levels)))
    doubled, lowest, levels = max(chains)
    return {
        "outputs": len(spendable),
        "nulldata": len(outputs) - len(spendable),
        "outputs_distinct": len(set(addresses)) == len(addresses),
        "outputs_descend": values == sorted(values, reverse=True),
        "outputs_ascend": values == sorted(values),
        "output_order": orders(spendable),
        "k": k,
        "value": value,
        "value_near_tenth": near,
        "leading": bool(spendable) and all(v == near for v in values[:k]),
        "small_others": sum(v < 27_300 and v != value for v in spendable),
        "standard": len(standard),
        "odd_values": len({v for v in standard if v % 1_000}),
        "levels": sum(9_000_000 * 2**l <= v <= 11_000_000 * 2**l for v in spendable for l in range(12)),
        "doubled": doubled,
        "chain": levels,
        "level_gap": 2 * near / lowest - 1 if doubled else inf,
    }


def of_types(inputs, outputs) -> dict[str, float]:
    sent = Counter(kind for *_, kind in inputs)
    received = Counter(kind for *_, kind in outputs if kind != NULLDATA)
    known = {kind for kind in sent if kind != UNKNOWN_TYPE}
    named = {kind: count for kind, count in received.items() if kind != UNKNOWN_TYPE}
    main = min(named, key=lambda kind: (-named[kind], kind)) if named else 0
    keys = {P2WPKH, UNKNOWN_TYPE}
    return {
        "input_type": UNKNOWN_TYPE if not known else known.pop() if len(known) == 1 else -1,
        "input_types": len({kind for kind in sent if kind != UNKNOWN_TYPE}),
        "input_keys": set(sent) <= {*keys, P2TR},
        "segwit_keys": set(sent) | set(received) <= keys,
        "key_outputs": sum(received[kind] for kind in (*keys, P2TR)),
        "main_type": main,
        "main_inputs": sent[main] + sent[UNKNOWN_TYPE],
        "main_outputs": received[main] + received[UNKNOWN_TYPE],
    }


def of_both(inputs, outputs) -> dict[str, float]:
    counts, k, value, _ = frequent(outputs)
    known = [v for _, v, _ in inputs if v >= 0]
    senders, receivers = ({a for a, _, _ in side if a >= 0} for side in (inputs, outputs))
    return {
        "shared": len(senders & receivers),
        "at_value": known.count(value),
        "below_value": sum(v < value for v in known),
        "mirrored": sum(v != value and abs(v - value) <= 0.01 * value for v in known),
        "coverage": sum(min(v, value) for v in known) + (len(inputs) - len(known)) * value,
        "placed": len(known) < len(inputs) or fits(known, counts, k, value),
    }


def fits(brought, counts, k, value) -> bool:
    """For every j: inputs too large for the participants from j on fit into what those before j take out."""
    others = sorted((v for v in counts.elements() if v != value), reverse=True)
    if len(others) > k:
        return True
    takes = [value + (others[j] if j < len(others) else 0) for j in range(k)]
    fee = max(0, sum(brought) - sum(counts.elements()))
    slack = fee + k * max(int(0.01 * value), 40_000)
    return all(
        sum(v for v in brought if v > takes[j] + slack) <= (sum(takes[:j]) + slack if j else 0) for j in range(k)
    )


PARTICIPANT = st.tuples(st.integers(27_300, 10**9), st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4))


@settings(max_examples=60, deadline=None)
@given(st.lists(PARTICIPANT, min_size=3, max_size=7), st.integers(27_300, 10**9), st.integers(0, 5_000), st.booleans())
def test_no_honest_joinmarket_is_found_insolvent(participants, amount, miner, sweep):
    """Each brings amount and change, cut into coins of any sizes; the taker, who is first, pays makers and miner."""
    inputs, outputs = [], []
    for n, (change, parts) in enumerate(participants):
        earned = 0 if n == 0 else 500
        change = 0 if sweep and n == 0 else change
        brings = amount + change - earned + (500 * (len(participants) - 1) + miner if n == 0 else 0)
        coins = [int(brings * part / sum(parts)) for part in parts]
        coins[0] += brings - sum(coins)
        inputs += [(-1, coin, P2WPKH) for coin in coins]
        outputs += [(-1, value, P2WPKH) for value in (amount, change) if value]
    shape = Shape.of(transaction(inputs, outputs))
    assume(shape.value[0] == amount and shape.k[0] == len(participants))  # no change happens to be the amount
    assert shape.placed[0]
    assert shape.coverage[0] >= shape.k[0] * amount * 0.99
