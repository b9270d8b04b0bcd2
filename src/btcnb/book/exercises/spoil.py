"""Wrong answers made from right ones: what a check must refuse."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd


def spoiled(answer: Any) -> Any:
    """An answer of the same kind that is wrong: one number moved, one word too many, two parts joined."""
    match answer:
        case bool() | np.bool_():
            return not answer
        case numbers.Real():
            return float(answer) * 1.5 + 1.0
        case str():
            return f"no {answer}"
        case set() | frozenset():
            return {*answer, "something else"}
        case Mapping():
            entries = list(answer.items())
            return {**answer, entries[-1][0]: spoiled(entries[-1][1])}
        case np.ndarray() | pd.Series():
            return _spoiled_array(np.asarray(answer))
        case list() | tuple() if answer:
            return [*answer[:-1], spoiled(answer[-1])]
    if callable(answer):
        return lambda *given, **named: spoiled(answer(*given, **named))
    raise TypeError(f"no wrong answer can be made from a {type(answer).__name__}: give one")


def _spoiled_array(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Labels of a partition: its two largest parts joined. Other numbers: the last one moved."""
    if values.ndim == 1 and len(values) > 50 and values.dtype.kind in "iu":
        found, counts = np.unique(values, return_counts=True)
        if len(found) > 1:
            first, second = found[np.argsort(counts)[-2:]]
            return np.where(values == first, second, values)
    moved = values.astype(float)
    moved.flat[-1] = spoiled(float(moved.flat[-1]))
    return moved
