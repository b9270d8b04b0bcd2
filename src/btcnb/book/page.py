"""What a chapter puts on its page: tables, boxes, verdicts, glued numbers, and records for the build.

Each output carries two forms: MyST Markdown, which the rendered book turns into numbered tables and admonitions, and
HTML, which Jupyter shows. Text that comes from data may hold HTML, roles, links or templates. Cells keep inline code,
mathematics and emphasis; everything else that MyST would act on is shown as it stands, unless a chapter says
`markup("…")`.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pandas as pd
from IPython.display import display

from btcnb.digits import number
from btcnb.errors import without_credentials

RECORD_MIME = "application/vnd.btcnb.record+json"
"""Outputs of this type are read by the build (provenance, verdicts) and taken off the page."""
LEFT_OUT = "left out"
"""Kind of the record of figures and tables that cannot be made from the data."""
MARKS = {"reproduced": "✔", "partly": "◐", "not reproduced": "✘", "cannot be tested here": "–"}
"""The sign of each verdict, wherever it is shown."""
UNTESTED = "cannot be tested here"

_KEPT = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)|\$(?P<maths>(?![\s$])[^$\n]*?[^$\s\\])\$"
)
_ACTIVE_MATHS = re.compile(
    r"\\(href|url|require|class|cssId|style|data|html\w*|unicode|def|let|csname|(re)?new(command|environment))(?![a-zA-Z])"
)
_ACTIVE = re.compile(r"[&<>\\{}\[\]`$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SCRIPTS = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>[^\W\d_])_(?P<below>\{[^{}]+\}|max|min|[^\W_])(?![^\W_]|_)"
    r"(?:\^(?P<above>\{[^{}]+\}|\([^()]+\)|[^\W_]))?"
)
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
_NO_NUMBER = re.compile(r"(?i)(?<![\w.])[+-]?(nan|inf)(?![\w.]*\w)|∞")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# Text


@dataclass(frozen=True)
class Markup:
    """Text that a chapter means as MyST, roles and links included; never make one of data."""

    text: str

    def __str__(self) -> str:
        return self.text


def markup(text: str) -> Markup:
    """Let a table's cell hold roles, links or HTML: `book.markup("{doc}`02_heuristics`")`."""
    return Markup(text)


def escape(text: Any) -> str:
    """`text` on one line, with nothing in it that MyST would act on but inline code, mathematics and emphasis."""
    if isinstance(text, Markup):
        return " ".join(text.text.split("\n"))
    return "".join(whole if kind else _escaped(whole) for kind, _, whole in _parts(text))


def inline_html(text: object) -> str:
    """One line of text as HTML: code, emphasis, formulas for MathJax, `S_max` with its subscript."""
    made = []
    for kind, inner, _ in _parts(text):
        if kind == "code":
            made.append(f"<code>{html.escape(inner)}</code>")
        elif kind == "maths":
            made.append(f'<span class="math notranslate nohighlight">\\({html.escape(inner)}\\)</span>')
        else:
            made.append(_EMPHASIS.sub(r"<em>\1</em>", _with_scripts(inner, html.escape)))
    return "".join(made)


def inline_myst(text: object) -> str:
    """One line of text as MyST, which sets code, emphasis and formulas itself."""
    return "".join(whole if kind else _with_scripts(whole, _escaped) for kind, _, whole in _parts(text))


def _parts(text: object) -> Iterator[tuple[str, str, str]]:
    """Plain text, inline code and mathematics of a line: (kind, content, the part as it stands).

    The kind is `code`, `maths`, or empty for everything else; mathematics that could do something is plain text.
    """
    line, end = " ".join(str(text).splitlines()), 0
    for found in _KEPT.finditer(line):
        if found["maths"] is not None and _ACTIVE_MATHS.search(found["maths"]):
            continue
        if end < found.start():
            yield "", line[end : found.start()], line[end : found.start()]
        kind = "code" if found["maths"] is None else "maths"
        yield kind, found[kind], found[0]
        end = found.end()
    if end < len(line):
        yield "", line[end:], line[end:]


def _escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), text)


def _with_scripts(text: str, plain: Callable[[str], str]) -> str:
    """`S_max` becomes S with *max* as subscript; the rest goes through `plain`."""
    made, end = [], 0
    for found in _SCRIPTS.finditer(text):
        below, above = (html.escape((found[part] or "").strip("{}()")) for part in ("below", "above"))
        raised = f"<sup>{above}</sup>" if above else ""
        made += [plain(text[end : found.start()]), f"<i>{found['name']}</i><sub>{below}</sub>{raised}"]
        end = found.end()
    return "".join([*made, plain(text[end:])])


def code(text: str) -> str:
    """Text between backticks, whatever backticks it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{' '.join(text.splitlines())}{pad}{fence}"


def power_of_ten(value: float) -> str:
    """A tiny or huge number as text: 3 · 10⁻⁸; 0 is 0."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit} · 10{str(int(power)).translate(_RAISED)}"


# Outputs


def show(markdown: str, fallback: str) -> None:
    """Display MyST Markdown in the book and the HTML `fallback` in Jupyter.

    Both are taken as they are: text that comes from data goes through `book.escape` first.
    """
    display({"text/markdown": markdown, "text/html": fallback, "text/plain": markdown}, raw=True)


def record(kind: str, **payload: Any) -> None:
    """Hand a record to the build; it leaves no trace on the page."""
    display({RECORD_MIME: {"kind": kind, **payload}, "text/plain": ""}, raw=True)


def leave_out(*names: str) -> None:
    """Leave tables or figures out of this edition: where text cites them, no number stands.

    Without a name it is the figure of the calling cell. Close a figure that is begun: nothing may be drawn.
    """
    record(LEFT_OUT, names=list(names))


def pipe_table(header: Sequence[Any], rows: Iterable[Sequence[Any]], numeric: Sequence[bool] | None = None) -> str:
    """A MyST table, its cells escaped; columns marked `numeric` are set to the right."""
    lines = [header, *rows]
    cells = ["| " + " | ".join(escape(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    rule = "| " + " | ".join("---:" if right else ":---" for right in numeric or [False] * len(header)) + " |"
    return "\n".join([cells[0], rule, *cells[1:]])


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    numeric: Sequence[bool] | None = None,
    *,
    directive: str = "{div}",
    title: str = "",
    options: str = "",
    above: str = "",
) -> None:
    """Display rows of cells inside a MyST directive.

    directive, title, options: its first line, and the lines `:name: value` below it
    above: MyST text that stands over the table
    """
    body = "\n\n".join(filter(None, [options, above, pipe_table(header, rows, numeric)]))
    with pd.option_context("display.max_colwidth", None):
        plain = pd.DataFrame([[str(cell) for cell in row] for row in rows], columns=list(header))
        fallback = plain.to_html(index=False, border=0)
    heading = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    gap = "" if options else "\n"
    show(f"::::{directive} {title}\n{gap}{body}\n::::\n", heading + fallback)


def table(
    frame: pd.DataFrame, caption: str, name: str, formats: dict[str, str] | None = None, index: bool = False
) -> None:
    """Show `frame` as a numbered table that text can cite with {numref}`name`; one without rows is left out.

    `formats` maps a column to a format string such as "{:.2f}"; other cells go through `number`. Text in cells is
    escaped, inline code, mathematics and emphasis apart; `book.markup("…")` makes a cell that may hold anything.
    """
    if frame.empty:
        leave_out(name)
        return
    shown, formats = (frame.reset_index() if index else frame), formats or {}
    rows = [
        [_cell(value, formats.get(str(column))) for column, value in zip(shown.columns, row, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in shown.dtypes]
    title = " ".join(caption.split("\n"))
    header = [str(column) for column in shown.columns]
    show_table(header, rows, numeric, directive="{table}", title=title, options=f":name: {name}")


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
    lines = list(rows)
    header = ["quantity", "paper", "ours"] + ["note"] * any(str(row.note) for row in lines)
    cells = [[row.quantity, _cell(row.paper), _cell(row.ours), row.note][: len(header)] for row in lines]
    numeric = [False, True, True, False][: len(header)]
    show_table(header, cells, numeric, directive="{admonition}", title=title, options=":class: in-the-paper")


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what we say of it (one of `MARKS`), and the numbers we say it on.

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
        reason = ""
        if self.sample is not None and self.sample < 1:
            reason = "the sample is empty"
        elif not all(map(math.isfinite, self.numbers)) or _NO_NUMBER.search(str(self.evidence)):
            reason = "a number it rests on could not be computed here"
        if reason:
            object.__setattr__(self, "verdict", UNTESTED)
            object.__setattr__(self, "evidence", f"nothing to judge it on: {reason}")


def verdicts(items: Sequence[Verdict]) -> None:
    """The table of verdicts that closes a chapter; each is also recorded for the scoreboard."""
    for item in items:
        known = {"id": item.id} if item.id else {}
        record("verdict", claim=item.claim, verdict=item.verdict, evidence=item.evidence, where=item.where, **known)
    named = any(item.id for item in items)
    header = [*["id"] * named, "claim", "in the paper", "verdict", "evidence"]
    show_verdicts(
        header,
        [[*[item.id] * named, item.claim, item.where, marked(item.verdict), item.evidence] for item in items],
    )


def show_verdicts(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table that becomes a card a row on a phone."""
    show_table(header, rows, directive="{div}", title="verdicts")


def marked(verdict: str) -> str:
    """A verdict as tables show it, with its sign."""
    return f"{MARKS[verdict]} **{verdict}**"


def data_source(source: Any) -> None:
    """Record where the chapter's data came from: text, or anything with a fingerprint and `.source` or `.meta`."""
    mark = source.fingerprint() if hasattr(source, "fingerprint") else ""
    text = getattr(source, "source", None) or getattr(source, "meta", {}).get("source") or str(source)
    record("data_source", source=without_credentials(str(text)), fingerprint=mark)


def recipe(one: Any) -> None:
    """Record the recipe (`btcnb.experiments.Recipe`) that the page's numbers were made with, for its provenance."""
    record("recipe", id=one.id, fields=one.flat())


def _cell(value: Any, form: str | None = None) -> Any:
    """What stands in a cell; a mean and its spread are never parted by the end of a line."""
    if isinstance(value, Markup):
        return value
    return (value if isinstance(value, str) else number(value, form)).replace(" ± ", "\u00a0±\u00a0")
