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

What a run of a sweep measures (`mixing`): the encoder of world i on CoinJoins of mixing world i + 200 (Table 3). So
five seeds vary model and economy, and the five evaluation sets vary the draw, which is all that the paper's five seeds
vary. Besides, of every encoder that is judged on all protocols:

    distance.positive.pN, …    percentiles of cosine distances, ordinary test graph: pairs of one heuristic cluster, and
    distance.negative.pN, …    of two
    distance.entity_same.pN, … the same of entity labels in local graphs: pairs of one name, and
    distance.entity_two.pN, …  of two; with the inputs of CoinJoins, the five curves of the paper's figures
    place.coinjoin             where the median of input pairs lies on the way from the positives' to the negatives'
    price.DP, price.NMI, price.ARI, price.owner_ARI    the paper's scores on the ordinary test graph, and ARI of owners
    price.entity.NAME.bACC     balanced accuracy on entity labels (average linkage, silhouette), %; of trained encoders
    taught_by, steered_by      graphs around CoinJoins that taught the encoder, and that steered its training; 0 without
    taught.PROTOCOL            those that taught, by protocol
    best_epoch, repulsion      the epoch that was kept, and λ times the repulsion in its validation loss
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from btcnb.cluster import ari, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.data import AddressGraph, Transactions, heuristic_clusters, load_graph, load_transactions
from btcnb.data.heuristics import HeuristicConfig
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import ParameterError
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
    ordinary_pairs,
    payment_pairs,
    percentiles,
    surroundings,
)
from btcnb.experiments.local import GNN, HEURISTICS, HYBRID, PAPER_LINKAGES, Clusters, Local, LocalGraphs
from btcnb.experiments.pairs import (
    PAPER_TRANSACTIONS,
    TRANSACTIONS,
    Numbers,
    cosine,
    entity_trial,
    judged_source,
    separation,
)
from btcnb.experiments.recipe import Job, baseline
from btcnb.experiments.repulsion import INTERVAL, JUDGED, judged_economy, repelled, width_of
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, trained
from btcnb.learn import Encoder, Run, embed, prepare

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


class MixCounts(NamedTuple):
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
        pairs = pd.DataFrame([each.pairs for each in counts])
        table = 100 * pd.DataFrame(counts)[["random", "parted"]].assign(TN=pairs["apart"] / pairs["pairs"])
        table["TN_paid"] = table["TN"].where(table["parted"].notna())
        numbers: Numbers = {f"{name}.{each}": _number(by_set(table[each], member).mean()) for each in table}
        numbers |= {
            f"{name}.TN_sd": _number(by_set(table["TN"], member).std()),
            f"{name}.pooled": float(100 * pairs["apart"].sum() / pairs["pairs"].sum()),
            f"{name}.strangers": _number((100 * pairs["strangers_apart"] / pairs["strangers"]).mean()),
            f"{name}.own": _number((100 * pairs["own_together"] / pairs["own"]).mean()),
            f"{name}.clusters": float(np.mean([each.clusters for each in counts])),
        }
        for each in PROTOCOLS:
            if (protocol == each).any():
                for kind in ("TN", "random"):
                    numbers[f"{name}.{kind}.{each}"] = _number(by_set(table[kind], member & (protocol == each)).mean())
        return numbers

    def _of_shift(self) -> Numbers:
        if not self.shift:
            return {}
        inputs, others = np.array(self.shift).T
        excess = [each.pairs.apart / each.pairs.pairs - each.random for each in self.counts[JUDGED_BY]]
        ranked = len(inputs) >= 3 and np.ptp(inputs) > 0 and np.ptp(excess) > 0
        return {
            "shift.inputs": float(inputs.mean()),
            "shift.others": _number(np.nanmean(others)),
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


def by_set(values: pd.Series[float], member: BoolArray) -> pd.Series[float]:
    """The mean of each set (sets, m) over its CoinJoins with a value (m,); NaN of a set without any.

    A CoinJoin of two hundred inputs has four thousand times the pairs of one with three; each counts as one here.
    """
    return pd.DataFrame(np.where(member, values, np.nan)).mean(axis=1)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


METHODS = ("trained", "untrained")
ORDINARY_PAIRS = 20_000
"""Pairs of the ordinary test graph, of each kind, whose distances are kept."""
SCORES = {"DP": "purity", "NMI": "nmi", "ARI": "ari"}
"""The paper's scores, and what an evaluation calls them."""
ENTITY_ROWS = ("heuristics", "gnn.average.silhouette", "hybrid.average.silhouette")


def mixing(job: Job, repulsion: bool = False, without: str = "") -> Numbers:
    """An encoder on CoinJoins of an economy that it has never seen, with distances and its scores elsewhere.

    repulsion: whether CoinJoins teach it repulsion; without: a protocol that does not, which alone is judged then
    """
    methods = ("trained",) if repulsion else METHODS
    if job.method not in methods:
        problem = f"CoinJoins are judged with an encoder that the measure {job.measure!r} can make"
        raise ParameterError(f"{problem}, and {job.method!r} is none; take {' or '.join(methods)}.")
    timer, source = StageTimer(), job.recipe.source
    standard = job.method == "trained" and not repulsion
    with timer("graphs"):
        txs = load_transactions(judged_economy(source), INTERVAL, sampled=False)
        graphs = [load_graph(source, role) for role in TRAINING] if standard else []
    with timer("train"):
        recipe = job.recipe if job.method == "trained" else baseline(job.recipe, job.method)
        run = repelled(recipe, without) if repulsion else trained(recipe)
    timer.seconds["train"] = float(run.record["seconds"])  # also where the store had it
    with timer("local"):
        usual = _usual(run.model, graphs) if standard else None
        number, width = JUDGED.get(source.size, PER_PROTOCOL), width_of(source)
        only = (without,) if without else PROTOCOLS
        trial = mixing_trial(run.model, txs, number, job.seed, width=width, only=only, usual=usual)
    numbers = trial.numbers() | _lesson(run)
    numbers["graphs_per_second"] = len(trial.distances) / timer.seconds["local"]
    if not without:
        with timer("price"):
            numbers |= price(job, run.model)
        ends = [numbers[f"distance.{kind}.median"] for kind in ("coinjoin", "positive", "negative")]
        numbers["place.coinjoin"] = position(*ends)  # type: ignore[arg-type]
    return numbers | timer.record() | {"data": txs.fingerprint()}


def _lesson(run: Run) -> Numbers:
    """What the encoder was shown of CoinJoins, and which epoch was kept."""
    record = run.record
    numbers: Numbers = {name: int(value) for name, value in record.items() if name.startswith("taught.")}
    numbers |= {
        "taught_by": int(record.get("coinjoin_training_graphs", 0)),
        "steered_by": int(record.get("coinjoin_validation_graphs", 0)),
        "best_epoch": int(record["best_epoch"]),
    }
    return numbers | ({"repulsion": float(record["best_repulsion"])} if "best_repulsion" in record else {})


def _usual(model: Encoder, graphs: Sequence[AddressGraph]) -> FeatureSpread:
    """The features of the training graphs as the encoder read them."""
    config = model.config
    ready = (prepare(g, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit) for g in graphs)
    return FeatureSpread.of([each.x.numpy() for each in ready])


def price(job: Job, model: Encoder) -> Numbers:
    """What an encoder does away from CoinJoins: distances and scores on the ordinary test graph, entity labels."""
    recipe = job.recipe
    graph = load_graph(recipe.source, "test")
    rows = embed(model, graph)
    found = evaluation(rows, graph, partition=coarse(recipe), config=recipe.cluster, seed=job.seed, progress=False)
    scored = scored_nodes(graph, recipe.cluster.min_degree)
    numbers: Numbers = {f"price.{name}": found.record[key] for name, key in SCORES.items()}
    if graph.truth is not None:
        numbers["price.owner_ARI"] = ari(graph.truth[scored], found.partition[scored])
    same, two = ordinary_pairs(graph.labels(), ORDINARY_PAIRS, np.random.default_rng([job.seed, 17]))
    for kind, pairs in (("positive", same), ("negative", two)):
        numbers |= percentiles(f"distance.{kind}", cosine(rows, pairs))
    return numbers if job.method == "untrained" else numbers | _entity_price(job, model)  # nobody asks for its price


def _entity_price(job: Job, model: Encoder) -> Numbers:
    source = job.recipe.source
    txs = load_transactions(judged_source(source), INTERVAL, sampled=False)
    wanted = TRANSACTIONS.get(source.size, PAPER_TRANSACTIONS)
    trial = entity_trial(model, txs, wanted, job.seed, linkages=("average",))
    found = trial.numbers()
    numbers: Numbers = {f"price.entity.{name.split('.')[0]}.bACC": found[f"{name}.bACC"] for name in ENTITY_ROWS}
    for kind in ("same", "two"):
        far = trial.distances[f"{kind} joined"] + trial.distances[f"{kind} apart"]
        numbers |= percentiles(f"distance.entity_{kind}", far)
    return numbers


def position(middle: float | None, low: float | None, high: float | None) -> float | None:
    """Where `middle` lies on the way from `low` (0) to `high` (1); None where one is missing or both ends coincide."""
    if middle is None or low is None or high is None or low == high:
        return None
    return (middle - low) / (high - low)
