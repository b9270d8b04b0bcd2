"""Text for pages: tables, words from elsewhere made harmless, and numbers, which `btcnb.digits` writes.

Whatever comes from data may hold HTML, roles, links or templates. Cells keep inline code, mathematics and emphasis;
everything else that MyST would act on is shown as it stands. A chapter that means markup says so: `markup("…")`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from btcnb import gates
from btcnb.digits import number as number

_CODE = r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)"
_MATHS = r"\$(?P<maths>(?![\s$])[^$\n]*?[^$\s\\])\$"
_KEPT = re.compile(f"{_CODE}|{_MATHS}")
_ACTIVE_MATHS = re.compile(
    r"\\(href|url|require|class|cssId|style|data|html\w*|unicode|def|let|csname|(re)?new(command|environment))(?![a-zA-Z])"
)
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ACTIVE = re.compile(r"[&<>\\{}\[\]`$]")
_URL = re.compile(r"(?i)((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}:/+|(?<!/)//)[^\s'\"]*@")
_LOGIN = re.compile(r"(?<![^\s'\"])[^\s'\":@/]+:[^\s'\"]+@(?=\S)")


@dataclass(frozen=True)
class Markup:
    """Text that a chapter means as MyST, roles and links included; never make one of data."""

    text: str

    def __str__(self) -> str:
        return self.text


def markup(text: str) -> Markup:
    """Let a table's cell hold roles, links or HTML: `book.markup("{doc}`02_heuristics`")`."""
    return Markup(gates.text("markup", text))


def escape(text: Any) -> str:
    """`text` on one line, with nothing in it that MyST would act on but inline code, mathematics and emphasis."""
    if isinstance(text, Markup):
        return " ".join(text.text.split("\n"))
    line = " ".join(str(text).splitlines())
    return "".join(whole if kind else _escape(whole) for kind, _, whole in pieces(line))


def pieces(line: str) -> Iterator[tuple[str, str, str]]:
    """A line cut into plain text, inline code and mathematics: (kind, what it holds, the piece as it stands).

    The kind is `code`, `maths`, or empty for everything else; mathematics that could do something is plain text.
    """
    end = 0
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


def _escape(text: str) -> str:
    return _ACTIVE.sub(lambda found: _HTML.get(found[0], f"\\{found[0]}"), text)


def code(text: str) -> str:
    """Text between backticks, whatever backticks it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{' '.join(text.splitlines())}{pad}{fence}"


def without_credentials(text: str) -> str:
    """`text` without the `user:password@` of any address in it."""
    return _LOGIN.sub("", _URL.sub(r"\1", text)) if "@" in text else text


def clipped(text: str, most: int = 80) -> str:
    """The beginning of a text, for an error; credentials go first, while they can still be told."""
    text = without_credentials(text)
    return text if len(text) <= most else f"{text[:most]} …"


def pipe_table(header: Sequence[Any], rows: Sequence[Sequence[Any]], numeric: Sequence[bool] | None = None) -> str:
    """A MyST table, its cells escaped; columns marked `numeric` are set to the right."""
    right = numeric or [False] * len(header)
    lines = [header, *rows]
    cells = ["| " + " | ".join(escape(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    rule = "| " + " | ".join("---:" if entry else ":---" for entry in right) + " |"
    return "\n".join([cells[0], rule, *cells[1:]])


def html_table(header: Sequence[Any], rows: Sequence[Sequence[Any]], numeric: Sequence[bool], caption: str) -> str:
    """The same table as Jupyter shows it."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if right else "left"}">{html.escape(str(cell))}</{tag}>'
            for cell, right in zip(cells, numeric, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{line('th', header)}</tr></thead><tbody>{body}</tbody></table>"
