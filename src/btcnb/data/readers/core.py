"""Bitcoin Core blocks: from a running node, or from `getblock` JSON files that a node once printed.

A test network's `wallets_info.json` beside the files tells which wallet each address belongs to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from btcnb import gates
from btcnb.data.readers import scripts
from btcnb.data.readers.assemble import FINAL_SEQUENCE, Missing, Raw, assemble, raw
from btcnb.data.readers.files import MISSHAPEN, Member, is_address, members, path_of, reading
from btcnb.data.readers.node import Node, node_blocks
from btcnb.data.tables import MAX_MONEY, UNKNOWN, plain
from btcnb.data.transactions import Transactions, Truth
from btcnb.errors import DataError, ParameterError

SATOSHI = 100_000_000
"""Satoshi in one bitcoin."""
WALLETS_FILE = "wallets_info.json"
_KEYS = re.compile(rb'"(tx|nTx|previousblockhash|merkleroot)"\s*:')
_DETAIL = "ask the node for `getblock <hash> 2` or, better, `getblock <hash> 3`, which tells previous outputs"


def read_bitcoin_core(
    source: str | Path | Node,
    *,
    start: int | None = None,
    end: int | None = None,
    user: str | None = None,
    password: str | None = None,
    cookie: str | Path | None = None,
    cache: str | Path | None = None,
    missing: Missing = "warn",
    wallets: bool = True,
    progress: bool | None = None,
) -> Transactions:
    """Transactions of the blocks `start` to `end` (both included; None: from the first, to the last).

    source:   URL of a JSON-RPC endpoint (`http://127.0.0.1:8332`), a `Node`, or a folder or zip of `getblock` JSON
              files (verbosity 2 or 3; other files are passed over)
    user, password, cookie: credentials for a URL, unless the URL holds them; `cookie` is the path of the node's
              `.cookie` file
    cache:    folder in which fetched blocks are kept; run again after an interruption, and only the rest is fetched;
              the folder can be read as a source itself
    missing:  what to do about inputs whose previous output neither the block nor an earlier block tells: "warn" and
              "ignore" keep them with address and value -1, "error" raises
    wallets:  fill `truth` from `wallets_info.json`, where one lies beside the block files
    progress: show a progress bar (None: on a terminal only)
    """
    gates.flag("wallets", wallets)
    for name, height in (("start", start), ("end", end)):
        if height is not None and type(height) is not int:
            raise ParameterError(f"{name}: {height!r} is not a height.")
    if isinstance(source, Node) or (is_address(path_of(source, "source")) and not Path(source).exists()):
        node = source if isinstance(source, Node) else Node.at(str(source), user, password, cookie)
        blocks: Iterable[tuple[str, Any]] = node_blocks(node, start, end, cache, progress)
        return assemble(_parts(blocks, start, end), node.url, missing)
    found = [member for member in members(source) if member.name.lower().endswith((".json", ".json.gz"))]
    if not found:
        raise DataError(source, "files", "no JSON file is there", "give a folder or zip of `getblock` files")
    bar = tqdm(found, desc="blocks", unit="file", leave=False, disable=None if progress is None else not progress)
    parts = _parts((block for member in bar for block in _blocks(member, alone=len(found) == 1)), start, end)
    txs = assemble(parts, str(source), missing)
    listed = next((member for member in found if member.name.rpartition("/")[2] == WALLETS_FILE), None)
    return attach_wallets(txs, _owners(listed)) if wallets and listed is not None else txs


def _blocks(member: Member, alone: bool) -> Iterator[tuple[str, Any]]:
    """The blocks of one file: one object, a list, or lines of objects; (place for messages, block) pairs.

    JSON that is no block (a wallet file, a scenario) is passed over, unless it is all there is.
    """
    text = member.read().decode("utf-8", errors="replace").strip()
    try:
        content = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        try:
            content = [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
        except (ValueError, RecursionError):
            raise DataError(member.source, "JSON", f"is broken or cut short ({error})", "fetch it again") from error
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        place = f"{member.source}[{number}]" if isinstance(content, list) else member.source
        if isinstance(block, dict) and isinstance(block.get("result"), dict | str):
            block = block["result"]  # a reply saved whole
        if isinstance(block, dict) and "tx" in block and "hash" in block:
            yield place, block
        elif alone:
            raise DataError(place, "tx", "this is not a block with its transactions", _DETAIL)


def _parts(blocks: Iterable[tuple[str, Any]], start: int | None, end: int | None) -> list[Raw]:
    seen: dict[int, tuple[str, Any, Any]] = {}  # height -> place, hash, previous hash
    parts = []
    for place, block in blocks:
        height = _whole(block.get("height"), place, "height")
        if (start is not None and height < start) or (end is not None and height > end):
            continue
        if height in seen and block.get("hash") != seen[height][1]:
            raise DataError(place, "height", f"{height} stands in {seen[height][0]} as another block", "keep one chain")
        seen[height] = (place, block.get("hash"), block.get("previousblockhash"))
        parts.append(_part(block, height, place))
    _require_one_chain(seen)
    return parts


def _require_one_chain(seen: dict[int, tuple[str, Any, Any]]) -> None:
    for height, (place, _, previous) in seen.items():
        before = seen.get(height - 1)
        if before is not None and previous is not None and before[1] not in (None, previous):
            raise DataError(
                place,
                "previousblockhash",
                f"block {height} does not follow the block {height - 1} in {before[0]}",
                "the chain was reorganised in between; fetch both again",
            )


def _part(block: dict[str, Any], height: int, place: str) -> Raw:
    time = _whole(block.get("time"), place, "time")
    listed = block.get("tx")
    if not isinstance(listed, list) or not all(isinstance(tx, dict) for tx in listed):
        raise DataError(place, "tx", "lists transaction ids only (verbosity 1)", _DETAIL)
    transactions, inputs, outputs = [], [], []
    for number, tx in enumerate(listed):
        where = f"{place}, tx[{number}]"
        try:
            coinbase = bool(tx["vin"]) and tx["vin"][0].get("coinbase") is not None
            size = _whole(tx.get("size", 0), where, "size")
            fee = _satoshi(tx["fee"], where, "fee") if "fee" in tx else UNKNOWN
            lock = _whole(tx.get("locktime", 0), where, "locktime")
            version = _whole(tx.get("version", 1), where, "version", low=None)
            virtual = _whole(tx.get("vsize", size), where, "vsize")
            transactions.append((tx["txid"], height, time, number, coinbase, version, lock, size, virtual, fee))
            if not coinbase:
                inputs += [_input(number, position, vin, where) for position, vin in enumerate(tx["vin"])]
            outputs += [_output(number, vout, tx["txid"], where) for vout in tx["vout"]]
        except KeyError as error:
            raise DataError(where, str(error.args[0]), "is missing", _DETAIL) from error
        except MISSHAPEN as error:
            raise DataError(where, "tx", f"is not a transaction ({error})", "fetch the block again") from error
    return raw(transactions, inputs, outputs)


def _input(tx: int, position: int, vin: dict[str, Any], where: str) -> tuple[Any, ...]:
    address, kind, value = None, scripts.UNKNOWN_TYPE, UNKNOWN
    previous = vin.get("prevout")
    if previous is not None:
        address, kind = _owner(previous["scriptPubKey"], vin["txid"], vin["vout"])
        value = _satoshi(previous["value"], where, f"vin[{position}].prevout.value")
    sequence = _whole(vin.get("sequence", FINAL_SEQUENCE), where, f"vin[{position}].sequence")
    return (
        tx,
        position,
        vin["txid"],
        _whole(vin["vout"], where, f"vin[{position}].vout"),
        address,
        value,
        kind,
        sequence,
    )


def _output(tx: int, vout: dict[str, Any], txid: str, where: str) -> tuple[Any, ...]:
    number = _whole(vout["n"], where, "vout.n")
    address, kind = _owner(vout["scriptPubKey"], txid, number)
    return (tx, number, address, _satoshi(vout["value"], where, f"vout[{number}].value"), kind)


def _owner(script: dict[str, Any], txid: str, number: int) -> tuple[str | None, int]:
    """Address and type of an output: what the node says (nodes before version 22 list `addresses`), else the script."""
    told = script.get("hex", "")
    kind = scripts.TYPE_CODE.get(str(script.get("type")))
    if kind is None:
        kind = scripts.type_of_hex(told) if told else scripts.UNKNOWN_TYPE
    if kind == scripts.NULLDATA or told.startswith("6a"):  # OP_RETURN, also where the node is unsure
        return None, scripts.NULLDATA
    several = script.get("addresses") or []
    if not isinstance(several, list):
        raise TypeError("addresses are no list")
    address = script.get("address", several[0] if len(several) == 1 else None)
    if address is not None and not isinstance(address, str):
        raise TypeError("an address is no text")
    return address or told or f"{txid}:{number}", kind


def _satoshi(value: Any, where: str, field: str) -> int:
    """Bitcoin, as a decimal, to whole satoshi."""
    try:
        amount = Decimal(str(value)) * SATOSHI
        if 0 <= amount <= MAX_MONEY and amount == int(amount):
            return int(amount)
    except DecimalException:
        pass
    problem = f"{plain(value)[:60]} is not an amount in bitcoin"
    raise DataError(where, field, problem, "amounts have at most 8 decimals and 21 million coins")


def _whole(value: Any, where: str, field: str, low: int | None = 0) -> int:
    """A whole number as JSON writes one. Nothing is converted: of 0.9 would come 0, and 1e999999999 takes for ever."""
    if type(value) is not int or (low is not None and value < low):
        raise DataError(where, field, f"{plain(repr(value))[:60]} is not a whole number", _DETAIL)
    return value


def looks_like_bitcoin_core(head: bytes) -> bool:
    """Whether a file starts like the JSON of a block."""
    return head.lstrip()[:1] in (b"{", b"[") and _KEYS.search(head) is not None


def attach_wallets(txs: Transactions, owners: Mapping[str, str]) -> Transactions:
    """The same transactions with `truth`: the wallet of each address (-1 unknown); wallets in order of their names."""
    gates.instance("txs", txs, Transactions)
    told = [*gates.instance("owners", owners, Mapping).items()]
    if not all(isinstance(text, str) for pair in told for text in pair):
        raise DataError("owners", "wallets", "are not address -> wallet, both text", "give the wallet of each address")
    names = sorted(set(owners.values()))
    number = {name: position for position, name in enumerate(names)}
    owner = np.array([number[owners[a]] if a in owners else UNKNOWN for a in txs.addresses], dtype=np.int64)
    entities = pd.DataFrame({"kind": ["wallet"] * len(names), "name": names})
    return replace(txs, truth=Truth(owner=owner, entities=entities))


def _owners(member: Member) -> dict[str, str]:
    """Address -> wallet, from wallet -> address -> key, or wallet -> list of keys that hold an `address`."""
    with reading(member.source, "JSON", "is broken or cut short", "fetch it again"):
        content: Any = json.loads(member.read())
    owners: dict[str, str] = {}
    remedy = "fix it, or read with wallets=False"
    with reading(member.source, "wallets", "is not wallet -> address -> key", remedy, MISSHAPEN):
        for wallet, keys in content.items():
            for address in keys if isinstance(keys, dict) else [key["address"] for key in keys]:
                if owners.setdefault(address, wallet) != wallet:
                    problem = f"belongs to {owners[address]} and {wallet}"
                    raise DataError(member.source, str(address), problem, "keep one owner")
    return owners
