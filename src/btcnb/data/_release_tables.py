"""Tables of a released graph: which file holds which, told by its columns, and reading one exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc

from btcnb.data.address_graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.readers.archives import Member
from btcnb.data.readers.etl_parquet import open_parquet
from btcnb.data.readers.guard import reading
from btcnb.errors import DataError

ROLES: dict[str, tuple[str, ...]] = {
    "nodes": NODE_COLUMNS,
    "edges": EDGE_COLUMNS,
    "clusters": CLUSTER_COLUMNS,
    "truth": ("node_id",),  # and owner, address, or both
}
_SUFFIX = re.compile(r"\.(csv|tsv|txt|parquet|pq)(\.gz)?$", re.IGNORECASE)
_KIND = re.compile(r"(u?int|float|U?Int|Float)(8|16|32|64)|object|str|string")
_ENOUGH = 0.5
"""Share of a table's columns that make a file count as that table, so that one misnamed column is named, not lost."""


@dataclass(frozen=True)
class Table:
    """A file, the table it holds, and its columns as written."""

    member: Member
    role: str
    columns: tuple[str, ...]
    separator: str | None  # None: Parquet

    def read(self, types: Mapping[str, str] | None = None, rows: int | None = None) -> pd.DataFrame:
        """The contract's columns, in its order; `types` and the number of `rows` where a sidecar tells them."""
        wanted = [*ROLES[self.role], *(("owner", "address") if self.role == "truth" else ())]
        spelling = {_tidy(column): column for column in self.columns}
        missing = next((name for name in ROLES[self.role] if name not in spelling), None)
        if missing is not None:
            raise DataError(
                self.member.source,
                f"{self.role}.{missing}",
                "column is missing",
                f"expected {', '.join(ROLES[self.role])}, found {', '.join(self.columns) or 'none'}",
            )
        names = {spelling[name]: name for name in wanted if name in spelling}
        kinds = {written: types[name] for written, name in names.items() if types and name in types}
        with reading(self.member.source, self.role, remedy="check the file"):
            frame = self._parquet(list(names)) if self.separator is None else self._csv(list(names), kinds, rows)
            frame = frame[list(names)].rename(columns=names)
        if rows is not None and len(frame) != rows:
            problem = f"has {len(frame)} rows, {rows} were written"
            raise DataError(self.member.source, self.role, problem, "it is cut short or changed: fetch it again")
        return frame

    def _csv(self, names: list[str], kinds: dict[str, str], rows: int | None) -> pd.DataFrame:
        content = self.member.read()
        if rows is not None and not content.endswith(b"\n"):
            raise ValueError("the last line is cut short")
        table = pc.read_csv(
            pa.BufferReader(content),
            parse_options=pc.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=pc.ConvertOptions(
                include_columns=names, column_types={name: pa.string() for name in names if _tidy(name) == "address"}
            ),
        )
        frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)  # exact where some are absent
        return pd.DataFrame({name: _as(frame[name], kinds.get(name)) for name in names})

    def _parquet(self, names: list[str]) -> pd.DataFrame:
        table = open_parquet(self.member).read(columns=names)
        table.validate(full=True)
        return table.to_pandas()


def _as(values: pd.Series, kind: str | None) -> pd.Series:
    """Values of the type that a sidecar tells, else whole numbers, or floats where some are absent."""
    absent = values.isna()
    if kind is None and values.dtype.kind not in "iu" and not absent.all():
        return values
    kind = kind or ("float64" if absent.any() else "int64")
    if not _KIND.fullmatch(kind):
        raise ValueError(f"{kind} is no type of a column")
    if kind[0] in "iu" and values.dtype.kind == "f" and not ((values % 1 == 0) & (values.abs() < 2**53)).all():
        raise ValueError(f"{values.name} is not {kind} everywhere")  # a cast would round, or turn the sign
    return values.astype(kind)  # type: ignore[call-overload]


def find_tables(found: Sequence[Member]) -> Iterator[Table]:
    """The tables among files; other files, and tables of other columns, are passed over."""
    for member in found:
        if not _SUFFIX.search(member.name):
            continue
        columns, separator = _header(member)
        role = _role({_tidy(column) for column in columns}, member.name)
        if role is not None:
            yield Table(member, role, tuple(columns), separator)


def _header(member: Member) -> tuple[list[str], str | None]:
    line = member.head().partition(b"\n")[0]
    if line[:4] == b"PAR1":
        with reading(member.source, "Parquet", "is broken or cut short", "fetch it again"):
            return open_parquet(member).schema_arrow.names, None
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r")
    separator = max(",;\t", key=text.count)
    return [name.strip('"') for name in text.split(separator)] if text else [], separator


def _role(columns: set[str], name: str) -> str | None:
    shares = {role: len(columns & set(ROLES[role])) / len(ROLES[role]) for role in ("nodes", "edges")}
    best = max(shares, key=lambda role: shares[role])
    if shares[best] >= _ENOUGH:
        return best
    if "alias" in columns:
        return "clusters"
    if "node_id" in columns and columns & {"owner", "address"}:
        return "truth"
    words = set(re.split(r"[^a-z]+", PurePosixPath(name).name.lower()))
    return next((role for role in ("nodes", "edges", "clusters") if role in words), None)


def _tidy(column: Any) -> str:
    return str(column).strip().lower()
