"""Answers that are the same for everybody, kept so that they can be recognised but not read.

A seal is a slow, salted digest of a normal form of the answer. Whoever guesses can still try; whoever merely looks
learns nothing. Numbers are cut to significant digits, and a neighbouring cell counts as right, so that rounding is no
fault; the order of magnitude has a seal of its own, so that too large and too small can be told.

    python -m btcnb.book.exercises.seals ex-09-bound number 2.2678 --digits 3
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from btcnb.book.exercises import ways

ROUNDS = 20_000  # some ten milliseconds: nothing for one answer, much for a list of guesses
_ORDERS = range(-12, 13)


@functools.lru_cache(maxsize=4096)
def digest(name: str, form: str) -> str:
    """The seal of a normal form, salted with the exercise's name."""
    return hashlib.pbkdf2_hmac("sha256", form.encode(), f"btcnb {name}".encode(), ROUNDS, 6).hex()


@dataclass(frozen=True)
class Number:
    """One sealed number: digest of its value, a slash, digest of its order of magnitude."""

    name: str
    seal: str
    digits: int = 3

    def __call__(self, answer: Any) -> str:
        given = ways.as_number(answer)
        if self._is(given):
            return ""
        for factor, words in ways.FACTORS.items():
            if self._is(given / factor):
                return words
        wanted = next((k for k in (None, *_ORDERS) if digest(self.name, f"order {k}") == self.seal[13:]), None)
        if wanted is None or wanted == _order(given):
            return "not right, though of the right order of magnitude" if wanted is not None else "not right"
        here = _order(given)
        return f"too {'large' if here is not None and here > wanted else 'small'} in size"

    def _is(self, given: float) -> bool:
        cells = _cells(given, self.digits)
        return any(digest(self.name, cell) == self.seal[:12] for cell in cells)


@dataclass(frozen=True)
class Numbers:
    """Several sealed numbers, in their order."""

    name: str
    seals: tuple[str, ...]
    digits: int = 3

    def __call__(self, answer: Any) -> str:
        given = ways.as_numbers(answer, len(self.seals))
        entries = zip(self.seals, given, strict=True)
        return ways.in_order([Number(self.name, seal, self.digits)(one) for seal, one in entries])


@dataclass(frozen=True)
class Words:
    """A sealed set of words; with `ordered`, a sealed list of them."""

    name: str
    seals: tuple[str, ...]
    ordered: bool = False

    def __call__(self, answer: Any) -> str:
        given = ways.as_words(answer)
        if self.ordered:
            if len(given) != len(self.seals):
                return f"{len(self.seals)} words are wanted, not {len(given)}"
            made = [digest(self.name, f"{place} {word}") for place, word in enumerate(given)]
            return ways.in_order(["not right" * (a != b) for a, b in zip(made, self.seals, strict=True)])
        found = {digest(self.name, word) for word in given}
        return ways.belonging(len(found - set(self.seals)), len(set(self.seals) - found))


@dataclass(frozen=True)
class Groups:
    """Sealed groups of named things, in any order."""

    name: str
    seals: tuple[str, ...]

    def __call__(self, answer: Any) -> str:
        found = {digest(self.name, " ".join(group)) for group in ways.as_groups(answer)}
        return ways.belonging(len(found - set(self.seals)), len(set(self.seals) - found))


def seal_number(name: str, value: float, digits: int = 3) -> str:
    """What `Number` holds for this answer."""
    return f"{digest(name, _cells(value, digits)[0])}/{digest(name, f'order {_order(value)}')}"


def seal_words(name: str, words: Sequence[str], ordered: bool = False) -> tuple[str, ...]:
    """What `Words` holds for this answer."""
    lower = ways.as_words(list(words))
    if ordered:
        return tuple(digest(name, f"{place} {word}") for place, word in enumerate(lower))
    return tuple(sorted(digest(name, word) for word in lower))


def seal_groups(name: str, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What `Groups` holds for this answer."""
    return tuple(sorted(digest(name, " ".join(group)) for group in ways.as_groups(groups)))


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
    """Print the seals of an answer, to be pasted into a chapter's table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name")
    parser.add_argument("kind", choices=("number", "words", "list", "groups"))
    parser.add_argument("answer", nargs="+", help="numbers, words, or groups such as a,b c,d")
    parser.add_argument("--digits", type=int, default=3)
    given = parser.parse_args()
    if given.kind == "number":
        print(tuple(seal_number(given.name, float(one), given.digits) for one in given.answer))
    elif given.kind == "groups":
        print(seal_groups(given.name, [group.split(",") for group in given.answer]))
    else:
        print(seal_words(given.name, given.answer, given.kind == "list"))


if __name__ == "__main__":
    main()
