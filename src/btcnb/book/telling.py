"""Small things that chapters tell: a power of ten as text, and the recipe behind a page."""

from __future__ import annotations

import math
from typing import Any, Protocol

from btcnb import gates
from btcnb.book.output import record
from btcnb.errors import ParameterError

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Recipe(Protocol):
    """What has a short name and can be listed field by field."""

    @property
    def id(self) -> str: ...
    def flat(self) -> dict[str, Any]: ...


def power_of_ten(value: float) -> str:
    """A tiny or huge number as text: 3 · 10⁻⁸; 0 is 0."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    value = gates.real("value", value, "[-inf, inf]")
    if not math.isfinite(value) or value == 0:
        return "0" if value == 0 else str(value)
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit} · 10{str(int(power)).translate(_RAISED)}"


def recipe(one: Recipe) -> None:
    """Record the recipe that the page's numbers were made with, for the provenance at its foot."""
    if isinstance(one, type) or not callable(getattr(one, "flat", None)) or not hasattr(one, "id"):
        raise ParameterError(f"a {type(one).__name__} is no recipe; pass what `recipe(…)` of btcnb.experiments made.")
    record("recipe", id=one.id, fields=one.flat())
