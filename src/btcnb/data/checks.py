"""Gates for arguments: what is not of the promised kind ends here, in one sentence, before it reaches any code."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.errors import ParameterError

MOST = 2**63 - 1
"""The largest whole number that the arrays can hold."""


def whole(name: str, value: Any, low: int = 0, high: int = MOST) -> int:
    """The value as an int, if it is a whole number (no bool, no float) from low to high."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        most = f" to {high:,}" if high < MOST else ""
        raise ParameterError(f"{name} is {value!r}, but must be a whole number from {low:,}{most}.")
    return int(value)


def real(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float, if it is a finite number (no bool) from low to high."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not low <= value <= high
    ):
        raise ParameterError(f"{name} is {value!r}, but must be a number from {low:g} to {high:g}.")
    return float(value)


def positive(name: str, value: Any, unit: str = "") -> float:
    """The value as a float, if it is a finite number above 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not 0 < value <= sys.float_info.max
    ):
        raise ParameterError(f"{name} is {value!r}, but must be a positive number{unit}.")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """The value, if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is {value!r}, but must be True or False.")
    return bool(value)


def ids(name: str, values: Any, below: int) -> npt.NDArray[np.int64]:
    """The values as int64, if they are a list of whole numbers from 0 to below - 1."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal length
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(f"{name} must be a list of whole numbers.")
    if array.size and not (array.min() >= 0 and array.max() < below):
        raise ParameterError(f"{name} must lie between 0 and {below - 1:,}.")
    return array.astype(np.int64)


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """The value, if it is one of the known names."""
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise ParameterError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, names))}.")
    return value


def choices(name: str, values: Any, known: Iterable[str]) -> None:
    """Refuse what is not a collection of known names."""
    if isinstance(values, str) or not isinstance(values, Collection):
        raise ParameterError(f"{name} is {values!r}, but must be a collection of names, such as ({values!r},).")
    for value in values:
        choice(f"an entry of {name}", value, known)


def instance(name: str, value: Any, kind: type) -> None:
    """Refuse what is not of the class."""
    if not isinstance(value, kind):
        raise ParameterError(f"{name} is of type {type(value).__name__}, but must be {_article(kind.__name__)}.")


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
