"""Writing transactions in the bitcoin-etl schema, nested, as JSON lines or Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from btcnb.data.readers.atomic import replacing
from btcnb.data.readers.sidecar import sidecar_of, write_sidecar
from btcnb.data.transactions import SCRIPT_TYPES, Transactions
from btcnb.errors import ParameterError

ROWS_A_GROUP = 20_000
_JSON = (".json", ".jsonl", ".ndjson")


def write_etl(txs: Transactions, path: str | Path, sidecar: bool | None = None) -> Path:
    """Write `.jsonl`, `.json` or `.ndjson` (also `.gz`), or `.parquet`; the file appears whole or not at all.

    `read_etl` gives the same tables back. The schema has no place for address ids that do not follow first appearance
    nor for truth: they go to a sidecar `<path>.truth.json.gz` (None: where there is truth; True: always; False: never,
    and ids are then numbered by first appearance). Columns that a source added to the contract's are not written.
    """
    target = Path(path)
    suffixes = [suffix.lower() for suffix in target.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if kind == [".parquet"] and not packed:
        with replacing(target) as part:
            _write_parquet(txs, part)
    elif kind and kind[0] in _JSON:
        with replacing(target) as part, gzip.open(part, "wt") if packed else part.open("w") as stream:
            stream.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in _records(txs))
    else:
        raise ParameterError(
            f"path: {target.name} ends neither in .jsonl, .json, .ndjson (or these with .gz) nor .parquet."
        )
    beside = sidecar_of(target)
    if sidecar or (sidecar is None and txs.truth is not None):
        write_sidecar(txs, beside)
    else:
        beside.unlink(missing_ok=True)  # one from an earlier write would no longer fit
    return target


def _records(txs: Transactions) -> Iterator[dict[str, Any]]:
    for first in range(0, len(txs), ROWS_A_GROUP):
        yield from _table(txs, first, min(first + ROWS_A_GROUP, len(txs))).to_pylist()


def _write_parquet(txs: Transactions, path: Path) -> None:
    with pq.ParquetWriter(path, _table(txs, 0, 0).schema) as writer:
        for first in range(0, len(txs), ROWS_A_GROUP):
            writer.write_table(_table(txs, first, min(first + ROWS_A_GROUP, len(txs))))


def _table(txs: Transactions, first: int, last: int) -> Any:
    """Transactions first..last-1 as an Arrow table with nested inputs and outputs."""
    head = txs.transactions.iloc[first:last]
    into, out = txs.input_offsets()[first : last + 1], txs.output_offsets()[first : last + 1]
    inputs, outputs = txs.inputs.iloc[into[0] : into[-1]], txs.outputs.iloc[out[0] : out[-1]]
    value = inputs["value"].to_numpy()
    count = len(head)
    columns = {
        "hash": pa.array(head["hash"].to_numpy(dtype=object), pa.string()),
        "size": pa.array(head["size"].to_numpy()),
        "virtual_size": pa.array(head["virtual_size"].to_numpy()),
        "version": pa.array(head["version"].to_numpy()),
        "lock_time": pa.array(head["lock_time"].to_numpy()),
        "block_number": pa.array(head["block_number"].to_numpy()),
        "block_hash": pa.nulls(count, pa.string()),
        "block_timestamp": pa.array(head["block_timestamp"].to_numpy()),
        "is_coinbase": pa.array(head["is_coinbase"].to_numpy()),
        "index": pa.array(head["index"].to_numpy()),
        "inputs": pa.ListArray.from_arrays(pa.array(into - into[0], pa.int32()), _inputs(txs, inputs)),
        "outputs": pa.ListArray.from_arrays(pa.array(out - out[0], pa.int32()), _outputs(txs, outputs)),
        "input_count": pa.array(np.diff(into)),
        "output_count": pa.array(np.diff(out)),
        "input_value": _sums(value, into - into[0]),
        "output_value": _sums(outputs["value"].to_numpy(), out - out[0]),
        "fee": _known(head["fee"].to_numpy()),
    }
    return pa.table(columns)


def _inputs(txs: Transactions, inputs: Any) -> Any:
    spent = inputs["spent_output"].to_numpy()
    inside = spent >= 0
    hashes = inputs["spent_transaction_hash"].astype(object).to_numpy(copy=True)
    hashes[inputs["spent_transaction_hash"].isna().to_numpy()] = None
    parents = txs.outputs["tx"].to_numpy()[spent[inside]]
    hashes[inside] = txs.transactions["hash"].to_numpy(dtype=object)[parents]
    address = inputs["address"].to_numpy()
    rows = len(inputs)
    return pa.StructArray.from_arrays(
        [
            pa.array(inputs["index"].to_numpy()),
            pa.array(hashes, pa.string()),
            _known(inputs["spent_output_index"].to_numpy()),
            pa.nulls(rows, pa.string()),
            pa.nulls(rows, pa.string()),
            pa.array(inputs["sequence"].to_numpy()),
            pa.nulls(rows, pa.int64()),
            _types(inputs["script_type"].to_numpy()),
            _lists([txs.addresses[a] if a >= 0 else None for a in address]),
            _known(inputs["value"].to_numpy()),
        ],
        names=[
            "index",
            "spent_transaction_hash",
            "spent_output_index",
            "script_asm",
            "script_hex",
            "sequence",
            "required_signatures",
            "type",
            "addresses",
            "value",
        ],
    )


def _outputs(txs: Transactions, outputs: Any) -> Any:
    owner = [txs.addresses[a] if a >= 0 else None for a in outputs["address"].to_numpy()]
    script = [_is_hex(text) for text in owner]
    rows = len(outputs)
    return pa.StructArray.from_arrays(
        [
            pa.array(outputs["index"].to_numpy()),
            pa.nulls(rows, pa.string()),
            pa.array([text if is_hex else None for text, is_hex in zip(owner, script, strict=True)], pa.string()),
            pa.nulls(rows, pa.int64()),
            _types(outputs["script_type"].to_numpy()),
            _lists([None if is_hex else text for text, is_hex in zip(owner, script, strict=True)]),
            pa.array(outputs["value"].to_numpy()),
        ],
        names=["index", "script_asm", "script_hex", "required_signatures", "type", "addresses", "value"],
    )


def _is_hex(text: str | None) -> bool:
    """Whether an owner is a script's hex, not an address: long, even, and of hexadecimal digits only."""
    return text is not None and len(text) >= 40 and len(text) % 2 == 0 and not text.strip("0123456789abcdef")


def _lists(owners: list[str | None]) -> Any:
    return pa.array([text.split(",") if text else [] for text in owners], pa.list_(pa.string()))


def _types(codes: npt.NDArray[np.int8]) -> Any:
    return pa.array(np.array(SCRIPT_TYPES, dtype=object)[codes], pa.string())


def _known(values: npt.NDArray[np.int64]) -> Any:
    return pa.array(values, mask=values < 0)


def _sums(values: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> Any:
    """Sum of each group; null where a value is unknown."""
    total = np.diff(np.concatenate([[0], np.cumsum(values)])[offsets])
    unknown = np.diff(np.concatenate([[0], np.cumsum(values < 0)])[offsets]) > 0
    return pa.array(total, mask=unknown)
