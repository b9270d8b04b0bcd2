"""One collapse, taken apart: the merge that joined two owners, the cluster it made, the chain of merges across it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.components import components
from btcnb.data.judging.links import marked
from btcnb.data.transactions import Transactions

IntArray = npt.NDArray[np.int64]

GUESSES = ("change", "round_value")
"""The rules that guess which of two outputs is the change of a payment; each of their merges is (sender, output)."""
LARGE = 100
"""Addresses of each owner that a wrong merge must join to be worth telling."""
REACH = 3
"""Right merges on either side of the wrong one in a chain of merges, at most."""
TRIED = 40
"""Candidates for a mistake made by hand that are tried out; they join the largest clusters."""


@dataclass(frozen=True)
class Collapse:
    """A wrong merge and what it did.

    merges:  every merge of the rules (tx, rule, address_a, address_b, wrong), the mistake among them
    labels:  the clusters of these merges, one label per address
    row:     position of the wrong merge in `merges`
    by_hand: whether the mistake was made on purpose, because no rule made one worth telling
    """

    merges: pd.DataFrame
    labels: IntArray
    row: int
    by_hand: bool

    @property
    def tx(self) -> int:
        return self._number("tx")

    @property
    def rule(self) -> str:
        return str(self.merges.loc[self.row, "rule"])

    @property
    def ends(self) -> tuple[int, int]:
        """The two addresses that were merged although they have two owners."""
        return self._number("address_a"), self._number("address_b")

    @property
    def inside(self) -> pd.DataFrame:
        """The merges within the collapsed cluster, in chain order."""
        return self.merges[self.labels[self.merges["address_a"]] == self.labels[self.ends[0]]]

    def _number(self, column: str) -> int:
        return int(self.merges[column].to_numpy()[self.row])


def other_output(txs: Transactions, merges: pd.DataFrame) -> IntArray:
    """Per merge of a rule in `GUESSES`: the address of the output that the rule did not take for change; others: -1."""
    start = txs.output_offsets()[merges["tx"]]
    paid = txs.outputs["address"].to_numpy()
    other = np.full(len(merges), -1, dtype=np.int64)
    guess = merges["rule"].isin(GUESSES).to_numpy()
    first = start[guess]
    other[guess] = paid[first] + paid[first + 1] - merges["address_b"].to_numpy()[guess]
    return other


def worst_collapse(txs: Transactions, merges: pd.DataFrame, owner: IntArray) -> Collapse | None:
    """The wrong merge that joined most: the one whose smaller side has the most addresses of its owner.

    Where none joins two owners with `LARGE` addresses each, one mistake is made by hand, where it joins most: in a
    payment about which a single rule says something, the sender is merged with the payee. None: there is no such
    payment either.
    """
    used = marked(merges, owner).reset_index(drop=True)
    labels = _labels(txs, used)
    natural = used.index[used["wrong"]].to_numpy()
    if len(natural):
        joined = _smaller_side(used.loc[natural], labels, owner)
        if joined.max() >= LARGE:
            return Collapse(used, labels, int(natural[joined.argmax()]), by_hand=False)
    tried = [(row, *_with_mistake(txs, used, row, payee)) for row, payee in _candidates(txs, used, labels, owner)]
    if not tried:
        return None
    damage = [_smaller_side(changed.loc[[row]], made, owner)[0] for row, changed, made in tried]
    row, changed, made = tried[int(np.argmax(damage))]
    return Collapse(changed, made, row, by_hand=True)


def chain_of_merges(collapse: Collapse, owner: IntArray) -> pd.DataFrame:
    """A chain of merges across the wrong one, from an address of the one owner to an address of the other.

    Each end lies as many right merges away from the wrong one as its owner's addresses allow, at most `REACH`. Rows of
    `merges` in the order of the chain, with columns `from` and `to`: the addresses in the order of the chain.
    """
    left, right = collapse.ends
    rows = collapse.inside[~collapse.inside["wrong"]]
    before = _farthest(rows, left, owner)
    after = _farthest(rows, right, owner)
    steps = [
        *((row, there, here) for row, here, there in reversed(before)),
        (collapse.row, left, right),
        *after,
    ]
    chain = collapse.merges.loc[[row for row, _, _ in steps]]
    return chain.assign(**{"from": [here for _, here, _ in steps], "to": [there for _, _, there in steps]})


def _labels(txs: Transactions, merges: pd.DataFrame) -> IntArray:
    return components(txs.num_addresses, merges["address_a"].to_numpy(), merges["address_b"].to_numpy())


def _smaller_side(rows: pd.DataFrame, labels: IntArray, owner: IntArray) -> IntArray:
    """Per merge: addresses in its cluster of the owner on either side, the smaller number of the two."""
    held = pd.DataFrame({"cluster": labels, "owner": owner}).groupby(["cluster", "owner"]).size()
    sides = [
        held.reindex(pd.MultiIndex.from_arrays([labels[rows[side]], owner[rows[side]]])).to_numpy()
        for side in ("address_a", "address_b")
    ]
    return np.minimum(*sides).astype(np.int64)


def _candidates(txs: Transactions, used: pd.DataFrame, labels: IntArray, owner: IntArray) -> list[tuple[int, int]]:
    """(row, payee) of guesses whose payee is a stranger and that no other rule speaks about, largest joins first."""
    payee = other_output(txs, used)
    alone = ~used["tx"].duplicated(keep=False).to_numpy()
    sender = used["address_a"].to_numpy()
    fits = np.flatnonzero((payee >= 0) & alone & (owner[payee] != owner[sender]) & (owner[payee] >= 0))
    fits = fits[owner[sender[fits]] >= 0]
    size = np.bincount(labels, minlength=1)
    joins = np.minimum(size[labels[payee[fits]]], size[labels[sender[fits]]])
    best = fits[np.argsort(-joins, kind="stable")[:TRIED]]
    return [(int(row), int(payee[row])) for row in best]


def _with_mistake(txs: Transactions, used: pd.DataFrame, row: int, payee: int) -> tuple[pd.DataFrame, IntArray]:
    changed = used.copy()
    changed.loc[row, "address_b"] = payee
    changed.loc[row, "wrong"] = True
    return changed, _labels(txs, changed)


def _farthest(rows: pd.DataFrame, start: int, owner: IntArray) -> list[tuple[int, int, int]]:
    """Steps (row, from, to) of a shortest way from `start` to an address of its owner as far as `REACH` merges away."""
    mine = rows[(owner[rows["address_a"]] == owner[start]) & (owner[rows["address_b"]] == owner[start])]
    near: dict[int, list[tuple[int, int]]] = {}
    for row, a, b in zip(mine.index.tolist(), mine["address_a"].tolist(), mine["address_b"].tolist(), strict=True):
        near.setdefault(a, []).append((row, b))
        near.setdefault(b, []).append((row, a))
    steps: dict[int, list[tuple[int, int, int]]] = {start: []}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if len(steps[here]) == REACH:
            continue
        for row, there in near.get(here, []):
            if there not in steps:
                steps[there] = [*steps[here], (row, here, there)]
                queue.append(there)
    return max(steps.values(), key=len)
