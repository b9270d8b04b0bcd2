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
from typing import Annotated, Any, NotRequired

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from tqdm import tqdm
from typing_extensions import TypedDict

from btcnb import gates
from btcnb.data.readers import scripts
from btcnb.data.readers.assemble import FINAL_SEQUENCE, Missing, Raw, assemble, raw
from btcnb.data.readers.files import MISSHAPEN, Member, is_address, members, path_of, reading
from btcnb.data.readers.node import Node, node_blocks
from btcnb.data.tables import MAX_MONEY, UNKNOWN, plain, writable
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
        return assemble(_parts(node_blocks(node, start, end, cache, progress), start, end), node.url, missing)
    found = [member for member in members(source) if member.name.lower().endswith((".json", ".json.gz"))]
    if not found:
        raise DataError(source, "files", "no JSON file is there", "give a folder or zip of `getblock` files")
    bar = tqdm(found, desc="blocks", unit="file", leave=False, disable=None if progress is None else not progress)
    parts = _parts((block for member in bar for block in _blocks(member, alone=len(found) == 1)), start, end)
    txs = assemble(parts, str(source), missing)
    listed = next((member for member in found if member.name.rpartition("/")[2] == WALLETS_FILE), None)
    return attach_wallets(txs, _owners(listed)) if wallets and listed is not None else txs


def looks_like_bitcoin_core(head: bytes) -> bool:
    """Whether a file starts like the JSON of a block."""
    return head.lstrip()[:1] in (b"{", b"[") and _KEYS.search(head) is not None


# What a node prints ------------------------------------------------------------------------------------------------


def _satoshi(value: Any) -> int:
    """Bitcoin, as a decimal, to whole satoshi."""
    try:
        amount = Decimal(str(value)) * SATOSHI
        if 0 <= amount <= MAX_MONEY and amount == int(amount):
            return int(amount)
    except DecimalException:
        pass
    raise ValueError("an amount in bitcoin, with at most 8 decimals and 21 million coins")


# Nothing is converted: of 0.9 would come 0, and 1e999999999 takes for ever.
_Signed = Annotated[int, Field(strict=True)]
_Whole = Annotated[int, Field(strict=True, ge=0)]
_Amount = Annotated[int, BeforeValidator(_satoshi)]


class _Script(TypedDict, total=False):
    hex: str
    type: Any
    address: str | None
    addresses: list[str] | None


class _Previous(TypedDict):
    value: _Amount
    scriptPubKey: _Script


class _Output(_Previous):
    n: _Whole


class _Input(TypedDict, total=False):
    coinbase: Any
    txid: str
    vout: _Whole
    sequence: _Whole
    prevout: _Previous | None


class _Transaction(TypedDict):
    txid: str
    vin: list[_Input]
    vout: list[_Output]
    version: NotRequired[_Signed]
    locktime: NotRequired[_Whole]
    size: NotRequired[_Whole]
    vsize: NotRequired[_Whole]
    fee: NotRequired[_Amount]


class _Block(TypedDict):
    hash: Any
    height: _Whole
    time: _Whole
    tx: list[_Transaction]
    previousblockhash: NotRequired[Any]


_BLOCK: TypeAdapter[_Block] = TypeAdapter(_Block)


def _checked(block: Any, place: str) -> _Block:
    """The block, every field of the type that `getblock` gives it; else `DataError` with the first that is not."""
    try:
        return _BLOCK.validate_python(block)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    listed = first["loc"][:1] == ("tx",) and isinstance(first["input"], str)
    if listed and len(first["loc"]) == 2:
        raise DataError(place, "tx", "lists transaction ids only (verbosity 1)", _DETAIL)
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
    if first["type"] == "missing":
        raise DataError(place, field, "is missing", _DETAIL)
    wanted = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    shown = str(first["input"]) if isinstance(first["input"], Decimal) else repr(first["input"])
    raise DataError(place, field or "block", f"{plain(shown)[:60]} is not {wanted}", _DETAIL)


# Blocks to parts ---------------------------------------------------------------------------------------------------


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
    """The blocks inside the heights, one part each; they must be of one chain."""
    seen: dict[int, tuple[str, _Block]] = {}
    parts = []
    for place, told in blocks:
        block = _checked(told, place)
        height = block["height"]
        if (start is not None and height < start) or (end is not None and height > end):
            continue
        if height in seen and block["hash"] != seen[height][1]["hash"]:
            raise DataError(place, "height", f"{height} stands in {seen[height][0]} as another block", "keep one chain")
        parts.append(_part(block, place))
        seen[height] = (place, {**block, "tx": []})
    for height, (place, block) in seen.items():
        before, previous = seen.get(height - 1), block.get("previousblockhash")
        if before is not None and previous is not None and before[1]["hash"] not in (None, previous):
            problem = f"block {height} does not follow the block {height - 1} in {before[0]}"
            remedy = "the chain was reorganised in between; fetch both again"
            raise DataError(place, "previousblockhash", problem, remedy)
    return parts


def _part(block: _Block, place: str) -> Raw:
    transactions, inputs, outputs = [], [], []
    for number, tx in enumerate(block["tx"]):
        coinbase = bool(tx["vin"]) and tx["vin"][0].get("coinbase") is not None
        size = tx.get("size", 0)
        sizes = (size, tx.get("vsize", size))
        head = (coinbase, tx.get("version", 1), tx.get("locktime", 0), *sizes, tx.get("fee", UNKNOWN))
        transactions.append((tx["txid"], block["height"], block["time"], number, *head))
        for position, spend in enumerate([] if coinbase else tx["vin"]):
            if "txid" not in spend or "vout" not in spend:
                raise DataError(place, f"tx[{number}].vin[{position}].txid, vout", "is missing", _DETAIL)
            inputs.append((number, position, *_spent(spend)))
        for made in tx["vout"]:
            address, kind = _owner(made["scriptPubKey"], tx["txid"], made["n"])
            outputs.append((number, made["n"], address, made["value"], kind))
    return raw(transactions, inputs, outputs)


def _spent(spend: _Input) -> tuple[Any, ...]:
    """Transaction, output, address, value, type and sequence of an input."""
    address, kind, value = None, scripts.UNKNOWN_TYPE, UNKNOWN
    previous = spend.get("prevout")
    if previous is not None:
        address, kind = _owner(previous["scriptPubKey"], spend["txid"], spend["vout"])
        value = previous["value"]
    return spend["txid"], spend["vout"], address, value, kind, spend.get("sequence", FINAL_SEQUENCE)


def _owner(script: _Script, txid: str, number: int) -> tuple[str | None, int]:
    """Address and type of an output: what the node says (nodes before version 22 list `addresses`), else the script."""
    told = script.get("hex", "")
    kind = scripts.TYPE_CODE.get(str(script.get("type")))
    if kind is None:
        kind = scripts.type_of_hex(told) if told else scripts.UNKNOWN_TYPE
    if kind == scripts.NULLDATA or told.startswith("6a"):  # OP_RETURN, also where the node is unsure
        return None, scripts.NULLDATA
    several = script.get("addresses") or []
    address = script.get("address", several[0] if len(several) == 1 else None)
    return address or told or f"{txid}:{number}", kind


# Wallets -----------------------------------------------------------------------------------------------------------


def attach_wallets(txs: Transactions, owners: Mapping[str, str]) -> Transactions:
    """The same transactions with `truth`: the wallet of each address (-1 unknown); wallets in order of their names."""
    gates.instance("txs", txs, Transactions)
    told = [*gates.instance("owners", owners, Mapping).items()]
    if not all(isinstance(text, str) for pair in told for text in pair):
        raise DataError("owners", "wallets", "are not address -> wallet, both text", "give the wallet of each address")
    names = sorted(set(writable(list(owners.values()), "owners", "wallets")))
    number = {name: position for position, name in enumerate(names)}
    owner = np.array([number[owners[a]] if a in owners else UNKNOWN for a in txs.addresses], dtype=np.int64)
    entities = pd.DataFrame({"kind": ["wallet"] * len(names), "name": names})
    return replace(txs, truth=Truth(owner=owner, entities=entities))


def _owners(member: Member) -> dict[str, str]:
    """Address -> wallet, from wallet -> address -> key, or wallet -> list of keys that hold an `address`."""
    with reading(member.source, "JSON", "is broken or cut short", "fetch it again"):
        content: Any = json.loads(member.read())
    remedy = "fix it, or read with wallets=False"
    with reading(member.source, "wallets", "is not wallet -> address -> key", remedy, MISSHAPEN):
        pairs = [
            (address, wallet)
            for wallet, keys in content.items()
            for address in (keys if isinstance(keys, dict) else [key["address"] for key in keys])
        ]
        owners: dict[str, str] = {}
        for address, wallet in pairs:
            if owners.setdefault(address, wallet) != wallet:
                problem = f"belongs to {owners[address]} and {wallet}"
                raise DataError(member.source, str(address), problem, "keep one owner")
    return owners
