"""Writing transactions in the bitcoin-etl schema, nested, as JSON lines or Parquet."""

from __future__ import annotations

import contextlib
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
from btcnb.data.readers.guard import guarded
from btcnb.data.readers.sidecar import sidecar_content, sidecar_of
from btcnb.data.transactions import SCRIPT_TYPES, Transactions
from btcnb.errors import ParameterError

ROWS_A_GROUP = 20_000
_JSON = (".json", ".jsonl", ".ndjson")
_SAME = ("size", "virtual_size", "version", "lock_time", "block_number", "block_timestamp", "is_coinbase", "index")


@guarded("path")
def write_etl(txs: Transactions, path: str | Path, sidecar: bool | None = None) -> Path:
    """Write `.jsonl`, `.json` or `.ndjson` (also `.gz`), or `.parquet`; the file appears whole or not at all.

    `read_etl` gives the same tables back. The schema has no place for address ids that do not follow first appearance
    nor for truth: they go to a sidecar `<path>.truth.json.gz` (None: where there is truth; True: always; False: never,
    and ids are then numbered by first appearance). Columns that a source added to the contract's are not written.
    """
    target = Path(path)
    *_, kind, packing = ["", "", *(suffix.lower() for suffix in target.suffixes)]
    if packing != ".gz":
        kind, packing = packing, ""
    if kind not in _JSON and (kind, packing) != (".parquet", ""):
        raise ParameterError(
            f"path: {target.name} ends neither in .jsonl, .json, .ndjson (or these with .gz) nor .parquet."
        )
    beside = sidecar_of(target)
    with replacing(target) as part, contextlib.ExitStack() as stack:
        if sidecar or (sidecar is None and txs.truth is not None):
            stack.enter_context(replacing(beside)).write_bytes(sidecar_content(txs))
        if kind == ".parquet":
            _write_parquet(txs, part)
        else:
            with gzip.open(part, "wt") if packing else part.open("w") as stream:
                stream.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in _records(txs))
    if not (sidecar or (sidecar is None and txs.truth is not None)):
        beside.unlink(missing_ok=True)  # one from an earlier write would no longer fit
    return target


def _records(txs: Transactions) -> Iterator[dict[str, Any]]:
    for first in range(0, len(txs), ROWS_A_GROUP):
        yield from _table(txs, first, min(first + ROWS_A_GROUP, len(txs))).to_pylist()


def _write_parquet(txs: Transactions, path: Path) -> None:
    with pq.ParquetWriter(path, _table(txs, 0, 0).schema, write_page_checksum=True) as writer:
        for first in range(0, len(txs), ROWS_A_GROUP):
            writer.write_table(_table(txs, first, min(first + ROWS_A_GROUP, len(txs))))


def _table(txs: Transactions, first: int, last: int) -> Any:
    """Transactions first..last-1 as an Arrow table with nested inputs and outputs."""
    head = txs.transactions.iloc[first:last]
    into, out = txs.input_offsets()[first : last + 1], txs.output_offsets()[first : last + 1]
    inputs, outputs = txs.inputs.iloc[into[0] : into[-1]], txs.outputs.iloc[out[0] : out[-1]]
    columns = {
        "hash": pa.array(head["hash"].to_numpy(dtype=object), pa.string()),
        **{name: pa.array(head[name].to_numpy()) for name in _SAME},
        "block_hash": pa.nulls(len(head), pa.string()),
        "inputs": pa.ListArray.from_arrays(pa.array(into - into[0], pa.int32()), _inputs(txs, inputs)),
        "outputs": pa.ListArray.from_arrays(pa.array(out - out[0], pa.int32()), _outputs(txs, outputs)),
        "input_count": pa.array(np.diff(into)),
        "output_count": pa.array(np.diff(out)),
        "input_value": _sums(inputs["value"].to_numpy(), into - into[0]),
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
    absent = pa.nulls(len(inputs), pa.string())
    return _records_of(
        index=pa.array(inputs["index"].to_numpy()),
        spent_transaction_hash=pa.array(hashes, pa.string()),
        spent_output_index=_known(inputs["spent_output_index"].to_numpy()),
        script_asm=absent,
        script_hex=absent,
        sequence=pa.array(inputs["sequence"].to_numpy()),
        required_signatures=absent.cast(pa.int64()),
        type=_types(inputs["script_type"].to_numpy()),
        addresses=_lists([txs.addresses[a] if a >= 0 else None for a in inputs["address"].to_numpy()]),
        value=_known(inputs["value"].to_numpy()),
    )


def _outputs(txs: Transactions, outputs: Any) -> Any:
    owner = [txs.addresses[a] if a >= 0 else None for a in outputs["address"].to_numpy()]
    script = [_is_hex(text) for text in owner]
    absent = pa.nulls(len(outputs), pa.string())
    return _records_of(
        index=pa.array(outputs["index"].to_numpy()),
        script_asm=absent,
        script_hex=pa.array(
            [text if is_hex else None for text, is_hex in zip(owner, script, strict=True)], pa.string()
        ),
        required_signatures=absent.cast(pa.int64()),
        type=_types(outputs["script_type"].to_numpy()),
        addresses=_lists([None if is_hex else text for text, is_hex in zip(owner, script, strict=True)]),
        value=pa.array(outputs["value"].to_numpy()),
    )


def _records_of(**fields: Any) -> Any:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


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
