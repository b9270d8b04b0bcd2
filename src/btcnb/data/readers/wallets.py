"""True owners: which wallet each address belongs to, from the `wallets_info.json` of a test network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.data.readers.archives import Member, members
from btcnb.data.readers.guard import guarded, reading
from btcnb.data.transactions import UNKNOWN, Transactions, Truth
from btcnb.errors import DataError

WALLETS_FILE = "wallets_info.json"


@guarded("path")
def read_wallet_owners(path: str | Path) -> dict[str, str]:
    """Address -> wallet name, from a `wallets_info.json`, or from the folder or zip it lies in."""
    owners = find_wallets([member for member in members(path) if member.stem == Path(path).stem] or members(path))
    if owners is None:
        raise DataError(
            path, "files", f"no {WALLETS_FILE} is there", "give the file, or the folder or zip that holds it"
        )
    return owners


def find_wallets(found: Sequence[Member]) -> dict[str, str] | None:
    """Address -> wallet name from the wallet file among `found`, None if there is none."""
    for member in found:
        if member.name.rpartition("/")[2] == WALLETS_FILE:
            return _owners(member)
    return None


@guarded("owners")
def attach_wallets(txs: Transactions, owners: Mapping[str, str]) -> Transactions:
    """The same transactions with `truth`: the wallet of each address (-1 unknown); wallets in order of their names."""
    gates.instance("txs", txs, Transactions)
    told = [*gates.instance("owners", owners, Mapping).items()]
    if not all(isinstance(text, str) for pair in told for text in pair):
        raise DataError(
            "owners", "wallets", "are not address -> wallet, both text", "pass what read_wallet_owners gives"
        )
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
    with reading(member.source, "wallets", "is not wallet -> address -> key", "fix it, or read with wallets=False"):
        for wallet, keys in content.items():
            for address in keys if isinstance(keys, dict) else [key["address"] for key in keys]:
                if owners.setdefault(address, wallet) != wallet:
                    problem = f"belongs to {owners[address]} and {wallet}"
                    raise DataError(member.source, str(address), problem, "keep one owner")
    return owners
