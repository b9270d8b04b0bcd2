"""Rules and the paper's numbers in words, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pandas as pd

from btcnb import gates
from btcnb.digits import evidence
from btcnb.digits import number as plain
from btcnb.paper.claims import Claim, lookup
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
    Rule,
    Share,
    Slope,
    Spread,
    Value,
)

_UNITS = {"peak_mb": " MB", "seconds": " s"}
_DIGITS = dict.fromkeys(["DP", "NMI", "ARI"], ".3f")
_DIGITS |= dict.fromkeys(["TP", "FP", "FN", "TN", "TN_hard_negatives", "bACC", "F1"], ".1f")

MOST_NAMES = 6
"""Longer lists of rows are counted, not read out."""


def number(value: float, signed: bool = False) -> str:
    """As `btcnb.digits.evidence` writes it."""
    return evidence(value, signed)


def alike(values: Sequence[float], signed: bool = False, column: str = "") -> list[str]:
    """Numbers that stand side by side, with the same digits: one decimal where the largest is 10 or more.

    column: of one of the paper's tables, whose digits they get
    """
    digits = _DIGITS.get(column, ".1f")
    if column not in _DIGITS and not 10 <= max((abs(value) for value in values), default=0) < 999.5:
        return [number(value, signed) for value in values]
    form = f"{{:{'+' * signed}{digits}}}"
    return ["nan" if value != value else plain(value, form).replace("-", "−") for value in values]


def measured(metric: str, value: float) -> str:
    """A metric's value with its unit, where the metric's name tells one: `peak_mb.train`."""
    return f"{number(value)}{_UNITS.get(metric.split('.')[0], '')}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def rows(places: Sequence[Place], home: str) -> str:
    """Rows by name; those of another grid than `home` say so."""
    if len(places) > MOST_NAMES:
        return f"{len(places)} rows ({places[0].row} … {places[-1].row})"
    return listed([f"“{place.row}”" + (f" ({place.grid})" if place.grid != home else "") for place in places])


def difference(pair: Pair) -> str:
    """`“gat” minus “untrained” in NMI and ARI`, or `lambda.ari minus heuristics.ari of “paper 1”`."""
    first, other = rows([pair.place], pair.place.grid), rows([pair.other], pair.place.grid)
    if pair.metrics == pair.other_metrics:
        return f"{first} minus {other} in {listed(pair.metrics)}"
    if pair.place == pair.other:
        both = [f"{mine} minus {theirs}" for mine, theirs in zip(pair.metrics, pair.other_metrics, strict=True)]
        return f"{listed(both)} of {first}"
    return f"{listed(pair.metrics)} of {first} minus {listed(pair.other_metrics)} of {other}"


def sides(pair: Pair, metric: str) -> str:
    """What is subtracted from what: two rows, or two metrics of one row."""
    if pair.place == pair.other:
        return f"{metric} minus {pair.other_metrics[pair.metrics.index(metric)]}"
    return f"“{pair.place.row}” minus “{pair.other.row}”"


def rule_words(rule: Rule) -> str:
    """What the rule asks for, and what makes it *partly*, in a sentence or two."""
    match gates.instance("rule", rule, get_args(Rule)):
        case AllOf(parts):
            said = " ".join(f"({i}) {_record_words(part)}" for i, part in enumerate(parts, 1))
            return f"All of these; partly if some hold, or hold partly. {said}"
        case Chapter(chapter, _):
            return f"Chapter {chapter} judges it by its own code."
        case Later(plan):
            return f"To be judged in a later chapter: {plan}."
        case Definition(reason):
            return f"Not judged: {reason}."
    words = _record_words(rule)
    return words[0].upper() + words[1:] if words[0].isalpha() else words


def _record_words(rule: Rule) -> str:
    """One rule on records, as part of a list."""
    words, partly = _asked(rule)
    pair = rule.pair if isinstance(rule, Compare | Equivalent | NotWorse | Spread) else None
    pairs = rule.pairs if isinstance(rule, Every | Mixed) else ()
    where = pair.where if pair else pairs[0].where if pairs else getattr(rule, "where", ())
    only = f", where {listed([f'{column} is {value}' for column, value in where])}" if where else ""
    return f"{words}{only}; partly: {partly}." if partly else f"{words}{only}."


def _asked(rule: Rule) -> tuple[str, str]:
    """What makes a rule on records reproduced, and what makes it partly so (nothing, if empty)."""
    match rule:
        case Compare(pair, sign, average):
            several = len(pair.metrics) > 1
            side = "above" if sign > 0 else "below"
            more = f", by {average:g} or more on average" if average else ""
            partly = "right sign in one metric at least" if several else "right sign, but the interval holds 0"
            return f"{difference(pair)}: {side} 0 with the whole interval{more}", partly
        case Equivalent(pair, within):
            return f"{difference(pair)}: the whole interval within ±{within:g}", "the mean is" + _of_several(
                pair.metrics
            )
        case NotWorse(pair, within):
            words = f"{difference(pair)}: the whole interval above −{within:g}"
            return words, "the mean is" + _of_several(pair.metrics)
        case Spread(pair, sign):
            first, other = rows([pair.place], pair.place.grid), rows([pair.other], pair.place.grid)
            size = "larger" if sign > 0 else "smaller"
            words = f"standard deviation of {pair.metrics[0]} over seeds {size} for {first} than for {other}"
            return f"{words} (Pitman and Morgan's test, p < 0.05)", f"{size}, but not significantly"
        case Every(pairs, sign, average):
            side = "above" if sign > 0 else "below"
            more = f", by {average:g} or more on average" if average else ""
            return (
                f"{_all_pairs(pairs)}: every one {side} 0 with its whole interval{more}",
                "more than half of them are",
            )
        case Mixed(pairs):
            words = f"{_all_pairs(pairs)}: no metric in which all go one way with their whole intervals"
            return words, "that holds for some metrics only"
    return _asked_of_rows(rule)


def _asked_of_rows(rule: Rule) -> tuple[str, str]:
    match rule:
        case Value(place, metrics, _, within, _):
            words = f"mean {listed(metrics)} of {rows([place], place.grid)} within {within:g} of the printed value"
            return words, "one of them is" if len(metrics) > 1 else ""
        case Ordered(places, metric, sign, _):
            way = "rises" if sign > 0 else "falls"
            words = f"{metric} {way} from each of {rows(places, places[0].grid)} to the next, with whole intervals"
            return words, "the slope over their order has that sign, with its whole interval"
        case Slope(places, _, metric, sign, _):
            side = "above" if sign > 0 else "below"
            words = f"slope of {metric} over {rows(places, places[0].grid)}: {side} 0 with its whole interval"
            return words, "right sign"
        case Best(places, among, metric, sign, _):
            extreme = "highest" if sign > 0 else "lowest"
            rest = rows(among, places[0].grid) if among else "all other rows"
            whose = (
                f"of {rows(places, places[0].grid)}"
                if len(places) == 1
                else f"of one of {rows(places, places[0].grid)}"
            )
            words = f"the {extreme} mean {metric} is that {whose}, before {rest}, and clear of the next one's"
            return words, f"{extreme}, but not clearly"
        case Beyond(place, metric, value, sign, _):
            side = "above" if sign > 0 else "below"
            return (
                f"{metric} of {rows([place], place.grid)} {side} {value:g} with its whole interval",
                f"the mean is {side}",
            )
        case Cost(place, metrics, at_most, _):
            return f"none of {listed(metrics)} of {rows([place], place.grid)} above {at_most:,g}, in any run", ""
        case Share(place, start, end, metrics, at_least, _):
            words = (
                f"{rows([place], place.grid)} has reached {100 * at_least:g} % of the gain from “{start.row}” to "
                f"“{end.row}” in {listed(metrics)}, with the whole interval"
            )
            return words, "the mean has" + _of_several(metrics)
    raise TypeError(type(rule))  # pragma: no cover: the kinds above are all that are judged on records


def _of_several(metrics: Sequence[str]) -> str:
    return " in one metric at least" if len(metrics) > 1 else ""


def _all_pairs(pairs: Sequence[Pair]) -> str:
    home = pairs[0].place.grid
    first, others = (list(dict.fromkeys(places)) for places in ([p.place for p in pairs], [p.other for p in pairs]))
    metrics = listed(pairs[0].metrics)
    if all(pair.place == pair.other for pair in pairs):
        heads = [pair.other_metrics[0].rpartition(".")[0] for pair in pairs]
        named = listed(heads) if len(heads) <= MOST_NAMES else f"{len(heads)} others ({heads[0]} … {heads[-1]})"
        return f"{metrics} of {rows(first, home)} minus those of {named}"
    if len(first) * len(others) == len(pairs):
        return f"each of {rows(first, home)} minus each of {rows(others, home)} in {metrics}"
    both = [f"“{pair.place.row}” minus “{pair.other.row}”" for pair in pairs]
    return f"{listed(both)} in {metrics}"


def paper_words(claim: Claim) -> str:
    """The paper's numbers, as printed: `NMI 0.642, ARI 0.289`; several rows of a table are separated by semicolons."""
    quoted = gates.instance("claim", claim, Claim).paper
    if isinstance(quoted, str):
        return quoted
    found = []
    for reference in quoted:
        frame = lookup(reference)
        if len(frame) > 1:
            found += [_cell(name, ", ".join(_printed(value, name) for value in frame[name])) for name in frame.columns]
        else:
            found.append(
                ", ".join(_cell(str(name), _printed(value, str(name))) for name, value in frame.iloc[0].items())
            )
    return "; ".join(found)


def _cell(column: str, values: str) -> str:
    """A column's name and what stands in it: `DP 0.771`; a column that is just called value goes without."""
    name = column.replace("TN_hard_negatives", "TN, repelled").replace("_", " ")
    return values if name == "value" else f"{name} {values}"


def _printed(value: object, column: str = "") -> str:
    """A number with the digits that the paper gives to its column."""
    form = _DIGITS.get(column.removesuffix("_sd"))
    if isinstance(value, float | int) and not pd.isna(value):
        if form:
            return f"{value:{form}}"
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}" if value == int(value) else f"{value:.6g}"
        return text.replace("-", "−")
    return "–" if pd.isna(value) else str(value)  # type: ignore[call-overload]
