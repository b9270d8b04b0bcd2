"""Chapter 01: transactions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from btcnb.book.exercises import ways
from btcnb.book.exercises.rule import Check
from btcnb.data.intervals import subsidy

BTC = 10**8


def _subsidy(answer: Any, block: Any, paid_out: Any, coinbase: Any) -> str:
    created = subsidy(block[coinbase]).sum()
    fees = 100 * (1 - created / paid_out[coinbase].sum())
    return ways.numbers(answer, [float(subsidy(block.min())) / BTC, fees], within=5e-3)


def _kinds(answer: Any, txs: Any, coinbase: Any, alone: Any, n_outputs: Any, sender: Any, kind: Any) -> str:
    rows = np.flatnonzero(~coinbase & alone & (n_outputs == 2))
    version = txs.transactions["version"].to_numpy()[rows]
    locked = txs.transactions["lock_time"].to_numpy()[rows] > 0
    users: dict[tuple[int, bool], set[str]] = {}
    for pair, who in zip(zip(version, locked, strict=True), kind[sender[rows]], strict=True):
        users.setdefault((int(pair[0]), bool(pair[1])), set()).add(who)
    return ways.numbers(answer, [len(users[pair]) for pair in sorted(users)])


def _peel(answer: Any, n_inputs: Any, n_outputs: Any, parents: Any, children: Any) -> str:
    """A chain is right if its links are peels, each spends the one before, and no chain is longer."""
    chain = [int(ways.as_number(link)) for link in ways.as_numbers(answer, len(list(answer)))]
    peel = (n_inputs == 1) & (n_outputs == 2)
    if not chain or not all(0 <= link < len(peel) for link in chain):
        return "there is no transaction of such a number"
    both = peel[parents] & peel[children]
    spends = set(zip(parents[both].tolist(), children[both].tolist(), strict=True))
    longest = np.ones(len(peel), dtype=int)
    for parent, child in sorted(spends, key=lambda link: link[1]):
        longest[child] = max(longest[child], longest[parent] + 1)
    return ways.all_hold(
        [
            (peel[chain].all(), "a link has not one input and two outputs"),
            (all(link in spends for link in itertools.pairwise(chain)), "a link does not spend its former"),
            (len(chain) >= longest[peel].max(initial=0), "there is a longer one"),
        ]
    )


CHECKS = {
    "ex-01-subsidy": Check("two numbers: the subsidy in BTC, the fees in per cent", _subsidy),
    "ex-01-fingerprint": Check("a number of kinds for each pair that occurs, pairs in ascending order", _kinds),
    "ex-01-peel": Check("a list of transaction numbers, first link first", _peel),
}
