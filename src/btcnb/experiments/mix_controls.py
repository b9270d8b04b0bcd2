"""What a true-negative rate is compared with: random splits, owners' transfers, inputs unlike those of training.

dealt(labels, inputs)                       # pairs apart if the same clusters were dealt out at random
transfers(txs, labels, chosen)              # transfers between and within owners, or clusters
Usual.of([graph.x for graph in ...])        # how unusual features are for somebody trained on these
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from btcnb import gates
from btcnb.data import Transactions
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LEVELS = tuple(range(0, 101, 10))
"""Percentiles by which a record keeps a distribution of distances."""
FEWEST_RANKED = 3
"""Below so many values a rank correlation says nothing."""


def dealt(labels: IntArray, inputs: IntArray, within: IntArray | None = None) -> float:
    """The share of pairs of `inputs` that are apart, on average, where `labels` are dealt out at random.

    labels (A,): clusters; inputs (k,): at least two addresses; within (A,): groups that labels do not leave, such as
    the heuristic clusters that a hybrid splits (none: one group).
    Dealing keeps the number of clusters and their sizes and forgets who is in which, so the mean is known exactly: two
    members of a group of n fall into one cluster with probability Σ m (m − 1) / n (n − 1) over its clusters of m.
    """
    found = gates.array("labels", labels, 1, "iu")
    group = np.zeros(len(found), dtype=np.int64) if within is None else np.unique(within, return_inverse=True)[1]
    if len(group) != len(found):
        problem = f"has {len(group)} entries for {len(found)} labels"
        raise DataError("within", "length", problem, "give one group per address")
    chosen = gates.array("inputs", inputs, 1, "iu")
    if len(chosen) < 2:
        raise DataError("inputs", "length", f"is {len(chosen)}", "a pair needs two addresses")
    label = np.unique(found, return_inverse=True)[1]
    cell, members = np.unique(group * (label.max(initial=0) + 1) + label, return_counts=True)  # a label inside a group
    together = np.bincount(cell // (label.max(initial=0) + 1), weights=members * (members - 1.0))
    size = np.bincount(group).astype(np.float64)
    chance = np.divide(together, size * (size - 1), out=np.zeros_like(together), where=size > 1)
    mine = np.bincount(group[chosen], minlength=len(size)).astype(np.float64)
    pairs = len(chosen) * (len(chosen) - 1) / 2
    return float(1.0 - (mine * (mine - 1) / 2 * chance).sum() / pairs)


def deal(labels: IntArray, rng: np.random.Generator, within: IntArray | None = None) -> IntArray:
    """One such dealing: the same labels, as often, in another order inside every group; `dealt` is its mean."""
    found = gates.array("labels", labels, 1, "iu").astype(np.int64)
    group = np.zeros(len(found), dtype=np.int64) if within is None else np.asarray(within)
    order = np.argsort(group, kind="stable")
    mixed = np.lexsort((rng.random(len(found)), group))
    out = np.empty_like(found)
    out[mixed] = found[order]
    return out


def payment_pairs(txs: Transactions, rng: np.random.Generator, payments: int = 10, pairs: int = 5) -> IntArray:
    """Input pairs of one owner out of transactions that are no CoinJoins, (k, 2) address ids.

    At most `payments` transactions with such a pair are drawn, at most `pairs` of each. A clustering that keeps the
    inputs of CoinJoins apart is only right if it does not do the same to these.
    """
    if txs.truth is None or txs.truth.coinjoin is None:
        return np.empty((0, 2), dtype=np.int64)
    owner = txs.truth.owner
    start, address = txs.input_offsets(), txs.inputs["address"].to_numpy(dtype=np.int64)
    several = np.flatnonzero((np.asarray(txs.truth.coinjoin, dtype=str) == "") & (np.diff(start) > 1))
    found: list[IntArray] = []
    for tx in rng.permutation(several):
        mine = np.unique(address[start[tx] : start[tx + 1]])
        mine = rng.permutation(mine[mine >= 0])
        i, j = np.triu_indices(len(mine), 1)
        one = (owner[mine[i]] == owner[mine[j]]) & (owner[mine[i]] >= 0)
        if one.any():
            found.append(np.stack([mine[i[one]], mine[j[one]]], axis=1)[:pairs])
        if len(found) == payments:
            break
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


class Transfers(NamedTuple):
    """Transfers from an input address to another output address, counted once in each transaction."""

    all: int
    within: int  # both addresses bear one label

    @property
    def homophily(self) -> float:
        """The share that stays within; NaN without any transfer."""
        return self.within / self.all if self.all else float("nan")


def transfers(txs: Transactions, labels: IntArray, chosen: BoolArray) -> Transfers:
    """Count the transfers of the chosen transactions (T,) by one label per address (A,); negative labels are unknown,
    and transfers from or to them are not counted. Change that comes back to its own address is no edge, so no transfer.
    """
    label = gates.array("labels", labels, 1, "iu")
    if len(label) != txs.num_addresses or len(chosen) != len(txs):
        problem = f"{len(label)} labels and {len(chosen)} marks for {txs.num_addresses} addresses, {len(txs)} rows"
        raise DataError("labels", "length", problem, "give one label per address, one mark per transaction")
    sides = [_distinct(table, label, chosen) for table in (txs.inputs, txs.outputs)]
    both = sides[0].merge(sides[1], on=["tx", "address"])  # an address on both sides
    senders, receivers = (side.groupby("tx").size().reindex(range(len(txs)), fill_value=0) for side in sides)
    pairs = int((senders * receivers).sum()) - len(both)
    by_label = [side.groupby(["tx", "label"]).size().rename(name) for side, name in zip(sides, "ab", strict=True)]
    joined = pd.concat(by_label, axis=1, join="inner")
    return Transfers(pairs, int((joined["a"] * joined["b"]).sum()) - len(both))


def _distinct(table: pd.DataFrame, label: IntArray, chosen: BoolArray) -> pd.DataFrame:
    """Distinct (tx, address) of chosen transactions with known labels, and the label."""
    tx, address = (table[name].to_numpy(dtype=np.int64) for name in ("tx", "address"))
    keep = (address >= 0) & np.asarray(chosen, dtype=bool)[tx]
    keep[keep] = label[address[keep]] >= 0
    found = pd.DataFrame({"tx": tx[keep], "address": address[keep]}).drop_duplicates()
    return found.assign(label=label[found["address"].to_numpy()])


@dataclass(frozen=True)
class Usual:
    """Features as an encoder saw them in training: their mean, and how they vary together."""

    mean: FloatArray  # (F,)
    inverse: FloatArray  # (F, F)

    @classmethod
    def of(cls, features: Sequence[npt.NDArray[np.floating]]) -> Usual:
        """features: one (N, F) array a graph; graphs weigh by their nodes."""
        rows = np.concatenate([np.asarray(each, dtype=np.float64) for each in gates.items("features", features)])
        spread = np.atleast_2d(np.cov(rows, rowvar=False))
        ridge = 1e-3 * max(float(np.trace(spread)) / len(spread), 1e-9)  # constant columns
        inverse = np.asarray(np.linalg.inv(spread + ridge * np.eye(len(spread))), dtype=np.float64)
        return cls(rows.mean(axis=0), inverse)

    def distance(self, features: npt.NDArray[np.floating]) -> FloatArray:
        """Mahalanobis distance of each row (n, F) from the mean, (n,): one unit is one standard deviation."""
        gap = np.asarray(features, dtype=np.float64) - self.mean
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", gap, self.inverse, gap)), dtype=np.float64)


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """A distribution in a few numbers: `p0`, `p10`, …, `p100`, and `median`; None where there are no values."""
    given = np.asarray(values, dtype=np.float64)
    found = np.percentile(given, LEVELS) if len(given) else [None] * len(LEVELS)
    kept = {f"p{level}": None if value is None else float(value) for level, value in zip(LEVELS, found, strict=True)}
    return kept | {"median": kept["p50"]}


def position(middle: float | None, low: float | None, high: float | None) -> float | None:
    """Where `middle` lies on the way from `low` (0) to `high` (1); None where one is missing or both ends coincide."""
    if middle is None or low is None or high is None or low == high:
        return None
    return (middle - low) / (high - low)


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's; None for fewer than three values, or where one side is constant."""
    if len(x) < FEWEST_RANKED or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(spearmanr(x, y).statistic)


def ordinary_pairs(labels: IntArray, number: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Random pairs of one cluster and of two, (k, 2) each, k at most `number`.

    Of one: an address drawn uniformly among those with company, and one of its company. Of two: two addresses drawn
    uniformly; those that happen to share a cluster are left out.
    """
    found = np.unique(gates.array("labels", labels, 1, "iu"), return_inverse=True)[1]
    number = gates.whole("number", number, "[1, inf)")
    size = np.bincount(found)
    order, start = np.argsort(found, kind="stable"), np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found)) - start[found[order]]  # position inside the own cluster
    company = np.flatnonzero(size[found] > 1)
    a = rng.choice(company, number) if len(company) else np.empty(0, dtype=np.int64)
    step = rng.integers(1, size[found[a]]) if len(a) else a
    b = order[start[found[a]] + (place[a] + step) % size[found[a]]]
    two = rng.integers(len(found), size=(number, 2))
    return np.stack([a, b], axis=1), two[found[two[:, 0]] != found[two[:, 1]]]
