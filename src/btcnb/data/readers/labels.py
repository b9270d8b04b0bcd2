"""Public labels of addresses: tables (CSV) and GraphSense TagPacks (YAML)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from btcnb.data.readers.files import Member, members, reading
from btcnb.data.tables import UNKNOWN
from btcnb.data.transactions import Transactions, Truth
from btcnb.errors import DataError
from btcnb.gates import instance

COLUMNS = ("address", "label", "category", "actor", "source", "confidence")
_READ = (*COLUMNS, "concepts", "currency", "network")
CONFIDENCE = (
    "ownership",
    "service_api",
    "service_data",
    "authority_data",
    "trusted_provider",
    "ledger_immanent",
    "manual_transaction",
    "override",
    "forensic_investigation",
    "forensic",
    "heuristic",
    "untrusted_transaction",
    "web_crawl",
    "unknown",
)
"""How sure a label is, in GraphSense's words, the surest first: the owner's own word, that of a service or authority,
what was found by transacting or by research, what was guessed or read on a page. Other words, and none, come last."""
MAX_YAML = 64 * 2**20
"""Bytes of the largest TagPack that is read."""
MAX_TEXT = 10_000
"""Letters of the longest text of a tag: what the head of a pack says is kept for each of its tags."""
_TABLE, _PACK = (".csv", ".csv.gz"), (".yaml", ".yml", ".yaml.gz", ".yml.gz")
_MERGE = re.compile(rb"(?m)(^|[\s{,])<<\s*:")
_BITCOIN = re.compile(r"[13][1-9A-HJ-NP-Za-km-z]{24,34}|bc1[02-9ac-hj-np-z]{8,87}")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Every value as the text that stands there: YAML would read the label 0123 as 83, 12:30 as 750, and On as true."""
_NOTHING = ("", "~", "null", "Null", "NULL")


def read_labels(path: str | Path) -> pd.DataFrame:
    """Labels with the columns address, label, category, actor, source and confidence; text, "" where not told.

    path: a CSV file with at least the columns `address` and `label`, a TagPack, or a folder or zip of such files (YAML
          in it that is no TagPack is passed over). Of a TagPack, only tags of Bitcoin addresses count; what a tag does
          not say, the head of its pack says; several `concepts` are joined by `+`.

    An address has a row for every label it is given, in the order of the files; `attach_labels` chooses one.
    """
    found = [member for member in members(path) if member.name.lower().endswith(_TABLE + _PACK)]
    if not found:
        raise DataError(path, "files", "no labels are there", "give a CSV file, or TagPacks (YAML)")
    parts = []
    for member in found:
        if member.name.lower().endswith(_TABLE):
            parts.append(_table(member))
        else:
            rows = list(_tags(member, alone=len(found) == 1))
            parts.append(pd.DataFrame(rows, columns=list(COLUMNS), dtype="str"))
    return pd.concat(parts, ignore_index=True)


def attach_labels(txs: Transactions, labels: pd.DataFrame) -> Transactions:
    """The same transactions, with `truth.label` where an address is labelled; what the truth knew otherwise stays.

    Of several labels of one address the surest counts (`CONFIDENCE`), of equally sure ones the first. Owners stay
    unknown (-1) where they were: a label is somebody's word, not the truth about who holds a key. Labels of addresses
    that do not occur in the transactions name nobody here; a warning says how many there are.
    """
    instance("txs", txs, Transactions)
    instance("labels", labels, pd.DataFrame)
    for column in ("address", "label"):
        if column not in labels:
            raise DataError("labels", column, "column is missing", f"expected columns {', '.join(COLUMNS)}")
        if not all(isinstance(text, str) and text for text in labels[column].tolist()):
            problem = "is not text everywhere, or empty somewhere"
            raise DataError("labels", column, problem, "drop such rows, or write text")
    rank = {word: position for position, word in enumerate(CONFIDENCE)}
    told = labels["confidence"] if "confidence" in labels else pd.Series("", index=labels.index)
    order = told.map(rank).fillna(len(rank)).to_numpy().argsort(kind="stable")
    sure = labels.iloc[order].drop_duplicates("address")
    chosen = dict(zip(sure["address"], sure["label"], strict=True))
    label = np.array([*(chosen.get(address, "") for address in txs.addresses), ""], dtype=object)[:-1]
    _tell_unknown(chosen.keys() - set(txs.addresses), len(chosen))
    before = txs.truth or Truth(owner=np.full(txs.num_addresses, UNKNOWN, dtype=np.int64))
    if before.label is not None:
        label = np.where(label == "", before.label, label)
    return replace(txs, truth=replace(before, label=label))


def _tell_unknown(unknown: Set[str], labelled: int) -> None:
    """Warn of labelled addresses that the transactions do not have; a typing error looks just like that."""
    if unknown:
        few = ", ".join(f"{address!r:.70}" for address in sorted(unknown)[:3])
        told = f"{len(unknown):,} of {labelled:,} labelled addresses do not occur in the transactions, such as {few}."
        warnings.warn(told, stacklevel=3)


def _table(member: Member) -> pd.DataFrame:
    with reading(member.source, "CSV", "cannot be read", "fix or fetch it again"), member.open() as stream:
        table = pd.read_csv(stream, dtype="str", keep_default_na=False, encoding="utf-8-sig")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first column for names of rows
        problem = "cannot be read (rows have more fields than there are columns)"
        raise DataError(member.source, "CSV", problem, "fix or fetch it again")
    for column in COLUMNS[:2]:
        if column not in table:
            raise DataError(member.source, column, "column is missing", f"expected columns {', '.join(COLUMNS)}")
        empty = table[column].isna() | (table[column] == "")
        if empty.any():
            raise DataError(member.source, column, f"row {int(empty.to_numpy().argmax())} is empty", "fill or drop it")
    return table.reindex(columns=list(COLUMNS), fill_value="").fillna("").astype("str")


def _tags(member: Member, alone: bool) -> Iterator[tuple[str, ...]]:
    pack = _pack(member)
    if not isinstance(pack, dict) or not isinstance(pack.get("tags"), list):
        if alone:
            raise DataError(member.source, "tags", "there are none", "give a TagPack: a head, and a list of tags")
        return
    for number, tag in enumerate(pack["tags"]):
        where = f"tags[{number}]"
        if not isinstance(tag, dict):
            raise DataError(member.source, where, "is not a tag", "give it an address and a label")
        own = {**pack, **{name: value for name, value in tag.items() if value not in _NOTHING}}
        for name in _READ:
            if _letters(own.get(name)) > MAX_TEXT:
                problem = f"has more than {MAX_TEXT:,} letters"
                raise DataError(member.source, f"{where}.{name}", problem, "write less")
        address, currency = (_text(own.get(name)) for name in ("address", "currency"))
        currency = currency or _text(own.get("network"))
        if currency.upper() not in ("", "BTC") or not _BITCOIN.fullmatch(address):
            continue
        row = {name: _text(own.get(name)) for name in COLUMNS}
        if not row["label"]:
            raise DataError(member.source, f"{where}.label", "is missing", "label the tag, or the head of the pack")
        row["category"] = row["category"] or _text(own.get("concepts"))
        yield tuple(row.values())


def _pack(member: Member) -> Any:
    with member.open() as stream:
        text = stream.read(MAX_YAML + 1)
    if len(text) > MAX_YAML:
        raise DataError(member.source, "YAML", f"has more than {MAX_YAML} bytes", "cut it into several packs")
    if _MERGE.search(text):  # a few lines of them can stand for any amount of memory
        raise DataError(member.source, "YAML", "has merge keys (<<), which are not read", "write them out")
    with reading(
        member.source, "YAML", "is broken", "fix or fetch it again", (yaml.YAMLError, ValueError, RecursionError)
    ):
        return yaml.load(text, Loader=_Loader)  # texts, lists and mappings, nothing else


def _text(value: Any) -> str:
    """A text on one line; a list of texts joined by +; "" for what is not told."""
    if isinstance(value, list):
        return "+".join(filter(None, (_text(one) for one in value if isinstance(one, str))))
    return "" if not isinstance(value, str) or value in _NOTHING else " ".join(value.split())


def _letters(value: Any) -> int:
    """How long the text of a value is at most; of a list, each item counts for one at least."""
    if isinstance(value, list):
        return len(value) + sum(len(one) for one in value if isinstance(one, str))
    return len(value) if isinstance(value, str) else 0
