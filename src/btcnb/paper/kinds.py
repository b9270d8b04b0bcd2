"""The kinds of rules that judge a claim, as data.

What each kind decides is said in `rules.py`, in words for a page in `words.py`; `reader.py` reads them from YAML.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Place:
    """A row of a grid."""

    grid: str
    row: str


@dataclass(frozen=True)
class Reference:
    """Numbers of a transcribed table: the rows with these values, these columns."""

    table: str
    row: tuple[tuple[str, Any], ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """What is subtracted from what: `metrics` of `place` minus `other_metrics` of `other`, one by one."""

    place: Place
    metrics: tuple[str, ...]
    other: Place
    other_metrics: tuple[str, ...]
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Compare:
    """The difference has this sign in every metric and, on average over the metrics, at least this size."""

    pair: Pair
    sign: int
    average: float = 0.0


@dataclass(frozen=True)
class Equivalent:
    """The difference lies within this of 0."""

    pair: Pair
    within: float


@dataclass(frozen=True)
class NotWorse:
    """The first is not below the second by more than this."""

    pair: Pair
    within: float


@dataclass(frozen=True)
class Spread:
    """The metric varies more (+) or less (−) between seeds than the other."""

    pair: Pair
    sign: int


@dataclass(frozen=True)
class Every:
    """The same comparison for every pair, in every metric."""

    pairs: tuple[Pair, ...]
    sign: int
    average: float = 0.0


@dataclass(frozen=True)
class Mixed:
    """The differences of the pairs do not all clearly go one way."""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Value:
    """Our mean is the printed number, to within this."""

    place: Place
    metrics: tuple[str, ...]
    printed: Reference
    within: float
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Ordered:
    """The metric rises (+) or falls (−) from each row to the next."""

    places: tuple[Place, ...]
    metric: str
    sign: int
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Slope:
    """The slope of the metric over x has this sign."""

    places: tuple[Place, ...]
    x: tuple[float, ...]
    metric: str
    sign: int
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Best:
    """The best of `places` is better than every one of `among` (empty: all other rows of the grid)."""

    places: tuple[Place, ...]
    among: tuple[Place, ...]
    metric: str
    sign: int  # + the largest is best, − the smallest
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Beyond:
    """The mean lies above (+) or below (−) a value."""

    place: Place
    metric: str
    value: float
    sign: int
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Cost:
    """None of these numbers of a recorded run is above a value: what a run took is a fact, so one run is enough."""

    place: Place
    metrics: tuple[str, ...]
    at_most: float
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Share:
    """The row has reached at least this share of the gain from `start` to `end`."""

    place: Place
    start: Place
    end: Place
    metrics: tuple[str, ...]
    at_least: float
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class AllOf:
    """Several rules, all of which the claim needs."""

    parts: tuple[Rule, ...]


@dataclass(frozen=True)
class Chapter:
    """A chapter judges the claim by its own code; `words` are part of the claim as that chapter's verdict gives it."""

    chapter: str
    words: str


@dataclass(frozen=True)
class Later:
    """Nothing judges the claim yet; `plan` says what will."""

    plan: str


@dataclass(frozen=True)
class Definition:
    """No run can judge the claim, for this reason."""

    reason: str


Rule: TypeAlias = (
    Compare
    | Equivalent
    | NotWorse
    | Spread
    | Every
    | Mixed
    | Value
    | Ordered
    | Slope
    | Best
    | Beyond
    | Cost
    | Share
    | AllOf
    | Chapter
    | Later
    | Definition
)


def places(rule: Rule) -> Iterator[Place]:
    """Every row of a grid that the rule looks at; a row '' stands for all of them."""
    if isinstance(rule, AllOf):
        for part in rule.parts:
            yield from places(part)
    elif isinstance(rule, Every | Mixed):
        for pair in rule.pairs:
            yield from (pair.place, pair.other)
    elif isinstance(rule, Compare | Equivalent | NotWorse | Spread):
        yield from (rule.pair.place, rule.pair.other)
    elif isinstance(rule, Ordered | Slope):
        yield from rule.places
    elif isinstance(rule, Best):
        yield from (*rule.places, *(rule.among or (Place(rule.places[0].grid, ""),)))
    elif isinstance(rule, Share):
        yield from (rule.place, rule.start, rule.end)
    elif isinstance(rule, Value | Beyond | Cost):
        yield rule.place
