"""One gate for what callers pass in: numbers in their range, choices, flags, arrays of numbers.

What comes through is of the type and in the range that the code behind expects; everything else is a `ParameterError`
(one value) or a `DataError` (an array). Bool is no number, NaN is in no range, text is never parsed.
"""

from __future__ import annotations

import functools
import math
import numbers
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from btcnb.errors import DataError, ParameterError

T = TypeVar("T")

ANY = "(-inf, inf)"
LARGEST = 2**31 - 1
"""Nodes, edges of a batch, columns: larger numbers are taken for a slip."""


class Interval(NamedTuple):
    """An interval as it is written: `[0, 1)`, `(0, inf)`; an end at infinity is let in only by a square bracket."""

    low: float
    high: float
    with_low: bool
    with_high: bool

    def holds(self, value: float) -> bool:
        above = value >= self.low if self.with_low else value > self.low
        below = value <= self.high if self.with_high else value < self.high
        return above and below


@functools.cache
def interval(text: str) -> Interval:
    """Read `[low, high]`, each bracket round or square."""
    found = re.fullmatch(r"([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])", text)
    if found is None:
        raise ParameterError(f"{text!r} is no interval; write [low, high], (low, high), or a mixture.")
    left, low, high, right = found.groups()
    return Interval(float(low), float(high), left == "[", right == "]")


def whole(name: str, value: object, within: str = ANY) -> int:
    """`value` as an int: a whole number of any integer type, in the interval."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ParameterError(f"{name} is {_shown(value)}, but must be a whole number.")
    number = int(value)
    if not interval(within).holds(number):
        raise ParameterError(f"{name} is {_shown(value)}, but must lie in {within}.")
    return number


def real(name: str, value: object, within: str = ANY) -> float:
    """`value` as a float: any real number in the interval."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ParameterError(f"{name} is {_shown(value)}, but must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if not interval(within).holds(number):
        raise ParameterError(f"{name} is {_shown(value)}, but must lie in {within}.")
    return number


def text(name: str, value: object, longest: int = 10_000) -> str:
    """`value` if it is text that can be written to a file, of at most `longest` characters."""
    try:
        if not isinstance(value, str) or len(value) > longest:
            raise ValueError
        value.encode()
    except ValueError:  # half of a surrogate pair, as a broken decoder leaves it
        raise ParameterError(
            f"{name} is {_shown(value)}, but must be text of at most {longest:,} characters."
        ) from None
    return value


def flag(name: str, value: object) -> bool:
    """`value` as a bool: True or False, no number and no text."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is {_shown(value)}, but must be True or False.")
    return bool(value)


def choice(name: str, value: T, choices: Iterable[T]) -> T:
    """`value` if it is one of the choices."""
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name} is {_shown(value)}, but must be one of {', '.join(map(repr, allowed))}.")
    return value


def instance(name: str, value: object, kind: type[T] | tuple[type[T], ...]) -> T:
    """`value` if it is an instance of `kind`."""
    if not isinstance(value, kind):
        names = [each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,))]
        raise ParameterError(f"{name} is {_shown(value)}, but must be a {' or a '.join(names)}.")
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """`value` if it can be called."""
    if not callable(value):
        raise ParameterError(f"{name} is {_shown(value)}, but must be a function.")
    return value  # type: ignore[no-any-return]


def items(name: str, value: Any) -> list[Any]:
    """The items of a list or of another finite sequence of things; text is none."""
    try:
        if isinstance(value, str | bytes | dict):
            raise TypeError
        return list(value)
    except TypeError:
        raise ParameterError(f"{name} is {_shown(value)}, but must be a list.") from None


def array(name: str, value: object, ndim: int | tuple[int, ...], kinds: str = "fiub") -> npt.NDArray[Any]:
    """`value` as an array of numbers with `ndim` (or one of several) dimensions, all finite.

    `kinds` are numpy's letters of the types that may enter; text may, where U and T are among them.
    """
    try:
        given = np.asarray(value)
    except Exception as error:  # ragged lists, tensors that need a gradient, anything with a broken __array__
        raise DataError(name, "values", "cannot be read as an array", "pass an array of numbers") from error
    if given.size == 0 and given.dtype.kind in "fiub" and given.dtype.kind not in kinds:
        given = given.astype(np.int64)  # an empty list is float for numpy
    if given.dtype.kind not in kinds:
        wanted = "whole numbers" if "f" not in kinds else "numbers"
        raise DataError(name, "values", f"are {given.dtype}, not {wanted}", f"pass an array of {wanted}")
    allowed = ndim if isinstance(ndim, tuple) else (ndim,)
    if given.ndim not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise DataError(name, "shape", f"got {given.shape}", f"pass an array of {wanted} dimensions")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(given))[0])
        place = f"row {where[0]}, column {where[1]}" if given.ndim == 2 else f"entry {where}"
        raise DataError(name, "values", f"{place} is {given[where]}", "impute missing values first")
    return given


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"a {type(value).__name__}"
