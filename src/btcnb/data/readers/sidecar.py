"""What the bitcoin-etl schema has no field for: the order of address ids, the truth, and the source's name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.readers.atomic import replacing
from btcnb.data.transactions import UNKNOWN, Transactions, Truth
from btcnb.errors import DataError

SUFFIX = ".truth.json.gz"


def sidecar_of(path: str | Path) -> Path:
    """The sidecar that belongs to a file or folder of transactions."""
    place = Path(path)
    return place.with_name(place.name + SUFFIX)


def is_sidecar(name: str) -> bool:
    return name.endswith(SUFFIX)


def write_sidecar(txs: Transactions, path: Path) -> None:
    """Addresses in id order, truth and source, as gzipped JSON."""
    truth = txs.truth
    content: dict[str, Any] = {"source": txs.source, "addresses": txs.addresses.tolist()}
    if truth is not None:
        content["truth"] = {
            "owner": truth.owner.tolist(),
            "entities": {name: truth.entities[name].tolist() for name in truth.entities.columns},
            **{
                name: None if getattr(truth, name) is None else np.asarray(getattr(truth, name)).tolist()
                for name in ("label", "coinjoin", "change")
            },
        }
    with replacing(path) as part:
        part.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))


def restore(txs: Transactions, path: Path) -> Transactions:
    """`txs` with the address ids, the truth and the source that the sidecar tells."""
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
        addresses = np.array([*content["addresses"], None], dtype=object)[:-1]
        number = {address: position for position, address in enumerate(addresses)}
        new_id = np.array([number[address] for address in txs.addresses] + [UNKNOWN], dtype=np.int64)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            path, "sidecar", f"does not fit its transactions ({error})", "delete it or write both again"
        ) from error
    inputs, outputs = (table.assign(address=new_id[table["address"].to_numpy()]) for table in (txs.inputs, txs.outputs))
    return Transactions.checked(
        txs.transactions, inputs, outputs, addresses, _truth(content.get("truth")), content["source"]
    )


def _truth(content: dict[str, Any] | None) -> Truth | None:
    if content is None:
        return None
    return Truth(
        owner=np.array(content["owner"], dtype=np.int64),
        entities=pd.DataFrame(content["entities"]),
        label=_texts(content["label"]),
        coinjoin=_texts(content["coinjoin"]),
        change=None if content["change"] is None else np.array(content["change"], dtype=np.int64),
    )


def _texts(values: list[str] | None) -> npt.NDArray[Any] | None:
    return None if values is None else np.array([*values, None], dtype=object)[:-1]
