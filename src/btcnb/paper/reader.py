"""Rules and references, read from what YAML holds: every field is checked, and an unknown one refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from btcnb.errors import DataError
from btcnb.paper.kinds import (
    AllOf,
    Best,
    Beyond,
    Chapter,
    Compare,
    Cost,
    Definition,
    Equivalent,
    Every,
    Later,
    Mixed,
    NotWorse,
    Ordered,
    Pair,
    Place,
    Reference,
    Rule,
    Share,
    Slope,
    Spread,
    Value,
)

SOURCE = "claims.yml"
SIGNS = {"+": 1, "-": -1}


@dataclass
class Fields:
    """The fields of one mapping, each taken once; what is left at the end is unknown, and refused."""

    name: str  # where the mapping stands, for errors
    left: dict[str, Any]
    _: KW_ONLY
    known: str = ""

    @classmethod
    def of(cls, name: str, value: object) -> Fields:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise DataError(SOURCE, name, f"is {value!r:.80}", "give a mapping of fields")
        return cls(name, dict(value), known=", ".join(value))

    def wrong(self, key: str, value: object, remedy: str) -> DataError:
        return DataError(SOURCE, f"{self.name}.{key}", f"is {value!r:.80}", remedy)

    def take(self, key: str, *default: Any) -> Any:
        if key not in self.left and not default:
            raise DataError(SOURCE, self.name, f"has no field {key!r} (only {self.known})", f"add {key!r}")
        return self.left.pop(key, *default)

    def text(self, key: str, *default: str) -> str:
        value = self.take(key, *default)
        if not isinstance(value, str) or not (value.strip() or default):
            raise self.wrong(key, value, "give text; numbers and yes or no want quotes")
        return value

    def choice(self, key: str, choices: tuple[str, ...], *default: str) -> str:
        value = self.text(key, *default)
        if value not in choices:
            raise self.wrong(key, value, f"give one of {', '.join(choices)}")
        return value

    def real(self, key: str, *default: float) -> float:
        value = self.take(key, *default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise self.wrong(key, value, "give a number")
        return float(value)

    def bound(self, key: str, *default: float) -> float:
        value = self.real(key, *default)
        if value < 0 or (value == 0 and not default):
            raise self.wrong(key, value, "give a number above 0")
        return value

    def flag(self, key: str, *default: bool) -> bool:
        value = self.take(key, *default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "give true or false")
        return value

    def items(self, key: str, *default: list[Any]) -> list[Any]:
        value = self.take(key, *default)
        if not isinstance(value, list) or not (value or default):
            raise self.wrong(key, value, "give a list with something in it")
        return value

    def texts(self, key: str, *default: list[str]) -> tuple[str, ...]:
        value = self.items(key, *default)
        if not all(isinstance(entry, str) for entry in value) or len(set(value)) < len(value):
            raise self.wrong(key, value, "give texts, none of them twice; numbers want quotes")
        return tuple(value)

    def pairs(self, key: str) -> tuple[tuple[str, Any], ...]:
        value = self.take(key, {})
        simple = isinstance(value, dict) and all(isinstance(entry, str | int | float) for entry in value.values())
        if not simple or not all(isinstance(name, str) for name in value):
            raise self.wrong(key, value, "give columns and the value of each")
        return tuple(value.items())

    def done(self) -> None:
        if self.left:
            raise DataError(SOURCE, self.name, f"unknown field {next(iter(self.left))!r}", "remove it")


def read_rule(name: str, value: object, nested: bool = False) -> Rule:
    """The rule that a mapping describes; `name` says where it stands, for errors."""
    fields = Fields.of(name, value)
    kind = fields.choice("kind", tuple(KINDS))
    if nested and kind in ("all_of", "chapter", "later", "definition"):
        raise DataError(SOURCE, name, f"is of kind {kind!r}", "parts of all_of are judged on records")
    rule = KINDS[kind](fields)
    fields.done()
    return rule


def read_reference(name: str, value: object, columns: tuple[str, ...] = ()) -> Reference:
    """A reference to a transcribed table; without columns of its own it has the given ones."""
    fields = Fields.of(name, value)
    found = Reference(
        fields.text("table"), fields.pairs("row"), fields.texts("columns", *([[*columns]] if columns else []))
    )
    fields.done()
    return found


def _place(fields: Fields, key: str, value: object, grid: str) -> Place:
    """A row of this grid by its name, or of another as {grid, row}."""
    if isinstance(value, str) and value:
        return Place(grid, value)
    if isinstance(value, dict):
        other = Fields.of(f"{fields.name}.{key}", value)
        found = Place(other.text("grid"), other.text("row"))
        other.done()
        return found
    raise fields.wrong(key, value, "name a row, or {grid, row}")


def _places(fields: Fields, key: str, grid: str) -> tuple[Place, ...]:
    return tuple(_place(fields, key, value, grid) for value in fields.items(key))


def _pair(fields: Fields, one: bool = False) -> Pair:
    """`row` and `metrics` against another row, other metrics, or both."""
    grid = fields.text("grid")
    place = Place(grid, fields.text("row"))
    metrics = (fields.text("metric"),) if one else fields.texts("metrics")
    against = fields.take("against")
    if isinstance(against, dict):
        other = Fields.of(f"{fields.name}.against", against)
        there = Place(other.text("grid", grid), other.text("row", place.row))
        others = other.texts("metrics", [*metrics])
        other.done()
    else:
        there, others = _place(fields, "against", against, grid), metrics
    if len(others) != len(metrics) or (there, others) == (place, metrics):
        raise fields.wrong("against", against, "name another row, or as many other metrics")
    return Pair(place, metrics, there, others, fields.pairs("where"))


def _pairs(fields: Fields) -> tuple[Pair, ...]:
    """All of `rows` with all of `against`, or the listed `pairs`, or metrics of one `row` with those of `others`."""
    grid, metrics, where = fields.text("grid"), fields.texts("metrics"), fields.pairs("where")
    if "others" in fields.left:
        return _within(Place(grid, fields.text("row")), metrics, fields, where)
    if "pairs" in fields.left:
        listed = fields.items("pairs")
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in listed):
            raise fields.wrong("pairs", listed, "give lists of two rows")
        both = [(_place(fields, "pairs", first, grid), _place(fields, "pairs", other, grid)) for first, other in listed]
    else:
        rows, against = _places(fields, "rows", grid), _places(fields, "against", grid)
        both = [(first, other) for first in rows for other in against]
    if any(first == other for first, other in both):
        raise DataError(SOURCE, fields.name, "compares a row with itself", "name two rows")
    return tuple(Pair(first, metrics, other, metrics, where) for first, other in both)


def _within(
    place: Place, metrics: tuple[str, ...], fields: Fields, where: tuple[tuple[str, Any], ...]
) -> tuple[Pair, ...]:
    """`A.bACC` against `B.bACC` of the same row, for every B of `others`."""
    others = fields.texts("others")
    found = []
    for other in others:
        theirs = tuple(f"{other}.{metric.rpartition('.')[2]}" for metric in metrics)
        if set(theirs) & set(metrics):
            raise fields.wrong("others", other, "name others than the metrics themselves")
        found.append(Pair(place, metrics, place, theirs, where))
    return tuple(found)


def _sign(fields: Fields) -> int:
    return SIGNS[fields.choice("sign", tuple(SIGNS))]


def _line(fields: Fields) -> tuple[Place, ...]:
    found = _places(fields, "rows", fields.text("grid"))
    if len(set(found)) < max(2, len(found)):
        raise fields.wrong("rows", [place.row for place in found], "give two rows or more, none of them twice")
    return found


def _value(fields: Fields) -> Value:
    place, metrics = Place(fields.text("grid"), fields.text("row")), fields.texts("metrics")
    printed = read_reference(f"{fields.name}.printed", fields.take("printed"), metrics)
    if len(printed.columns) != len(metrics):
        raise fields.wrong("printed", printed.columns, "give one column for each metric")
    return Value(place, metrics, printed, fields.bound("within"), fields.pairs("where"))


def _ordered(fields: Fields) -> Ordered:
    sign = 1 if fields.choice("direction", ("rising", "falling")) == "rising" else -1
    return Ordered(_line(fields), fields.text("metric"), sign, fields.pairs("where"))


def _slope(fields: Fields) -> Slope:
    line, listed = _line(fields), fields.items("x")
    x = tuple(Fields(fields.name, {"x": value}).real("x") for value in listed)
    if len(x) != len(line) or len(set(x)) < 2:
        raise fields.wrong("x", listed, "give one number for each row, not all the same")
    return Slope(line, x, fields.text("metric"), _sign(fields), fields.pairs("where"))


def _best(fields: Fields) -> Best:
    grid = fields.text("grid")
    group = _places(fields, "rows", grid) if "rows" in fields.left else (Place(grid, fields.text("row")),)
    among: tuple[Place, ...] = ()
    if fields.left.get("among") == "all":
        fields.take("among")
    else:
        among = tuple(place for place in _places(fields, "among", grid) if place not in group)
        if not among:
            raise fields.wrong("among", [], "name rows besides the one that is to be best")
    sign = 1 if fields.choice("direction", ("max", "min")) == "max" else -1
    return Best(group, among, fields.text("metric"), sign, fields.pairs("where"))


def _beyond(sign: int) -> Callable[[Fields], Beyond]:
    def read(fields: Fields) -> Beyond:
        place = Place(fields.text("grid"), fields.text("row"))
        return Beyond(place, fields.text("metric"), fields.real("value"), sign, fields.pairs("where"))

    return read


def _cost(fields: Fields) -> Cost:
    place = Place(fields.text("grid"), fields.text("row"))
    return Cost(place, fields.texts("metrics"), fields.bound("at_most"), fields.pairs("where"))


def _share(fields: Fields) -> Share:
    grid = fields.text("grid")
    place, start, end = (Place(grid, fields.text(key)) for key in ("row", "start", "end"))
    if len({place, start, end}) < 3:
        raise fields.wrong("row", place.row, "name three rows: row, start and end")
    return Share(place, start, end, fields.texts("metrics"), fields.bound("at_least"), fields.pairs("where"))


def _all_of(fields: Fields) -> AllOf:
    parts = fields.items("parts")
    return AllOf(tuple(read_rule(f"{fields.name}.parts[{i}]", part, nested=True) for i, part in enumerate(parts)))


KINDS: dict[str, Callable[[Fields], Rule]] = {
    "compare": lambda fields: Compare(_pair(fields), _sign(fields), fields.bound("average", 0.0)),
    "equivalent": lambda fields: Equivalent(_pair(fields), fields.bound("within")),
    "not_worse": lambda fields: NotWorse(_pair(fields), fields.bound("within")),
    "spread": lambda fields: Spread(_pair(fields, one=True), _sign(fields)),
    "every": lambda fields: Every(_pairs(fields), _sign(fields), fields.bound("average", 0.0)),
    "mixed": lambda fields: Mixed(_pairs(fields)),
    "value": _value,
    "ordered": _ordered,
    "slope": _slope,
    "best": _best,
    "above": _beyond(1),
    "below": _beyond(-1),
    "cost": _cost,
    "share": _share,
    "all_of": _all_of,
    "chapter": lambda fields: Chapter(fields.text("chapter"), fields.text("words")),
    "later": lambda fields: Later(fields.text("plan")),
    "definition": lambda fields: Definition(fields.text("reason")),
}
"""Readers of the kinds, by the name that YAML gives them."""
