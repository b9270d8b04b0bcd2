"""Nested Parquet in the bitcoin-etl schema to raw parts; flattened by Arrow, without a Python loop a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from btcnb.data.readers.archives import Member, require_harmless
from btcnb.data.readers.builder import Raw
from btcnb.data.readers.etl_columns import Columns, Side, part
from btcnb.data.readers.guard import reading
from btcnb.errors import DataError

ROWS_A_PART = 50_000


def read_parquet(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one file, a part at a time."""
    with reading(member.source, "Parquet", "is broken or cut short", "fetch it again"):
        file = open_parquet(member)
        wanted = [name for name in file.schema_arrow.names if name not in ("script_asm", "block_hash")]
        for column in ("hash", "block_number", "outputs"):
            if column not in wanted:
                raise DataError(member.source, column, "column is missing", "export nested transactions")
        first = 0
        for batch in file.iter_batches(ROWS_A_PART, columns=wanted):
            batch.validate(full=True)  # offsets and texts of a damaged file may point anywhere
            yield _part(batch, member.source, first, unit)
            first += len(batch)


def open_parquet(member: Member) -> Any:
    """A Parquet file whose content is of modest size: a few bytes can stand for very many rows.

    Asking a damaged footer about single columns ends the process (pyarrow 26), so that only totals are asked for.
    """
    file = pq.ParquetFile(member.seekable(), page_checksum_verification=True)
    grown = sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
    require_harmless(member.source, "Parquet", member.path.stat().st_size, max(grown, file.metadata.num_rows))
    return file


def _part(batch: Any, source: str, first: int, unit: int) -> Raw:
    """A raw part from a record batch whose first row is row `first` of its source."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    head = Columns(columns, len(batch), lambda row, name: (f"{source}, row {first + row}", name))
    return part(head, _side(head, "inputs"), _side(head, "outputs"), unit)


def _side(head: Columns, name: str) -> Side:
    """The nested rows of `inputs` or `outputs`."""
    array = head.columns.get(name)
    if array is None or pa.types.is_null(array.type):
        return head.nested(name, {}, np.zeros(0, dtype=np.int64))
    if pa.types.is_struct(array.type) and array.type.num_fields == 1:
        array = array.field(0)  # some exports wrap the list into a record `list`
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        raise head.error(0, name, f"holds {array.type}, not a list of records", "export nested transactions")
    tx = pc.list_parent_indices(array).to_numpy().astype(np.int64)
    items = pc.list_flatten(array)
    if pa.types.is_struct(items.type) and items.type.num_fields == 1 and pa.types.is_struct(items.type.field(0).type):
        items = items.field(0)  # … and each item into a record `element`
    if items.null_count or not (pa.types.is_struct(items.type) or not len(items)):
        raise head.error(0, name, "is not a list of records", "export nested transactions")
    fields = [] if pa.types.is_null(items.type) else items.type
    return head.nested(name, {field.name: items.field(position) for position, field in enumerate(fields)}, tx)
