"""Self-checks of the exercises: `book.check("ex-02-deposit", answer)` says right or wrong, and how wrong.

`exercises.yml` says what each check asks for. An answer that follows from the chapter's own variables is judged by the
function of the exercise's name in `exercise_judges`: it asks for variables by their names, so an answer is judged for
the parameters that the chapter ran with. An answer that is the same for everybody is sealed: kept as slow, salted
digests of its normal form. Whoever guesses can still try; whoever merely looks learns nothing. Numbers are cut to
significant digits, and a neighbouring cell counts as right, so that rounding is no fault; the order of magnitude has a
digest of its own, so that too large and too small can be told.

    python -m btcnb.book.exercises ex-09-bound number 2.2678 --digits 3
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import inspect
import math
import numbers as abstract
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml

from btcnb.book.page import escape, record, show
from btcnb.errors import BtcnbError, ParameterError

FILE = Path(__file__).with_name("exercises.yml")
KINDS = ("number", "numbers", "words", "list", "groups")
"""Kinds of sealed answers; a list is words in their order, groups are sets of names in any order."""
ROUNDS = 20_000  # some ten milliseconds: nothing for one answer, much for a list of guesses
FACTORS = {
    100.0: "a factor of 100 too large: per cent, where a share is wanted?",
    0.01: "a factor of 100 too small: a share, where per cent are wanted?",
    1e8: "a factor of 100 million too large: satoshi, where bitcoin are wanted?",
    1e-8: "a factor of 100 million too small: bitcoin, where satoshi are wanted?",
    -1.0: "right but for its sign",
}
_UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class CheckError(BtcnbError):
    """A solution and its check do not agree: the build must not go on."""


class MisreadError(BtcnbError):
    """An answer of the wrong kind; the message says which kind is wanted."""


@dataclass(frozen=True)
class Check:
    """How an exercise is judged.

    form: what an answer looks like, such as "one number, in per cent"
    judge: (answer, the chapter's variables by name) -> "" if right, else what is wrong
    """

    form: str
    judge: Callable[..., str]

    def names(self) -> list[str]:
        """The chapter's variables that the judge asks for."""
        return list(inspect.signature(self.judge).parameters)[1:]


@dataclass(frozen=True)
class Judgement:
    """`right` is None where nothing was judged: no answer yet, or something missing that the judge needs."""

    right: bool | None
    words: str


def check(name: str, answer: Any = ..., **state: Any) -> None:
    """Judge `answer` to the exercise `name` and say so on the page, without showing what is right.

    Variables that the judge needs are taken from the notebook; `state` sets some of them by hand.
    """
    _tell(judgement(name, answer, {**_caller(), **state}))


def solved(name: str, answer: Any, wrong: Any = ..., **state: Any) -> None:
    """Judge the answer of a solution: raises `CheckError` unless the check takes it and refuses a wrong one.

    wrong: an answer that must be refused; if left out, one is made from `answer`
    """
    names = {**_caller(), **state}
    found = judgement(name, answer, names)
    if found.right is False:
        raise CheckError(f"{name}: the check refuses the solution: {found.words}")
    refused = None
    if found.right:
        refused = judgement(name, wrong_answer(answer) if wrong is ... else wrong, names).right is False
        if not refused:
            raise CheckError(f"{name}: the check takes a wrong answer")
    record("solved", exercise=name, right=found.right, refused=refused)
    _tell(found)


def judgement(name: str, answer: Any, state: Mapping[str, Any]) -> Judgement:
    """Judge an answer with the chapter's variables given in `state`; nothing is shown."""
    known = checks()
    if name not in known:
        near = ", ".join(other for other in known if other[:6] == name[:6])
        raise ParameterError(f"{name!r} is no exercise with a self-check; this chapter's are {near or 'none'}.")
    rule = known[name]
    if answer is ...:
        return Judgement(None, f"Not answered yet. Wanted: {rule.form}.")
    missing = [key for key in rule.names() if key not in state]
    if missing:
        return Judgement(None, f"This cannot be judged here: the chapter has no `{missing[0]}`.")
    try:
        words = rule.judge(answer, **{key: state[key] for key in rule.names()})
    except MisreadError as error:
        words = f"{error} (wanted: {rule.form})"
    except _UNREADABLE as error:
        words = f"this cannot be read as an answer ({type(error).__name__}); wanted: {rule.form}"
    return Judgement(not words, f"Wrong: {words}." if words else "Right.")


@functools.cache
def checks() -> dict[str, Check]:
    """The checks of all exercises by name, such as `ex-02-deposit`."""
    judges = importlib.import_module("btcnb.book.exercise_judges")  # by name: a chapter depends on its own imports only
    found = {}
    for name, entry in yaml.safe_load(FILE.read_text(encoding="utf-8")).items():
        kind = next((kind for kind in KINDS if kind in entry), None)
        if kind is None:
            judge = getattr(judges, name.replace("-", "_"))
        else:
            judge = Sealed(name, kind, tuple(entry[kind]), entry.get("digits", 3))
        found[name] = Check(entry["form"], judge)
    return found


def _caller() -> Mapping[str, Any]:
    """The variables of the notebook (or script) that called `check` or `solved`."""
    return sys._getframe(2).f_globals


def _tell(found: Judgement) -> None:
    mark, kind = {True: ("✔", "right"), False: ("✘", "wrong"), None: ("○", "open")}[found.right]
    words = escape(found.words)
    show(f":::{{div}} self-check self-check-{kind}\n{mark} {words}\n:::\n", f"<p><b>{mark}</b> {words}</p>")


def wrong_answer(answer: Any) -> Any:
    """An answer of the same kind that is wrong: one number moved, one word too many, two parts joined."""
    match answer:
        case bool() | np.bool_():
            return not answer
        case abstract.Real():
            return float(answer) * 1.5 + 1.0
        case str():
            return f"no {answer}"
        case set() | frozenset():
            return {*answer, "something else"}
        case Mapping():
            last = list(answer)[-1]
            return {**answer, last: wrong_answer(answer[last])}
        case np.ndarray() | pd.Series():
            values = np.asarray(answer)
            if values.ndim == 1 and len(values) > 50 and values.dtype.kind in "iu":  # labels: join the largest parts
                first, second = pd.Series(values).value_counts().index[:2]
                return np.where(values == first, second, values)
            return np.array([*values.ravel()[:-1], wrong_answer(float(values.flat[-1]))]).reshape(values.shape)
        case list() | tuple() if answer:
            return [*answer[:-1], wrong_answer(answer[-1])]
    if callable(answer):
        return lambda *given, **named: wrong_answer(answer(*given, **named))
    raise TypeError(f"no wrong answer can be made from a {type(answer).__name__}: give one")


# Answers as a judge needs them


def as_number(answer: Any) -> float:
    """The answer as a finite float; anything with one element will do, bool and text will not."""
    value = answer.item() if getattr(answer, "size", 0) == 1 and hasattr(answer, "item") else answer
    if isinstance(value, bool | np.bool_) or not isinstance(value, abstract.Real):
        raise MisreadError(f"one number is wanted, not {_kind(answer)}")
    if not math.isfinite(value):
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
    return [entry.strip().casefold() if isinstance(entry, str) else "yes" if entry else "no" for entry in entries]


def as_labels(answer: Any, count: int) -> npt.NDArray[np.int64]:
    """The answer as a partition of `count` things: one label for each, of any kind."""
    entries = _entries(answer)
    if entries is None or len(entries) != count:
        found = _kind(answer) if entries is None else f"{len(entries):,}"
        raise MisreadError(f"one label for each of {count:,} addresses is wanted, not {found}")
    return pd.factorize(np.asarray(entries, dtype=object), use_na_sentinel=False)[0].astype(np.int64)


def as_groups(answer: Any) -> list[list[str]]:
    """The answer as groups of named things: `[{"a", "b"}, {"c"}]`, in any order, sorted here."""
    groups = [_entries(group) for group in _entries(answer) or [None]]
    if any(group is None for group in groups):
        raise MisreadError(f"a list of groups is wanted, such as [{{1, 2}}, {{3}}], not {_kind(answer)}")
    return sorted(sorted(str(member) for member in group) for group in groups if group is not None)


def _entries(answer: Any) -> list[Any] | None:
    """The entries of a collection; None for anything else, text included."""
    if isinstance(answer, str | bytes | Mapping):
        return None
    try:
        return list(answer)
    except TypeError:
        return None


def _kind(answer: Any) -> str:
    names = {"str": "text", "NoneType": "nothing", "bool": "a truth value", "function": "a function"}
    return names.get(type(answer).__name__, f"a {type(answer).__name__}")


# Comparisons: each says what is wrong, in words that do not give the answer away, and nothing of a right answer


def compare_number(answer: Any, wanted: float, within: float = 1e-3) -> str:
    """Compare one number, to a relative `within` (absolute where 0 is right)."""
    given, bound = as_number(answer), within * abs(wanted) if wanted else within
    if abs(given - wanted) <= bound:
        return ""
    for factor, words in FACTORS.items():
        if wanted and abs(given - factor * wanted) <= bound * abs(factor):
            return words
    far = abs(given - wanted) > 0.5 * abs(wanted) and wanted
    return f"{'far ' if far else ''}too {'large' if given > wanted else 'small'}"


def compare_numbers(answer: Any, wanted: Sequence[float] | npt.NDArray[Any], within: float = 1e-3) -> str:
    """Compare several numbers, in their order."""
    given = as_numbers(answer, len(wanted))
    return in_order([compare_number(one, float(right), within) for one, right in zip(given, wanted, strict=True)])


def in_order(said: Sequence[str]) -> str:
    """One sentence from the judgements of several entries."""
    wrong = [place for place, words in enumerate(said, 1) if words]
    if not wrong or len(said) == 1:
        return "".join(said)
    more = f"; {len(wrong)} of {len(said)} are wrong" if len(wrong) > 1 else ""
    return f"number {wrong[0]} is {said[wrong[0] - 1]}{more}"


def compare_sets(given: Collection[Any], wanted: Collection[Any]) -> str:
    """Compare two sets without naming any member."""
    strange, missing = len(set(given) - set(wanted)), len(set(wanted) - set(given))
    said = [f"{'one entry does' if strange == 1 else f'{strange} entries do'} not belong"] * bool(strange)
    return "; ".join(said + ["something is missing"] * bool(missing))


def compare_partition(answer: Any, wanted: npt.ArrayLike) -> str:
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


# Sealed answers


@dataclass(frozen=True)
class Sealed:
    """The judge of a sealed answer.

    seals: of a number, digest of its value, a slash, digest of its order of magnitude; else a digest per word or group
    """

    name: str
    kind: str
    seals: tuple[str, ...]
    digits: int = 3

    def __call__(self, answer: Any) -> str:
        if self.kind in ("number", "numbers"):
            given = [as_number(answer)] if self.kind == "number" else as_numbers(answer, len(self.seals))
            return in_order([self._compare(one, seal) for one, seal in zip(given, self.seals, strict=True)])
        made = seals_of(self.name, self.kind, answer)
        if self.kind == "list":
            if len(made) != len(self.seals):
                return f"{len(self.seals)} words are wanted, not {len(made)}"
            return in_order(["not right" * (a != b) for a, b in zip(made, self.seals, strict=True)])
        return compare_sets(made, self.seals)

    def _compare(self, given: float, seal: str) -> str:
        def fits(value: float) -> bool:
            return any(_digest(self.name, cell) == seal[:12] for cell in _cells(value, self.digits))

        if fits(given):
            return ""
        for factor, words in FACTORS.items():
            if fits(given / factor):
                return words
        orders = (None, *range(-12, 13))
        wanted = next((order for order in orders if _digest(self.name, f"order {order}") == seal[13:]), None)
        here = _order(given)
        if wanted is None or wanted == here:
            return "not right, though of the right order of magnitude" if wanted is not None else "not right"
        return f"too {'large' if here is not None and here > wanted else 'small'} in size"


def seals_of(name: str, kind: str, answer: Any, digits: int = 3) -> list[str]:
    """The seals of an answer, salted with the exercise's name."""
    if kind in ("number", "numbers"):
        values = [as_number(answer)] if kind == "number" else [as_number(value) for value in answer]
        return [f"{_digest(name, _cells(v, digits)[0])}/{_digest(name, f'order {_order(v)}')}" for v in values]
    if kind == "groups":
        return sorted(_digest(name, " ".join(group)) for group in as_groups(answer))
    words = as_words(answer)
    if kind == "list":
        return [_digest(name, f"{place} {word}") for place, word in enumerate(words)]
    return sorted(_digest(name, word) for word in words)


@functools.lru_cache(maxsize=4096)
def _digest(name: str, form: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", form.encode(), f"btcnb {name}".encode(), ROUNDS, 6).hex()


def _order(value: float) -> int | None:
    return math.floor(math.log10(abs(value))) if abs(value) > 1e-12 else None


def _cells(value: float, digits: int) -> list[str]:
    """The cell of `value` among numbers of so many significant digits, then its neighbours."""
    order = _order(value)
    if order is None:
        return ["0"]
    step = 10.0 ** (order - digits + 1)
    middle = round(value / step)
    return [f"{(middle + near) * step:.{digits - 1}e}" for near in (0, -1, 1)]


def main() -> None:
    """Print the seals of an answer, to be pasted into `exercises.yml`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("answer", nargs="+", help="numbers, words, or groups such as a,b c,d")
    parser.add_argument("--digits", type=int, default=3)
    given = parser.parse_args()
    answer: list[Any] = given.answer
    if given.kind == "groups":
        answer = [group.split(",") for group in answer]
    elif given.kind in ("number", "numbers"):
        answer = [float(one) for one in answer]
    print(seals_of(given.name, given.kind, answer[0] if given.kind == "number" else answer, given.digits))


if __name__ == "__main__":
    main()
