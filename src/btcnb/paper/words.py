"""Rules, the paper's numbers and estimates in words, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from btcnb.digits import evidence
from btcnb.digits import number as plain

if TYPE_CHECKING:
    from btcnb.paper.rules import Contrast
    from btcnb.paper.stats import Estimate

_DIGITS = dict.fromkeys(["DP", "NMI", "ARI"], ".3f")
_DIGITS |= dict.fromkeys(["TP", "FP", "FN", "TN", "TN_hard_negatives", "bACC", "F1"], ".1f")
MOST_NAMES = 6
"""Longer lists of rows are counted, not read out."""


def alike(values: Sequence[float], signed: bool = False, column: str = "") -> list[str]:
    """Numbers that stand side by side, with the same digits: one decimal where the largest is 10 or more.

    column: of one of the paper's tables, whose digits they get
    """
    digits = _DIGITS.get(column, ".1f")
    if column not in _DIGITS and not 10 <= max((abs(value) for value in values), default=0) < 999.5:
        return [evidence(value, signed) for value in values]
    form = f"{{:{'+' * signed}{digits}}}"
    return ["nan" if value != value else plain(value, form).replace("-", "−") for value in values]


def shown(found: Estimate, signed: bool = True) -> str:
    """`+0.031 (+0.012 to +0.050)`: mean and interval."""
    mean, low, high = alike([found.mean, found.low, found.high], signed)
    return f"{mean} ({low} to {high})"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def rule_words(rule: Any) -> str:
    """What the rule asks for, and what makes it *partly*."""
    if rule.kind == "chapter":
        return f"Chapter {rule.chapter} judges it by its own code."
    if rule.kind == "definition":
        return f"Not judged: {rule.reason}."
    if rule.kind == "all_of":
        said = " ".join(f"({i}) {_asked(part)}" for i, part in enumerate(rule.parts, 1))
        return f"All of these; partly if some hold, or hold partly. {said}"
    return _asked(rule)


def _asked(rule: Any) -> str:
    if rule.kind == "contrast":
        return _contrast(rule)
    metrics = listed(getattr(rule, "metrics", ()) or (rule.metric,))
    match rule.kind:
        case "spread":
            size = "larger" if rule.sign > 0 else "smaller"
            return (
                f"standard deviation of {metrics} over seeds {size} for “{rule.row}” than for “{rule.against}” (Pitman "
                f"and Morgan's test, p < 0.05); partly: {size}, but not significantly."
            )
        case "mixed":
            pairs = listed([f"“{first}” minus “{other}”" for first, other in rule.pairs])
            return f"{pairs}: no metric of {metrics} in which all clearly go one way; partly: that holds for some."
        case "value":
            partly = "; partly: one of them is" if len(rule.metrics) > 1 else ""
            return f"mean {metrics} of “{rule.row}” within {rule.within:g} of the printed value{partly}."
        case "ordered":
            return (
                f"{metrics} {rule.direction} from each of {_rows(rule.rows)} to the next, with whole intervals; "
                "partly: the slope over their order has that sign, with its whole interval."
            )
        case "best":
            extreme = "highest" if rule.direction == "max" else "lowest"
            rest = "all other rows" if rule.among == "all" else _rows([r for r in rule.among if r not in rule.rows])
            one = "one of " if len(rule.rows) > 1 else ""
            return (
                f"the {extreme} mean {metrics} is that of {one}{_rows(rule.rows)}, before {rest}, and clear of the "
                f"next one's; partly: {extreme}, but not clearly."
            )
        case "cost":
            return f"none of {metrics} of “{rule.row}” above {rule.at_most:,g}, in any run."
    return (
        f"“{rule.row}” has reached {100 * rule.at_least:g} % of the gain from “{rule.start}” to “{rule.end}” in "
        f"{metrics}, with the whole interval; partly: the mean has{_of_several(rule.metrics)}."
    )


def _contrast(rule: Contrast) -> str:
    metrics, several = listed(rule.metrics), _of_several(rule.metrics)
    partly = f"the mean is{several}"
    if rule.x:
        asked = f"slope of {metrics} over {_rows(rule.rows)}"
    elif rule.others:
        asked, partly = f"{metrics} of “{rule.row}” minus those of {_names(rule.others)}", "more than half of them are"
    elif rule.several:
        if rule.pairs:
            asked = listed([f"{_row(first)} minus {_row(other)}" for first, other in rule.pairs])
        else:
            against = rule.against if isinstance(rule.against, tuple) else ()
            asked = f"each of {_rows(rule.rows)} minus each of {_rows(against)}"
        asked, partly = f"{asked} in {metrics}", "more than half of them are"
    else:
        (terms,) = rule.groups()
        other = terms[0].other
        if other is None:
            asked = f"{metrics} of {_row(rule.row)}"
        elif other == terms[0].place:
            asked = f"{listed([f'{term.metric} minus {term.less}' for term in terms])} of {_row(rule.row)}"
        else:
            theirs = listed([term.less for term in terms])
            away = f" ({other.grid})" if other.grid != rule.grid else ""
            asked = f"{_row(rule.row)} minus “{other.row}”{away} in {metrics}"
            asked += f" against {theirs}" if theirs != metrics else ""
    bound = f"within ±{rule.within:g}" if rule.within is not None else ""
    bound = bound or (f"above {rule.above:g}" if rule.above is not None else f"below {rule.below:g}").replace("-", "−")
    more = f", by {rule.average:g} or more on average" if rule.average else ""
    return f"{asked}: {bound} with the whole interval{more}; partly: {partly}."


def _of_several(metrics: Sequence[str]) -> str:
    return " in one metric at least" if len(metrics) > 1 else ""


def _row(row: Any) -> str:
    return f"“{row}”" if isinstance(row, str) else f"“{row.row}” ({row.grid})"


def _rows(rows: Sequence[Any]) -> str:
    names = [_row(row) for row in rows]
    return listed(names) if len(names) <= MOST_NAMES else f"{len(names)} rows ({names[0]} … {names[-1]})"


def _names(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= MOST_NAMES else f"{len(names)} others ({names[0]} … {names[-1]})"


def cells_words(frames: Sequence[pd.DataFrame]) -> str:
    """Cells of the paper's tables as printed: `NMI 0.642, ARI 0.289`; several rows are separated by semicolons."""
    found = []
    for frame in frames:
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
