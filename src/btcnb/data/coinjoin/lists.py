"""Lists of real CoinJoins: the folders they come in, and what a list claims its transactions to be."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from btcnb.data.readers import read_bitcoin_core, read_dumplings
from btcnb.data.readers.assemble import FINAL_SEQUENCE, MissingOutputsWarning, assemble, raw
from btcnb.data.readers.files import MISSHAPEN, Member, members, reading
from btcnb.data.readers.scripts import TYPE_CODE
from btcnb.data.tables import UNKNOWN
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

WASABI1 = ("wasabi1.0", "wasabi1.1")
LISTED = {
    "SamouraiCoinJoins": ("whirlpool",),
    "SamouraiTx0s": ("whirlpool-tx0",),
    "WasabiCoinJoins": WASABI1,
    "Wasabi2CoinJoins": ("wasabi2",),
    "OtherCoinJoins": ("joinmarket",),
}
"""The protocols that a file of the Dumplings project lists; other files hold mostly ordinary transactions."""
RUNS = {"wasabi2": ("wasabi2",), "joinmarket": ("joinmarket",)}
"""First word of the name of a test network's archive -> the protocol that its wallets ran."""
_TYPE_OF_PREFIX = {"bcrt1q": TYPE_CODE["witness_v0_keyhash"], "bcrt1p": TYPE_CODE["witness_v1_taproot"]}


class Listed(NamedTuple):
    """One list: the archive it stands in, its name there, the names that would be right for its transactions."""

    archive: str
    file: str
    protocols: tuple[str, ...]  # empty where the list holds mostly ordinary transactions
    mixes: Transactions


def read_lists(folders: Iterable[str | Path]) -> list[Listed]:
    """Every list in the folders, in order of archive and file.

    A `*.zip` of Dumplings files gives one list per file. A `*.zip` of a test network's blocks with `wallets_info.json`
    gives the transactions that two wallets or more sign. A `*.json.gz` is a set of emulated Wasabi 2 rounds.
    """
    found: list[Listed] = []
    for folder in map(Path, folders):
        for path in sorted([*folder.glob("*.zip"), *folder.glob("*.json.gz")]):
            if path.suffix == ".gz":
                found.append(Listed(path.name.split(".")[0], "emulated", ("wasabi2",), read_emulated(path)))
            elif any(member.name.endswith(".txt") for member in members(path)):
                found += _dumplings(path)
            else:
                found.append(_run(path))
    if not found:
        raise DataError("lists", "folders", "hold no zip of Dumplings files or of a test network", "check the paths")
    return sorted(found, key=lambda listed: listed[:2])


def _dumplings(path: Path) -> list[Listed]:
    """One that stands in several files counts in each."""
    txs = read_dumplings(path)
    files = txs.transactions["file"].str.split("+")
    names = sorted({name for row in files for name in row})
    masks = {name: np.array([name in row for row in files]) for name in names}
    return [Listed(path.stem, name, LISTED.get(name, ()), txs.select(mask)) for name, mask in masks.items()]


def _run(path: Path) -> Listed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingOutputsWarning)
        txs = read_bitcoin_core(path)
    if txs.truth is None:
        raise DataError(path, "wallets_info.json", "is missing", "without it nobody knows which transactions are mixes")
    address = txs.inputs["address"].to_numpy()
    owner = pd.Series(np.where(address >= 0, txs.truth.owner[address], UNKNOWN))
    signers = owner.where(owner >= 0).groupby(txs.inputs["tx"].to_numpy()).nunique()
    mixes = signers.index[signers >= 2].to_numpy()
    return Listed(path.stem, "rounds", RUNS.get(path.stem.split("-")[0], ()), txs.select(mixes))


def read_emulated(path: str | Path) -> Transactions:
    """Emulated Wasabi 2 rounds (JSON: coinjoins -> txid -> inputs and outputs by position), in order of broadcast.

    The coins they spend are not in the file but for their values, so that no input is resolved to an output; wallets
    are left out.
    """
    source = str(path)
    with reading(source, "JSON", "is broken or cut short", "fetch it again"):
        content: Any = json.loads(Member(Path(path).name, Path(path)).read())
    transactions: list[tuple[Any, ...]] = []
    inputs: list[tuple[Any, ...]] = []
    outputs: list[tuple[Any, ...]] = []
    with reading(source, "coinjoins", "are not inputs and outputs by position", "fetch it again", MISSHAPEN):
        rounds = sorted(content["coinjoins"].values(), key=lambda each: (each["broadcast_time"], each["txid"]))
        for tx, each in enumerate(rounds):
            time = int(pd.Timestamp(each["broadcast_time"]).timestamp())
            transactions.append((each["txid"], tx, time, 1, False, 1, 0, 0, 0, UNKNOWN))
            for position, coin in _by_position(each["inputs"]):
                outside = f"f{len(inputs):063x}"  # the id of no transaction
                owner = (coin["address"], coin["value"], _kind(coin["address"]))
                inputs.append((tx, position, outside, 0, *owner, FINAL_SEQUENCE))
            for position, coin in _by_position(each["outputs"]):
                outputs.append((tx, position, coin["address"], coin["value"], _kind(coin["address"])))
    return assemble([raw(transactions, inputs, outputs)], source)


def _by_position(side: dict[str, Any]) -> list[tuple[int, Any]]:
    return sorted((int(position), coin) for position, coin in side.items())


def _kind(address: str) -> int:
    return _TYPE_OF_PREFIX.get(address[:6], TYPE_CODE["unknown"])
