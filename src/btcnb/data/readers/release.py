"""The released dataset's format: `nodes`, `edges` and `clusters` as tables in a folder, one folder per split.

The names of the released files are not documented, so a table is known by its columns. Ours are `nodes.csv`,
`edges.csv`, `clusters.csv` (or `.csv.gz`, `.parquet`), with `truth` (owner and address of each node, where known) and
`meta.json` beside them, which other readers may ignore.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS, AddressGraph
from btcnb.data.intervals import price_near
from btcnb.data.readers.files import UNREADABLE, Member, members, path_of, reading, replacing
from btcnb.data.tables import plain
from btcnb.errors import DataError, ParameterError
from btcnb.gates import choice, instance, text

ROLES: dict[str, tuple[str, ...]] = {
    "nodes": NODE_COLUMNS,
    "edges": EDGE_COLUMNS,
    "clusters": CLUSTER_COLUMNS,
    "truth": ("node_id",),  # and owner, address, or both
}
_SUFFIX = re.compile(r"\.(csv|tsv|txt|parquet|pq)(\.gz)?$", re.IGNORECASE)
_KIND = "(u?int|float|U?Int|Float)(8|16|32|64)|object|str|string"
_NO_TABLE = (*UNREADABLE, OverflowError, ValueError)  # what values that do not fit raise in a cast
_ENOUGH = 0.5
"""Share of a table's columns that make a file count as that table, so that one misnamed column is named, not lost."""
Format = Literal["csv", "csv.gz", "parquet"]

META = "meta.json"
_OUR_FILES = {f"{role}.{suffix}" for role in ROLES for suffix in get_args(Format)} | {META}
_UNSAFE = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".npz")


@dataclass(frozen=True)
class _Split:
    name: str
    tables: dict[str, Table]
    meta: dict[str, Any]  # what `meta.json` holds, empty without one


def read_release(path: str | Path, split: str | None = None) -> AddressGraph:
    """The graph in a folder or zip, or that of one of its splits. Raises `DataError` naming file and column.

    Without a `meta.json` the interval is read off the edges, and the price is that of the paper's interval around it.
    """
    splits = _splits(path)
    if split is None:
        if len(splits) > 1:
            raise DataError(path, "split", f"there are {len(splits)}: {', '.join(splits)}", "name one of them")
        return _graph(next(iter(splits.values())), path)
    chosen = splits.get(text("split", split)) or next(
        (s for s in splits.values() if _plain(s.name) == _plain(split)), None
    )
    if chosen is None:
        raise DataError(path, "split", f"{split!r} is not there", f"it has {', '.join(map(repr, splits))}")
    return _graph(chosen, path)


def release_splits(path: str | Path) -> tuple[str, ...]:
    """The names of the graphs in a folder or zip; one of them may be empty when there is one graph only."""
    return tuple(_splits(path))


def write_release(graph: AddressGraph | Mapping[str, AddressGraph], path: str | Path, format: Format = "csv") -> Path:
    """Write one graph into the folder `path`, or several into one folder each below it; all of it or nothing.

    `read_release` gives the same graph back: values, types, absent values, truth, addresses and meta. A folder that
    holds anything else is left alone.
    """
    choice("format", format, get_args(Format))
    target = path_of(path)
    if target.exists() and not _is_ours(target):
        raise DataError(target, "path", "holds files that are no release", "give a new or an empty folder")
    graphs = {"": graph} if isinstance(graph, AddressGraph) else dict(instance("graph", graph, Mapping))
    for name, one in graphs.items():
        if isinstance(graph, Mapping) and not re.fullmatch(r"\w[\w.-]*", text("graph", name)):
            raise ParameterError(f"graph: {name!r} cannot name a folder.")
        instance("graph", one, AddressGraph).validated(name or "graph")
    with replacing(target, folder=True) as part:
        for name, one in graphs.items():
            _write(one, part / name, format)
    return target


def _write(graph: AddressGraph, folder: Path, format: Format) -> None:
    folder.mkdir(exist_ok=True)
    tables = {
        "nodes": graph.nodes[list(NODE_COLUMNS)],
        "edges": graph.edges[list(EDGE_COLUMNS)],
        "clusters": graph.clusters[list(CLUSTER_COLUMNS)],
    }
    if graph.truth is not None or graph.addresses is not None:
        known = {"owner": graph.truth, "address": graph.addresses}
        told = {name: values for name, values in known.items() if values is not None}
        tables["truth"] = pd.DataFrame({"node_id": graph.nodes["node_id"].to_numpy(), **told})
    for role, table in tables.items():
        file = folder / f"{role}.{format}"
        packing: Any = {"method": "gzip", "mtime": 0} if format == "csv.gz" else None
        with reading(role, "table", "cannot be written", "fix its columns", (pa.ArrowException, UnicodeError)):
            if format == "parquet":
                table.to_parquet(file, index=False)
            else:
                table.to_csv(file, index=False, compression=packing)
    types = {role: {name: str(kind) for name, kind in table.dtypes.items()} for role, table in tables.items()}
    rows = {role: len(getattr(graph, role)) for role in ("nodes", "edges", "clusters")}
    with reading(folder.name, "meta", "cannot be written as JSON", "give it plain values", (TypeError, ValueError)):
        content = json.dumps({"meta": graph.meta, "dtypes": types, "rows": rows}, indent=1)
    (folder / META).write_text(content)


def _is_ours(folder: Path) -> bool:
    """Whether a folder is empty or holds only what `write_release` writes, at most one level of splits deep."""
    if not folder.is_dir():
        return False
    files = [file.relative_to(folder) for file in folder.rglob("*") if not file.is_dir()]
    return all(file.name in _OUR_FILES and len(file.parts) <= 2 for file in files)


def _splits(path: str | Path) -> dict[str, _Split]:
    """The tables below `path`, one group per graph."""
    found = members(path)
    tables: defaultdict[str, dict[str, Table]] = defaultdict(dict)
    for key, table in _grouped(list(find_tables(found))):
        if table.role in tables[key]:
            both = f"{tables[key][table.role].member.name} and {table.member.name}"
            raise DataError(path, table.role, f"{both} both look like it", "keep one, or one folder per split")
        tables[key][table.role] = table
    keys = sorted((key for key in tables if set(tables[key]) != {"truth"}), key=_plain)
    if not keys:
        raise DataError(path, "tables", _nothing_found(found), f"nodes have columns {', '.join(NODE_COLUMNS)}")
    metas = {_words(_folder(member)): _meta(member) for member in found if PurePosixPath(member.name).name == META}
    prefix = len(_shared_folder(keys))
    return {key[prefix:]: _Split(key[prefix:], tables[key], metas.get(key, {})) for key in keys}


def _grouped(tables: Sequence[Table]) -> Iterator[tuple[str, Table]]:
    """(group, table) pairs. The tables of a folder with one of each kind are one graph, whatever their names.

    Otherwise the names decide, with the words for the tables left out: `train_1_nodes.csv` and `edges/train_1.csv`
    both belong to `train_1`.
    """
    kinds = Counter((_folder(table.member), table.role) for table in tables if table.role != "truth")
    crowded = {folder for (folder, _), number in kinds.items() if number > 1}
    for table in tables:
        folder = _folder(table.member)
        yield _words(f"{folder}/{table.member.stem}" if folder in crowded else folder), table


def _folder(member: Member) -> str:
    return member.name.rpartition("/")[0]


def _words(name: str) -> str:
    """A path without the words for the tables."""
    left_out = {word for role in ROLES for word in (role, role.rstrip("s"))} | {"table", "features", "labels"}
    parts = (
        "_".join(piece for piece in re.split(r"[_\-\s]+", part) if piece.lower() not in left_out)
        for part in PurePosixPath(name).parts
    )
    return "/".join(part for part in parts if part)


def _nothing_found(found: Sequence[Member]) -> str:
    unsafe = [member.name for member in found if member.name.lower().endswith(_UNSAFE)]
    if unsafe:
        return f"no CSV or Parquet is there, and {unsafe[0]} is not opened because it could run code"
    return "no CSV or Parquet with the dataset's columns is there"


def _shared_folder(keys: Sequence[str]) -> str:
    """The leading folders that all groups share, with a slash."""
    shared = posixpath.commonpath([key.rpartition("/")[0] for key in keys])
    return f"{shared}/" if shared else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_Number = Annotated[int | float, Field(ge=0, allow_inf_nan=False)]


class _Meta(BaseModel):
    """The interval and the price of a graph; what else stands there is kept as it is."""

    model_config = ConfigDict(extra="allow", strict=True)
    start_block: _Number | None = None
    end_block: _Number | None = None
    price_usd: _Number | None = None


class _Sidecar(BaseModel):
    """`meta.json`: beside the meta, column -> type and number of rows of each table."""

    model_config = ConfigDict(strict=True)
    meta: _Meta
    dtypes: dict[str, dict[str, Annotated[str, Field(pattern=f"^({_KIND})$")]]] = {}
    rows: dict[str, int] = {}


def _meta(member: Member) -> dict[str, Any]:
    """The content of a `meta.json` that `write_release` left; nothing where the file is somebody else's.

    A height that is null is left out: it is then read off the edges.
    """
    with reading(member.source, "JSON", "is broken or cut short", "fetch or delete it"):
        content = json.loads(member.read())
    if not isinstance(content, dict) or not isinstance(content.get("meta"), dict):
        return {}
    try:
        _Sidecar.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in first["loc"] if step not in ("int", "float"))
        raise DataError(member.source, field, plain(first["msg"]), "fix or delete it") from None
    told = content["meta"].items()
    meta = {name: value for name, value in told if value is not None or name not in ("start_block", "end_block")}
    return {"dtypes": {}, "rows": {}, **content, "meta": meta}


def _graph(split: _Split, path: str | Path) -> AddressGraph:
    for role in ("nodes", "edges", "clusters"):
        if role not in split.tables:
            where = f"{path} ({split.name})" if split.name else path
            raise DataError(where, role, "no table has its columns", f"expected {', '.join(ROLES[role])}")
    types, rows = split.meta.get("dtypes", {}), split.meta.get("rows", {})
    frames = {role: table.read(types.get(role), rows.get(role)) for role, table in split.tables.items()}
    graph = AddressGraph(frames["nodes"], frames["edges"], frames["clusters"])
    try:
        graph.validated()
    except DataError as error:
        role = error.field.split(".")[0]
        raise DataError(split.tables[role].member.source, error.field, error.problem, error.remedy) from None
    known = _known(frames["nodes"], frames.get("truth"), split)
    meta = split.meta["meta"] if split.meta else _guessed(frames["edges"], path, split.name)
    return AddressGraph(graph.nodes, graph.edges, graph.clusters, known.get("owner"), known.get("address"), meta)


def _known(nodes: pd.DataFrame, truth: pd.DataFrame | None, split: _Split) -> dict[str, Any]:
    """Owner and address per node row, where a table tells them."""
    if truth is None:
        return {}
    table = split.tables["truth"]
    if truth["node_id"].duplicated().any() or not nodes["node_id"].isin(truth["node_id"]).all():
        raise DataError(table.member.source, "node_id", "does not list every node once", "write the release again")
    aligned = truth.set_index("node_id").loc[nodes["node_id"]]
    kinds = {"owner": "int64", "address": "object"}
    try:
        return {name: aligned[name].to_numpy(dtype=kinds[name]) for name in kinds if name in aligned}
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(table.member.source, "owner", f"cannot be read ({error})", "write whole numbers") from error


def _guessed(edges: pd.DataFrame, path: str | Path, name: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"source": f"{path} ({name})" if name else str(path)}
    if len(edges):
        first, last = int(edges["reveal"].min()), int(edges["last_seen"].max())
        meta |= {"start_block": first, "end_block": last, "price_usd": price_near(first)}
    return meta


# Tables --------------------------------------------------------------------------------------------------------------


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
        with reading(self.member.source, self.role, remedy="check the file", errors=_NO_TABLE):
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
        table = self.member.parquet().read(columns=names)
        table.validate(full=True)
        try:
            return table.to_pandas()
        except (AttributeError, KeyError, TypeError) as error:  # pyarrow trusts what the file says about pandas
            raise ValueError(f"its description of the table is broken: {error!r}") from error


def _as(values: pd.Series, kind: str | None) -> pd.Series:
    """Values of the type that a sidecar tells, else whole numbers, or floats where some are absent."""
    absent = values.isna()
    if kind is None and values.dtype.kind not in "iu" and not absent.all():
        return values
    kind = kind or ("float64" if absent.any() else "int64")
    if kind[0] in "iu" and values.dtype.kind == "f" and not ((values % 1 == 0) & (values.abs() < 2**53)).all():
        raise ValueError(f"{values.name} is not {kind} everywhere")  # a cast would round, or turn the sign
    try:
        return values.astype(kind)  # type: ignore[call-overload]
    except TypeError as error:
        raise ValueError(f"{values.name} is not {kind} ({error})") from error


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
            return member.parquet().schema_arrow.names, None
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
