"""Chapter 02: heuristics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check
from btcnb.data import DEFAULT_RULES, heuristic_clusters, heuristic_merges
from btcnb.data.judging.collapse import marked
from btcnb.data.judging.owners import against_owners


def _deposit(answer: Any, txs: Any, config: Any) -> str:
    def clusters(*rules: str) -> int:
        return int(heuristic_clusters(txs, rules, config).max()) + 1

    removed = clusters(*DEFAULT_RULES) - clusters(*DEFAULT_RULES, "deposit")
    return ways.numbers(answer, [removed, txs.num_addresses - clusters("deposit")])


def _round(answer: Any, txs: Any, config: Any, owner: Any) -> str:
    wanted: list[float] = []
    for usd in (0.1, 1.0, 10.0, 100.0):
        fired = marked(heuristic_merges(txs, ["round_value"], replace(config, round_usd=usd)), owner)
        wanted += [len(fired), fired["wrong"].sum()]
    return ways.numbers(answer, wanted)


def _bound(answer: Any) -> str:
    """A function is tried on numbers that nobody chose."""
    if not callable(answer):
        raise ways.MisreadError("a function is wanted")
    for s, q, m, wrong in np.random.default_rng(2).uniform(0.1, 1, (5, 4)) * [1000, 1, 10_000, 0.1]:
        payers = wrong * q * m
        if words := ways.numbers(answer(s, q, m, wrong), [payers, payers * s]):
            return f"at s = {s:.0f}, q = {q:.2f}, m = {m:.0f}, ε = {wrong:.3f} {words}"
    return ""


def _coinjoins(answer: Any, txs: Any, config: Any, owner: Any) -> str:
    wanted = []
    for excluded in (True, False):
        found = heuristic_clusters(txs, DEFAULT_RULES, replace(config, exclude_coinjoins=excluded))
        wanted.append(against_owners(found, owner)["most_owners"])
    return ways.numbers(answer, wanted)


def _dial(answer: Any, dial: Any) -> str:
    words, turns = ways.as_words(answer), dial.loc[[0.0, 2.0], ["precision", "recall"]].diff().iloc[-1]
    wanted = ["rises" if turn > 0 else "falls" for turn in turns]
    right = len(words) == 2 and [word == want for word, want in zip(words, wanted, strict=True)]
    return ways.all_hold(
        [
            (right and set(words) <= {"rises", "falls"}, 'two words are wanted, each "rises" or "falls"'),
            (right and right[0], "look again at precision"),
            (right and right[1], "look again at recall"),
        ]
    )


CHECKS = {
    "ex-02-deposit": Check("two numbers: clusters removed on top of the other rules, and alone", _deposit),
    "ex-02-round": Check("eight numbers: merges and wrong merges at 0.1, then at 1, 10 and 100 USD", _round),
    "ex-02-bound": Check("a function of s, q, m and ε that returns payers and wrong pairs", _bound),
    "ex-02-payjoin": Check(
        "a set of names of rules",
        seals.Words("ex-02-payjoin", ("0cc0914b3853", "3c496f301818")),
    ),
    "ex-02-coinjoins": Check("two numbers: most owners in one cluster, CoinJoins excluded and let in", _coinjoins),
    "ex-02-dial": Check('two words, "rises" or "falls", from disorder 0 to 2: precision, recall', _dial),
}
