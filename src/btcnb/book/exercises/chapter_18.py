"""Chapter 18: the scoreboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from btcnb.book.exercises import ways
from btcnb.book.exercises.rule import Check
from btcnb.paper import claims, judge
from btcnb.paper.kinds import Value

BY_CHANCE = 0.025  # a 95 % interval lies wholly on a given side of a true 0


def _chance(answer: Any, board: Any) -> str:
    return ways.number(answer, BY_CHANCE * int(board["seeds"].notna().sum()), within=0.02)


def _weights(answer: Any, board: Any) -> str:
    weight = board["importance"].map({"high": 3, "medium": 2, "low": 1})
    mark = board["outcome"].map({"reproduced": 1.0, "partly": 0.5, "not reproduced": 0.0})
    known = mark.notna()
    return ways.number(answer, float((mark * weight)[known].sum() / max(weight[known].sum(), 1)), within=0.02)


def _bound(answer: Any, read: Any) -> str:
    wanted = []
    for factor in (0.5, 1, 2, 4):
        levels = [(each, each.rule) for each in claims() if isinstance(each.rule, Value)]
        changed = [replace(each, rule=replace(rule, within=factor * rule.within)) for each, rule in levels]
        wanted.append(sum(judge(each, read).verdict == "reproduced" for each in changed))
    return ways.numbers(answer, wanted)


CHECKS = {
    "ex-18-chance": Check("one number of claims", _chance),
    "ex-18-weights": Check("one number: the mean mark at w = 0.5", _weights),
    "ex-18-bound": Check("four numbers: claims reproduced at half, once, twice and four times the bound", _bound),
}
