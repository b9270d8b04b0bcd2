"""Verdicts on claims, computed from records by the rules that were written before the runs (`rules.py`).

Comparisons are paired by seed: a difference is taken for each seed, and its mean has a 95 % interval by Student's t.
*Clear* means that the whole interval lies on one side of 0. Where records are missing, come from fewer than three
seeds or hold no number, the claim *cannot be tested here*, and the evidence says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from btcnb.digits import evidence as number
from btcnb.digits import probability
from btcnb.paper import rules
from btcnb.paper.rules import Contrast, Place, Term
from btcnb.paper.stats import FEWEST_SEEDS, Estimate, by_seed, estimate, newest, slopes, unequal_variances
from btcnb.paper.tables import value as printed_value
from btcnb.paper.words import alike, rule_words, shown

REPRODUCED, PARTLY, NOT, UNTESTED = "reproduced", "partly", "not reproduced", "cannot be tested here"
SIGNIFICANT = 0.05
RESEMBLES = "simulated data can only resemble the paper's"
Frames = Callable[[str], "pd.DataFrame | None"]
"""Gives the records of a grid, one a row and seed, or None."""


@dataclass(frozen=True)
class Judgement:
    """What a rule says of a claim, and on what."""

    verdict: str
    evidence: str
    numbers: tuple[float, ...] = ()
    """those that decide"""
    sample: int | None = None
    """seeds that decided"""
    rule_text: str = ""
    """what the rule asks for, in words"""


class Judged(Protocol):
    """Whatever has a rule: a claim, or a question."""

    @property
    def rule(self) -> Any: ...


def judge(claim: Judged, frames: Frames) -> Judgement:
    """The verdict on a claim; `frames(grid)` gives the grid's records, or None."""
    return replace(_judged(claim.rule, Records(frames)), rule_text=rule_words(claim.rule))


class Untestable(Exception):  # noqa: N818
    """Why the records cannot decide; an outcome, not an error."""


@dataclass(frozen=True)
class Records:
    """Metrics by seed, out of the grids' records."""

    frames: Frames
    _read: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def grid(self, name: str) -> pd.DataFrame:
        """The finished runs of a grid."""
        if name not in self._read:
            frame = self.frames(name)
            if frame is None or frame.empty:
                raise Untestable(f"there are no records of the grid “{name}”")
            if not {"row", "seed"} <= set(frame.columns):
                raise Untestable(f"the records of the grid “{name}” name no row or no seed")
            self._read[name] = newest(frame)
        return self._read[name]

    def metric(self, place: Place, name: str, fewest: int = FEWEST_SEEDS) -> pd.Series[float]:
        """The metric of every seed of a row; `A - B` is the difference of two metrics of the same run."""
        frame = self.grid(place.grid)
        seeds = frame.loc[frame["row"] == place.row, "seed"]
        if not len(seeds):
            raise Untestable(f"the grid “{place.grid}” has no finished run of “{place.row}”")
        for each in name.split(" - "):
            if each not in frame.columns:
                raise Untestable(f"{each} of “{place.row}” was not recorded")
        values = by_seed(frame, place.row, name)
        if missing := sorted(set(seeds) - set(values.index)):
            raise Untestable(f"{name} of “{place.row}” has no value for seed {', '.join(map(str, missing))}")
        return _enough(values, f"“{place.row}”", fewest)

    def together(self, places: Sequence[Place], metrics: Sequence[str]) -> pd.DataFrame:
        """One column for each place and its metric, one line for each seed that all of them have."""
        columns = [self.metric(place, name) for place, name in zip(places, metrics, strict=True)]
        frame = pd.concat(columns, axis=1, join="inner", keys=range(len(columns))).sort_index()
        return _enough(frame, f"together, {', '.join(dict.fromkeys(place.row for place in places)):.200}")

    def term(self, term: Term) -> Estimate:
        """The mean of a term over seeds."""
        if term.other is None:
            return estimate(self.metric(term.place, term.metric).to_numpy())
        both = self.together([term.place, term.other], [term.metric, term.less])
        return estimate((both[0] - both[1]).to_numpy())


def _enough(values: Any, what: str, fewest: int = FEWEST_SEEDS) -> Any:
    if len(values) < fewest:
        raise Untestable(f"{what} has {len(values)} seed{'s' * (len(values) != 1)}, fewer than {fewest}")
    return values


def _judged(rule: Any, records: Records) -> Judgement:
    if isinstance(rule, rules.Chapter):
        return Judgement(UNTESTED, f"chapter {rule.chapter} judges it by its own code")
    if isinstance(rule, rules.Definition):
        return Judgement(UNTESTED, rule.reason)
    try:
        parts = [_DECIDE[part.kind](part, records) for part in rules.parts(rule)]
    except Untestable as reason:
        return Judgement(UNTESTED, str(reason))
    found = _all_of(parts) if isinstance(rule, rules.AllOf) else parts[0]
    levels = any(isinstance(part, rules.Value) for part in rules.parts(rule))
    return replace(found, evidence=f"{found.evidence}; {RESEMBLES}") if levels else found


def _all_of(found: list[Judgement]) -> Judgement:
    verdicts = {each.verdict for each in found}
    verdict = REPRODUCED if verdicts == {REPRODUCED} else NOT if verdicts == {NOT} else PARTLY
    said = "; ".join(f"({i}) {each.verdict}: {each.evidence}" for i, each in enumerate(found, 1))
    return Judgement(verdict, said, sum((each.numbers for each in found), ()), min(each.sample or 0 for each in found))


def _verdict(whole: bool, part: bool) -> str:
    return REPRODUCED if whole else PARTLY if part else NOT


def clear(found: Estimate, sign: int, value: float = 0.0) -> bool:
    """Whether the whole interval lies on that side of a value."""
    return found.low > value if sign > 0 else found.high < value


def right(found: Estimate, sign: int, value: float = 0.0) -> bool:
    """Whether the mean lies on that side of a value."""
    return sign * (found.mean - value) > 0


def _contrast(rule: Contrast, records: Records) -> Judgement:
    if rule.x:
        named = [(f"slope of {name}", _slope(rule, name, records)) for name in rule.metrics]
        groups = [[each for _, each in named]]
    else:
        terms = rule.groups()
        groups = [[records.term(term) for term in group] for group in terms]
        level = terms[0][0].other is None
        named = [
            (f"{term.metric} of “{term.place.row}”" if level else term.metric, each)
            for group, found in zip(terms, groups, strict=True)
            for term, each in zip(group, found, strict=True)
        ]
    whole, part = [_inside(rule, each) for _, each in named], [_inside(rule, each, True) for _, each in named]
    sign = -1 if rule.below is not None else 1
    large = all(sign * np.mean([each.mean for each in group]) >= rule.average for group in groups if rule.average)
    seeds = min(each.count for _, each in named)
    if rule.several:
        verdict = _verdict(all(whole) and large, 2 * sum(whole) > len(whole))
        flat = [(term, each) for group, found in zip(terms, groups, strict=True)
                for term, each in zip(group, found, strict=True)]  # fmt: skip
        term, worst = min(flat, key=lambda entry: sign * entry[1].mean)
        said = f"{sum(whole)} of {len(whole)} comparisons are clear; the least, {_sides(term)}, has {term.metric}"
        return Judgement(verdict, f"{said} {shown(worst)}; {seeds} seeds", (float(sum(whole)), worst.mean), seeds)
    signed = bool(rule.x) or not level
    said = ", ".join(f"{name} {shown(each, signed)}{_other_way(rule, each, signed)}" for name, each in named)
    numbers = tuple(each.mean for _, each in named)
    return Judgement(_verdict(all(whole) and large, any(part)), f"{said}; {seeds} seeds", numbers, seeds)


def _slope(rule: Contrast, metric: str, records: Records) -> Estimate:
    places = [row if isinstance(row, Place) else Place(rule.grid, row) for row in rule.rows]
    values = records.together(places, [metric] * len(places))
    return estimate(slopes(rule.x, values.to_numpy()))


def _inside(rule: Contrast, found: Estimate, mean: bool = False) -> bool:
    """Whether the interval, or the mean alone, lies where the rule wants it."""
    low, high = (found.mean, found.mean) if mean else (found.low, found.high)
    if rule.within is not None:
        return -rule.within <= low and high <= rule.within
    return low > rule.above if rule.above is not None else high < float(rule.below or 0)


def _other_way(rule: Contrast, found: Estimate, signed: bool) -> str:
    """A difference that clearly goes the other way says so."""
    asked = 1 if rule.above == 0 else -1 if rule.below == 0 else 0
    return ", clearly the other way" if signed and asked and clear(found, -asked) else ""


def _sides(term: Term) -> str:
    if term.place == term.other or term.other is None:
        return f"{term.metric} minus {term.less}"
    return f"“{term.place.row}” minus “{term.other.row}”"


def _spread(rule: rules.Spread, records: Records) -> Judgement:
    places = [Place(rule.grid, rule.row), Place(rule.grid, rule.against)]
    both = records.together(places, [rule.metric] * 2)
    first, other = float(both[0].std()), float(both[1].std())
    p = unequal_variances(both[0].to_numpy(), both[1].to_numpy())
    wider = rule.sign * (first - other) > 0
    said = f"standard deviation of {rule.metric} {number(first)} against {number(other)}, {probability(p)}"
    return Judgement(
        _verdict(wider and p < SIGNIFICANT, wider), f"{said}; {len(both)} seeds", (first, other, p), len(both)
    )


def _mixed(rule: rules.Mixed, records: Records) -> Judgement:
    systematic, said, found = [], [], []
    for name in rule.metrics:
        each = [records.term(Term(Place(rule.grid, a), name, Place(rule.grid, b), name)) for a, b in rule.pairs]
        up, down = (sum(clear(one, sign) for one in each) for sign in (1, -1))
        systematic.append(len(each) in (up, down))
        said.append(f"{name} clearly rises in {up} of {len(each)} pairs and falls in {down}")
        found += each
    seeds = min(each.count for each in found)
    verdict = _verdict(not any(systematic), not all(systematic))
    return Judgement(verdict, f"{'; '.join(said)}; {seeds} seeds", tuple(each.mean for each in found), seeds)


def _value(rule: rules.Value, records: Records) -> Judgement:
    near, said, found = [], [], []
    place, head = Place(rule.grid, rule.row), _head(rule.metrics)
    for metric, column in zip(rule.metrics, rule.printed.columns, strict=True):
        ours = estimate(records.metric(place, metric).to_numpy())
        theirs = printed_value(rule.printed.table, column, **rule.printed.row)
        near.append(abs(ours.mean - theirs) <= rule.within)
        mean, low, high, printed = alike([ours.mean, ours.low, ours.high, theirs], column=column)
        said.append(f"{metric.removeprefix(head)} {mean} ({low} to {high}), paper {printed}")
        found.append(ours)
    seeds = min(each.count for each in found)
    start = f"{head[:-1]}: " if head else ""
    numbers = tuple(each.mean for each in found)
    return Judgement(_verdict(all(near), any(near)), f"{start}{'; '.join(said)}; {seeds} seeds", numbers, seeds)


def _head(metrics: Sequence[str]) -> str:
    """`gnn.ward.gap.` where all of several metrics begin like that: evidence names it once."""
    heads = {metric.rpartition(".")[0] for metric in metrics}
    head = heads.pop() if len(heads) == 1 and len(metrics) > 1 else ""
    return f"{head}." if head else ""


def _ordered(rule: rules.Ordered, records: Records) -> Judgement:
    sign = 1 if rule.direction == "rising" else -1
    frame = records.together([Place(rule.grid, row) for row in rule.rows], [rule.metric] * len(rule.rows))
    steps = [estimate(step) for step in np.diff(frame.to_numpy(), axis=1).T]
    trend = estimate(slopes(range(len(rule.rows)), frame.to_numpy()))
    found = sum(clear(step, sign) for step in steps)
    means = ", ".join(number(mean) for mean in frame.to_numpy().mean(axis=0))
    way = "rises" if sign > 0 else "falls"
    said = f"{rule.metric} {means}: clearly {way} in {found} of {len(steps)} steps, by {shown(trend)} a step on average"
    verdict = _verdict(found == len(steps), clear(trend, sign))
    return Judgement(verdict, f"{said}; {len(frame)} seeds", (trend.mean, float(found)), len(frame))


def _best(rule: rules.Best, records: Records) -> Judgement:
    sign = 1 if rule.direction == "max" else -1
    mine = [row if isinstance(row, Place) else Place(rule.grid, row) for row in rule.rows]
    if rule.among == "all":
        frame = records.grid(rule.grid)
        has = frame[frame[rule.metric].notna()] if rule.metric in frame.columns else frame.iloc[:0]
        among = [Place(rule.grid, row) for row in has["row"].unique()]
    else:
        among = [row if isinstance(row, Place) else Place(rule.grid, row) for row in rule.among]
    rest = [place for place in among if place not in mine]
    if not rest:
        raise Untestable(f"the grid “{rule.grid}” has no other row with {rule.metric}")
    everything = [*mine, *rest]
    frame = records.together(everything, [rule.metric] * len(everything))
    goodness = (sign * frame.mean()).to_numpy()
    first, rival = int(np.argmax(goodness[: len(mine)])), len(mine) + int(np.argmax(goodness[len(mine) :]))
    lead = estimate((frame[first] - frame[rival]).to_numpy())
    top, next_ = (f"{number(float(frame[i].mean()))} of “{everything[i].row}”" for i in (first, rival))
    said = f"{rule.metric} {top}, {next_}, the best of the others; difference {shown(lead)}; {len(frame)} seeds"
    return Judgement(_verdict(clear(lead, sign), right(lead, sign)), said, (lead.mean,), len(frame))


def _cost(rule: rules.Cost, records: Records) -> Judgement:
    found = {name: records.metric(Place(rule.grid, rule.row), name, fewest=1) for name in rule.metrics}
    name, runs = max(found.items(), key=lambda entry: float(entry[1].max()))
    unit = {"peak_mb": " MB", "seconds": " s"}.get(name.split(".")[0], "")
    said = f"{name} of “{rule.row}” is the largest, {number(float(runs.max()))}{unit}"
    most = tuple(float(each.max()) for each in found.values())
    ran = f"{len(runs)} run{'s' * (len(runs) != 1)}"
    return Judgement(_verdict(max(most) <= rule.at_most, False), f"{said}; {ran}", most, len(runs))


def _share(rule: rules.Share, records: Records) -> Judgement:
    """Not the ratio of two differences, which has no mean, but the row minus the point at that share of the way."""
    whole, part, said, seeds, gains = [], [], [], [], []
    for metric in rule.metrics:
        frame = records.together([Place(rule.grid, row) for row in (rule.start, rule.row, rule.end)], [metric] * 3)
        gain = estimate((frame[2] - frame[0]).to_numpy())
        lead = estimate((frame[1] - frame[0] - rule.at_least * (frame[2] - frame[0])).to_numpy())
        gains.append(gain)
        seeds.append(len(frame))
        whole.append(clear(gain, 1) and clear(lead, 1))
        part.append(clear(gain, 1) and right(lead, 1))
        reached = 100 * float((frame[1] - frame[0]).mean()) / gain.mean if clear(gain, 1) else 0.0
        told = f"{reached:.0f} % of {number(gain.mean, True)}" if clear(gain, 1) else "has no clear gain"
        said.append(f"{metric} {told}")
    if not any(clear(gain, 1) for gain in gains):
        raise Untestable(f"there is no clear gain from “{rule.start}” to “{rule.end}” to have a share of")
    evidence = f"at “{rule.row}”: {', '.join(said)}; {min(seeds)} seeds"
    return Judgement(_verdict(all(whole), any(part)), evidence, tuple(gain.mean for gain in gains), min(seeds))


_DECIDE: dict[str, Callable[[Any, Records], Judgement]] = {
    "contrast": _contrast,
    "spread": _spread,
    "mixed": _mixed,
    "value": _value,
    "ordered": _ordered,
    "best": _best,
    "cost": _cost,
    "share": _share,
}
