"""Dumplings text files: real CoinJoins, and the transactions around them.

One line is one transaction, `txid:::block hash:::index in block:::unix time:::inputs:::outputs`. Items are separated by
`}{`; an input is `txid-index-value+script hex+type`, an output `value+script hex+type`, amounts in satoshi.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from itertools import count
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from btcnb import gates
from btcnb.data.readers import scripts
from btcnb.data.readers.assemble import FINAL_SEQUENCE, Raw, assemble, raw
from btcnb.data.readers.files import Member, members
from btcnb.data.transactions import UNKNOWN, Transactions
from btcnb.errors import DataError, ParameterError

_HEAD = {
    "txid": re.compile(r"[0-9a-f]{64}"),
    "block hash": re.compile(r"[0-9a-f]{64}"),
    "index in block": re.compile(r"\d{1,9}"),
    "unix time": re.compile(r"\d{1,12}"),
}
_ITEM = {
    "inputs": re.compile(r"([0-9a-f]{64})-(\d{1,10})-(\d{1,16})\+((?:[0-9a-f]{2})*)\+(\w*)"),
    "outputs": re.compile(r"(\d{1,16})\+((?:[0-9a-f]{2})*)\+(\w*)"),
}
_SHAPE = {"inputs": "txid-index-value+script+type", "outputs": "value+script+type"}
_NO_TRANSACTION = "0" * 64  # what a coinbase spends
_KNOWN_FILES = ("*CoinJoin*", "*PostMix*", "*Tx0*")


@dataclass
class _Line:
    """One transaction as its line tells it."""

    txid: str
    block: str
    index: int
    time: int
    inputs: list[tuple[str, str, str, str, str]]  # txid, output index, value, script, type
    outputs: list[tuple[str, str, str]]  # value, script, type
    files: list[str] = field(default_factory=list)

    def told(self) -> tuple[Any, ...]:
        """All but the position in the block, which some files do not know."""
        return self.block, self.time, self.inputs, self.outputs


def read_dumplings(
    path: str | Path, names: str | Sequence[str] | None = None, heights: Mapping[str, int] | None = None
) -> Transactions:
    """Transactions of a Dumplings file, or of all such files in a folder or zip; each txid once.

    names:   read only the files whose name (without `.txt`) matches one of these patterns, e.g. `"SamouraiCoinJoins"`
    heights: block hash -> height, where you know it

    `transactions` has one column more, `file`: the name of the file a transaction stands in, several joined by `+`.
    What Dumplings does not tell is filled in: `block_number` is the rank of the block by time (then hash, and never
    before a block it spends from) unless `heights` has it; a position in the block that is unknown (Tx0 files say 0)
    becomes the first free one after what it spends from; `version` 1, `lock_time` 0, `size` 0, `sequence` final.
    Addresses are mainnet addresses of standard scripts, else the script's hex; their type is read off the script.
    """
    lines: dict[str, _Line] = {}
    for member in _chosen(path, names):
        file = member.stem
        for line in _parsed(member):
            known = lines.setdefault(line.txid, line)
            if known.told() != line.told():
                raise DataError(member.source, "txid", f"{line.txid} stands there twice with other content", "keep one")
            known.index = max(known.index, line.index)
            if file not in known.files:
                known.files.append(file)
    listed = list(lines.values())
    _fill_positions(listed)
    txs = assemble([_raw(listed, _numbers(listed, heights, path))], str(path))
    files = ["+".join(lines[txid].files) for txid in txs.transactions["hash"]]
    return replace(
        txs, transactions=txs.transactions.assign(file=np.array(files, dtype=object)).astype({"file": "str"})
    )


def _chosen(path: str | Path, names: str | Sequence[str] | None) -> list[Member]:
    found = members(path, "*.txt")
    if names is not None:
        patterns = [names] if isinstance(names, str) else gates.items("names", names)
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise ParameterError(f"names: {names!r:.80} are not patterns of file names.")
        found = [member for member in found if any(fnmatch(member.stem, pattern) for pattern in patterns)]
    if not found:
        raise DataError(path, "files", "no Dumplings file (*.txt) is there", "check the path and the names")
    if len(found) == 1:
        return found
    return [member for member in found if _is_wanted(member)]


def looks_like_dumplings(head: bytes) -> bool:
    """Whether the first line has the separator behind a transaction id."""
    return re.match(rb"(\xef\xbb\xbf)?\s*[0-9a-f]{64}:::", head) is not None


def _is_wanted(member: Member) -> bool:
    """A known name, whatever it holds; or any text whose first line has the separator."""
    return any(fnmatch(member.stem, pattern) for pattern in _KNOWN_FILES) or b":::" in member.head(256)


def _parsed(member: Member) -> Iterator[_Line]:
    source = member.source
    with member.open() as stream:
        for number, content in enumerate(stream, start=1):
            text = content.decode("utf-8-sig", errors="replace").strip()
            if text:
                yield _line(text, f"{source}, line {number}")


def _line(text: str, where: str) -> _Line:
    fields = text.split(":::")
    if len(fields) != 6:
        raise DataError(where, "line", f"has {len(fields)} fields, not 6", "it may be cut short; fix or drop it")
    for (name, shape), value in zip(_HEAD.items(), fields, strict=False):
        if not shape.fullmatch(value):
            raise DataError(where, name, f"{_short(value)} is not one", "fix or drop the line")
    txid, block, index, time = fields[:4]
    inputs = [parts for parts in _items(fields[4], "inputs", where) if parts[0] != _NO_TRANSACTION]
    return _Line(txid, block, int(index), int(time), inputs, _items(fields[5], "outputs", where))  # type: ignore[arg-type]


def _items(text: str, side: str, where: str) -> list[tuple[str, ...]]:
    shape = _ITEM[side]
    found = []
    for position, item in enumerate(text.split("}{") if text else ()):
        match = shape.fullmatch(item)
        if match is None:
            raise DataError(
                where, f"{side}[{position}]", f"{_short(item)} is not {_SHAPE[side]}", "fix or drop the line"
            )
        found.append(match.groups())
    return found


def _short(value: str) -> str:
    return repr(value if len(value) <= 60 else f"{value[:40]}…{value[-12:]}")


def _numbers(lines: Sequence[_Line], heights: Mapping[str, int] | None, path: str | Path) -> dict[str, int]:
    times = {line.block: line.time for line in lines}
    if heights is None:
        return _block_ranks(lines, times, str(path))
    gates.instance("heights", heights, Mapping)
    unknown = next((block for block in times if block not in heights), None)
    if unknown is not None:
        raise DataError(path, "heights", f"block {unknown} has none", "give the height of every block, or of none")
    return {block: heights[block] for block in times}


def _raw(lines: Sequence[_Line], numbers: Mapping[str, int]) -> Raw:
    given = [script for line in lines for side in (line.inputs, line.outputs) for *_, script, _ in side]
    addresses, types = scripts.addresses([bytes.fromhex(script) for script in given])
    next_script = zip(addresses, types, strict=True)
    transactions, inputs, outputs = [], [], []
    for tx, line in enumerate(lines):
        coinbase = not line.inputs
        block = (numbers[line.block], line.time, 0 if coinbase else line.index)
        transactions.append((line.txid, *block, coinbase, 1, 0, 0, 0, UNKNOWN))
        for position, (txid, output, value, _, _) in enumerate(line.inputs):
            address, kind = next(next_script)
            inputs.append((tx, position, txid, int(output), address, int(value), kind, FINAL_SEQUENCE))
        for position, (value, _, _) in enumerate(line.outputs):
            address, kind = next(next_script)
            outputs.append((tx, position, address, int(value), kind))
    return raw(transactions, inputs, outputs)


def _block_ranks(lines: Sequence[_Line], times: Mapping[str, int], source: str) -> dict[str, int]:
    """Block -> 0, 1, 2, …: by (time, block), but after every block it spends from.

    Block times may run backwards by up to two hours, so time alone could put a spender before what it spends.
    """
    block_of = {line.txid: line.block for line in lines}
    graph = nx.DiGraph()
    graph.add_nodes_from(times)
    for line in lines:
        parents = {block_of[spent[0]] for spent in line.inputs if spent[0] in block_of} - {line.block}
        graph.add_edges_from((parent, line.block) for parent in parents)
    try:
        ordered = list(nx.lexicographical_topological_sort(graph, key=lambda block: (times[block], block)))
    except nx.NetworkXUnfeasible as error:
        raise DataError(source, "block hash", "two blocks spend from each other", "check the lines") from error
    return {block: rank for rank, block in enumerate(ordered)}


def _fill_positions(lines: Sequence[_Line]) -> None:
    """Give each transaction with an unknown position the first free one behind what it spends in its own block.

    A position claimed twice counts as unknown for the second claimant.
    """
    blocks: defaultdict[str, list[_Line]] = defaultdict(list)
    for line in lines:
        blocks[line.block].append(line)
    for block in blocks.values():
        position: dict[str, int] = {}
        taken: set[int] = {0}  # the coinbase's
        for line in block:
            if line.index not in taken:
                position[line.txid] = line.index
                taken.add(line.index)
        if len(position) == len(block):
            continue
        here = {line.txid: line for line in block}
        graph = {txid: [spent[0] for spent in line.inputs if spent[0] in here] for txid, line in here.items()}
        reached: dict[int, int] = {}  # position -> the last one given out behind it: all up to there are taken
        for txid in _parents_first(graph):
            if txid not in position:
                behind = max((position.get(parent, 0) for parent in graph[txid]), default=0)
                free = next(free for free in count(reached.get(behind, behind) + 1) if free not in taken)
                position[txid] = reached[behind] = free
                taken.add(position[txid])
        for line in block:
            line.index = position[line.txid]


def _parents_first(graph: dict[str, list[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return list(graph)  # transactions that spend from each other: the container's own check names them
