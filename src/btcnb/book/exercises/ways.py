"""Ways to compare an answer with what is right. Each says what is wrong, in words that do not give the answer away.

All of them return "" for a right answer.
"""

from __future__ import annotations

import numbers as abstract
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import gates
from btcnb.errors import BtcnbError

FACTORS = {
    100.0: "a factor of 100 too large: per cent, where a share is wanted?",
    0.01: "a factor of 100 too small: a share, where per cent are wanted?",
    1e8: "a factor of 100 million too large: satoshi, where bitcoin are wanted?",
    1e-8: "a factor of 100 million too small: bitcoin, where satoshi are wanted?",
    -1.0: "right but for its sign",
}


class MisreadError(BtcnbError):
    """An answer of the wrong kind; the message says which kind is wanted."""


def as_number(answer: Any) -> float:
    """The answer as a finite float; anything with one element will do, bool and text will not."""
    if isinstance(answer, np.ndarray | pd.Series) and answer.size == 1:
        answer = np.asarray(answer).item()
    item = getattr(answer, "item", None)
    value = item() if callable(item) and not isinstance(answer, abstract.Real) else answer
    if isinstance(value, bool | np.bool_) or not isinstance(value, abstract.Real):
        raise MisreadError(f"one number is wanted, not {_kind(answer)}")
    if not np.isfinite(float(value)):
        raise MisreadError(f"{value} is no number to judge")
    return float(value)


def as_numbers(answer: Any, count: int) -> list[float]:
    """The answer as `count` finite floats: a list, a tuple, an array, a column, or the values of a dictionary."""
    entries = _entries(answer.values() if isinstance(answer, Mapping) else answer)
    if entries is None:
        raise MisreadError(f"{count} numbers in a list are wanted, not {_kind(answer)}")
    if len(entries) != count:
        raise MisreadError(f"{count} numbers are wanted, not {len(entries)}")
    return [as_number(entry) for entry in entries]


def as_words(answer: Any) -> list[str]:
    """The answer as words, each in lower case: one text, or a collection of texts; yes and no for truth values."""
    entries = [answer] if isinstance(answer, str | bool | np.bool_) else _entries(answer)
    if entries is None or not all(isinstance(entry, str | bool | np.bool_) for entry in entries):
        raise MisreadError(f"words are wanted, not {_kind(answer)}")
    named = {True: "yes", False: "no"}
    return [entry.strip().casefold() if isinstance(entry, str) else named[bool(entry)] for entry in entries]


def as_labels(answer: Any, count: int) -> npt.NDArray[np.int64]:
    """The answer as a partition of `count` things: one label for each, of any kind."""
    entries = _entries(answer)
    if entries is None or len(entries) != count:
        found = _kind(answer) if entries is None else f"{len(entries):,}"
        raise MisreadError(f"one label for each of {count:,} addresses is wanted, not {found}")
    return pd.factorize(np.asarray(entries, dtype=object), use_na_sentinel=False)[0].astype(np.int64)


def as_groups(answer: Any) -> list[list[str]]:
    """The answer as groups of named things: `[{"a", "b"}, {"c"}]`, in any order, sorted here."""
    outer = _entries(answer)
    inner = [_entries(group) for group in outer] if outer is not None else [None]
    if any(group is None for group in inner):
        raise MisreadError(f"a list of groups is wanted, such as [{{1, 2}}, {{3}}], not {_kind(answer)}")
    return sorted(sorted(str(member) for member in group) for group in inner if group is not None)


def number(answer: Any, wanted: float, within: float = 1e-3) -> str:
    """Compare one number, to a relative `within` (absolute where 0 is right)."""
    given = as_number(answer)
    if _close(given, wanted, within):
        return ""
    for factor, words in FACTORS.items():
        if wanted and _close(given, factor * wanted, within):
            return words
    far = abs(given - wanted) > 0.5 * abs(wanted) and wanted
    return f"{'far ' if far else ''}too {'large' if given > wanted else 'small'}"


def numbers(answer: Any, wanted: Sequence[float] | npt.NDArray[Any], within: float = 1e-3) -> str:
    """Compare several numbers, in their order."""
    given = as_numbers(answer, len(wanted))
    said = [number(one, float(right), within) for one, right in zip(given, wanted, strict=True)]
    return in_order(said)


def in_order(said: Sequence[str]) -> str:
    """One sentence from the judgements of several entries."""
    wrong = [place for place, words in enumerate(said, 1) if words]
    if not wrong:
        return ""
    if len(said) == 1:
        return said[0]
    more = f"; {len(wrong)} of {len(said)} are wrong" if len(wrong) > 1 else ""
    return f"number {wrong[0]} is {said[wrong[0] - 1]}{more}"


def names(answer: Any, wanted: Collection[str]) -> str:
    """Compare a set of names."""
    given, right = set(as_words(answer)), {name.casefold() for name in wanted}
    return belonging(len(given - right), len(right - given))


def belonging(strange: int, missing: int) -> str:
    """What is wrong with a set that holds `strange` wrong members and lacks `missing` right ones."""
    said = [f"{_count(strange)} not belong"] * bool(strange)
    said += ["something is missing"] * bool(missing)
    return "; ".join(said)


def partition(answer: Any, wanted: npt.ArrayLike) -> str:
    """Compare two partitions up to the names of their parts."""
    right = pd.factorize(np.asarray(wanted))[0]
    given = as_labels(answer, len(right))
    parts, wanted_parts, joint = given.max() + 1, right.max() + 1, len(set(zip(given, right, strict=True)))
    said = ["addresses that belong together are parted"] * bool(joint > wanted_parts)
    said += ["addresses that do not belong together are in one part"] * bool(joint > parts)
    return "; ".join(said)


def all_hold(conditions: Iterable[tuple[Any, str]]) -> str:
    """The words of the first condition that does not hold: for answers that must have a property."""
    return next((words for holds, words in conditions if not holds), "")


def _close(given: float, wanted: float, within: float) -> bool:
    return abs(given - wanted) <= (within * abs(wanted) if wanted else within)


def _entries(answer: Any) -> list[Any] | None:
    try:
        found = gates.items("answer", answer)
    except BtcnbError:
        return None
    return found if len(found) < gates.LARGEST else None


def _count(number: int) -> str:
    return "one entry does" if number == 1 else f"{number} entries do"


def _kind(answer: Any) -> str:
    return {"str": "text", "NoneType": "nothing", "bool": "a truth value", "function": "a function"}.get(
        type(answer).__name__, f"a {type(answer).__name__}"
    )
