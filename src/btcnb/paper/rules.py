"""Verdicts on claims, computed from records by the rules that were written before the runs.

Comparisons are paired by seed: a difference is taken for each seed, and its mean has a 95 % interval by Student's t.
*Clear* means right sign, and the whole interval on that side of 0.

| kind | reproduced | partly |
| --- | --- | --- |
| compare | clear in every metric (and large enough on average, where the rule says so) | right sign in one |
| equivalent, not_worse | every interval within the bound | one mean is |
| spread | more variable, Pitman and Morgan's p < 0.05 | more variable |
| every | every pair clear in every metric (and large enough) | more than half of them clear |
| mixed | in no metric do all pairs clearly go one way | in some metrics |
| value | every mean within the bound of the printed number | one is |
| ordered | every step clear | slope over the order clear |
| slope | clear | right sign |
| best | best mean, clear of the next | best mean |
| above, below | interval beyond the value | mean beyond it |
| cost | in no run is one of the numbers above the value; one run is enough | – |
| share | every interval above that share of a clear gain | one mean is |
| all_of | all parts | neither all reproduced nor all not |

Everything else is *not reproduced*. Where records are missing, come from fewer than three seeds or hold no number,
the claim *cannot be tested here*, and the evidence says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from btcnb import gates
from btcnb.digits import probability
from btcnb.paper.claims import Claim
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
    Rule,
    Share,
    Slope,
    Spread,
    Value,
)
from btcnb.paper.records import Frames, Records, Untestable, together
from btcnb.paper.statistics import Estimate, estimate, slopes, unequal_variances
from btcnb.paper.tables import value as printed_value
from btcnb.paper.words import alike, measured, number, rule_words, sides

REPRODUCED, PARTLY, NOT, UNTESTED = "reproduced", "partly", "not reproduced", "cannot be tested here"
SIGNIFICANT = 0.05
RESEMBLES = "simulated data can only resemble the paper's"


@dataclass(frozen=True)
class Judgement:
    """What a rule says of a claim, and on what."""

    verdict: str
    evidence: str
    numbers: tuple[float, ...] = ()
    """those that decide"""
    sample: int | None = None
    """seeds they come from; None where nothing was judged"""
    rule_text: str = field(default="", kw_only=True)


def judge(claim: Claim, frames: Frames) -> Judgement:
    """The verdict on a claim; `frames(grid)` gives the grid's records, one a row and seed, or None."""
    gates.instance("claim", claim, Claim)
    found = _judged(claim.rule, Records(gates.function("frames", frames)))
    return replace(found, rule_text=rule_words(claim.rule))


def _judged(rule: Rule, records: Records) -> Judgement:
    match rule:
        case Chapter(chapter, _):
            return Judgement(UNTESTED, f"chapter {chapter} judges it by its own code")
        case Later(plan):
            return Judgement(UNTESTED, f"not judged yet; to come: {plan}")
        case Definition(reason):
            return Judgement(UNTESTED, reason)
    try:
        found = _all_of(rule, records) if isinstance(rule, AllOf) else _on_records(rule, records)
    except Untestable as reason:
        return Judgement(UNTESTED, str(reason))
    values = any(isinstance(part, Value) for part in (rule.parts if isinstance(rule, AllOf) else (rule,)))
    return replace(found, evidence=f"{found.evidence}; {RESEMBLES}") if values else found


def _all_of(rule: AllOf, records: Records) -> Judgement:
    found = [_on_records(part, records) for part in rule.parts]
    verdicts = {each.verdict for each in found}
    verdict = REPRODUCED if verdicts == {REPRODUCED} else NOT if verdicts == {NOT} else PARTLY
    said = "; ".join(f"({i}) {each.verdict}: {each.evidence}" for i, each in enumerate(found, 1))
    return Judgement(verdict, said, sum((each.numbers for each in found), ()), min(each.sample or 0 for each in found))


def _on_records(rule: Rule, records: Records) -> Judgement:
    match rule:
        case Compare():
            return _compare(rule, records)
        case Equivalent() | NotWorse():
            return _bounded(rule, records)
        case Spread():
            return _spread(rule, records)
        case Every():
            return _every(rule, records)
        case Mixed():
            return _mixed(rule, records)
        case Value():
            return _value(rule, records)
        case Ordered():
            return _ordered(rule, records)
        case Slope():
            return _slope(rule, records)
        case Best():
            return _best(rule, records)
        case Beyond():
            return _beyond(rule, records)
        case Cost():
            return _cost(rule, records)
        case Share():
            return _share(rule, records)
    raise TypeError(type(rule))  # pragma: no cover: the reader of rules lets no other kind into parts


def _compare(rule: Compare, records: Records) -> Judgement:
    found = records.differences(rule.pair)
    large = rule.sign * sum(each.mean for each in found) / len(found) >= rule.average
    if all(each.clear(rule.sign) for each in found) and large:
        verdict = REPRODUCED
    else:
        verdict = PARTLY if any(each.right(rule.sign) for each in found) else NOT
    return _told(verdict, rule.pair, found, rule.sign)


def _told(verdict: str, pair: Pair, found: Sequence[Estimate], sign: int = 0) -> Judgement:
    """Differences, each with its interval; one that clearly goes the other way says so."""
    parts = []
    for name, each in zip(pair.metrics, found, strict=True):
        other_way = ", clearly the other way" if sign and each.clear(-sign) else ""
        parts.append(f"{name} {shown(each)}{other_way}")
    return Judgement(verdict, f"{', '.join(parts)}; {_count(found)}", tuple(e.mean for e in found), _seeds(found))


def shown(found: Estimate, signed: bool = True) -> str:
    """`+0.031 (+0.012 to +0.050)`: mean and interval."""
    mean, low, high = alike([found.mean, found.low, found.high], signed)
    return f"{mean} ({low} to {high})"


def _seeds(found: Sequence[Estimate]) -> int:
    return min(each.count for each in found)


def _count(found: Sequence[Estimate]) -> str:
    return f"{_seeds(found)} seeds"


def _bounded(rule: Equivalent | NotWorse, records: Records) -> Judgement:
    found = records.differences(rule.pair)
    if isinstance(rule, Equivalent):
        whole = [each.inside(rule.within) for each in found]
        mean = [abs(each.mean) <= rule.within for each in found]
    else:
        whole = [each.low > -rule.within for each in found]
        mean = [each.mean > -rule.within for each in found]
    verdict = REPRODUCED if all(whole) else PARTLY if any(mean) else NOT
    return _told(verdict, rule.pair, found)


def _spread(rule: Spread, records: Records) -> Judgement:
    pair, metric = rule.pair, rule.pair.metrics[0]
    columns = [records.metric(pair.place, metric, pair.where), records.metric(pair.other, metric, pair.where)]
    both = together(columns, f"{pair.place.row}, {pair.other.row}")
    first, other = float(both[0].std()), float(both[1].std())
    p = unequal_variances(both[0].to_numpy(), both[1].to_numpy())
    right = rule.sign * (first - other) > 0
    verdict = REPRODUCED if right and p < SIGNIFICANT else PARTLY if right else NOT
    said = (
        f"standard deviation of {metric} {number(first)} against {number(other)}, {probability(p)}; {len(both)} seeds"
    )
    return Judgement(verdict, said, (first, other, p), len(both))


def _every(rule: Every, records: Records) -> Judgement:
    found = [(pair, records.differences(pair)) for pair in rule.pairs]
    single = [(pair, name, each) for pair, all_ in found for name, each in zip(pair.metrics, all_, strict=True)]
    clear = sum(each.clear(rule.sign) for _, _, each in single)
    large = all(rule.sign * sum(e.mean for e in all_) / len(all_) >= rule.average for _, all_ in found)
    verdict = REPRODUCED if clear == len(single) and large else PARTLY if 2 * clear > len(single) else NOT
    pair, name, worst = min(single, key=lambda entry: rule.sign * entry[2].mean)
    estimates = [each for _, _, each in single]
    said = (
        f"{clear} of {len(single)} comparisons are clear; the least, {sides(pair, name)}, "
        f"has {name} {shown(worst)}; {_count(estimates)}"
    )
    return Judgement(verdict, said, (float(clear), worst.mean), _seeds(estimates))


def _mixed(rule: Mixed, records: Records) -> Judgement:
    found = [records.differences(pair) for pair in rule.pairs]
    systematic, parts = [], []
    for i, name in enumerate(rule.pairs[0].metrics):
        up, down = (sum(all_[i].clear(sign) for all_ in found) for sign in (1, -1))
        systematic.append(len(found) in (up, down))
        parts.append(f"{name} clearly rises in {up} of {len(found)} pairs and falls in {down}")
    verdict = NOT if all(systematic) else PARTLY if any(systematic) else REPRODUCED
    estimates = [each for all_ in found for each in all_]
    return Judgement(
        verdict, f"{'; '.join(parts)}; {_count(estimates)}", tuple(e.mean for e in estimates), _seeds(estimates)
    )


def _value(rule: Value, records: Records) -> Judgement:
    near, parts, found = [], [], []
    of, names = _told_once(rule.metrics)
    for metric, name, column in zip(rule.metrics, names, rule.printed.columns, strict=True):
        ours = estimate(records.metric(rule.place, metric, rule.where).to_numpy())
        theirs = printed_value(rule.printed.table, column, **dict(rule.printed.row))
        near.append(abs(ours.mean - theirs) <= rule.within)
        mean, low, high, printed = alike([ours.mean, ours.low, ours.high, theirs], column=column)
        parts.append(f"{name} {mean} ({low} to {high}), paper {printed}")
        found.append(ours)
    verdict = REPRODUCED if all(near) else PARTLY if any(near) else NOT
    said = f"{of}{'; '.join(parts)}; {_count(found)}"
    return Judgement(verdict, said, tuple(each.mean for each in found), _seeds(found))


def _told_once(metrics: Sequence[str]) -> tuple[str, list[str]]:
    """`gnn.ward.gap.TP` and `gnn.ward.gap.FP` are `gnn.ward.gap: ` and TP, FP; names that share no head stay as they
    are."""
    heads = {metric.rpartition(".")[0] for metric in metrics}
    head = heads.pop() if len(heads) == 1 and len(metrics) > 1 else ""
    return (f"{head}: ", [metric.removeprefix(f"{head}.") for metric in metrics]) if head else ("", list(metrics))


def _ordered(rule: Ordered, records: Records) -> Judgement:
    frame = records.table(rule.places, rule.metric, rule.where)
    values = frame.to_numpy()
    steps = [estimate(step) for step in np.diff(values, axis=1).T]
    trend = estimate(slopes(range(len(rule.places)), values))
    clear = sum(step.clear(rule.sign) for step in steps)
    verdict = REPRODUCED if clear == len(steps) else PARTLY if trend.clear(rule.sign) else NOT
    way = "rises" if rule.sign > 0 else "falls"
    means = ", ".join(number(mean) for mean in values.mean(axis=0))
    said = f"{rule.metric} {means}: clearly {way} in {clear} of {len(steps)} steps, by {shown(trend)} a step on average"
    return Judgement(verdict, f"{said}; {len(frame)} seeds", (trend.mean, float(clear)), len(frame))


def _slope(rule: Slope, records: Records) -> Judgement:
    frame = records.table(rule.places, rule.metric, rule.where)
    found = estimate(slopes(rule.x, frame.to_numpy()))
    verdict = REPRODUCED if found.clear(rule.sign) else PARTLY if found.right(rule.sign) else NOT
    other_way = ", clearly the other way" if found.clear(-rule.sign) else ""
    said = f"slope of {rule.metric} {shown(found)}{other_way}; {len(frame)} seeds"
    return Judgement(verdict, said, (found.mean,), len(frame))


def _best(rule: Best, records: Records) -> Judgement:
    rest = rule.among or tuple(p for p in records.rows(rule.places[0].grid, rule.metric) if p not in rule.places)
    if not rest:
        raise Untestable(f"the grid “{rule.places[0].grid}” has no other row with {rule.metric}")
    everything = (*rule.places, *rest)
    frame = records.table(everything, rule.metric, rule.where)
    goodness = (rule.sign * frame.mean()).to_numpy()
    mine = int(np.argmax(goodness[: len(rule.places)]))
    rival = len(rule.places) + int(np.argmax(goodness[len(rule.places) :]))
    lead = estimate((frame[mine] - frame[rival]).to_numpy())
    verdict = REPRODUCED if lead.clear(rule.sign) else PARTLY if lead.right(rule.sign) else NOT
    first, next_ = (f"{number(float(frame[i].mean()))} of “{everything[i].row}”" for i in (mine, rival))
    said = f"{rule.metric} {first}, {next_}, the best of the others; difference {shown(lead)}; {len(frame)} seeds"
    return Judgement(verdict, said, (lead.mean,), len(frame))


def _beyond(rule: Beyond, records: Records) -> Judgement:
    values = records.metric(rule.place, rule.metric, rule.where).to_numpy()
    found, margin = estimate(values), estimate(values - rule.value)
    verdict = REPRODUCED if margin.clear(rule.sign) else PARTLY if margin.right(rule.sign) else NOT
    said = f"{rule.metric} of “{rule.place.row}” {shown(found, signed=False)}; {_count([found])}"
    return Judgement(verdict, said, (found.mean,), found.count)


def _cost(rule: Cost, records: Records) -> Judgement:
    most = {name: float(records.metric(rule.place, name, rule.where, fewest=1).max()) for name in rule.metrics}
    name, worst = max(most.items(), key=lambda entry: entry[1])
    runs = len(records.metric(rule.place, name, rule.where, fewest=1))
    said = f"{name} of “{rule.place.row}” is the largest, {measured(name, worst)}; {runs} run{'s' * (runs != 1)}"
    return Judgement(REPRODUCED if worst <= rule.at_most else NOT, said, tuple(most.values()), runs)


def _share(rule: Share, records: Records) -> Judgement:
    """Not the ratio of two differences, which has no mean, but the row minus the point at that share of the way."""
    whole, right, parts, seeds, gains = [], [], [], [], []
    for metric in rule.metrics:
        frame = records.table((rule.start, rule.place, rule.end), metric, rule.where)
        gain = estimate((frame[2] - frame[0]).to_numpy())
        lead = estimate((frame[1] - frame[0] - rule.at_least * (frame[2] - frame[0])).to_numpy())
        gains.append(gain)
        seeds.append(len(frame))
        whole.append(gain.clear(1) and lead.clear(1))
        right.append(gain.clear(1) and lead.right(1))
        reached = float((frame[1] - frame[0]).mean()) / gain.mean if gain.clear(1) else 0.0
        parts.append(
            f"{metric} {100 * reached:.0f} % of {number(gain.mean, True)}"
            if gain.clear(1)
            else f"{metric} has no clear gain"
        )
    if not any(gain.clear(1) for gain in gains):
        raise Untestable(f"there is no clear gain from “{rule.start.row}” to “{rule.end.row}” to have a share of")
    verdict = REPRODUCED if all(whole) else PARTLY if any(right) else NOT
    said = f"at “{rule.place.row}”: {', '.join(parts)}; {min(seeds)} seeds"
    return Judgement(verdict, said, tuple(gain.mean for gain in gains), min(seeds))
