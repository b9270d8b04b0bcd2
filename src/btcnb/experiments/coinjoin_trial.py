"""One encoder on the CoinJoins of one chain: every clustering of their surroundings, and whose inputs it keeps apart.

    trial = mixing_trial(model, txs, per_protocol=100)
    trial.numbers()["hybrid.average.TN"]

What the numbers of a trial are called, NAME being `heuristics` (without safeguards), `safeguarded` (CoinJoins that the
published rules detect are left out), `gnn.LINKAGE`, `hybrid.LINKAGE`, `hybrid_on_safeguarded` (average linkage):

    NAME.TN, NAME.TN_sd        % of the input pairs of a CoinJoin that are apart: mean over CoinJoins, over sets; its sd
                               over sets (Table 3)
    NAME.TN.PROTOCOL           the same for one protocol
    NAME.pooled                % of all pairs of all CoinJoins
    NAME.random[.PROTOCOL]     % of pairs apart if the same clusters were dealt out at random
    NAME.parted                % of input pairs of *ordinary payments* of one owner, in the same local graphs, that are
                               apart: what a true negative costs. Local graphs without such a payment are left out
    NAME.TN_paid               TN over just those local graphs, so that the two can be compared: TN_paid minus parted is
                               0, on average, for clusters dealt out to a whole local graph. A hybrid cuts large
                               clusters into more parts whatever it knows: there an untrained encoder is the zero
    NAME.strangers, NAME.own   % of pairs of two owners that are apart, of one owner that are together
    NAME.clusters              clusters in a local graph, mean
    distance.coinjoin.pN, …    percentiles of cosine distances of input pairs; `own`: those of one owner
    auc.owners                 cosine distance as a sign of two owners, among input pairs; 0.5 is chance
    shift.inputs, shift.others how unlike training's the features of inputs and of other nodes are (`FeatureSpread`):
                               mean over CoinJoins of the median of the local graph
    shift.correlation          rank correlation, over CoinJoins, of shift.inputs with TN above random (GNN-HAC, average)
    coinjoins, coinjoins.set   CoinJoins judged: all, and in the largest set; `paid`: those with a payment near them
    short.PROTOCOL             CoinJoins that a protocol has, where they are fewer than was asked for
    unpaired                   CoinJoins of the chain with fewer than two distinct inputs: they have no pair
    too_large[.PROTOCOL]       CoinJoins that were drawn, but whose local graphs are too large (`MOST_ADDRESSES`)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from btcnb.data import Transactions, heuristic_clusters
from btcnb.data.heuristics import HeuristicConfig
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.experiments.coinjoin import (
    PAPER_WIDTH,
    PER_PROTOCOL,
    PROTOCOLS,
    SETS,
    Apart,
    Drawn,
    FeatureSpread,
    Mix,
    apart,
    dealt,
    draw_mixes,
    payment_pairs,
    percentiles,
    surroundings,
    true_negatives,
)
from btcnb.experiments.local import GNN, HEURISTICS, HYBRID, PAPER_LINKAGES, Clusters, Local, LocalGraphs
from btcnb.experiments.pairs import Numbers, cosine, separation
from btcnb.learn import Encoder

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SAFEGUARDED = "safeguarded"
CUT = "silhouette"
PAIRS_OF_A_MIX = 32
"""Most pairs of one CoinJoin whose distance is kept, the paper's N_p: else the largest rounds would be all."""
MOST_ADDRESSES = 9_000
"""Local graphs above it are left out, and counted: two distance matrices of theirs would take more than 1.3 GB."""
JUDGED_BY = f"{GNN}.average"
"""The clustering whose true negatives are correlated with how unusual inputs are."""


@dataclass(frozen=True)
class MixCounts:
    """What one clustering does to one CoinJoin."""

    pairs: Apart
    random: float  # share of pairs apart, on average, where its clusters are dealt out
    parted: float  # share of input pairs of ordinary payments that are apart; NaN where there are none
    clusters: int


@dataclass
class MixingTrial:
    """One encoder on one chain. Lists are aligned with the CoinJoins that were judged."""

    drawn: Drawn
    counts: dict[str, list[MixCounts]] = field(default_factory=dict)
    distances: list[FloatArray] = field(default_factory=list)  # of some input pairs of each CoinJoin
    own: list[BoolArray] = field(default_factory=list)  # of the same pairs: whether they have one owner
    shift: list[tuple[float, float]] = field(default_factory=list)  # of inputs, of the other nodes
    totals: dict[str, int] = field(default_factory=dict)

    def numbers(self) -> Numbers:
        """Everything as flat numbers; see the head of this file."""
        numbers: Numbers = {}
        for name in self.counts:
            numbers |= self._of_clustering(name)
        far, own = np.concatenate([np.empty(0), *self.distances]), np.concatenate([np.empty(0, bool), *self.own])
        numbers |= percentiles("distance.coinjoin", far) | percentiles("distance.own", far[own])
        short = {f"short.{name}": found for name, found in self.drawn.short.items()}
        return numbers | {"auc.owners": separation(far, own)} | self._of_shift() | short | self.totals

    def _of_clustering(self, name: str) -> Numbers:
        counts, member, protocol = self.counts[name], self.drawn.member, self.drawn.protocol
        pairs = [each.pairs for each in counts]
        random = np.array([100 * each.random for each in counts])
        share = np.array([100 * p.apart / p.pairs for p in pairs])
        parted = np.array([100 * each.parted for each in counts])
        rates = 100 * true_negatives(pairs, member)
        rates = rates[np.isfinite(rates)]  # of a set all of whose local graphs are too large there is no rate
        paid = np.isfinite(parted)
        numbers: Numbers = {
            f"{name}.TN": float(rates.mean()),
            f"{name}.TN_sd": float(rates.std(ddof=1)) if len(rates) > 1 else None,
            f"{name}.pooled": 100 * sum(p.apart for p in pairs) / sum(p.pairs for p in pairs),
            f"{name}.random": _by_set(random, member),
            f"{name}.parted": _by_set(parted[paid], member[:, paid]),
            f"{name}.TN_paid": _by_set(share[paid], member[:, paid]),
            f"{name}.strangers": _mean([100 * p.strangers_apart / p.strangers for p in pairs if p.strangers]),
            f"{name}.own": _mean([100 * p.own_together / p.own for p in pairs if p.own]),
            f"{name}.clusters": float(np.mean([each.clusters for each in counts])),
        }
        for each in PROTOCOLS:
            of = protocol == each
            if of.any():
                numbers |= {f"{name}.TN.{each}": _by_set(share[of], member[:, of])}
                numbers |= {f"{name}.random.{each}": _by_set(random[of], member[:, of])}
        return numbers

    def _of_shift(self) -> Numbers:
        if not self.shift:
            return {}
        inputs, others = np.array(self.shift).T
        excess = [each.pairs.apart / each.pairs.pairs - each.random for each in self.counts[JUDGED_BY]]
        ranked = len(inputs) >= 3 and np.ptp(inputs) > 0 and np.ptp(excess) > 0
        return {
            "shift.inputs": float(inputs.mean()),
            "shift.others": _mean(others.tolist()),
            "shift.correlation": float(spearmanr(inputs, excess).statistic) if ranked else None,
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
    usual: FeatureSpread | None = None,
) -> MixingTrial:
    """Cluster the surroundings of CoinJoins every way, and count the pairs of their inputs.

    txs: a chain whose truth names its CoinJoins; per_protocol, sets, seed: as in `draw_mixes`
    width: transactions that a step of the search for surroundings follows, as in `surroundings`
    only: protocols that are judged; which of their CoinJoins are drawn does not depend on it
    usual: the features that the encoder saw in training; with it, `shift.…` is measured as well
    """
    drawn = draw_mixes(txs, per_protocol, sets, seed)
    drawn = drawn.of(np.isin(drawn.protocol, only))
    drawn = drawn._replace(short={name: number for name, number in drawn.short.items() if name in only})
    trial = MixingTrial(drawn)
    waiting: deque[Mix] = deque()
    kept: list[bool] = []
    zero_rows = paid_near = 0

    def pieces() -> Iterator[Transactions]:
        for mix in surroundings(txs, drawn.transactions, seed, width=width):
            kept.append(fits(mix))
            if kept[-1]:
                waiting.append(mix)
                yield mix.piece.txs

    for local in engine(model, txs).run(pieces()):
        mix = waiting.popleft()
        zero_rows += local.zero_rows
        rng = np.random.default_rng([seed, mix.transaction, 16])
        paid = payment_pairs(local.txs, rng)
        paid_near += len(paid) > 0
        for name, labels in local.labels.items():
            parted = float((labels[paid[:, 0]] != labels[paid[:, 1]]).mean()) if len(paid) else float("nan")
            random = dealt(labels, mix.inputs, _within(name, local))
            one = MixCounts(apart(mix, labels), random, parted, len(np.unique(labels)))
            trial.counts.setdefault(short_name(name), []).append(one)
        far, own = _near(mix, local, rng)
        trial.distances.append(far)
        trial.own.append(own)
        if usual is not None:
            trial.shift.append(_shift(mix, usual.distance(local.x)))
    stays = np.array(kept, dtype=bool)
    trial.drawn = drawn.of(stays)
    large = {f"too_large.{name}": int((drawn.protocol[~stays] == name).sum()) for name in PROTOCOLS}
    trial.totals = {name: number for name, number in large.items() if number} | {
        "too_large": int((~stays).sum()),
        "unpaired": drawn.unpaired,
        "coinjoins": int(stays.sum()),
        "coinjoins.set": int(trial.drawn.member.sum(axis=1).max(initial=0)),
        "paid": paid_near,
        "zero_rows": zero_rows,
    }
    return trial


def engine(model: Encoder, txs: Transactions) -> LocalGraphs:
    """The clusterings of a local chain: heuristics with and without safeguards, GNN-HAC and hybrid, silhouette cut."""
    safe = interval_config(txs)

    def clusters(config: HeuristicConfig) -> Clusters:
        return lambda local: heuristic_clusters(local, config=config)

    return LocalGraphs(
        model,
        clusters(replace(safe, exclude_coinjoins=False)),
        price_usd=safe.price_usd,
        linkages=PAPER_LINKAGES,
        cuts=(CUT,),
        further={SAFEGUARDED: clusters(safe)},
        refined_by=("average", CUT),
    )


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


def _near(mix: Mix, local: Local, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
    """Cosine distances of some pairs of inputs, and whether they have one owner."""
    i, j = np.triu_indices(len(mix.inputs), 1)
    if len(i) > PAIRS_OF_A_MIX:
        chosen = rng.choice(len(i), PAIRS_OF_A_MIX, replace=False)
        i, j = i[chosen], j[chosen]
    pairs = np.stack([mix.inputs[i], mix.inputs[j]], axis=1)
    truth = mix.piece.txs.truth
    owner = np.full(len(mix.piece.addresses), -1) if truth is None else truth.owner
    return cosine(local.rows, pairs), (owner[pairs[:, 0]] == owner[pairs[:, 1]]) & (owner[pairs[:, 0]] >= 0)


def _shift(mix: Mix, far: FloatArray) -> tuple[float, float]:
    """Median distance from training's features: of the inputs, of all other nodes (a few hubs are very far)."""
    rest = np.delete(far, mix.inputs)
    return float(np.median(far[mix.inputs])), float(np.median(rest)) if len(rest) else float("nan")


def _by_set(values: FloatArray, member: BoolArray) -> float | None:
    """Mean over the sets of the mean over a set's CoinJoins; sets without any are left out, None where all are."""
    number = member.sum(axis=1)
    return _mean(((member * values).sum(axis=1)[number > 0] / number[number > 0]).tolist())


def _mean(values: list[float]) -> float | None:
    """The mean of those that are numbers; None where none is."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else None
