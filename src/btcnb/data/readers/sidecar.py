"""What the bitcoin-etl schema has no field for: the order of address ids, the truth, and the source's name."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from btcnb.data.readers.archives import Member
from btcnb.data.readers.guard import reading
from btcnb.data.transactions import UNKNOWN, Transactions, Truth

SUFFIX = ".truth.json.gz"
_IDS = ("owner", "change")


def sidecar_of(path: str | Path) -> Path:
    """The sidecar that belongs to a file or folder of transactions."""
    place = Path(path)
    return place.with_name(place.name + SUFFIX)


def sidecar_content(txs: Transactions) -> bytes:
    """Addresses in id order, truth and source, as gzipped JSON."""
    truth = (
        None if txs.truth is None else {field.name: _plain(getattr(txs.truth, field.name)) for field in fields(Truth)}
    )
    content = {"source": txs.source, "addresses": txs.addresses.tolist(), "truth": truth}
    return gzip.compress(json.dumps(content).encode(), mtime=0)


def restore(txs: Transactions, path: Path) -> Transactions:
    """`txs` with the address ids, the truth and the source that the sidecar tells."""
    with reading(path, "sidecar", "does not fit its transactions", "delete it or write both again"):
        content = json.loads(Member(path.name, path).read())
        number = {address: position for position, address in enumerate(content["addresses"])}
        new_id = np.array([number[address] for address in txs.addresses] + [UNKNOWN], dtype=np.int64)
        told = content.get("truth")
        truth = None if told is None else Truth(**{name: _array(name, values) for name, values in told.items()})
        sides = (txs.inputs, txs.outputs)
        inputs, outputs = (table.assign(address=new_id[table["address"].to_numpy()]) for table in sides)
        return Transactions.checked(
            txs.transactions, inputs, outputs, content["addresses"], truth, content.get("source", txs.source)
        )


def _plain(values: Any) -> Any:
    return values.to_dict("list") if isinstance(values, pd.DataFrame) else None if values is None else values.tolist()


def _array(name: str, values: Any) -> Any:
    if name == "entities":
        return pd.DataFrame(values)
    if values is not None and name in _IDS and not set(map(type, values)) <= {int}:
        raise ValueError(f"truth.{name} is no list of whole numbers")  # of 1.5, true and "1" numpy would make 1
    return None if values is None else np.array(values, dtype=np.int64 if name in _IDS else object)
