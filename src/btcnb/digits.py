"""How numbers are written in prose, tables, boxes and evidence: `number` decides, the other functions call it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_WHOLE_SHARE = re.compile(r"^(100|0)\.0+(?= ?%$)")


def number(value: Any, form: str | None = None) -> str:
    """A number as text: thousands separated, three significant digits for fractions, `–` for missing.

    `form`, such as "{:.1f}", decides the digits; zero carries no sign and no exponent, however it was asked for. All
    is "100 %" and nothing "0 %", while "100.0 %" is a share that was rounded.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, without importing it
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, int | float | np.integer | np.floating):
        return form.format(value) if form else str(value)
    size: Any = abs(value)
    if size != size:
        return "–"
    if form is None or (form.endswith("e}") and 1e-3 <= size < 1e4):
        form = _form(value)
    text = form.format(value)
    if not re.search("[1-9]|inf", text):  # zero after rounding
        text = re.sub(r"^[+-](?=[\d.])", "", re.sub(r"(?<=\d)\.?0*e[+-]\d+", "", text))
    if size in (0, 1, 100):
        text = _WHOLE_SHARE.sub(r"\1", text)
    return text.replace("inf", "∞")


def evidence(value: float, signed: bool = False) -> str:
    """A number in evidence: three decimals for scores, three digits for larger ones, none from a thousand on.

    The minus sign is − and not a hyphen, because evidence is read in sentences.
    """
    if value != value:
        return "nan"  # no verdict accepts it
    digits = ",.0f" if abs(value) >= 999.5 else ".3f" if abs(value) < 10 else ".3g"
    return number(value, f"{{:{'+' * signed}{digits}}}").replace("-", "−")


def probability(p: float) -> str:
    """`p = 0.034`, or `p < 0.001` for smaller ones."""
    return "p < 0.001" if p < 0.001 else f"p = {number(float(f'{p:.2g}'))}"


def count(many: int, what: str) -> str:
    """`1 CoinJoin`, `2 CoinJoins`, `1,000 mixes`."""
    several = what + ("es" if re.search(r"(s|x|ch|sh)$", what) else "s")
    return f"{number(many)} {what if many == 1 else several}"


def _form(value: Any) -> str:
    if isinstance(value, int | np.integer) or abs(value) >= 999.5:
        return "{:,.0f}" if isinstance(value, float | np.floating) else "{:,}"
    return "{:.3g}" if value == 0 or abs(value) >= 1e-3 else "{:.1e}"
