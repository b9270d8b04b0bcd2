"""The first page: its prose is `book/intro.md`; lines `% front: NAME` stand for what is computed.

Pictures are kept under `book/front/`, made by `btcnb summary`. The bar of verdicts and the findings are those that
chapter 18 has recorded in the same build, so that the first page and the scoreboard cannot disagree.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from btcnb.book.inline import inline_html
from btcnb.book.summary import bar_html, findings_myst, read_summary
from btcnb.build.errors import UsageError

PAGE, FOLDER = "book/intro.md", "book/front"
COLLAPSE, PIPELINE = f"{FOLDER}/collapse.svg", f"{FOLDER}/pipeline.html"
_MARK = re.compile(r"^% front: (\S+)$", re.MULTILINE)
_CAPTION = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)
_NOTHING = (
    "*The scoreboard, {doc}`/notebooks/18_scoreboard`, has not been executed in this build: nothing to show yet.*"
)


def front_page(text: str, files: Mapping[str, bytes], records: Sequence[Mapping[str, Any]]) -> str:
    """The first page's text, complete. `files` are the book's, by path; `records` those of the scoreboard's chapter."""
    summary = read_summary(records)
    parts: dict[str, Callable[[], str]] = {
        "collapse": lambda: _raw(_figure(_file(files, COLLAPSE))),
        "pipeline": lambda: _raw(_file(files, PIPELINE)),
        "verdicts": lambda: _raw(bar_html(summary)) if summary else _NOTHING,
        "findings": lambda: findings_myst(summary) if summary else _NOTHING,
        "claims": lambda: f"There are {summary.claims} claims on the board." if summary else "",
    }

    def made(found: re.Match[str]) -> str:
        if found[1] not in parts:
            raise UsageError(f"{PAGE}: `% front: {found[1]}` is none of {', '.join(parts)}.")
        return parts[found[1]]()

    return _MARK.sub(made, text)


def _file(files: Mapping[str, bytes], name: str) -> str:
    if name not in files:
        raise UsageError(f"{name} is missing; `btcnb summary` makes it.")
    return files[name].decode()


def _figure(svg: str) -> str:
    """A drawing with the caption that its description holds."""
    found = _CAPTION.search(svg)
    caption = inline_html(html.unescape(found[1])) if found else ""
    return f'<figure class="front-picture">\n{svg.strip()}\n<figcaption>{caption}</figcaption>\n</figure>'


def _raw(text: str) -> str:
    return f"```{{raw}} html\n{text.strip()}\n```"
