"""What a chapter puts on its page: tables, boxes, verdicts, glued numbers, and records for the build.

Each output carries two forms: MyST Markdown, which the rendered book turns into numbered tables and admonitions, and
HTML, which Jupyter shows.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pandas as pd
from IPython.display import display

from btcnb import gates
from btcnb.book.text import Markup, html_table, number, pipe_table, without_credentials
from btcnb.errors import ParameterError

RECORD_MIME = "application/vnd.btcnb.record+json"
"""Outputs of this type are read by the build (provenance, verdicts) and taken off the page."""

MOST_TEXT = 10**8
"""Characters of one output; pages with interactive figures hold megabytes."""

VERDICTS = ("reproduced", "partly", "not reproduced", "cannot be tested here")
UNTESTED = VERDICTS[-1]
MARKS = {"reproduced": "✔", "partly": "◐", "not reproduced": "✘", UNTESTED: "–"}
"""The sign of each verdict, wherever it is shown."""
_NO_NUMBER = re.compile(r"(?i)(?<![\w.])[+-]?(nan|inf)(?![\w.]*\w)|∞")


def show(markdown: str, fallback: str) -> None:
    """Display MyST Markdown in the book and the HTML `fallback` in Jupyter.

    Both are taken as they are: text that comes from data goes through `book.escape` first.
    """
    gates.text("markdown", markdown, MOST_TEXT), gates.text("fallback", fallback, MOST_TEXT)
    display({"text/markdown": markdown, "text/html": fallback, "text/plain": markdown}, raw=True)


def record(kind: str, **payload: Any) -> None:
    """Hand a record to the build; it leaves no trace on the page."""
    display({RECORD_MIME: {"kind": gates.text("kind", kind), **payload}, "text/plain": ""}, raw=True)


def table(
    frame: pd.DataFrame, caption: str, name: str, formats: dict[str, str] | None = None, index: bool = False
) -> None:
    """Show `frame` as a numbered table that text can cite with {numref}`name`.

    `formats` maps a column to a format string such as "{:.2f}"; other cells go through `number`. Text in cells is
    escaped, inline code, mathematics and emphasis apart; `book.markup("…")` makes a cell that may hold anything.
    """
    frame, caption, name = gates.instance("frame", frame, pd.DataFrame), gates.text("caption", caption), _name(name)
    formats = {} if formats is None else gates.instance("formats", formats, dict)
    shown = frame.reset_index() if gates.flag("index", index) else frame
    columns = [str(column) for column in shown.columns]
    rows = [
        [_cell(value, formats.get(column)) for column, value in zip(columns, row, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in shown.dtypes]
    title = " ".join(caption.split("\n"))
    body = pipe_table(columns, rows, numeric)
    show(f"::::{{table}} {title}\n:name: {name}\n\n{body}\n::::\n", html_table(columns, rows, numeric, title))


def glue(key: str, value: Any, form: str | None = None) -> None:
    """Make a number citable in prose as {glue:text}`key`; it is formatted here, once."""
    from myst_nb import glue as myst_glue

    myst_glue(_name(key), number(value, form), display=False)


@dataclass(frozen=True)
class Row:
    """One quantity, the paper's value and ours. `note` says what to keep in mind when comparing."""

    quantity: str
    paper: Any
    ours: Any
    note: str = ""


def in_the_paper(rows: Iterable[Row], title: str = "In the paper") -> None:
    """A box with the paper's numbers beside ours."""
    rows, title = [gates.instance("a row", row, Row) for row in gates.items("rows", rows)], gates.text("title", title)
    header = ["quantity", "paper", "ours"] + (["note"] if any(str(row.note) for row in rows) else [])
    cells = [[row.quantity, _cell(row.paper), _cell(row.ours), row.note][: len(header)] for row in rows]
    aligned = [False, True, True, False][: len(header)]
    body = pipe_table(header, cells, aligned)
    show(
        f"::::{{admonition}} {title}\n:class: in-the-paper\n\n{body}\n::::\n",
        html_table(header, cells, aligned, title),
    )


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what we say of it, and the numbers we say it on.

    `numbers` are those that decide, `sample` is how many cases they come from. Nothing is decided on a number that is
    none or on no cases at all: such a verdict becomes "cannot be tested here", with the reason as its evidence; so
    does one whose evidence says "nan", "inf" or "∞". `id` is the claim's in the list of claims, where it stands there.
    """

    claim: str
    verdict: str
    evidence: str
    where: str = ""  # section, table or figure of the paper
    _: KW_ONLY
    numbers: Sequence[float] = ()
    sample: int | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.verdict, str) or self.verdict not in VERDICTS:
            raise ParameterError(f"a verdict is one of {', '.join(VERDICTS)}, not {self.verdict!r:.80}.")
        if self.sample is not None:
            gates.whole("sample", self.sample)
        if not re.fullmatch(r"C\d{3}|", gates.text("id", self.id)):
            raise ParameterError(f"{self.id!r:.80} is no id of a claim; write C and three digits, or leave it out.")
        if not all(isinstance(entry, numbers.Real) for entry in gates.items("numbers", self.numbers)):
            raise ParameterError("the numbers that decide a verdict must be numbers.")
        if reason := self._undecided():
            object.__setattr__(self, "verdict", UNTESTED)
            object.__setattr__(self, "evidence", reason)

    def _undecided(self) -> str:
        if self.sample is not None and self.sample < 1:
            return "nothing to judge it on: the sample is empty"
        if not all(abs(entry) < math.inf for entry in self.numbers) or _NO_NUMBER.search(str(self.evidence)):
            return "nothing to judge it on: a number it rests on could not be computed here"
        return ""


def verdicts(items: Sequence[Verdict]) -> None:
    """The table of verdicts that closes a chapter; each is also recorded for the scoreboard."""
    items = [gates.instance("a verdict", item, Verdict) for item in gates.items("items", items)]
    for item in items:
        known = {"id": item.id} if item.id else {}
        record("verdict", claim=item.claim, verdict=item.verdict, evidence=item.evidence, where=item.where, **known)
    named = any(item.id for item in items)
    header = [*["id"] * named, "claim", "in the paper", "verdict", "evidence"]

    def cells(strong: str) -> list[list[str]]:
        said = [f"{MARKS[item.verdict]} {strong}{item.verdict}{strong}" for item in items]
        rows = [[item.claim, item.where, verdict, item.evidence] for item, verdict in zip(items, said, strict=True)]
        return [[item.id, *row] if named else row for item, row in zip(items, rows, strict=True)]

    body = pipe_table(header, cells("**"))
    show(f":::{{div}} verdicts\n\n{body}\n:::\n", html_table(header, cells(""), [False] * len(header), ""))


def data_source(source: Any) -> None:
    """Record where the chapter's data came from: text, or anything with `.source` or `.meta["source"]`."""
    marked = callable(getattr(source, "fingerprint", None)) and not isinstance(source, type)
    if marked and hasattr(source, "source"):
        text, mark = source.source, source.fingerprint()
    elif marked and hasattr(source, "meta"):
        text, mark = source.meta.get("source", "unknown"), source.fingerprint()
    else:
        text, mark = str(source), ""
    record("data_source", source=without_credentials(str(text)), fingerprint=mark)


def _name(name: Any) -> str:
    """What text cites a table or a number by: one word."""
    if not re.fullmatch(r"[\w.:-]{1,200}", gates.text("name", name)):
        raise ParameterError(f"{name!r:.80} names nothing: use letters, digits, dots, colons and dashes.")
    return str(name)


def _cell(value: Any, form: str | None = None) -> Any:
    """What stands in a cell; a mean and its spread are never parted by the end of a line."""
    if isinstance(value, Markup):
        return value
    return (value if isinstance(value, str) else number(value, form)).replace(" ± ", "\u00a0±\u00a0")
