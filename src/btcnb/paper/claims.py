"""The paper's claims, read from `claims.yml` beside this file: what each says, and the rule that judges it."""

from __future__ import annotations

import datetime
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.paper.kinds import Reference, Rule
from btcnb.paper.reader import SOURCE, Fields, read_reference, read_rule
from btcnb.paper.tables import table, tables
from btcnb.store import note_read

FILE = Path(__file__).with_name(SOURCE)
DATA = ("simulated", "real", "both", "none")
IMPORTANCE = ("high", "medium", "low")


@dataclass(frozen=True)
class Change:
    """A rule that was changed after it had been written: when, and why."""

    date: datetime.date
    why: str


@dataclass(frozen=True)
class Claim:
    """One claim of the paper."""

    id: str
    where: str
    """section, table or appendix of the paper"""
    claim: str
    """in our words"""
    paper: tuple[Reference, ...] | str
    """the paper's numbers: places in the transcribed tables, or text"""
    data: str
    """what can decide it: `simulated` or `real` data, `both`, or `none`"""
    importance: str
    by_construction: bool
    """true of our code or our simulator by the way it is made, so that a verdict is no evidence"""
    chapter: str
    """number of the chapter that shows its verdict"""
    rule: Rule
    decided: datetime.date
    """day on which the rule was written"""
    changes: tuple[Change, ...] = ()


def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of their ids."""
    note_read(FILE)
    return tuple(_table(FILE).values())


def claim(id: str) -> Claim:
    """The claim of that id, such as `C024`."""
    note_read(FILE)
    known = _table(FILE)
    if gates.text("id", id) not in known:
        raise ParameterError(f"there is no claim {id!r:.80}; ids run from {min(known)} to {max(known)}.")
    return known[id]


def lookup(reference: Reference) -> pd.DataFrame:
    """The cells that a reference means: its rows and columns of the transcribed table, as printed."""
    frame = table(reference.table)
    for column in (*dict(reference.row), *reference.columns):
        if column not in frame.columns:
            raise ParameterError(f"table {reference.table!r} has no column {column!r:.80}.")
    for column, wanted in reference.row:
        frame = frame[frame[column] == wanted]
    if frame.empty:
        raise ParameterError(f"no row of table {reference.table!r} matches {dict(reference.row)!s:.200}.")
    return frame[[*reference.columns]]


@functools.cache
def _table(path: Path) -> dict[str, Claim]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(path, "file", f"cannot be read ({error!s:.200})", "mend it") from None
    return read(content)


def read(content: object) -> dict[str, Claim]:
    """Claims by id, from what the YAML file holds; anything unknown, missing or twice there is refused."""
    fields = Fields.of("file", content)
    decided = _date(fields, "decided")
    fields.take("rows", {})  # lists that rules share by YAML's anchors
    found: dict[str, Claim] = {}
    for position, entry in enumerate(fields.items("claims")):
        one = _claim(position, entry, decided)
        if one.id in found:
            raise DataError(SOURCE, one.id, "stands there twice", "give each claim an id of its own")
        found[one.id] = one
    fields.done()
    return found


def _claim(position: int, entry: object, decided: datetime.date) -> Claim:
    fields = Fields.of(f"claims[{position}]", entry)
    fields.name = id = fields.text("id")
    if not re.fullmatch(r"C\d{3}", id):
        raise fields.wrong("id", id, "write C and three digits")
    one = Claim(
        id=id,
        where=fields.text("where"),
        claim=fields.text("claim"),
        paper=_paper(fields),
        data=fields.choice("data", DATA),
        importance=fields.choice("importance", IMPORTANCE),
        by_construction=fields.flag("by_construction", False),
        chapter=fields.text("chapter"),
        rule=read_rule(f"{id}.rule", fields.take("rule")),
        decided=_date(fields, "decided", decided),
        changes=tuple(_change(f"{id}.changes[{i}]", change) for i, change in enumerate(fields.items("changes", []))),
    )
    fields.done()
    return one


def _paper(fields: Fields) -> tuple[Reference, ...] | str:
    value: Any = fields.take("paper", "")
    if isinstance(value, str):
        return value
    listed = value if isinstance(value, list) else [value]
    found = tuple(read_reference(f"{fields.name}.paper", each) for each in listed)
    unknown = next((reference.table for reference in found if reference.table not in tables()), None)
    if unknown is not None:
        raise fields.wrong("paper", unknown, f"name one of {', '.join(tables())}")
    return found


def _change(name: str, value: object) -> Change:
    fields = Fields.of(name, value)
    change = Change(_date(fields, "date"), fields.text("why"))
    fields.done()
    return change


def _date(fields: Fields, key: str, *default: datetime.date) -> datetime.date:
    value = fields.take(key, *default)
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise fields.wrong(key, value, "give a date such as 2026-11-17")
    return value
