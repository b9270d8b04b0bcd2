"""From columns, as a source tells them, to `Transactions`: order, previous outputs, fees, address ids.

A reader makes `Raw` parts, in any number (chunked input gives the same result as one part), and calls `assemble`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.tables import (
    INPUT_COLUMNS,
    MAX_MONEY,
    OUTPUT_COLUMNS,
    TRANSACTION_COLUMNS,
    UNKNOWN,
    gate,
    require,
    require_spent_once,
    texts,
)
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError
from btcnb.gates import choice

IntArray = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]
Missing = Literal["warn", "error", "ignore"]

FINAL_SEQUENCE = 0xFFFFFFFF
"""Sequence number of an input that signals nothing. It stands where a source does not tell the number."""


class MissingOutputsWarning(UserWarning):
    """Some inputs spend outputs that neither the source nor the table tells."""


class RepeatedTransactionsWarning(UserWarning):
    """Some transactions stand in the source more than once, with the same content."""


class DroppedLinksWarning(UserWarning):
    """Some inputs spend an output that the source places behind them; they are not linked to it."""


@dataclass(frozen=True)
class Raw:
    """One part of a source in columns. `tx` counts the part's own transactions from 0; coinbases have no input rows.

    transactions: the columns of `TRANSACTION_COLUMNS`; `index` -1 where unknown, `fee` -1 where not told
    inputs:       tx, index, spent_transaction_hash, spent_output_index, address (str or None), value (-1 unknown),
                  script_type, sequence
    outputs:      tx, index, address (str or None), value, script_type
    """

    transactions: Columns
    inputs: Columns
    outputs: Columns


_TEXT = {"address": "str"}
RAW: dict[str, dict[str, str]] = {
    "transactions": TRANSACTION_COLUMNS,
    "inputs": {name: kind for name, kind in INPUT_COLUMNS.items() if name != "spent_output"} | _TEXT,
    "outputs": OUTPUT_COLUMNS | _TEXT,
}
"""Table -> its columns and types as a reader tells them: addresses are still text."""


def raw(
    transactions: Sequence[tuple[Any, ...]], inputs: Sequence[tuple[Any, ...]], outputs: Sequence[tuple[Any, ...]]
) -> Raw:
    """A part from row tuples, in the order of the columns in `RAW`. `assemble` checks the values."""
    tables = []
    for rows, names in zip((transactions, inputs, outputs), RAW.values(), strict=True):
        lists = zip(*rows, strict=True) if rows else ([] for _ in names)
        tables.append({name: _array(list(values)) for name, values in zip(names, lists, strict=True)})
    return Raw(*tables)


def _array(values: list[Any]) -> npt.NDArray[Any]:
    """An array of whole numbers where all values are such and fit 64 bits, else of objects."""
    if set(map(type, values)) in ({int}, {bool}, set()):  # of a mixture numpy would make numbers
        try:
            return np.array(values, dtype=None if values else np.int64)
        except OverflowError:
            pass
    return np.fromiter(values, dtype=object, count=len(values))


def assemble(
    parts: Sequence[Raw], source: str, missing: Missing = "warn", branches: IntArray | None = None
) -> Transactions:
    """Transactions in chain order, previous outputs resolved inside the table, address ids by first appearance.

    This is the gate of every reader: it checks types, ranges, texts and amounts. A transaction listed again with the
    same content counts once, and one warning tells how many there are; with other content it is refused.

    missing:  what to do about inputs whose address or value neither the source nor an earlier output tells: "warn" and
              "ignore" keep them with -1 (and count them in one warning), "error" raises
    branches: for raw blocks, whose hashes prove the content: the number of the branch of the chain that each
              transaction stands in. Blocks of several branches may hold one transaction, which counts once, and may
              spend one coin, which only the first spender is linked to. An input that spends an output of a later
              transaction learns address and value from it and is not linked; one warning tells how many there are.
    """
    choice("missing", missing, get_args(Missing))
    whole = _gated(parts, source)
    order = _chain_order(whole, source, branches)
    whole = _reordered(whole, order)
    _number_blocks(whole.transactions)
    _resolve(whole, source, None if branches is None else branches[order])
    _fill_fees(whole, source)
    unknown = (whole.inputs["value"] < 0) | pd.isna(whole.inputs["address"])
    report_missing(unknown, source, missing, "add the earlier blocks or ask for verbosity 3")
    addresses = _number_addresses(whole)
    return Transactions.checked(
        pd.DataFrame(whole.transactions, columns=list(TRANSACTION_COLUMNS)),
        pd.DataFrame(whole.inputs, columns=list(INPUT_COLUMNS)),
        pd.DataFrame(whole.outputs, columns=list(OUTPUT_COLUMNS)),
        addresses=addresses,
        source=source,
    )


def _gated(parts: Sequence[Raw], source: str) -> Raw:
    """All parts as one, every value of the right type and inside its range."""
    first = np.cumsum([0, *(len(part.transactions["hash"]) for part in parts)])
    if not first[-1]:
        raise DataError(source, "transactions", "there are none", "check the path, the heights and the pattern")
    tables: list[Columns] = []
    for table, kinds in RAW.items():
        pieces = [getattr(part, table) for part in parts]
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in kinds}
        if "tx" in kinds:
            joined["tx"] = np.concatenate([piece["tx"] + base for piece, base in zip(pieces, first, strict=False)])
        tables.append(gate(joined, kinds, source, table, unnumbered=True))
    texts(tables[0]["hash"], source, "transactions.hash")
    fee = tables[0]["fee"]
    require(fee <= MAX_MONEY, fee, source, "transactions.fee", f"expected at most {MAX_MONEY}")
    return Raw(*tables)


def _chain_order(part: Raw, source: str, branches: IntArray | None) -> IntArray:
    """Rows in chain order without repeats. Blocks with an unknown index keep file order, coinbase first."""
    transactions = part.transactions
    block, index = transactions["block_number"], transactions["index"].copy()
    loose = np.isin(block, np.unique(block[index < 0]))
    index[loose] = np.where(transactions["is_coinbase"][loose], -1, 0)
    order = np.lexsort((index, block))
    named = pd.Series(transactions["hash"], dtype=object)
    if named.is_unique:
        return order
    if branches is None:
        _require_same(part, named, source)
        again = pd.DataFrame({"hash": named, "block": block}).iloc[order].duplicated().to_numpy()
        told = "stand there again, with the same content; each counts once"
    else:
        again = _in_other_branches(transactions, order, branches, source)
        told = "stand in several blocks of different branches; each counts once"
    if again.any():
        warnings.warn(f"{source}: {again.sum()} transactions {told}.", RepeatedTransactionsWarning, 4)
    return order[~again]


def _require_same(part: Raw, named: pd.Series, source: str) -> None:
    """Refuse a hash that stands for two transactions. Only the coinbases of two early blocks stand in two blocks."""
    code = pd.factorize(named)[0]
    often = np.bincount(code)
    told = pd.DataFrame(part.transactions)[often[code] > 1]
    blocks = told.groupby("hash")["block_number"].transform("nunique")
    alone = told.drop(columns=["block_number", "block_timestamp"]).drop_duplicates()
    placed = told.drop_duplicates()
    bad = [
        *alone.loc[alone["hash"].duplicated(), "hash"],
        *placed.loc[placed.duplicated(["hash", "block_number"]), "hash"],
        *told.loc[~told["is_coinbase"] & (blocks > 1), "hash"],
    ]
    for side in (part.inputs, part.outputs):
        rows = pd.DataFrame(side).assign(tx=code[side["tx"]])
        rows = rows[often[rows["tx"]] > 1]
        seen = rows.groupby(list(rows), dropna=False, sort=False).size()
        owner = seen.index.get_level_values("tx").to_numpy()
        bad += [named.iloc[int(np.argmax(code == one))] for one in owner[seen.to_numpy() != often[owner]][:1]]
    if bad:
        problem = f"{bad[0]} stands there twice with other content"
        raise DataError(source, "transactions.hash", problem, "keep the right one")


def _in_other_branches(transactions: Columns, order: IntArray, branches: IntArray, source: str) -> npt.NDArray[Any]:
    """Which transactions, in chain order, an earlier block of another branch holds.

    In one branch a transaction stands once, but for the coinbases of two early blocks, which stay both.
    """
    rows = pd.DataFrame({name: transactions[name][order] for name in ("hash", "block_number", "index")})
    rows["branch"] = branches[order]
    before = rows.groupby("hash").shift()  # of equal transactions, the one before
    related = rows["branch"] == before["branch"]
    twins = related & (rows["index"] == 0) & (rows["block_number"] > before["block_number"])
    if (related & ~twins).any():
        row = int((related & ~twins).to_numpy().argmax())
        places = f"in block {before['block_number'][row]:.0f} and in block {rows['block_number'][row]}"
        problem = f"{rows['hash'][row]} stands {places}"
        raise DataError(source, "transactions.hash", problem, "the files are not of one valid chain")
    return (before["branch"].notna() & ~twins).to_numpy()


def _reordered(part: Raw, order: IntArray) -> Raw:
    position = np.full(len(part.transactions["hash"]), UNKNOWN, dtype=np.int64)
    position[order] = np.arange(len(order))
    transactions = {name: values[order] for name, values in part.transactions.items()}
    sides = []
    for side in (part.inputs, part.outputs):
        tx = position[side["tx"]]
        rows = np.lexsort((side["index"], tx))
        rows = rows[tx[rows] >= 0]
        sides.append({name: values[rows] for name, values in side.items()} | {"tx": tx[rows]})
    return Raw(transactions, *sides)


def _number_blocks(transactions: Columns) -> None:
    """Positions for blocks where some are unknown: 0 for the coinbase, 1, 2, … for the others, in order."""
    block, index = transactions["block_number"], transactions["index"]
    loose = np.isin(block, np.unique(block[index < 0]))
    if loose.any():
        frame = pd.DataFrame({"block": block[loose], "coinbase": transactions["is_coinbase"][loose]})
        headless = ~frame.groupby("block")["coinbase"].transform("any").to_numpy()
        index[loose] = frame.groupby("block").cumcount().to_numpy() + headless


def _resolve(part: Raw, source: str, branches: IntArray | None) -> None:
    """Link each input to the output it spends, if that lies in the table; address, value and type come from there."""
    inputs, outputs = part.inputs, part.outputs
    parent = _latest(pd.Index(part.transactions["hash"], dtype=object), inputs["spent_transaction_hash"])
    keys = outputs["tx"] * 2**32 + outputs["index"]  # ascending, because outputs are sorted by (tx, index)
    wanted = np.where(parent >= 0, parent * 2**32 + inputs["spent_output_index"], UNKNOWN)
    row = np.searchsorted(keys, wanted)
    found = (row < len(keys)) & (keys[np.minimum(row, len(keys) - 1)] == wanted) if len(keys) else row < 0
    absent = (parent >= 0) & ~found
    if absent.any():
        name, number = (inputs[column][absent][0] for column in ("spent_transaction_hash", "spent_output_index"))
        raise DataError(source, "inputs.spent_output_index", f"{name} has no output {number}", "check the transaction")
    if branches is None:
        require_spent_once(inputs, (parent < 0) & (inputs["spent_output_index"] >= 0), source)
    _copy_spent(part, found, row[found], source)
    linked = found if branches is None else _possible(part, found, row, branches, source)
    inputs["spent_output"] = np.where(linked, row, UNKNOWN)
    inputs["spent_transaction_hash"][linked] = None


def _copy_spent(part: Raw, found: npt.NDArray[np.bool_], spent: IntArray, source: str) -> None:
    """Address, value and script type of the outputs in rows `spent` to the inputs that spend them."""
    inputs, outputs = part.inputs, part.outputs
    told = inputs["value"][found]
    differ = (told >= 0) & (told != outputs["value"][spent])
    if differ.any():
        at = int(differ.argmax())
        raise DataError(
            source,
            "inputs.value",
            f"an input of {part.transactions['hash'][inputs['tx'][found][at]]} states {told[at]} satoshi, "
            f"the output it spends holds {outputs['value'][spent[at]]}",
            "one of the two transactions is wrong",
        )
    for column in ("address", "value", "script_type"):
        inputs[column][found] = outputs[column][spent]


def _possible(
    part: Raw, found: npt.NDArray[np.bool_], row: IntArray, branches: IntArray, source: str
) -> npt.NDArray[np.bool_]:
    """Which inputs are linked to the output in `row`: the first spender that follows the output's transaction."""
    tx, made = part.inputs["tx"], part.outputs["tx"]
    possible = found.copy()
    possible[found] = made[row[found]] < tx[found]
    early = int((found & ~possible).sum())
    if early:
        problem = f"{early} of {len(tx)} inputs spend an output of a transaction that comes later in the files"
        warnings.warn(f"{source}: {problem}; they are not linked to it.", DroppedLinksWarning, 5)
    rows = np.flatnonzero(possible)
    spenders = pd.Series(tx[rows]).groupby(row[rows]).transform("first").to_numpy()
    again = pd.Series(row[rows]).duplicated().to_numpy()
    twice = again & (branches[spenders] == branches[tx[rows]])
    if twice.any():
        at = rows[int(twice.argmax())]
        name, spent = part.transactions["hash"][tx[at]], part.inputs["spent_transaction_hash"][at]
        problem = f"{name} spends an output of {spent} that is spent already"
        raise DataError(source, "inputs", problem, "the files are not of one valid chain")
    possible[rows[again]] = False
    return possible


def _latest(hashes: pd.Index, wanted: npt.NDArray[Any]) -> IntArray:
    """Position of each wanted hash, -1 where absent; of the two early coinbases that repeat a hash, the later one."""
    if hashes.is_unique:
        return hashes.get_indexer(pd.Index(wanted, dtype=object)).astype(np.int64)
    last = pd.Series(np.arange(len(hashes)), index=hashes)
    last = last[~last.index.duplicated(keep="last")]
    return last.reindex(wanted).fillna(UNKNOWN).to_numpy(dtype=np.int64)


def _fill_fees(part: Raw, source: str) -> None:
    """Fee = inputs - outputs where all inputs are known; else what the source told; 0 for a coinbase."""
    number = len(part.transactions["hash"])
    values = part.inputs["value"]
    paid = _sum(part.outputs["tx"], part.outputs["value"], number)
    received = _sum(part.inputs["tx"], np.maximum(values, 0), number)
    unknown = _sum(part.inputs["tx"], (values < 0).astype(np.int64), number) > 0
    fee = np.where(unknown, part.transactions["fee"], received - paid)
    fee[part.transactions["is_coinbase"]] = 0
    negative = ~unknown & (fee < 0)
    if negative.any():
        at = int(negative.argmax())
        raise DataError(
            source,
            "outputs.value",
            f"{part.transactions['hash'][at]} pays out {paid[at]} satoshi and takes in {received[at]}",
            "check its inputs and the unit of the amounts",
        )
    part.transactions["fee"] = fee


def _sum(groups: IntArray, values: IntArray, number: int) -> IntArray:
    """Sum of the values of each group 0..number-1; `groups` ascends."""
    total = np.concatenate([[0], np.cumsum(values)])
    return np.diff(total[np.searchsorted(groups, np.arange(number + 1))])


def report_missing(unknown: npt.NDArray[np.bool_], source: str, missing: Missing, remedy: str) -> None:
    """Tell how many inputs have an unknown address or value, as `missing` says."""
    if missing == "ignore" or not unknown.any():
        return
    problem = f"{unknown.sum()} of {len(unknown)} inputs spend outputs that lie outside the data"
    if missing == "error":
        raise DataError(source, "inputs.spent_transaction_hash", problem, remedy)
    warnings.warn(f"{source}: {problem}; their address and value are -1 where not told.", MissingOutputsWarning, 4)


def _number_addresses(part: Raw) -> npt.NDArray[Any]:
    """Replace address strings by ids, in order of first appearance: block by block, inputs before outputs."""
    inputs, outputs = part.inputs, part.outputs
    number = len(part.transactions["hash"])
    transactions = np.arange(number + 1)
    input_place = np.arange(len(inputs["tx"])) + np.searchsorted(outputs["tx"], transactions)[inputs["tx"]]
    output_place = np.arange(len(outputs["tx"])) + np.searchsorted(inputs["tx"], transactions)[outputs["tx"] + 1]
    merged = np.empty(len(input_place) + len(output_place), dtype=object)
    merged[input_place], merged[output_place] = inputs["address"], outputs["address"]
    codes, addresses = pd.factorize(merged)
    inputs["address"], outputs["address"] = codes[input_place], codes[output_place]
    return np.asarray(addresses, dtype=object)
