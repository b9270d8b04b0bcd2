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

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from btcnb import gates, sizes
from btcnb.data import Source, Transactions, heuristic_clusters
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.data.sampling import Surroundings
from btcnb.data.simulator.config import CoinJoinRates
from btcnb.data.transactions import Piece
from btcnb.errors import DataError
from btcnb.experiments.local import GNN, HEURISTICS, HYBRID, PAPER_LINKAGES, Clusters, Local, LocalGraphs
from btcnb.experiments.pairs import Numbers, cosine, separation
from btcnb.learn import Encoder, PreparedGraph

IntArray = npt.NDArray[np.int64]

PROTOCOLS = ("joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool")
"""The five of the paper; the transactions that prepare a Whirlpool mix have one owner and are none."""
PER_PROTOCOL, SETS = 100, 5
PAPER_WIDTH = 100
"""Transactions that a step of the search for surroundings follows, at most (Appendix A.1.2)."""
MIXING, PRIVACY, WASABI2 = 20.0, 0.5, 0.02
"""An economy full of CoinJoins: 20 times the rates, half of the users with a CoinJoin wallet, more Wasabi 2 rounds. At
size quick it has at least 145 of each protocol."""


class Drawn(NamedTuple):
    """CoinJoins that were drawn: ids (m,), protocols (m,), and in which sets each one is, bool (sets, m)."""

    transactions: IntArray
    protocol: npt.NDArray[np.str_]
    member: npt.NDArray[np.bool_]
    short: dict[str, int]  # protocols with fewer CoinJoins than were asked for, and how many they have
    unpaired: int  # CoinJoins of these protocols with fewer than two distinct inputs, which have no pair


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
    gates.choice("size", size, sizes.names())
    rates = CoinJoinRates(wasabi2=WASABI2)
    fields = {**sizes.size(size).simulation, "mixing": MIXING, "privacy_share": PRIVACY, "coinjoins": rates}
    return Source(size=size, seed=world, simulation=tuple(sorted(fields.items())), disorder=disorder)


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
    gates.instance("txs", txs, Transactions)
    number, times = gates.whole("per_protocol", per_protocol, "[1, inf)"), gates.whole("sets", sets, "[1, 1000]")
    wanted = [gates.choice("a protocol", name, PROTOCOLS) for name in gates.items("protocols", protocols)]
    known = None if txs.truth is None else txs.truth.coinjoin
    if known is None:
        raise DataError(txs.source, "truth.coinjoin", "is missing", "simulate, or detect CoinJoins first")
    several = _distinct_inputs(txs) >= 2
    chosen: list[tuple[str, IntArray, npt.NDArray[np.bool_]]] = []
    short = {}
    unpaired = int((np.isin(np.asarray(known), wanted) & ~several).sum())
    for name in wanted:
        found = np.flatnonzero((np.asarray(known) == name) & several)
        if len(found) < number:
            short[name] = len(found)
        stream = PROTOCOLS.index(name)  # what is drawn of a protocol does not depend on the others
        rng = np.random.default_rng([gates.whole("seed", seed, "[0, 2147483647]"), 23, stream])
        member = np.zeros((times, len(found)), dtype=bool)
        for row in member:
            row[rng.choice(len(found), min(number, len(found)), replace=False)] = True
        used = member.any(axis=0)
        chosen.append((name, found[used], member[:, used]))
    ids = np.concatenate([each for _, each, _ in chosen]).astype(np.int64)
    if not len(ids):
        problem = f"no transaction is a CoinJoin of {', '.join(wanted)} with two inputs"
        raise DataError(txs.source, "truth.coinjoin", problem, "simulate more blocks, or with more mixing")
    order = np.argsort(ids, kind="stable")
    protocol = np.concatenate([np.full(len(each), name) for name, each, _ in chosen])
    member = np.concatenate([each for *_, each in chosen], axis=1)[:, order]
    return Drawn(ids[order], protocol[order], member, short, unpaired)


def surroundings(
    txs: Transactions, transactions: Iterable[int], seed: int = 0, *, width: int = PAPER_WIDTH
) -> Iterator[Mix]:
    """The local chain of every named transaction (undirected, depth 3, `width` transactions a step), in that order."""
    around = Surroundings.of(txs, max_expanded=width, seed=seed)
    for transaction in transactions:
        piece = around.piece(int(transaction))
        here = int(np.searchsorted(piece.transactions, transaction))
        start = piece.txs.input_offsets()
        address = piece.txs.inputs["address"].to_numpy(dtype=np.int64)[start[here] : start[here + 1]]
        yield Mix(int(transaction), piece, np.unique(address[address >= 0]))


def apart(mix: Mix, labels: npt.NDArray[np.integer]) -> Apart:
    """Count the pairs of inputs of a CoinJoin under one label per local address."""
    found = np.asarray(labels)
    if len(found) != len(mix.piece.addresses):
        problem = f"has {len(found)} entries for {len(mix.piece.addresses)} addresses"
        raise DataError("labels", "length", problem, "give one label per address of the piece")
    mine = found[mix.inputs]
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


def true_negatives(counts: Sequence[Apart], member: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The true-negative rate of each evaluation set, (sets,): the mean over its CoinJoins of the share of pairs apart.

    A CoinJoin of two hundred inputs has four thousand times the pairs of one with three; each counts as one here.
    """
    share = np.array([each.apart / each.pairs for each in counts])
    if member.ndim != 2 or member.shape[1] != len(share):
        raise DataError("member", "shape", f"is {member.shape} for {len(share)} CoinJoins", "give (sets, CoinJoins)")
    number = member.sum(axis=1)
    return np.where(number > 0, (member * share).sum(axis=1) / np.maximum(number, 1), np.nan)


def _pairs(number: int) -> int:
    return number * (number - 1) // 2


def _pairs_in(*labels: npt.NDArray[np.integer]) -> int:
    """Pairs that agree in all the given labels."""
    if not len(labels[0]):
        return 0
    counts = np.unique(np.stack(labels), axis=1, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _distinct_inputs(txs: Transactions) -> IntArray:
    """Distinct known input addresses of every transaction, (T,)."""
    tx, address = (txs.inputs[name].to_numpy(dtype=np.int64) for name in ("tx", "address"))
    known = address >= 0
    pairs = np.unique(np.stack([tx[known], address[known]]), axis=1)
    return np.bincount(pairs[0], minlength=len(txs)).astype(np.int64)


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


SAFEGUARDED = "safeguarded"
CUT = "silhouette"
PAIRS_OF_A_MIX = 32
"""Most pairs of one CoinJoin whose distance is kept, the paper's N_p: else the largest rounds would be all."""
MOST_ADDRESSES = 9_000
"""Local graphs above it are left out, and counted: two distance matrices of theirs would take more than 1.3 GB."""
JUDGED_BY = f"{GNN}.average"
"""The clustering whose true negatives are correlated with how unusual inputs are."""


@dataclass(frozen=True)
class Counted:
    """What one clustering does to one CoinJoin."""

    pairs: Apart
    random: float  # share of pairs apart, on average, where its clusters are dealt out
    parted: float  # share of input pairs of ordinary payments that are apart; NaN where there are none
    clusters: int


@dataclass
class MixingTrial:
    """One encoder on one chain. Lists are aligned with the CoinJoins that were judged."""

    drawn: Drawn
    counts: dict[str, list[Counted]] = field(default_factory=dict)
    distances: list[FloatArray] = field(default_factory=list)  # of some input pairs of each CoinJoin
    own: list[npt.NDArray[np.bool_]] = field(default_factory=list)  # of the same pairs: whether they have one owner
    shift: list[tuple[float, float]] = field(default_factory=list)  # of inputs, of the other nodes
    told: dict[str, int] = field(default_factory=dict)

    def rates(self, name: str) -> FloatArray:
        """True-negative rate of each evaluation set, (sets,), in %."""
        return 100 * true_negatives([each.pairs for each in self.counts[name]], self.drawn.member)

    def numbers(self) -> Numbers:
        """Everything as flat numbers; see the head of this file."""
        numbers: Numbers = {}
        for name in self.counts:
            numbers |= self._of_clustering(name)
        numbers |= self._of_distances() | self._of_shift()
        short = {f"short.{name}": found for name, found in self.drawn.short.items()}
        return numbers | short | self.told

    def _of_clustering(self, name: str) -> Numbers:
        counts, member, protocol = self.counts[name], self.drawn.member, self.drawn.protocol
        pairs = [each.pairs for each in counts]
        random = np.array([100 * each.random for each in counts])
        share = np.array([100 * p.apart / p.pairs for p in pairs])
        parted = np.array([100 * each.parted for each in counts])
        rates = self.rates(name)
        rates = rates[np.isfinite(rates)]  # of a set all of whose local graphs are too large there is no rate
        paid = np.isfinite(parted)
        numbers: Numbers = {
            f"{name}.TN": float(rates.mean()),
            f"{name}.TN_sd": float(rates.std(ddof=1)) if len(rates) > 1 else None,
            f"{name}.pooled": 100 * sum(p.apart for p in pairs) / sum(p.pairs for p in pairs),
            f"{name}.random": _by_set(random, member),
            f"{name}.parted": _by_set(parted[paid], member[:, paid]),
            f"{name}.TN_paid": _by_set(share[paid], member[:, paid]),
            f"{name}.strangers": _share([p.strangers_apart for p in pairs], [p.strangers for p in pairs]),
            f"{name}.own": _share([p.own_together for p in pairs], [p.own for p in pairs]),
            f"{name}.clusters": float(np.mean([each.clusters for each in counts])),
        }
        for each in PROTOCOLS:
            of = protocol == each
            if of.any():
                numbers |= {f"{name}.TN.{each}": _by_set(share[of], member[:, of])}
                numbers |= {f"{name}.random.{each}": _by_set(random[of], member[:, of])}
        return numbers

    def _of_distances(self) -> Numbers:
        far = np.concatenate([*self.distances, np.empty(0)])
        own = np.concatenate([*self.own, np.empty(0, dtype=bool)])
        kinds = {"coinjoin": far, "own": far[own]}
        numbers: Numbers = {"auc.owners": separation(far, own)}
        for kind, values in kinds.items():
            numbers |= {f"distance.{kind}.{name}": value for name, value in percentiles(values.tolist()).items()}
        return numbers

    def _of_shift(self) -> Numbers:
        if not self.shift:
            return {}
        inputs, others = np.array(self.shift).T
        excess = [each.pairs.apart / each.pairs.pairs - each.random for each in self.counts[JUDGED_BY]]
        return {
            "shift.inputs": float(inputs.mean()),
            "shift.others": _mean(others.tolist()),
            "shift.correlation": rank_correlation(inputs.tolist(), excess),
        }


def mixing_trial(
    model: Encoder,
    txs: Transactions,
    per_protocol: int = PER_PROTOCOL,
    seed: int = 0,
    *,
    sets: int = SETS,
    width: int = PAPER_WIDTH,
    only: Sequence[str] = PROTOCOLS,
    usual: Usual | None = None,
) -> MixingTrial:
    """Cluster the surroundings of CoinJoins every way, and count the pairs of their inputs.

    txs: a chain whose truth names its CoinJoins; per_protocol, sets, seed: as in `draw_mixes`
    width: transactions that a step of the search for surroundings follows, as in `surroundings`
    only: protocols that are judged; which of their CoinJoins are drawn does not depend on it
    usual: the features that the encoder saw in training; with it, `shift.…` is measured as well
    """
    gates.instance("model", model, Encoder)
    drawn = _of(draw_mixes(txs, per_protocol, sets, seed), only)
    trial = MixingTrial(drawn)
    waiting: list[Mix] = []
    kept: list[bool] = []
    zero_rows = paid_near = 0

    def pieces() -> Iterator[Transactions]:
        for mix in surroundings(txs, drawn.transactions, seed, width=width):
            kept.append(fits(mix))
            if kept[-1]:
                waiting.append(mix)
                yield mix.piece.txs

    watched = Watched.of(engine(model, txs))
    for local in watched.run(pieces()):
        mix, x = waiting.pop(0), watched.features.popleft()
        zero_rows += local.zero_rows
        rng = np.random.default_rng([seed, mix.transaction, 16])
        paid = payment_pairs(local.txs, rng)
        paid_near += len(paid) > 0
        for name, labels in local.labels.items():
            trial.counts.setdefault(short_name(name), []).append(_counted(mix, labels, _within(name, local), paid))
        far, own = _near(mix, local, rng)
        trial.distances.append(far)
        trial.own.append(own)
        if usual is not None:
            trial.shift.append(_shift(mix, usual, x))
    stays = np.array(kept, dtype=bool)
    trial.drawn = _masked(drawn, stays)
    trial.told = _left_out(drawn, stays) | {
        "coinjoins": int(stays.sum()),
        "coinjoins.set": int(trial.drawn.member.sum(axis=1).max(initial=0)),
        "paid": paid_near,
        "zero_rows": zero_rows,
    }
    return trial


def _left_out(drawn: Drawn, stays: npt.NDArray[np.bool_]) -> dict[str, int]:
    """CoinJoins that are not judged, by reason: all, and by protocol where there are any."""
    large = {f"too_large.{name}": int((drawn.protocol[~stays] == name).sum()) for name in PROTOCOLS}
    told = {"too_large": int((~stays).sum()), "unpaired": drawn.unpaired}
    return told | {name: number for name, number in large.items() if number}


def _of(drawn: Drawn, only: Sequence[str]) -> Drawn:
    """The CoinJoins of some protocols."""
    names = [gates.choice("a protocol", name, PROTOCOLS) for name in gates.items("only", only)]
    found = _masked(drawn, np.isin(drawn.protocol, names))
    return found._replace(short={name: number for name, number in drawn.short.items() if name in names})


def _masked(drawn: Drawn, mask: npt.NDArray[np.bool_]) -> Drawn:
    return drawn._replace(
        transactions=drawn.transactions[mask], protocol=drawn.protocol[mask], member=drawn.member[:, mask]
    )


def engine(model: Encoder, txs: Transactions) -> LocalGraphs:
    """The clusterings of a local chain: heuristics with and without safeguards, GNN-HAC and hybrid, silhouette cut."""
    safe = interval_config(txs)
    blind = replace(safe, exclude_coinjoins=False)

    def clusters(config: object) -> Clusters:
        return lambda local: heuristic_clusters(local, config=config)  # type: ignore[arg-type]

    return LocalGraphs(
        model,
        clusters(blind),
        price_usd=safe.price_usd,
        linkages=PAPER_LINKAGES,
        cuts=(CUT,),
        further={SAFEGUARDED: clusters(safe)},
        refined_by=("average", CUT),
    )


@dataclass(frozen=True)
class Watched(LocalGraphs):
    """The same clusterings; the features (A, F) of pieces that were not yet taken away wait in `features`, in order."""

    features: deque[npt.NDArray[np.float32]] = field(default_factory=deque)

    @classmethod
    def of(cls, plain: LocalGraphs) -> Watched:
        return cls(**{each.name: getattr(plain, each.name) for each in fields(plain)})

    def _graph(self, txs: Transactions, labels: IntArray) -> PreparedGraph:
        graph = super()._graph(txs, labels)
        self.features.append(graph.x.numpy())
        return graph


def fits(mix: Mix) -> bool:
    """Whether the surroundings of a CoinJoin are small enough for a distance matrix."""
    return len(mix.piece.addresses) <= MOST_ADDRESSES


def short_name(name: str) -> str:
    """`gnn.average.silhouette` is `gnn.average` here: there is one cut."""
    return name.removesuffix(f".{CUT}")


def _within(name: str, local: Local) -> IntArray | None:
    """The clusters that a hybrid splits; None for what is free to join anything."""
    if name.startswith("hybrid_on_"):
        return local.labels[name.removeprefix("hybrid_on_")]
    return local.labels[HEURISTICS] if name.startswith(f"{HYBRID}.") else None


def _counted(mix: Mix, labels: IntArray, within: IntArray | None, paid: IntArray) -> Counted:
    parted = float((labels[paid[:, 0]] != labels[paid[:, 1]]).mean()) if len(paid) else float("nan")
    return Counted(apart(mix, labels), dealt(labels, mix.inputs, within), parted, len(np.unique(labels)))


def _near(mix: Mix, local: Local, rng: np.random.Generator) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Cosine distances of some pairs of inputs, and whether they have one owner."""
    i, j = np.triu_indices(len(mix.inputs), 1)
    if len(i) > PAIRS_OF_A_MIX:
        chosen = rng.choice(len(i), PAIRS_OF_A_MIX, replace=False)
        i, j = i[chosen], j[chosen]
    pairs = np.stack([mix.inputs[i], mix.inputs[j]], axis=1)
    truth = mix.piece.txs.truth
    owner = np.full(len(mix.piece.addresses), -1) if truth is None else truth.owner
    return cosine(local.rows, pairs), (owner[pairs[:, 0]] == owner[pairs[:, 1]]) & (owner[pairs[:, 0]] >= 0)


def _shift(mix: Mix, usual: Usual, x: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Median distance from training's features: of the inputs, of all other nodes (a few hubs are very far)."""
    far = usual.distance(x)
    rest = np.ones(len(far), dtype=bool)
    rest[mix.inputs] = False
    return float(np.median(far[mix.inputs])), float(np.median(far[rest])) if rest.any() else float("nan")


def _by_set(values: FloatArray, member: npt.NDArray[np.bool_]) -> float | None:
    """Mean over the sets of the mean over a set's CoinJoins; sets without any are left out, None where all are."""
    number = member.sum(axis=1)
    return _mean(((member * values).sum(axis=1)[number > 0] / number[number > 0]).tolist())


def _share(part: list[int], whole: list[int]) -> float | None:
    """Mean share over the CoinJoins that have such pairs, in %; None where none has."""
    return _mean([100 * p / w for p, w in zip(part, whole, strict=True) if w])


def _mean(values: list[float]) -> float | None:
    """The mean of those that are numbers; None where none is."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else None
