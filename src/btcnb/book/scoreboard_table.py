"""The scoreboard as a table that a reader can filter: one self-contained piece of HTML, no kernel, no other host.

Filters are native lists, so keys and screen readers work; the count of lines is read out when it changes. Without
scripts the whole table stands there. The look, cards on a phone among it, is in `book/_static/btcnb.css`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from IPython.display import display

from btcnb import gates
from btcnb.book.inline import inline_html, inline_myst
from btcnb.book.output import MARKS, show
from btcnb.paper.claims import DATA, IMPORTANCE
from btcnb.paper.scoreboard import CONSTRUCTED, ELSEWHERE, OUTCOMES, SECTIONS

KEY = "btcnb-board"
HEADS = ("claim", "paper", "ours", "verdict", "data", "chapter")
FILTERS = {
    "section": ("section", (*SECTIONS, ELSEWHERE)),
    "outcome": ("verdict", OUTCOMES),
    "data": ("data", DATA),
    "importance": ("importance", IMPORTANCE),
}
"""Columns of the board that can be filtered by, what the filter is called, and its values in order."""
NOTHING = "–"

_SCRIPT = """<script>
(function () {
  const root = document.getElementById("KEY");
  if (!root) return;
  const lists = root.querySelectorAll("select"), lines = root.querySelectorAll("tbody tr");
  const output = root.querySelector("output");
  function show() {
    let count = 0;
    lines.forEach((line) => {
      const kept = Array.from(lists).every((list) => !list.value || line.dataset[list.name] === list.value);
      line.hidden = !kept;
      count += kept;
    });
    output.textContent = count + " of " + lines.length + " claims";
  }
  lists.forEach((list) => list.addEventListener("change", show));
  const form = root.querySelector("form");
  root.querySelector("button").addEventListener("click", () => { form.reset(); show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
})();
</script>""".replace("KEY", KEY)


def show_board(board: pd.DataFrame, pages: Mapping[str, str]) -> None:
    """Display `board_html` of the same arguments; elsewhere than in a browser, a line a claim."""
    plain = "\n".join(f"{line['id']} {line['verdict']}: {line['claim']}" for line in board.to_dict("records"))
    display({"text/html": board_html(board, pages), "text/plain": plain}, raw=True)


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

    board: as `btcnb.paper.scoreboard.scoreboard` gives it
    pages: a chapter's number -> its page, as seen from the page that shows the board; others are not linked
    """
    gates.instance("board", board, pd.DataFrame)
    lines = [{str(key): value for key, value in line.items()} for line in board.to_dict("records")]
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in HEADS)
    body = "\n".join(_line(line, pages) for line in lines)
    return f"""<div class="{KEY}" id="{KEY}" role="group" aria-label="scoreboard of the paper's claims">
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
{_SCRIPT}
</div>"""


def _filter(board: pd.DataFrame, column: str) -> str:
    """A list of the values that the board has in a column, `all` first."""
    name, order = FILTERS[column]
    there = set(board[column])
    options = "".join(f'<option value="{_safe(value)}">{_safe(value)}</option>' for value in order if value in there)
    return (
        f'<label for="{KEY}-{column}">{name} <select id="{KEY}-{column}" name="{column}">'
        f'<option value="">all</option>{options}</select></label>\n'
    )


def _line(line: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    marks = " ".join(f'data-{column}="{_safe(line[column])}"' for column in FILTERS)
    first, *others = zip(HEADS, _cells(line, pages), strict=True)
    cells = f'<th scope="row" role="rowheader">{first[1]}</th>'
    cells += "".join(f'<td role="cell" data-label="{head}"><div>{cell}</div></td>' for head, cell in others)
    return f'<tr role="row" id="claim-{_safe(line["id"])}" {marks}>{cells}</tr>'


def _cells(line: Mapping[str, Any], pages: Mapping[str, str]) -> Iterator[str]:
    """The cells of a line in the order of `HEADS`, everything in them escaped."""
    changed = f" Changed since: {inline_html(line['changes'])}." if line["changes"] else ""
    asked = f"{inline_html(line['rule'])} Written {_safe(line['written'])}.{changed}"
    about = f"<small>{_safe(line['where'])}; importance: {_safe(line['importance'])}</small>"
    rule = f"<details><summary>rule</summary>{asked}</details>"
    yield f"<b>{_safe(line['id'])}</b> {inline_html(line['claim'])} {about}{rule}"
    yield inline_html(line["paper"]) or NOTHING
    yield inline_html(line["ours"]) or NOTHING
    constructed = f"<br><small>{CONSTRUCTED}</small>" if line["by_construction"] else ""
    yield f'<span class="verdict">{MARKS[line["verdict"]]} {_safe(line["verdict"])}</span>{constructed}'
    yield _safe(line["data"])
    number = str(line["chapter"])
    page = pages.get(number)
    link = f'<a href="{_safe(page)}" aria-label="chapter {_safe(number)}">{_safe(number)}</a>'
    yield link if page else _safe(number)


def _safe(text: object) -> str:
    return html.escape(str(text), quote=True)
