"""Tables of a released graph: which file holds which, told by its columns, and reading one exactly."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from btcnb.data.address_graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.readers.archives import Member
from btcnb.errors import DataError

ROLES: dict[str, tuple[str, ...]] = {
    "nodes": NODE_COLUMNS,
    "edges": EDGE_COLUMNS,
    "clusters": CLUSTER_COLUMNS,
    "truth": ("node_id",),  # and owner, address, or both
}
_SUFFIX = re.compile(r"\.(csv|tsv|txt|parquet|pq)(\.gz)?$", re.IGNORECASE)
_ENOUGH = 0.5
"""Share of a table's columns that make a file count as that table, so that one misnamed column is named, not lost."""


@dataclass(frozen=True)
class Table:
    """A file, the table it holds, and its columns as written."""

    member: Member
    role: str
    columns: tuple[str, ...]
    separator: str | None  # None: Parquet

    def read(self, types: Mapping[str, str] | None = None) -> pd.DataFrame:
        """The contract's columns, in its order; `types` are the column types where a sidecar tells them."""
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
        frame = self._parquet(list(names)) if self.separator is None else self._csv(list(names), kinds)
        return frame[list(names)].rename(columns=names)

    def _csv(self, names: list[str], kinds: dict[str, str]) -> pd.DataFrame:
        texts = {name: "object" for name in names if _tidy(name) == "address"}
        try:
            with self.member.open() as stream:
                return pd.read_csv(
                    stream,
                    sep=self.separator,
                    usecols=names,
                    dtype={**kinds, **texts},  # type: ignore[arg-type]
                    keep_default_na=not texts,
                    encoding="utf-8-sig",
                )
        except (TypeError, ValueError, OverflowError) as error:  # pandas' parser errors are ValueErrors
            raise DataError(self.member.source, self.role, f"cannot be read ({error})", "check the file") from error

    def _parquet(self, names: list[str]) -> pd.DataFrame:
        try:
            return pd.read_parquet(_seekable(self.member), columns=names)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(self.member, error) from error


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
    with member.open() as stream:
        line = stream.readline()
    if line[:4] == b"PAR1":
        try:
            return pq.read_schema(_seekable(member)).names, None
        except (pa.ArrowException, OSError) as error:
            raise _broken(member, error) from error
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
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


def _seekable(member: Member) -> Any:
    if member.inner is None and not member.name.endswith(".gz"):
        return member.path
    stream: IO[bytes] = io.BytesIO(member.read())
    return stream


def _broken(member: Member, error: BaseException) -> DataError:
    return DataError(member.source, "Parquet", f"is broken or cut short ({error})", "fetch it again")
