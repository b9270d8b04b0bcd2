"""How numbers are written, everywhere: in prose, tables, boxes and evidence. One function decides, others call it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.errors import ParameterError

_WHOLE_SHARE = re.compile(r"^(100|0)\.0+(?= ?%$)")


def number(value: Any, form: str | None = None) -> str:
    """A number as text: thousands separated, three significant digits for fractions, `–` for missing.

    `form`, such as "{:.1f}", decides the digits; zero carries no sign and no exponent, however it was asked for. All
    is "100 %" and nothing "0 %", while "100.0 %" is a share that was rounded.
    """
    if form is not None:
        gates.text("form", form)
    if value is None or value is pd.NA or value is pd.NaT:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, int | float | np.integer | np.floating):
        return _formatted(form, value) if form else str(value)
    size: Any = abs(value)
    if size != size:
        return "–"
    if form is None or (form.endswith("e}") and 1e-3 <= size < 1e4):
        form = _form(value)
    text = _formatted(form, value)
    if not re.search("[1-9]|inf", text):  # what is left after rounding is zero
        text = re.sub(r"^[+-](?=[\d.])", "", re.sub(r"(?<=\d)\.?0*e[+-]\d+", "", text))
    if size in (0, 1, 100):
        text = _WHOLE_SHARE.sub(r"\1", text)
    return text.replace("inf", "∞")


def evidence(value: float, signed: bool = False) -> str:
    """A number that decides: three decimals for scores, three digits for what is larger, from a thousand on none.

    A minus is a minus (−), not a hyphen: evidence is read in sentences.
    """
    if value != value:
        return "nan"  # which no verdict accepts
    digits = ",.0f" if abs(value) >= 999.5 else ".3f" if abs(value) < 10 else ".3g"
    return number(value, f"{{:{'+' * signed}{digits}}}").replace("-", "−")


def probability(p: float) -> str:
    """`p = 0.034`, or `p < 0.001`: nobody compares digits of what is that small."""
    return "p < 0.001" if p < 0.001 else f"p = {number(float(f'{p:.2g}'))}"


def count(many: int, what: str) -> str:
    """`1 CoinJoin`, `2 CoinJoins`, `1,000 mixes`."""
    many, what = gates.whole("many", many), gates.text("what", what)
    several = what + ("es" if re.search(r"(s|x|ch|sh)$", what) else "s")
    return f"{number(many)} {what if many == 1 else several}"


def _formatted(form: str, value: Any) -> str:
    try:
        return form.format(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{form!r:.80} does not fit a {type(value).__name__} ({error}); write it as {{:.2f}}."
        ) from None


def _form(value: Any) -> str:
    if isinstance(value, int | np.integer) or abs(value) >= 999.5:
        return "{:,.0f}" if isinstance(value, float | np.floating) else "{:,}"
    return "{:.3g}" if value == 0 or abs(value) >= 1e-3 else "{:.1e}"
