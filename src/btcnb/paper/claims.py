"""The paper's claims (`claims.yml`) and the book's own questions (`questions.yml`), each with the rule that judges it.

Pydantic reads both files; anything unknown, missing or twice there is refused.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
import yaml
from pydantic import BeforeValidator, Field

from btcnb import gates
from btcnb.configuration import Flag, configuration
from btcnb.errors import DataError, ParameterError
from btcnb.paper.rules import Chapter, Definition, Reference, Rule, Text
from btcnb.paper.tables import table, tables
from btcnb.paper.verdicts import NOT, PARTLY, REPRODUCED, UNTESTED, Frames, Judgement, judge
from btcnb.paper.words import cells_words
from btcnb.store import note_read

CLAIMS, QUESTIONS = (Path(__file__).with_name(f"{name}.yml") for name in ("claims", "questions"))
DATA = ("simulated", "real", "both", "none")
IMPORTANCE = ("high", "medium", "low")
ANSWERS = {REPRODUCED: "yes", PARTLY: "in part", NOT: "no", UNTESTED: UNTESTED}
"""What a verdict of the rules is called where nobody has claimed anything."""


def _references(value: Any) -> Any:
    return value if isinstance(value, str | tuple) else tuple(value) if isinstance(value, list) else (value,)


@configuration
class Change:
    """A rule that was changed after it had been written: when, and why."""

    date: datetime.date
    why: Text


@configuration
class Claim:
    """One claim of the paper."""

    id: Annotated[str, Field(pattern=r"^C\d{3}$")]
    where: Text
    """section, table or appendix of the paper"""
    claim: Text
    """in our words"""
    data: Literal["simulated", "real", "both", "none"]
    """what can decide it"""
    importance: Literal["high", "medium", "low"]
    chapter: Text
    """number of the chapter that shows its verdict"""
    rule: Rule
    decided: datetime.date
    """day on which the rule was written"""
    paper: Annotated[tuple[Reference, ...] | str, BeforeValidator(_references)] = ""
    """the paper's numbers: places in the transcribed tables, or text"""
    by_construction: Flag = False
    """true of our code or our simulator by the way it is made, so that a verdict is no evidence"""
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        for reference in () if isinstance(self.paper, str) else self.paper:
            if reference.table not in tables():
                raise ValueError(f"paper: there is no table {reference.table!r}, only {', '.join(tables())}")


@configuration
class Question:
    """A question that the book asks beyond the paper, and the rule that answers it with yes, in part or no."""

    id: Annotated[str, Field(pattern=r"^Q\d{3}$")]
    chapter: Text
    question: Text
    rule: Rule
    decided: datetime.date
    """day on which the rule was written"""

    def __post_init__(self) -> None:
        if isinstance(self.rule, Chapter | Definition):
            raise ValueError("the rule looks at no record; write one that records can decide")


def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of their ids."""
    return tuple(read(CLAIMS, Claim).values())


def claim(id: str) -> Claim:
    """The claim of that id, such as `C024`."""
    known = read(CLAIMS, Claim)
    if gates.text("id", id) not in known:
        raise ParameterError(f"there is no claim {id!r:.80}; ids run from {min(known)} to {max(known)}.")
    return known[id]


def questions(chapter: str) -> tuple[Question, ...]:
    """The questions of a chapter (`"17"`), in the order of the file."""
    every = read(QUESTIONS, Question).values()
    found = tuple(each for each in every if each.chapter == chapter)
    if not found:
        there = ", ".join(sorted({each.chapter for each in every}))
        raise ParameterError(f"chapter {chapter!r:.80} asks no question; there are some in {there}.")
    return found


def answer(question: Question, frames: Frames) -> tuple[str, Judgement]:
    """The answer to a question by its rule, and the numbers behind it; `frames(grid)` gives a grid's records."""
    found = judge(question, frames)
    return ANSWERS[found.verdict], found


def lookup(reference: Reference) -> pd.DataFrame:
    """The cells that a reference means: its rows and columns of the transcribed table, as printed."""
    frame = table(reference.table)
    for column in (*reference.row, *reference.columns):
        if column not in frame.columns:
            raise ParameterError(f"table {reference.table!r} has no column {column!r:.80}.")
    for column, wanted in reference.row.items():
        frame = frame[frame[column] == wanted]
    if frame.empty:
        raise ParameterError(f"no row of table {reference.table!r} matches {reference.row!s:.200}.")
    return frame[[*reference.columns]]


def paper_words(claim: Claim) -> str:
    """The paper's numbers that a claim quotes, as printed: `NMI 0.642, ARI 0.289`."""
    quoted = claim.paper
    return quoted if isinstance(quoted, str) else cells_words([lookup(reference) for reference in quoted])


T = TypeVar("T", Claim, Question)


def read(path: Path, kind: type[T]) -> dict[str, T]:
    """The claims or questions of a YAML file, by id."""
    note_read(path)
    return _read(path, kind)  # type: ignore[arg-type]  # mypy takes a class for unhashable


@functools.cache
def _read(path: Path, kind: type[T]) -> dict[str, T]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(path, "file", f"cannot be read ({error!s:.200})", "mend it") from None
    entries = content.get(path.stem) if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise DataError(path, path.stem, "are no list", f"write the {path.stem} as a list of mappings")
    return by_id(path, [made(path, kind, {"decided": content.get("decided"), **entry}) for entry in entries])


def made(path: Path, kind: type[T], entry: dict[str, Any]) -> T:
    """One entry as a checked object."""
    try:
        return kind(**entry)
    except (ParameterError, TypeError) as error:
        raise DataError(path.name, str(entry.get("id")), str(error).rstrip("."), "mend that entry") from None


def by_id(path: Path, entries: Sequence[T]) -> dict[str, T]:
    """Entries by id; an id stands there once."""
    found = {each.id: each for each in entries}
    if len(found) < len(entries):
        raise DataError(path.name, "id", "stands there twice", "give each entry an id of its own")
    return found
