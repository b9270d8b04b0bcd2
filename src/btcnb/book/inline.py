"""Sentences about mathematics as they are typed, set as they are read: code, emphasis, formulas, sub- and superscripts.

Evidence and claims are plain text: `S_max`, `λ_{k+1}`, `k_s^(L−1)`, and `$…$` where a chapter wrote TeX. Two forms are
made of it: HTML for the scoreboard, MyST for lists. Whatever else the text holds is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from btcnb.book.text import escape, pieces

_SCRIPTS = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>[^\W\d_])_(?P<below>\{[^{}]+\}|max|min|[^\W_])(?![^\W_]|_)"
    r"(?:\^(?P<above>\{[^{}]+\}|\([^()]+\)|[^\W_]))?"
)
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")


def inline_html(text: object) -> str:
    """One line of text as HTML; formulas wait for MathJax, which the book brings along."""
    made = []
    for kind, inner, _ in pieces(" ".join(str(text).splitlines())):
        if kind == "code":
            made.append(f"<code>{_safe(inner)}</code>")
        elif kind == "maths":
            made.append(f'<span class="math notranslate nohighlight">\\({_safe(inner)}\\)</span>')
        else:
            made.append(_EMPHASIS.sub(r"<em>\1</em>", _scripts(inner, _safe)))
    return "".join(made)


def inline_myst(text: object) -> str:
    """One line of text as MyST, which sets code, emphasis and formulas itself."""
    line = " ".join(str(text).splitlines())
    return "".join(whole if kind else _scripts(whole, escape) for kind, _, whole in pieces(line))


def _scripts(text: str, plain: Callable[[str], str]) -> str:
    """`S_max` becomes S with a small *max* below it; the rest goes through `plain`."""
    made, end = [], 0
    for found in _SCRIPTS.finditer(text):
        below, above = (_safe((found[part] or "").strip("{}()")) for part in ("below", "above"))
        raised = f"<sup>{above}</sup>" if above else ""
        made += [plain(text[end : found.start()]), f"<i>{found['name']}</i><sub>{below}</sub>{raised}"]
        end = found.end()
    return "".join([*made, plain(text[end:])])


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
