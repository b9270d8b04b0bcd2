"""What a chapter puts on its page: tables, boxes, verdicts, glued numbers, and records for the build.

Each output carries two forms: MyST Markdown, which the rendered book turns into numbered tables and admonitions, and
HTML, which Jupyter shows.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import display

RECORD_MIME = "application/vnd.btcnb.record+json"
"""Outputs of this type are read by the build (provenance, verdicts) and taken off the page."""

VERDICTS = ("reproduced", "partly", "not reproduced", "cannot be tested here")
_MARKS = {"reproduced": "✔", "partly": "◐", "not reproduced": "✘", "cannot be tested here": "–"}


def show(markdown: str, fallback: str) -> None:
    """Display MyST Markdown in the book and the HTML `fallback` in Jupyter."""
    display({"text/markdown": markdown, "text/html": fallback, "text/plain": markdown}, raw=True)


def record(kind: str, **payload: Any) -> None:
    """Hand a record to the build; it leaves no trace on the page."""
    display({RECORD_MIME: {"kind": kind, **payload}, "text/plain": ""}, raw=True)


def number(value: Any, form: str | None = None) -> str:
    """A number as text: thousands separated, three significant digits for fractions, `–` for missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if form is not None:
        return form.format(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        value = float(value)
        if value == 0 or 1e-3 <= abs(value) < 1e4:
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.1e}"
    return str(value)


def table(
    frame: pd.DataFrame, caption: str, name: str, formats: dict[str, str] | None = None, index: bool = False
) -> None:
    """Show `frame` as a numbered table that text can cite with {numref}`name`.

    `formats` maps a column to a format string such as "{:.2f}"; other cells go through `number`.
    """
    shown = frame.reset_index() if index else frame
    formats = formats or {}
    columns = [str(column) for column in shown.columns]
    rows = [
        [
            number(value, None if _blank(value) else formats.get(column))
            for column, value in zip(columns, row, strict=True)
        ]
        for row in shown.itertuples(index=False, name=None)
    ]
    numeric = [pd.api.types.is_numeric_dtype(shown[column]) for column in shown.columns]
    show(_myst_table(columns, rows, numeric, caption, name), _html_table(columns, rows, numeric, caption))


def glue(key: str, value: Any, form: str | None = None) -> None:
    """Make a number citable in prose as {glue:text}`key`; it is formatted here, once."""
    from myst_nb import glue as myst_glue

    myst_glue(key, number(value, form), display=False)


@dataclass(frozen=True)
class Row:
    """One quantity, the paper's value and ours. `note` says what to keep in mind when comparing."""

    quantity: str
    paper: Any
    ours: Any
    note: str = ""


def in_the_paper(rows: Iterable[Row], title: str = "In the paper") -> None:
    """A box with the paper's numbers beside ours."""
    rows = list(rows)
    header = ["quantity", "paper", "ours"] + (["note"] if any(row.note for row in rows) else [])
    cells = [[row.quantity, number(row.paper), number(row.ours), row.note][: len(header)] for row in rows]
    aligned = [False, True, True, False][: len(header)]
    body = _pipe_table(header, cells, aligned)
    show(
        f"::::{{admonition}} {title}\n:class: in-the-paper\n\n{body}\n::::\n",
        _html_table(header, cells, aligned, title),
    )


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what we say of it, and the numbers we say it on."""

    claim: str
    verdict: str
    evidence: str
    where: str = ""  # section, table or figure of the paper

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not {self.verdict!r}")


def verdicts(items: Sequence[Verdict]) -> None:
    """The table of verdicts that closes a chapter; each is also recorded for the scoreboard."""
    for item in items:
        record("verdict", claim=item.claim, verdict=item.verdict, evidence=item.evidence, where=item.where)
    header = ["claim", "in the paper", "verdict", "evidence"]
    cells = [[item.claim, item.where, f"{_MARKS[item.verdict]} **{item.verdict}**", item.evidence] for item in items]
    plain = [[item.claim, item.where, f"{_MARKS[item.verdict]} {item.verdict}", item.evidence] for item in items]
    aligned = [False] * 4
    show(
        f":::{{div}} verdicts\n\n{_pipe_table(header, cells, aligned)}\n:::\n", _html_table(header, plain, aligned, "")
    )


def data_source(source: Any) -> None:
    """Record where the chapter's data came from: text, or anything with `.source` or `.meta["source"]`."""
    if hasattr(source, "source"):
        text, mark = source.source, source.fingerprint()
    elif hasattr(source, "meta"):
        text, mark = source.meta.get("source", "unknown"), source.fingerprint()
    else:
        text, mark = str(source), ""
    record("data_source", source=text, fingerprint=mark)


def _blank(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, float) and math.isnan(value))


def _pipe_table(header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "| " + " | ".join("---:" if right else ":---" for right in numeric) + " |"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def _myst_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], caption: str, name: str
) -> str:
    return f"::::{{table}} {caption}\n:name: {name}\n\n{_pipe_table(header, rows, numeric)}\n::::\n"


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], caption: str) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if right else "left"}">{html.escape(cell)}</{tag}>'
            for cell, right in zip(cells, numeric, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{line('th', header)}</tr></thead><tbody>{body}</tbody></table>"
