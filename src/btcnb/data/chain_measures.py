"""What a chain looks like from outside: shares that need no truth, measured alike on real and on simulated blocks.

The measurements on real blocks of the paper's years stand in `real_chain.csv` beside this file, one row per period and
quantity; `python benchmarks/real_blocks.py` makes it from raw blocks. The simulator takes its eras from there, and
chapter 03 shows both side by side.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.intervals import subsidy
from btcnb.data.transactions import SCRIPT_TYPES, Transactions
from btcnb.errors import ParameterError
from btcnb.store.reads import note_read

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

TABLE = Path(__file__).with_name("real_chain.csv")
YEARS = ("2019", "2020", "2021")
FINAL_SEQUENCES = (0xFFFFFFFE, 0xFFFFFFFF)
"""Sequence numbers that do not signal replace-by-fee (BIP 125)."""
NULLDATA = SCRIPT_TYPES.index("nulldata")
SHOWN_TYPES = ("pubkeyhash", "scripthash", "witness_v0_keyhash", "witness_v0_scripthash")
ZEROS = (2, 3, 4, 5, 6, 7)
TAIL = (2, 3, 5, 10, 20, 50, 100, 200, 500)
"""Numbers of inputs or outputs for which the share of transactions with at least so many is told."""
OF_TWO = "of 2-output transactions: "
SHAPES = (
    *(f"transactions with {number}, %" for number in ("1 output", "2 outputs", "more outputs")),
    *(f"{OF_TWO}{number}, %" for number in ("1 input", "2 inputs", "more inputs")),
)
MARKS = tuple(f"{OF_TWO}{mark}, %" for mark in ("version 1", "locktime set", "replace-by-fee", "SegWit"))
PAID_BACK = f"{OF_TWO}an input address is paid back, %"
FEE_RATE = "fee rate, satoshi per virtual byte"


def fingerprint_name(version: bool, locktime: bool, rbf: bool, segwit: bool) -> str:
    """The row of one combination of marks (`version`: higher than 1)."""
    marks = zip(("version 2", "locktime", "replace-by-fee", "SegWit"), (version, locktime, rbf, segwit), strict=True)
    return f"{OF_TWO}marks {' + '.join(name for name, is_set in marks if is_set) or 'none'}, %"


def round_name(zeros: int) -> str:
    return f"{OF_TWO}one output ends in {zeros} zeros, %"


def tail_name(side: str, least: int) -> str:
    """`side`: outputs or inputs."""
    return f"transactions with at least {least} {side}, %"


def op_return_name(outputs: int) -> str:
    return f"transactions of {outputs} outputs with OP_RETURN, %"


def type_name(side: str, script_type: str) -> str:
    """`side`: outputs or inputs."""
    return f"{side} of type {script_type}, %"


def chain_measures(txs: Transactions) -> dict[str, float]:
    """Every quantity of `real_chain.csv` that a chain shows (in %, or as named), coinbases left out; NaN where there is
    nothing to count."""
    ordinary = ~txs.transactions["is_coinbase"].to_numpy()
    outputs, inputs = np.diff(txs.output_offsets()), np.diff(txs.input_offsets())
    two = ordinary & (outputs == 2)
    null = np.zeros(len(txs), dtype=bool)
    null[txs.outputs["tx"].to_numpy()[txs.outputs["script_type"].to_numpy() == NULLDATA]] = True
    found = dict(zip(SHAPES[:3], _shares([outputs == 1, outputs == 2, outputs > 2], ordinary), strict=True))
    found |= dict(zip(SHAPES[3:], _shares([inputs == 1, inputs == 2, inputs > 2], two), strict=True))
    marks = _marks(txs)
    found |= dict(zip(MARKS, _shares([~marks[0], *marks[1:]], two), strict=True))
    found[PAID_BACK] = _shares([paid_back(txs)], two)[0]
    found |= _fingerprints(marks, two)
    found |= _roundness(txs, two & ~null)
    found |= {op_return_name(n): _shares([null & (outputs == n)], ordinary)[0] for n in (2, 3)}
    found |= _types(txs, ordinary)
    for name, count in (("inputs", inputs), ("outputs", outputs)):
        found[f"{name} a transaction, mean"] = float(count[ordinary].mean()) if ordinary.any() else np.nan
        found[f"{name} a transaction, 99th percentile"] = (
            float(np.quantile(count[ordinary], 0.99)) if ordinary.any() else np.nan
        )
        tail = _shares([count >= least for least in TAIL], ordinary)
        found |= {tail_name(name, least): share for least, share in zip(TAIL, tail, strict=True)}
    found["outputs to an address paid twice in its block, %"] = _paid_twice(txs)
    return found


def paid_back(txs: Transactions) -> BoolArray:
    """Per transaction: whether an output pays one of the input addresses."""
    width = max(txs.num_addresses, 1)
    spending, paid = (table[table["address"] >= 0] for table in (txs.inputs, txs.outputs))
    keys = paid["tx"].to_numpy() * width + paid["address"].to_numpy()
    back = np.zeros(len(txs), dtype=bool)
    hit = np.isin(keys, spending["tx"].to_numpy() * width + spending["address"].to_numpy())
    back[paid["tx"].to_numpy()[hit]] = True
    return back


def has_witness(txs: Transactions) -> BoolArray:
    """A SegWit input shows by its script type; one wrapped in a script hash only by bytes that weigh less."""
    types = [position for position, name in enumerate(SCRIPT_TYPES) if name.startswith("witness")]
    lighter = (txs.transactions["size"] > txs.transactions["virtual_size"]).to_numpy()
    return lighter | any_input(txs, np.isin(txs.inputs["script_type"].to_numpy(), types))


def any_input(txs: Transactions, flag: BoolArray) -> BoolArray:
    """Per transaction: whether the flag (one per input row) is set for any of its inputs."""
    found = np.zeros(len(txs), dtype=bool)
    found[txs.inputs["tx"].to_numpy()[flag]] = True
    return found


def real_chain(period: str | int) -> dict[str, float]:
    """What was measured on real blocks: of a year (2019 to 2021), or around an interval of the paper (train1, …)."""
    note_read(TABLE)
    table = _table()
    name = str(period)
    if name not in table:
        raise ParameterError(f"period is {period!r}, but must be one of {', '.join(table)}.")
    return dict(table[name])


@functools.cache
def _table() -> dict[str, dict[str, float]]:
    rows = pd.read_csv(TABLE, dtype={"period": str})
    return {
        str(period): dict(zip(part["quantity"], part["value"], strict=True)) for period, part in rows.groupby("period")
    }


def _shares(flags: list[BoolArray], among: BoolArray) -> list[float]:
    return [100 * float(flag[among].mean()) if among.any() else float("nan") for flag in flags]


def _marks(txs: Transactions) -> list[BoolArray]:
    """Version above 1, lock time set, replace-by-fee signalled, SegWit: per transaction."""
    return [
        txs.transactions["version"].to_numpy() != 1,
        txs.transactions["lock_time"].to_numpy() > 0,
        any_input(txs, ~np.isin(txs.inputs["sequence"].to_numpy(), FINAL_SEQUENCES)),
        has_witness(txs),
    ]


def _fingerprints(marks: list[BoolArray], two: BoolArray) -> dict[str, float]:
    code = sum((mark[two].astype(np.int64) << place for place, mark in enumerate(marks)), np.zeros(two.sum(), int))
    counts = np.bincount(code, minlength=16)
    names = [fingerprint_name(*(bool(value >> place & 1) for place in range(4))) for value in range(16)]
    total = int(two.sum()) or np.nan
    return {name: 100 * float(n) / total for name, n in zip(names, counts, strict=True)}


def _roundness(txs: Transactions, two: BoolArray) -> dict[str, float]:
    first = txs.output_offsets()[:-1][two]
    value = txs.outputs["value"].to_numpy()
    a, b = value[first], value[first + 1]
    if not len(first):
        return {round_name(zeros): float("nan") for zeros in ZEROS}
    return {round_name(z): 100 * float(((a % 10**z == 0) != (b % 10**z == 0)).mean()) for z in ZEROS}


def _types(txs: Transactions, ordinary: BoolArray) -> dict[str, float]:
    found = {}
    for side, table in (("outputs", txs.outputs), ("inputs", txs.inputs)):
        kind = table["script_type"].to_numpy()[ordinary[table["tx"].to_numpy()]]
        for name in SHOWN_TYPES:
            here = float((kind == SCRIPT_TYPES.index(name)).mean()) if len(kind) else float("nan")
            found[type_name(side, name)] = 100 * here
    return found


def _paid_twice(txs: Transactions) -> float:
    """Address reuse inside a block; it grows with the size of blocks."""
    block = txs.transactions["block_number"].to_numpy()[txs.outputs["tx"].to_numpy()]
    table = pd.DataFrame({"block": block, "address": txs.outputs["address"].to_numpy()})
    table = table[table["address"] >= 0]
    return 100 * float(table.duplicated(keep=False).mean()) if len(table) else float("nan")


def satoshi_per_transaction(txs: Transactions) -> tuple[IntArray, IntArray]:
    """What each transaction takes in and pays out; -1 in for one with an input whose value the source does not tell."""
    paid_in, paid_out = np.zeros(len(txs), dtype=np.int64), np.zeros(len(txs), dtype=np.int64)
    for total, table in ((paid_in, txs.inputs), (paid_out, txs.outputs)):
        np.add.at(total, table["tx"].to_numpy(), table["value"].to_numpy())
    paid_in[txs.inputs["tx"].to_numpy()[txs.inputs["value"].to_numpy() < 0]] = -1
    return paid_in, paid_out


def spends(txs: Transactions) -> tuple[IntArray, IntArray]:
    """(parents, children): transactions whose outputs are spent within the table, and those that spend them."""
    spent = txs.inputs["spent_output"].to_numpy()
    inside = spent >= 0
    return txs.outputs["tx"].to_numpy()[spent[inside]], txs.inputs["tx"].to_numpy()[inside]


def ledger_rules(txs: Transactions, whole_blocks: bool = True) -> pd.DataFrame:
    """One row per rule: `rule`, how many cases were `checked`, how many are `violations`.

    whole_blocks: every block is at hand with all its transactions, and subsidies halve as on the main chain; only then
        can a coinbase be checked, which must pay exactly what its block earns
    """
    paid_in, paid_out = satoshi_per_transaction(txs)
    coinbase = txs.transactions["is_coinbase"].to_numpy()
    fee = txs.transactions["fee"].to_numpy()
    told = ~coinbase & (paid_in >= 0) & (fee >= 0)
    spent = txs.inputs["spent_output"].to_numpy()
    spent = spent[spent >= 0]
    parents, children = spends(txs)
    rows = [
        ("inputs = outputs + fee", int(told.sum()), int((paid_in != paid_out + fee)[told].sum())),
        ("no output is spent twice", len(spent), len(spent) - len(np.unique(spent))),
        ("no coin is spent before it exists", len(spent), int((parents >= children).sum())),
    ]
    if whole_blocks:
        block = txs.transactions["block_number"].to_numpy()
        fees = pd.Series(fee[~coinbase]).groupby(block[~coinbase]).sum()
        earned = subsidy(block[coinbase]) + fees.reindex(block[coinbase], fill_value=0).to_numpy()
        wrong = int((paid_out[coinbase] != earned).sum())
        rows.append(("coinbase = subsidy + fees of its block", int(coinbase.sum()), wrong))
    return pd.DataFrame(rows, columns=["rule", "checked", "violations"])
