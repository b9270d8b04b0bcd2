"""The scoreboard: every claim in a table that a reader can filter, and the whole in one screen for the first page.

The table is plain HTML; `interactive.js` filters it. Filters are native lists, so keys and screen readers work; the
count of lines is read out when it changes. Without scripts the whole table stands there. Its style, cards on a phone
among it, is in `book/_static/btcnb.css`.

Chapter 18 computes the summary and hands it to the build as a record; `btcnb summary` computes the same from what is
committed under `results/`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from btcnb.book.interactive import show_interactive
from btcnb.book.page import MARKS, inline_html, inline_myst, show
from btcnb.errors import DataError
from btcnb.paper.board import CONSTRUCTED, ELSEWHERE, OUTCOMES, SECTIONS
from btcnb.paper.claims import DATA, IMPORTANCE

FILTERS = {
    "section": ("section", (*SECTIONS, ELSEWHERE)),
    "outcome": ("verdict", OUTCOMES),
    "data": ("data", DATA),
    "importance": ("importance", IMPORTANCE),
}
"""Columns of the board that can be filtered by, what the filter is called, and its values in order."""
KIND = "summary"
"""Kind of the record that chapter 18 makes for the build."""
ICONS = dict(zip(OUTCOMES, "✔✔◐✘–", strict=True))
FULL = 40
"""Length of the longest bar in the README, in characters."""


def show_board(board: pd.DataFrame, pages: Mapping[str, str]) -> None:
    """Display `board_html` of the same arguments; elsewhere than in a browser, a line a claim."""
    plain = "\n".join(f"{line['id']} {line['verdict']}: {line['claim']}" for line in board.to_dict("records"))
    show_interactive(board_html(board, pages), plain)


def show_list(lines: Iterable[str], nothing: str = "None.") -> None:
    """Display sentences as a list; the id of a claim leads to its line of the board."""
    said = list(lines)
    items = "".join(f"<li>{_linked(inline_html(line))}</li>" for line in said)
    myst = "\n".join(f"- {_linked(inline_myst(line))}" for line in said)
    show(myst or nothing, f"<ul>{items}</ul>" if said else f"<p>{nothing}</p>")


def _linked(line: str) -> str:
    return re.sub(r"\bC\d{3}\b", lambda id: f'<a href="#claim-{id[0]}">{id[0]}</a>', line)


def board_html(board: pd.DataFrame, pages: Mapping[str, str]) -> str:
    """The whole table, its filters above it.

    board: as `btcnb.paper.board.scoreboard` gives it
    pages: a chapter's number -> its page, as seen from the page that shows the board; others are not linked
    """
    lines = [{str(key): value for key, value in line.items()} for line in board.to_dict("records")]
    columns = ("claim", "paper", "ours", "verdict", "data", "chapter")
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in columns)
    body = "\n".join(_line(line, pages) for line in lines)
    return f"""<div class="btcnb-interactive btcnb-board" id="btcnb-board" role="group"
 aria-label="scoreboard of the paper's claims">
<form hidden aria-label="filters of the scoreboard">
{"".join(_filter(board, column) for column in FILTERS)}
<button type="button">show all</button>
<output aria-live="polite">{len(board)} claims</output>
</form>
<table role="table">
<caption>Claims of the paper, its numbers, ours, and the verdicts. Unfold a rule to see what was asked for, and
when it was written.</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{body}
</tbody>
</table>
</div>"""


def _filter(board: pd.DataFrame, column: str) -> str:
    """A list of the values that the board has in a column, `all` first."""
    name, order = FILTERS[column]
    there = set(board[column])
    options = "".join(f'<option value="{_safe(value)}">{_safe(value)}</option>' for value in order if value in there)
    return (
        f'<label for="btcnb-board-{column}">{name} <select id="btcnb-board-{column}" name="{column}">'
        f'<option value="">all</option>{options}</select></label>\n'
    )


def _line(line: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """A row of the table, everything in it escaped."""
    marks = " ".join(f'data-{column}="{_safe(line[column])}"' for column in FILTERS)
    changed = f" Changed since: {inline_html(line['changes'])}." if line["changes"] else ""
    about = f"<small>{_safe(line['where'])}; importance: {_safe(line['importance'])}</small>"
    asked = f"{inline_html(line['rule'])} Written {_safe(line['written'])}.{changed}"
    claim = f"<b>{_safe(line['id'])}</b> {inline_html(line['claim'])} {about}"
    rule = f"<details><summary>rule</summary>{asked}</details>"
    constructed = f"<br><small>{CONSTRUCTED}</small>" if line["by_construction"] else ""
    number = str(line["chapter"])
    page = pages.get(number)
    link = f'<a href="{_safe(page)}" aria-label="chapter {_safe(number)}">{_safe(number)}</a>'
    others = {
        "paper": inline_html(line["paper"]) or "–",
        "ours": inline_html(line["ours"]) or "–",
        "verdict": f'<span class="verdict">{MARKS[line["verdict"]]} {_safe(line["verdict"])}</span>{constructed}',
        "data": _safe(line["data"]),
        "chapter": link if page else _safe(number),
    }
    cells = f'<th scope="row" role="rowheader">{claim}{rule}</th>'
    cells += "".join(f'<td role="cell" data-label="{head}"><div>{cell}</div></td>' for head, cell in others.items())
    return f'<tr role="row" id="claim-{_safe(line["id"])}" {marks}>{cells}</tr>'


def _safe(text: object) -> str:
    return html.escape(str(text), quote=True)


# The board in one screen


@dataclass(frozen=True)
class Summary:
    """How many claims have which outcome (all of `ICONS`, in order), among all and among the important; findings."""

    counts: Mapping[str, int]
    important: Mapping[str, int]
    findings: Sequence[tuple[str, str]]

    @property
    def claims(self) -> int:
        return sum(self.counts.values())

    def record(self) -> dict[str, Any]:
        """The fields of the record."""
        return {**asdict(self), "findings": [list(each) for each in self.findings]}


def summarise(board: pd.DataFrame, found: Sequence[tuple[str, str]]) -> Summary:
    """The summary of a scoreboard and of the findings."""
    counts, important = (
        {name: int((outcomes == name).sum()) for name in ICONS}
        for outcomes in (board["outcome"], board.loc[board["importance"] == "high", "outcome"])
    )
    return Summary(counts, important, tuple(found))


def read_summary(records: Sequence[Mapping[str, Any]]) -> Summary | None:
    """The summary among the records of a chapter; None where there is none."""
    entry = next((entry for entry in records if entry.get("kind") == KIND), None)
    if entry is None:
        return None
    try:
        findings = tuple((str(question), str(finding)) for question, finding in entry["findings"])
        counts, important = ({name: int(entry[key][name]) for name in ICONS} for key in ("counts", "important"))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("chapter 18", KIND, f"is damaged ({error!s:.80})", "build the chapter again") from None
    return Summary(counts, important, findings)


def bar_html(summary: Summary) -> str:
    """The counts as one bar, segments as wide as their shares, with a legend that says all in words."""
    told = ", ".join(f"{count} {name}" for name, count in summary.counts.items())
    label = html.escape(f"Verdicts on {summary.claims} claims: {told}")
    parts = "".join(
        f'<span class="{name.replace(" ", "-")}" style="flex-grow:{count}"><i>{count}</i></span>'
        for name, count in summary.counts.items()
        if count
    )
    items = "".join(
        f'<li><span class="key {name.replace(" ", "-")}"></span>{ICONS[name]} {html.escape(name)}: <b>{count}</b> '
        f"<small>({summary.important[name]} of high importance)</small></li>"
        for name, count in summary.counts.items()
    )
    return (
        f'<div class="verdict-bar" role="img" aria-label="{label}">{parts}</div>\n'
        f'<ul class="verdict-legend">{items}</ul>\n'
    )


def findings_myst(summary: Summary) -> str:
    """The findings as a numbered list."""
    lines = enumerate(summary.findings, 1)
    return "\n".join(f"{i}. **{inline_myst(ask)}** {inline_myst(answer)}" for i, (ask, answer) in lines)


def readme_block(summary: Summary) -> str:
    """The same as plain Markdown, bars of characters among it."""
    most = max([*summary.counts.values(), 1])
    rows = [
        f"| {ICONS[name]} {name} | {count} | {summary.important[name]} | {'█' * -(-FULL * count // most)} |"
        for name, count in summary.counts.items()
    ]
    found = [f"{i}. **{ask}** {answer}" for i, (ask, answer) in enumerate(summary.findings, 1)]
    return "\n".join(
        [
            f"Verdicts on the paper's {summary.claims} claims, by rules with a date; *important* counts those of high",
            "importance. Almost all rest on simulated data; chapter 18 has every rule and every number.",
            "",
            "| verdict | claims | important | |",
            "| --- | ---: | ---: | --- |",
            *rows,
            "",
            "Five findings, computed from the records in `results/sweeps`; brackets hold 95 % intervals:",
            "",
            *found,
        ]
    )
