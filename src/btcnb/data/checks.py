"""Gates of the data part beside the general ones: whole numbers that fit its arrays, ids, collections of names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import ParameterError

MOST = 2**63 - 1
"""The largest whole number that the arrays can hold."""


def whole(name: str, value: Any, low: int = 0, high: int = MOST) -> int:
    """The value as an int, if it is a whole number from low to high."""
    found = gates.whole(name, value, f"[{low}, inf)")
    if found > high:
        raise ParameterError(f"{name} is {found}, but must be at most {high:,}.")
    return found


def real(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float, if it is a finite number from low to high."""
    return gates.real(name, value, f"[{low}, {high}]")


def positive(name: str, value: Any, unit: str = "") -> float:
    """The value as a float, if it is a finite number above 0."""
    try:
        return gates.real(name, value, "(0, inf)")
    except ParameterError as error:
        raise ParameterError(f"{str(error).removesuffix('.')}: a positive number{unit}.") from None


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


def choices(name: str, values: Any, known: Iterable[str]) -> None:
    """Refuse what is not a collection of known names."""
    if isinstance(values, str) or not isinstance(values, Collection) or getattr(values, "ndim", 1) == 0:  # array(3)
        raise ParameterError(f"{name} is {values!r:.80}, but must be a collection of names, such as ({values!r:.80},).")
    for value in values:
        gates.choice(f"an entry of {name}", value, known)
