"""The rules that judge claims, as data. `verdicts.py` says what they decide, `words.py` says them in words.

One kind does most of the work: a **contrast** is a number for each seed, such as a difference of two rows, and the
whole 95 % interval of its mean must lie in a given interval.

| kind | reproduced | partly |
| --- | --- | --- |
| contrast | every interval lies in the given one (and the mean over metrics is large enough, with `average`) | one mean does; of several pairs, more than half of the intervals do |
| spread | more variable, Pitman and Morgan's p < 0.05 | more variable |
| mixed | in no metric do all pairs clearly go one way | in some metrics |
| value | every mean within the bound of the printed number | one is |
| ordered | every step clear | slope over the order clear |
| best | best mean, clear of the next | best mean |
| cost | in no run is one of the numbers above the value; one run is enough | – |
| share | every interval above that share of a clear gain | one mean is |
| all_of | all parts | neither all reproduced nor all not |
| chapter, definition | a chapter judges by its own code; no run can judge | – |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from btcnb.configuration import Real, configuration

Text = Annotated[str, Field(min_length=1)]
Metrics = Annotated[tuple[Text, ...], Field(min_length=1)]
Sign = Annotated[Literal[1, -1], BeforeValidator(lambda sign: {"+": 1, "-": -1}.get(sign, sign))]
Positive = Annotated[Real, Field(gt=0)]


@configuration
class Place:
    """A row of a grid."""

    grid: Text
    row: Text


RowName: TypeAlias = Text | Place
"""A row of the rule's own grid by its name, or of another grid."""
Rows = tuple[RowName, ...]


@configuration
class Reference:
    """Numbers of a transcribed table: the rows with these values, these columns."""

    table: Text
    row: dict[str, Any] = Field(default_factory=dict)
    columns: tuple[Text, ...] = ()


@configuration
class Against:
    """What is subtracted: another row, another grid's row, or other metrics; what is left out is as in the rule."""

    grid: str = ""
    row: str = ""
    metrics: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Term:
    """A number for each seed: `metric` of `place`, minus `less` of `other` where there is one."""

    place: Place
    metric: str
    other: Place | None = None
    less: str = ""


@configuration
class Contrast:
    """Numbers for each seed whose mean has to lie `above` or `below` a value, or `within` a bound of 0.

    row:   of this row, minus `against` where that is given
    rows:  of each of these rows, minus each of `against`; with `x`, the slope of the metric over x
    pairs: of the first of each pair minus the second
    others: of one row, its metrics `A.bACC` minus `B.bACC` for every B of these
    """

    kind: Literal["contrast"]
    grid: Text
    metrics: Metrics
    row: str = ""
    rows: Rows = ()
    against: RowName | Against | Rows | None = None
    pairs: tuple[tuple[RowName, RowName], ...] = ()
    others: tuple[Text, ...] = ()
    x: tuple[Real, ...] = ()
    above: Real | None = None
    below: Real | None = None
    within: Positive | None = None
    average: Annotated[Real, Field(ge=0)] = 0.0

    def __post_init__(self) -> None:
        if sum(bound is not None for bound in (self.above, self.below, self.within)) != 1:
            raise ValueError("give one of above, below and within")
        if sum(map(bool, (self.row, self.rows, self.pairs))) != 1:
            raise ValueError("give one of row, rows and pairs")
        if self.x and (len(self.x) != len(self.rows) or len(set(self.x)) < 2):
            raise ValueError("give one x for each of two rows or more, not all the same")
        for group in self.groups() if not self.x else ():
            for term in group:
                if (term.place, term.metric) == (term.other, term.less):
                    raise ValueError(f"{term.metric} of {term.place.row} is compared with itself")

    @property
    def several(self) -> bool:
        """Whether several pairs are asked for at once: then most of them make *partly*."""
        return bool(self.pairs or self.others or (self.rows and not self.x))

    def groups(self) -> list[list[Term]]:
        """The terms, a list for each pair of rows, one of it for each metric."""
        if self.others:
            place = Place(self.grid, self.row)
            return [
                [Term(place, name, place, f"{other}.{name.rpartition('.')[2]}") for name in self.metrics]
                for other in self.others
            ]
        if self.row:
            return [self._one_row()]
        if self.pairs:
            both = [(self._place(first), self._place(other)) for first, other in self.pairs]
        else:
            against = self.against if isinstance(self.against, tuple) else ()
            both = [(self._place(first), self._place(other)) for first in self.rows for other in against]
        return [[Term(first, name, other, name) for name in self.metrics] for first, other in both]

    def _one_row(self) -> list[Term]:
        place, against = Place(self.grid, self.row), self.against
        if against is None:
            return [Term(place, name) for name in self.metrics]
        if isinstance(against, Against):
            other = Place(against.grid or self.grid, against.row or self.row)
            pairs = zip(self.metrics, against.metrics or self.metrics, strict=True)
            return [Term(place, name, other, less) for name, less in pairs]
        if isinstance(against, tuple):
            raise ValueError("one row is compared with one other; give rows for several")
        return [Term(place, name, self._place(against), name) for name in self.metrics]

    def _place(self, row: RowName) -> Place:
        return row if isinstance(row, Place) else Place(self.grid, row)


@configuration
class Spread:
    """The metric varies more (+) or less (−) between seeds than that of the other row."""

    kind: Literal["spread"]
    grid: Text
    row: Text
    against: Text
    metric: Text
    sign: Sign


@configuration
class Mixed:
    """The differences of the pairs do not all clearly go one way."""

    kind: Literal["mixed"]
    grid: Text
    pairs: tuple[tuple[Text, Text], ...]
    metrics: Metrics


@configuration
class Value:
    """Our mean is the printed number, to within this."""

    kind: Literal["value"]
    grid: Text
    row: Text
    metrics: Metrics
    printed: Reference
    within: Positive

    def __post_init__(self) -> None:
        if not self.printed.columns:
            object.__setattr__(self, "printed", replace(self.printed, columns=self.metrics))
        if len(self.printed.columns) != len(self.metrics):
            raise ValueError("give one printed column for each metric")


@configuration
class Ordered:
    """The metric rises or falls from each row to the next."""

    kind: Literal["ordered"]
    grid: Text
    rows: Annotated[tuple[Text, ...], Field(min_length=2)]
    metric: Text
    direction: Literal["rising", "falling"]


@configuration
class Best:
    """The best of `rows` is better than every one of `among`; `all` are all other rows of the grid."""

    kind: Literal["best"]
    grid: Text
    metric: Text
    direction: Literal["max", "min"]
    among: Literal["all"] | Rows
    row: str = ""
    rows: Rows = ()

    def __post_init__(self) -> None:
        if self.row:
            object.__setattr__(self, "rows", (self.row,))
        if not self.rows or not set(self.among) - set(self.rows):
            raise ValueError("name a row, and rows besides the one that is to be best")


@configuration
class Cost:
    """None of these numbers of a recorded run is above a value: what a run took is a fact, so one run is enough."""

    kind: Literal["cost"]
    grid: Text
    row: Text
    metrics: Metrics
    at_most: Positive


@configuration
class Share:
    """The row has reached at least this share of the gain from `start` to `end`."""

    kind: Literal["share"]
    grid: Text
    row: Text
    start: Text
    end: Text
    metrics: Metrics
    at_least: Positive


@configuration
class Chapter:
    """A chapter judges the claim by its own code; `words` are part of the claim as that chapter's verdict gives it."""

    kind: Literal["chapter"]
    chapter: Text
    words: Text


@configuration
class Definition:
    """No run can judge the claim, for this reason."""

    kind: Literal["definition"]
    reason: Text


RecordRule: TypeAlias = Contrast | Spread | Mixed | Value | Ordered | Best | Cost | Share


@configuration
class AllOf:
    """Several rules on records, all of which the claim needs."""

    kind: Literal["all_of"]
    parts: Annotated[tuple[Annotated[RecordRule, Field(discriminator="kind")], ...], Field(min_length=1)]


Rule: TypeAlias = Annotated[RecordRule | AllOf | Chapter | Definition, Field(discriminator="kind")]


def parts(rule: Any) -> tuple[RecordRule, ...]:
    """The rules on records that a rule consists of; none where a chapter or nobody judges."""
    return rule.parts if isinstance(rule, AllOf) else () if isinstance(rule, Chapter | Definition) else (rule,)


def places(rule: Any) -> Iterator[Place]:
    """Every row of a grid that the rule looks at; a row `all` stands for all of them."""
    for part in parts(rule):
        if isinstance(part, Contrast) and not part.x:
            for group in part.groups():
                yield from (place for term in group for place in (term.place, term.other) if place)
            continue
        named: list[Any] = [getattr(part, name, "") for name in ("row", "against", "start", "end")]
        named += [*getattr(part, "rows", ()), *(row for pair in getattr(part, "pairs", ()) for row in pair)]
        among = getattr(part, "among", ())
        named += ["all"] if among == "all" else [*among]
        yield from (row if isinstance(row, Place) else Place(part.grid, row) for row in named if row)
