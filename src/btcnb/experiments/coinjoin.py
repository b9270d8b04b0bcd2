"""CoinJoins with their surroundings: whose inputs a clustering should keep apart, and whether it does.

    chain = load_transactions(mixing_source(world=3), "test", sampled=False)
    drawn = draw_mixes(chain, per_protocol=100, sets=5)          # which CoinJoins, in which evaluation set
    for mix in surroundings(chain, drawn.transactions): ...      # each with its local chain
    apart(mix, labels)                                           # pairs of inputs kept apart, and by truth

Section "CoinJoin Transaction Labels": the inputs of a CoinJoin "are expected to belong to distinct entities", so all
pairs are negative and a clustering is right where it parts them. Simulated owners tell that this is not quite so: a
wallet may bring several coins. Pairs of one wallet are therefore counted as well, apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb import sizes
from btcnb.data import Source, Transactions
from btcnb.data.sampling import Surroundings
from btcnb.data.simulator.config import CoinJoinRates
from btcnb.data.transactions import Piece
from btcnb.errors import DataError
from btcnb.experiments.pairs import Numbers

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

PROTOCOLS = ("joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool")
"""The five of the paper; the transactions that prepare a Whirlpool mix have one owner and are none."""
PER_PROTOCOL, SETS = 100, 5
PAPER_WIDTH = 100
"""Transactions that a step of the search for surroundings follows, at most (Appendix A.1.2)."""
MIXING, PRIVACY, WASABI2 = 20.0, 0.5, 0.02
"""An economy full of CoinJoins: 20 times the rates, half of the users with a CoinJoin wallet, more Wasabi 2 rounds. At
size quick it has at least 145 of each protocol."""
LEVELS = tuple(range(0, 101, 10))
"""Percentiles by which a record keeps a distribution of distances."""


class Drawn(NamedTuple):
    """CoinJoins that were drawn: ids (m,), protocols (m,), and in which sets each one is, bool (sets, m)."""

    transactions: IntArray
    protocol: npt.NDArray[np.str_]
    member: BoolArray
    short: dict[str, int]  # protocols with fewer CoinJoins than were asked for, and how many they have
    unpaired: int  # CoinJoins of these protocols with fewer than two distinct inputs, which have no pair

    def of(self, mask: BoolArray) -> Drawn:
        """Those of a mask (m,)."""
        masked = (self.transactions[mask], self.protocol[mask], self.member[:, mask])
        return Drawn(*masked, self.short, self.unpaired)


class Mix(NamedTuple):
    """A CoinJoin with its surroundings; `inputs` are the distinct addresses that it spends from, local ids (k,)."""

    transaction: int  # id in the whole chain
    piece: Piece
    inputs: IntArray


class Apart(NamedTuple):
    """Pairs of inputs of one CoinJoin: all, and those with two owners and with one (0 where owners are unknown)."""

    pairs: int
    apart: int
    strangers: int  # pairs of two owners
    strangers_apart: int
    own: int  # pairs of one owner
    own_together: int


def mixing_source(world: int, size: str = "quick", disorder: float = 1.0) -> Source:
    """Economies full of CoinJoins, one for each role: none shares a user with another, or with the book's others."""
    rates = CoinJoinRates(wasabi2=WASABI2)
    fields = {**sizes.size(size).simulation, "mixing": MIXING, "privacy_share": PRIVACY, "coinjoins": rates}
    return Source(size=size, seed=world, simulation=tuple(sorted(fields.items())), disorder=disorder)


def known_mixes(txs: Transactions) -> npt.NDArray[np.str_]:
    """Which CoinJoin each transaction is, by truth; "" for none."""
    if txs.truth is None or txs.truth.coinjoin is None:
        raise DataError(txs.source, "truth.coinjoin", "is missing", "simulate, or tell which transactions are mixes")
    return np.asarray(txs.truth.coinjoin, dtype=str)


def owners(txs: Transactions) -> IntArray:
    """The owner of each address, by truth."""
    if txs.truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    return txs.truth.owner


def inputs_of(txs: Transactions, transactions: IntArray) -> list[IntArray]:
    """Distinct known input addresses of each transaction."""
    start, address = txs.input_offsets(), txs.inputs["address"].to_numpy(dtype=np.int64)
    spent = [np.unique(address[start[tx] : start[tx + 1]]) for tx in transactions.tolist()]
    return [each[each >= 0] for each in spent]


def draw_mixes(
    txs: Transactions,
    per_protocol: int = PER_PROTOCOL,
    sets: int = SETS,
    seed: int = 0,
    protocols: Sequence[str] = PROTOCOLS,
) -> Drawn:
    """Draw evaluation sets: `per_protocol` CoinJoins of each protocol, without repetition inside a set.

    Sets may share CoinJoins, as the paper's five draws may. A protocol with fewer gives all it has, in every set, and
    is named in `short`. CoinJoins with fewer than two distinct input addresses have no pair: they are never drawn, and
    counted in `unpaired`.
    """
    known = known_mixes(txs)
    mixes = np.flatnonzero(np.isin(known, protocols))
    several = mixes[np.array([len(each) >= 2 for each in inputs_of(txs, mixes)], dtype=bool)]
    chosen: list[IntArray] = []
    members: list[BoolArray] = []
    short = {}
    for name in protocols:
        found = several[known[several] == name]
        if len(found) < per_protocol:
            short[name] = len(found)
        stream = PROTOCOLS.index(name)  # what is drawn of a protocol does not depend on the others
        rng = np.random.default_rng([seed, 23, stream])
        member = np.zeros((sets, len(found)), dtype=bool)
        for row in member:
            row[rng.choice(len(found), min(per_protocol, len(found)), replace=False)] = True
        used = member.any(axis=0)
        chosen.append(found[used])
        members.append(member[:, used])
    ids = np.concatenate(chosen).astype(np.int64)
    if not len(ids):
        problem = f"no transaction is a CoinJoin of {', '.join(protocols)} with two inputs"
        raise DataError(txs.source, "truth.coinjoin", problem, "simulate more blocks, or with more mixing")
    order = np.argsort(ids, kind="stable")
    member = np.concatenate(members, axis=1)[:, order]
    return Drawn(ids[order], known[ids[order]], member, short, len(mixes) - len(several))


def surroundings(
    txs: Transactions, transactions: Iterable[int], seed: int = 0, *, width: int = PAPER_WIDTH
) -> Iterator[Mix]:
    """The local chain of every named transaction (undirected, depth 3, `width` transactions a step), in that order."""
    around = Surroundings.of(txs, max_expanded=width, seed=seed)
    for transaction in transactions:
        piece = around.piece(int(transaction))
        here = np.searchsorted(piece.transactions, [transaction])
        yield Mix(int(transaction), piece, inputs_of(piece.txs, here)[0])


def apart(mix: Mix, labels: npt.NDArray[np.integer]) -> Apart:
    """Count the pairs of inputs of a CoinJoin under one label per local address."""
    mine = np.asarray(labels)[mix.inputs]
    together, pairs = _pairs_in(mine), _pairs(len(mine))
    truth = mix.piece.txs.truth
    if truth is None:
        return Apart(pairs, pairs - together, 0, 0, 0, 0)
    owner = truth.owner[mix.inputs]
    known = owner >= 0
    own, both = _pairs_in(owner[known]), _pairs_in(owner[known], mine[known])
    strangers = _pairs(int(known.sum())) - own
    strangers_together = _pairs_in(mine[known]) - both
    return Apart(pairs, pairs - together, strangers, strangers - strangers_together, own, both)


def _pairs(number: int) -> int:
    return number * (number - 1) // 2


def _pairs_in(*labels: npt.NDArray[np.integer]) -> int:
    """Pairs that agree in all the given labels."""
    counts = np.unique(np.stack(labels), axis=1, return_counts=True)[1] if len(labels[0]) else np.zeros(0, int)
    return int((counts * (counts - 1) // 2).sum())


def dealt(labels: IntArray, inputs: IntArray, within: IntArray | None = None) -> float:
    """The share of pairs of `inputs` that are apart, on average, where `labels` are dealt out at random.

    labels (A,): clusters; inputs (k,): at least two addresses; within (A,): groups that labels do not leave, such as
    the heuristic clusters that a hybrid splits (none: one group).
    Dealing keeps the number of clusters and their sizes and forgets who is in which, so the mean is known exactly: two
    members of a group of n fall into one cluster with probability Σ m (m − 1) / n (n − 1) over its clusters of m.
    """
    group = np.zeros(len(labels), dtype=np.int64) if within is None else np.unique(within, return_inverse=True)[1]
    label = np.unique(labels, return_inverse=True)[1]
    cell, members = np.unique(group * (label.max(initial=0) + 1) + label, return_counts=True)  # a label inside a group
    together = np.bincount(cell // (label.max(initial=0) + 1), weights=members * (members - 1.0))
    size = np.bincount(group).astype(np.float64)
    chance = np.divide(together, size * (size - 1), out=np.zeros_like(together), where=size > 1)
    mine = np.bincount(group[inputs], minlength=len(size)).astype(np.float64)
    return float(1.0 - (mine * (mine - 1) / 2 * chance).sum() / _pairs(len(inputs)))


def payment_pairs(txs: Transactions, rng: np.random.Generator, payments: int = 10, pairs: int = 5) -> IntArray:
    """Input pairs of one owner out of transactions that are no CoinJoins, (k, 2) address ids.

    At most `payments` transactions with such a pair are drawn, at most `pairs` of each. A clustering that keeps the
    inputs of CoinJoins apart is only right if it does not do the same to these.
    """
    found = [np.empty((0, 2), dtype=np.int64)]
    if txs.truth is None or txs.truth.coinjoin is None:
        return found[0]
    owner = txs.truth.owner
    start, address = txs.input_offsets(), txs.inputs["address"].to_numpy(dtype=np.int64)
    several = np.flatnonzero((np.asarray(txs.truth.coinjoin, dtype=str) == "") & (np.diff(start) > 1))
    for tx in rng.permutation(several):
        mine = np.unique(address[start[tx] : start[tx + 1]])
        mine = rng.permutation(mine[mine >= 0])
        i, j = np.triu_indices(len(mine), 1)
        one = (owner[mine[i]] == owner[mine[j]]) & (owner[mine[i]] >= 0)
        if one.any():
            found.append(np.stack([mine[i[one]], mine[j[one]]], axis=1)[:pairs])
        if len(found) > payments:
            break
    return np.concatenate(found)


@dataclass(frozen=True)
class FeatureSpread:
    """Features as an encoder saw them in training: their mean, and how they vary together."""

    mean: FloatArray  # (F,)
    inverse: FloatArray  # (F, F), of the covariance

    @classmethod
    def of(cls, features: Sequence[npt.NDArray[np.floating]]) -> FeatureSpread:
        """features: one (N, F) array per graph; graphs weigh by their nodes."""
        rows = np.concatenate([np.asarray(each, dtype=np.float64) for each in features])
        spread = np.atleast_2d(np.cov(rows, rowvar=False))
        ridge = 1e-3 * max(float(np.trace(spread)) / len(spread), 1e-9)  # constant columns
        inverse = np.asarray(np.linalg.inv(spread + ridge * np.eye(len(spread))), dtype=np.float64)
        return cls(rows.mean(axis=0), inverse)

    def distance(self, features: npt.NDArray[np.floating]) -> FloatArray:
        """Mahalanobis distance of each row (n, F) from the mean, (n,): along one axis it counts standard deviations."""
        gap = np.asarray(features, dtype=np.float64) - self.mean
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", gap, self.inverse, gap)), dtype=np.float64)


def percentiles(name: str, values: Sequence[float] | FloatArray) -> Numbers:
    """A distribution in a few numbers: `NAME.p0`, `NAME.p10`, …, and `NAME.median`; None where there are no values."""
    found = np.percentile(values, LEVELS).tolist() if len(values) else [None] * len(LEVELS)
    kept: Numbers = {f"{name}.p{level}": value for level, value in zip(LEVELS, found, strict=True)}
    return kept | {f"{name}.median": kept[f"{name}.p50"]}


def ordinary_pairs(labels: IntArray, number: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Random pairs of one cluster and of two, (k, 2) each, k at most `number`.

    Of one: an address drawn uniformly among those with company, and one of its company. Of two: two addresses drawn
    uniformly; those that happen to share a cluster are left out.
    """
    found = np.unique(labels, return_inverse=True)[1]
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
