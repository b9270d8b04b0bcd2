"""Parts of a chain to `Transactions`: chain order, spent outputs, address ids, fees; the container checks all."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.contract import INPUT_COLUMNS, OUTPUT_COLUMNS, TRANSACTION_COLUMNS, UNKNOWN
from btcnb.data.readers.blocks import links
from btcnb.data.readers.blocks.chain import Chain, Heads, field
from btcnb.data.readers.blocks.checks import subsidies
from btcnb.data.readers.blocks.hashes import Bytes, IntArray
from btcnb.data.readers.blocks.parts import Coins, Others, Part, displayed
from btcnb.data.readers.blocks.texts import addresses
from btcnb.data.readers.builder import RepeatedTransactionsWarning
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

_BATCH = 2**16  # hashes written at a time
_SPENDS = {
    links.NO_OUTPUT: "spends an output that {} does not have",
    links.TWICE: "spends an output of {} that is spent already",
    links.EARLY: "spends an output of {}, which comes later",
}


class RewardWarning(UserWarning):
    """A block takes more coins than its subsidy and its fees."""


class Joined(NamedTuple):
    """All parts as one, in chain order; `spent_output` links inputs to outputs, -1 where that lies outside."""

    part: Part
    height: IntArray  # per transaction
    time: IntArray
    places: links.Places
    spent_output: IntArray
    fee: IntArray  # satoshi, -1 where an input's value is unknown
    source: str


def join(parts: list[Part], heads: Heads, chain: Chain, others: Others, source: str) -> Joined:
    """Order, link and check the parts; inputs learn from the outputs that they spend. The list is emptied."""
    whole = Part(*(_stacked([part[i] for part in parts]) for i in range(len(Part._fields))))
    parts.clear()  # or everything is in memory twice while strings are made
    rank = np.zeros(len(heads.file), dtype=np.int64)
    rank[chain.row] = np.arange(len(chain.row))
    if (np.diff(rank[whole.row]) < 0).any():
        whole = _selected(whole, np.argsort(rank[whole.row], kind="stable"))
    tree = chain.tree[rank[whole.row]]
    hashes, before = links.words(whole.hash), np.zeros(len(tree), dtype=np.int64)
    table = links.slots(len(tree))
    if links.enter(hashes, table, before):
        kept = _once(whole, before, tree, chain.height[rank[whole.row]], source)
        whole, tree = _selected(whole, kept), tree[kept]
        hashes, table = links.words(whole.hash), links.slots(len(tree))
        links.enter(hashes, table, np.zeros(len(tree), dtype=np.int64))
    places = links.Places(tree, _offsets(whole.inputs), _offsets(whole.outputs))
    spent_output = _linked(whole, hashes, table, places, source)
    fee = _fees(whole, places, source)
    at = rank[whole.row]
    _compare_rewards(whole, chain.height[at], fee, others.network.halving, source)
    return Joined(whole, chain.height[at], field(heads.header[whole.row], 68, "<u4"), places, spent_output, fee, source)


def _stacked(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], Coins):
        return Coins(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    return np.concatenate(pieces)


def _offsets(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])


def _selected(part: Part, order: IntArray) -> Part:
    """The transactions in `order`, with their inputs and outputs."""
    rows_in, rows_out = (_rows(counts, order) for counts in (part.inputs, part.outputs))
    per_tx = {name: getattr(part, name)[order] for name in Part._fields[: Part._fields.index("previous")]}
    per_input = {name: getattr(part, name)[rows_in] for name in ("previous", "previous_index", "sequence")}
    spent, made = part.spent.take(rows_in), part.made.take(rows_out)
    return Part(**per_tx, **per_input, spent=spent, made=made)


def _rows(counts: IntArray, order: IntArray) -> IntArray:
    """Rows of the groups in `order`, where group g has counts[g] rows, one after the other."""
    first, wanted = _offsets(counts)[:-1][order], counts[order]
    return np.repeat(first - _offsets(wanted)[:-1], wanted) + np.arange(wanted.sum())


def _once(part: Part, before: IntArray, tree: IntArray, height: IntArray, source: str) -> IntArray:
    """Transactions to keep: the first of equal ones. Two coinbases of 2010 stand in one chain twice, and stay."""
    again = before >= 0
    related = again & (tree == tree[before])
    twins = related & (part.place == 0) & (height > height[before])
    refused = np.flatnonzero(related & ~twins)
    if len(refused):
        row = int(refused[0])
        problem = f"{displayed(part.hash[row])} stands in block {height[before[row]]} and in block {height[row]}"
        raise DataError(source, "transactions.hash", problem, "the files are not of one valid chain")
    dropped = again & ~twins
    if dropped.any():
        warnings.warn(
            f"{source}: {dropped.sum()} transactions stand in several blocks of different branches; each counts once.",
            RepeatedTransactionsWarning,
            5,
        )
    return np.flatnonzero(~dropped)


def _linked(part: Part, hashes: Any, table: IntArray, places: links.Places, source: str) -> IntArray:
    spent, seen = (np.full(len(part.sequence), UNKNOWN, dtype=np.int64) for _ in range(2))
    previous = links.words(part.previous)
    problem, row = links.link(hashes, table, previous, part.previous_index, places, (spent, seen))
    if problem:
        tx = int(np.searchsorted(places.input_offset, row, side="right")) - 1
        told = _SPENDS[problem].format(displayed(part.previous[row]))
        raise DataError(source, "inputs", f"{displayed(part.hash[tx])} {told}", "the files are not of one valid chain")
    found = seen >= 0
    known = part.made.take(seen[found])
    part.spent.tag[found], part.spent.owner[found] = known.tag, known.owner
    part.spent.script_type[found], part.spent.value[found] = known.script_type, known.value
    return spent


def _sums(values: IntArray, offset: IntArray) -> IntArray:
    return np.diff(np.concatenate([[0], np.cumsum(values)])[offset])


def _fees(part: Part, places: links.Places, source: str) -> IntArray:
    """Inputs minus outputs where all inputs are known, else -1; 0 for a coinbase."""
    value = part.spent.value
    received = _sums(np.maximum(value, 0), places.input_offset)
    paid = _sums(part.made.value, places.output_offset)
    known = _sums((value < 0).astype(np.int64), places.input_offset) == 0
    coinbase = part.place == 0
    fee = np.where(known, received - paid, UNKNOWN)
    negative = known & (fee < 0) & ~coinbase
    if negative.any():
        at = int(negative.argmax())
        problem = f"{displayed(part.hash[at])} pays out {paid[at]} satoshi and takes in {received[at]}"
        raise DataError(source, "outputs.value", problem, "the files are not of one valid chain")
    fee[coinbase] = 0
    return fee


def _compare_rewards(part: Part, height: IntArray, fee: IntArray, halving: int, source: str) -> None:
    """Warn of blocks that take more than subsidy and fees, where all fees are known; a miner may take less.

    Such a block is what its header says, so the file is sound: its miner broke the rules, and the network refused it.
    """
    first = np.flatnonzero(np.diff(height, prepend=-1))
    whole = part.place[first] == 0  # a coinbase may be left out, because it stands in an earlier block too
    least = np.minimum.reduceat(fee, first)
    claimed = _sums(part.made.value, _offsets(part.outputs))[first]
    allowed = subsidies(height[first], halving) + np.add.reduceat(fee, first)
    wrong = np.flatnonzero(whole & (least >= 0) & (claimed > allowed))
    if len(wrong):
        at = int(wrong[0])
        text = f"block {height[first[at]]} takes {claimed[at]} satoshi; subsidy and fees are {allowed[at]}"
        more = f", and so in {len(wrong) - 1} other blocks" if len(wrong) > 1 else ""
        warnings.warn(f"{source}: {text}{more}: no valid block does.", RewardWarning, 5)


def impute(joined: Joined) -> npt.NDArray[np.bool_]:
    """Fill unknown values: what the outputs need beyond the known inputs, in equal shares. Which inputs were filled."""
    part, value = joined.part, joined.part.spent.value
    missing = value < 0
    offset = joined.places.input_offset
    paid = _sums(part.made.value, joined.places.output_offset)
    need = np.maximum(paid - _sums(np.maximum(value, 0), offset), 0)
    number = _sums(missing.astype(np.int64), offset)
    tx = np.repeat(np.arange(len(number)), part.inputs)[missing]
    place = np.arange(len(tx)) - _offsets(number)[tx]  # 0, 1, … among the unknown inputs of a transaction
    value[missing] = need[tx] // number[tx] + (place < need[tx] % number[tx])
    return missing


def tables(joined: Joined, others: Others) -> Transactions:
    """The container, which checks every value."""
    part, places = joined.part, joined.places
    in_id, out_id, names = _numbered(part, places, others)
    told = np.full(len(in_id), None, dtype=object)
    outside = joined.spent_output < 0
    told[outside] = _displayed(part.previous[outside])
    transactions = (
        _displayed(part.hash), joined.height, joined.time, part.place, part.place == 0, part.version, part.lock_time,
        part.size, part.virtual_size, joined.fee,
    )  # fmt: skip
    inputs = (
        np.repeat(np.arange(len(part.inputs)), part.inputs), _within(part.inputs), joined.spent_output, told,
        part.previous_index, in_id, part.spent.value, part.spent.script_type, part.sequence,
    )  # fmt: skip
    outputs = (
        np.repeat(np.arange(len(part.outputs)), part.outputs), _within(part.outputs), out_id, part.made.value,
        part.made.script_type,
    )  # fmt: skip
    return Transactions.checked(
        pd.DataFrame(dict(zip(TRANSACTION_COLUMNS, transactions, strict=True)), copy=False),
        pd.DataFrame(dict(zip(INPUT_COLUMNS, inputs, strict=True)), copy=False),
        pd.DataFrame(dict(zip(OUTPUT_COLUMNS, outputs, strict=True)), copy=False),
        addresses=names,
        source=joined.source,
    )


def _numbered(part: Part, places: links.Places, others: Others) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    rows_in, rows_out = len(part.spent.tag), len(part.made.tag)
    ids = np.zeros(rows_in, dtype=np.int64), np.zeros(rows_out, dtype=np.int64)
    found = np.zeros(rows_in + rows_out, dtype=np.uint8), np.zeros((rows_in + rows_out, 4), dtype=np.uint64)
    sides = links.Sides(part.spent.tag, links.words(part.spent.owner), part.made.tag, links.words(part.made.owner))
    total = links.number(sides, places, links.slots(rows_in + rows_out), found, ids)
    return *ids, addresses(found[0][:total], found[1][:total].view(np.uint8), others.network, others.text)


def _within(counts: IntArray) -> IntArray:
    """0, 1, … for the rows of each group."""
    return np.arange(counts.sum()) - np.repeat(_offsets(counts)[:-1], counts)


def _displayed(digests: Bytes) -> npt.NDArray[Any]:
    found = np.empty(len(digests), dtype=object)
    for start in range(0, len(digests), _BATCH):
        some = digests[start : start + _BATCH, ::-1]
        found[start : start + _BATCH] = some.tobytes().hex("\n", 32).split("\n")
    return found
