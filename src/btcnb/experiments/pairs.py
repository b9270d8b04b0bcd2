"""The paper's test with entity labels as a measurement: one encoder, an economy it has never seen, every clustering.

Section "Entity Labels" and Table 2: local graphs around labelled transactions, at most five labelled pairs a graph,
five draws of pairs. The encoder of world i is judged on another economy, world i + `FURTHER_WORLD`, in an interval that
no encoder is trained on: no transaction, no address and no owner is in both. So five seeds vary model and economy, and
the draws vary pairs, which is all that the paper's five seeds vary.

What a record holds, NAME being `heuristics`, `gnn.LINKAGE.CUT`, `hybrid.LINKAGE.CUT`, `random` or `large.…`:

    NAME.TP, NAME.FP, NAME.FN, NAME.TN    % of pairs, mean over draws
    NAME.bACC, NAME.F1, NAME.bACC_sd, …   %, mean and standard deviation over draws
    fall.FP, random.fall.FP               % of the heuristics' false positives that the hybrid, or random splits, remove
    auc.all, auc.apart, auc.heuristic     cosine distance as a sign of two names: all pairs, those that the heuristics
                                          leave apart, and pairs of heuristic clusters in the same graphs
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from btcnb.data import Source, Transactions, load_transactions
from btcnb.data.heuristics import heuristic_clusters
from btcnb.data.judging.entity_pairs import EntityGraph, entity_graphs, labelled_transactions
from btcnb.errors import ParameterError
from btcnb.experiments.local import (
    HEURISTICS,
    PAPER_CUTS,
    PAPER_LINKAGES,
    Clusters,
    Local,
    LocalGraphs,
    large_labels,
    price_and_rules,
)
from btcnb.experiments.moser import moser_on
from btcnb.experiments.recipe import Job, Recipe, baseline
from btcnb.experiments.stages import StageTimer, trained
from btcnb.learn import BASELINES, Encoder
from btcnb.paper import balanced_accuracy, macro_f1

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Numbers = dict[str, float | int | str | None]

COUNTS = ("TP", "FP", "FN", "TN")
REPEATS = 20
"""Random splits of each draw whose mean is the control."""
ROUNDING = 1e-6
"""Rows are of 32 bits: what is nearer than this is equal, and no order of such distances means anything."""


def pair_scores(name: str, counts: npt.NDArray[Any], pooled: bool = False) -> Numbers:
    """Mean over draws of `counts` (draws, 4), which may be fractions: shares in % of pairs, bACC, F1, their sd.

    pooled: the pairs of all draws count as those of one, and there is no sd (chapter 15; the mean is chapter 14's)
    A draw without a pair of one kind has no bACC and no F1: it is left out of their means. Where no draw has them,
    they are None. A draw without any pair is left out of everything.
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table.sum(axis=0, keepdims=True) if pooled else table
    table = table[table.sum(axis=1) > 0]
    shares = 100 * table / table.sum(axis=1, keepdims=True)
    numbers: Numbers = {f"{name}.{kind}": _mean(shares[:, place]) for place, kind in enumerate(COUNTS)}
    both = [row for row in table if both_kinds(row)]
    for score, of in (("bACC", balanced_accuracy), ("F1", macro_f1)):
        values = np.array([of(*row) for row in both])
        numbers[f"{name}.{score}"] = _mean(values)
        if not pooled:
            numbers[f"{name}.{score}_sd"] = float(values.std(ddof=1)) if len(values) > 1 else None
    return numbers


def both_kinds(counts: npt.NDArray[Any]) -> bool:
    """Whether there are pairs of one name and pairs of two."""
    tp, fp, fn, tn = counts
    return bool(tp + fn > 0 and fp + tn > 0)


def undefined_draws(counts: npt.NDArray[Any]) -> int:
    """Draws without a pair of one kind: their bACC is not defined."""
    return sum(not both_kinds(row) for row in counts)


def random_split(counts: IntArray, lost: int, positive: FloatArray, negative: FloatArray) -> FloatArray:
    """TP, FP, FN, TN after splitting clusters at random until `lost` of their positive pairs are apart, (4,).

    counts: of the clusters before; positive, negative (TP,), (FP,): of the pairs that they join, the first moment at
        which one of the two addresses leaves its cluster, where every address leaves at a random moment of its own.
    False negatives match exactly. Where several positive pairs part at one moment (they share an address) and `lost`
    lies between, false positives are interpolated between before and after.
    """
    tp, fp, fn, tn = (float(value) for value in counts)
    moments, parted = np.unique(positive, return_counts=True)
    reached = np.concatenate([[0], np.cumsum(parted)]).astype(np.float64)
    gone = np.concatenate([[0.0], [(negative <= moment).sum() for moment in moments]])
    wrong = float(np.interp(lost, reached, gone))
    return np.array([tp - lost, fp - wrong, fn + lost, tn + wrong])


def moments(leaving: FloatArray, pairs: IntArray) -> FloatArray:
    """The moment at which a pair parts: when the first of its two addresses leaves; (…, k).

    leaving (…, A): a moment for each address, once or several times; pairs (k, 2)
    """
    return np.minimum(leaving[..., pairs[:, 0]], leaving[..., pairs[:, 1]])


class DrawnPairs(NamedTuple):
    """The labelled pairs of all draws of one graph, draw after draw."""

    pairs: IntArray  # (k, 2) of addresses
    same: BoolArray  # (k,) whether they bear one name
    draw: IntArray  # (k,)
    draws: int

    @classmethod
    def of(cls, graph: EntityGraph) -> DrawnPairs:
        draw = np.repeat(np.arange(len(graph.pairs)), [len(pairs) for pairs in graph.pairs])
        return cls(np.concatenate(graph.pairs), np.concatenate(graph.same), draw, len(graph.pairs))


def counts_by_draw(labels: IntArray, drawn: DrawnPairs) -> IntArray:
    """TP, FP, FN, TN of several clusterings (clusterings, A) in every draw, (clusterings, draws, 4)."""
    pairs, same, draw, draws = drawn
    together = labels[:, pairs[:, 0]] == labels[:, pairs[:, 1]]
    cell = 4 * draw + np.where(same, 2, 3) - 2 * together  # TP 0, FP 1, FN 2, TN 3
    cell += 4 * draws * np.arange(len(labels))[:, None]
    return np.bincount(cell.ravel(), minlength=4 * draws * len(labels)).reshape(-1, draws, 4)


def separation(distances: Sequence[float] | FloatArray, same: Sequence[bool] | BoolArray) -> float | None:
    """Area under the ROC curve of distance as a sign of two names: 0.5 is chance; None where one kind is missing."""
    apart = ~np.asarray(same, dtype=bool)
    if not len(apart) or apart.all() or not apart.any():
        return None
    return float(roc_auc_score(apart, np.asarray(distances, dtype=np.float64)))


def cosine(rows: npt.NDArray[Any], pairs: IntArray) -> FloatArray:
    """Cosine distance of pairs (k, 2) of unit rows; 0 where it is no more than rounding."""
    a, b = rows[pairs[:, 0]].astype(np.float64), rows[pairs[:, 1]].astype(np.float64)
    far = 1.0 - np.einsum("ij,ij->i", a, b)
    return np.where(far < ROUNDING, 0.0, far)


def _mean(values: npt.NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


FURTHER_WORLD = 100
"""The encoder of world i is judged on world i + this."""
INTERVAL = "test"
"""The interval of the judged economy: encoders see the three of training, and validation."""
TRANSACTIONS = {"tiny": 40, "quick": 200}
"""Labelled transactions by size; elsewhere the paper's 500."""
PAPER_TRANSACTIONS, DRAWS = 500, 5
KINDS = ("same joined", "same apart", "two joined", "two apart", "heuristic same", "heuristic two")
"""Pairs of one or of two names that the heuristics join or leave apart; pairs of one or of two heuristic clusters."""
HYBRID = "hybrid.average.silhouette"
"""The paper's best row; random splits are made to lose as many true positives."""


FURTHER: dict[str, Callable[[Recipe, Transactions], Clusters]] = {"moser": moser_on}
"""Further clusterings: name -> what makes, out of a recipe (whose training economies it may learn from) and the chain
that is judged, a function of local transactions. Each gives the rows `NAME` and `hybrid_on_NAME`."""


def entity(job: Job, table: bool = False) -> Numbers:
    """Average linkage with every cut, and the controls.

    table: the whole of Table 2, every linkage with every cut; and the same pairs scored in the large graph
    """
    return _measured(job, PAPER_LINKAGES if table else ("average",), large=table)


def _measured(job: Job, linkages: tuple[str, ...], large: bool) -> Numbers:
    timer = StageTimer()
    with timer("train"):
        model = encoder_of(job)
    with timer("graphs"):
        judged = judged_source(job.recipe.source)
        txs, price = load_transactions(judged, INTERVAL, sampled=False), judged.price_usd
    wanted = TRANSACTIONS.get(job.recipe.source.size, PAPER_TRANSACTIONS)
    with timer("further"):
        further = {name: make(job.recipe, txs) for name, make in FURTHER.items()}
    with timer("local"):
        found = entity_trial(model, txs, wanted, job.seed, linkages=linkages, further=further, price_usd=price)
    numbers = found.numbers() | {"graphs_per_second": len(found.graphs) / timer.seconds["local"]}
    if large:
        with timer("large"):
            for name, counts in found.in_large_graph(large_labels(model, txs, job.seed, price)).items():
                numbers |= pair_scores(name, counts)
    return numbers | timer.record() | {"data": txs.fingerprint()}


def judged_source(source: Source) -> Source:
    """The economy on which an encoder of `source` is judged: another world; somebody's own data judge themselves."""
    return replace(source, seed=source.seed + FURTHER_WORLD) if source.simulated else source


def encoder_of(job: Job) -> Encoder:
    """The encoder that a job names, trained or not."""
    if job.method != "trained" and job.method not in BASELINES:
        known = ", ".join(("trained", *BASELINES))
        raise ParameterError(f"entity labels are judged with an encoder, and {job.method!r} is none; take {known}.")
    return trained(job.recipe if job.method == "trained" else baseline(job.recipe, job.method)).model


class Trial:
    """One encoder on one chain: counts of every clustering by draw, and what the controls need.

    graphs:    those that were judged
    counts:    clustering -> (draws, 4): TP, FP, FN, TN
    distances: cosine distances by kind of pair, see `KINDS`
    totals:    transactions that were judged or left out, and why
    """

    def __init__(self, names: Sequence[str], draws: int, seed: int) -> None:
        self.graphs: list[EntityGraph] = []
        self.counts: dict[str, IntArray] = {name: np.zeros((draws, 4), dtype=np.int64) for name in names}
        self.distances: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.totals = {"one_node_graphs": 0, "zero_rows": 0}
        self._seed = seed
        # per draw, of the pairs that the heuristics join: when they part, (REPEATS, k) each; positive and negative ones
        self._parting: list[tuple[list[FloatArray], list[FloatArray]]] = [([], []) for _ in range(draws)]

    def add(self, graph: EntityGraph, local: Local) -> None:
        """Count the pairs of one graph."""
        self.graphs.append(graph)
        self.totals["one_node_graphs"] += len(local.rows) < 2
        self.totals["zero_rows"] += local.zero_rows
        drawn = DrawnPairs.of(graph)
        counts = counts_by_draw(np.stack(list(local.labels.values())), drawn)
        for name, found in zip(local.labels, counts, strict=True):
            self.counts[name] += found
        heuristics, pairs, same = local.labels[HEURISTICS], drawn.pairs, drawn.same
        joined = heuristics[pairs[:, 0]] == heuristics[pairs[:, 1]]
        rng = np.random.default_rng([self._seed, graph.transaction, 14])
        parting = moments(rng.random((REPEATS, len(heuristics))), pairs)
        for draw, (positive, negative) in enumerate(self._parting):
            here = joined & (drawn.draw == draw)
            positive.append(parting[:, here & same])
            negative.append(parting[:, here & ~same])
        far = cosine(local.rows, pairs)
        for kind, mask in zip(KINDS, (same & joined, same & ~joined, ~same & joined, ~same & ~joined), strict=False):
            self.distances[kind] += far[mask].tolist()
        for kind, random in zip(KINDS[4:], heuristic_pairs(heuristics, rng), strict=True):
            self.distances[kind] += cosine(local.rows, random).tolist()

    @cached_property
    def random(self) -> FloatArray:
        """Counts of random splits that lose as many true positives as the hybrid, mean over repeats, (draws, 4)."""
        base = self.counts[HEURISTICS]
        if HYBRID not in self.counts:
            return np.empty((0, 4))
        lost = base[:, 0] - self.counts[HYBRID][:, 0]
        found = np.empty((len(base), 4))
        for draw, (positive, negative) in enumerate(self._parting):
            sides = zip(np.concatenate(positive, axis=1), np.concatenate(negative, axis=1), strict=True)
            found[draw] = np.mean([random_split(base[draw], int(lost[draw]), *side) for side in sides], axis=0)
        return found

    def numbers(self) -> Numbers:
        """Everything as flat numbers; see the head of this file."""
        heuristics = self.counts[HEURISTICS]
        pairs = heuristics.sum(axis=1)
        near = self.distances
        numbers: Numbers = {}
        for name, counts in {**self.counts, "random": self.random}.items():
            numbers |= pair_scores(name, counts)
        numbers |= {
            "auc.all": _area(near["same joined"] + near["same apart"], near["two joined"] + near["two apart"]),
            "auc.apart": _area(near["same apart"], near["two apart"]),
            "auc.heuristic": _area(near["heuristic same"], near["heuristic two"]),
            "positive_share": float(100 * (heuristics[:, 0] + heuristics[:, 2]).sum() / max(pairs.sum(), 1)),
            "pairs": float(pairs.mean()),
            "undefined_draws": undefined_draws(heuristics),
        }
        if HYBRID in self.counts:
            numbers |= {
                "fall.FP": _fall(heuristics, self.counts[HYBRID]),
                "random.fall.FP": _fall(heuristics, self.random),
            }
        return numbers | self.totals

    def in_large_graph(self, labels: dict[str, IntArray]) -> dict[str, IntArray]:
        """Counts of the same pairs under labels of all addresses of the chain, `large.NAME`."""
        counts = {name: np.zeros_like(self.counts[HEURISTICS]) for name in labels}
        for graph in self.graphs:
            for name, flat in labels.items():
                counts[name] += counts_by_draw(flat[graph.addresses][None], DrawnPairs.of(graph))[0]
        return {f"large.{name}": found for name, found in counts.items()}


def entity_trial(
    model: Encoder,
    txs: Transactions,
    transactions: int = PAPER_TRANSACTIONS,
    seed: int = 0,
    *,
    draws: int = DRAWS,
    linkages: tuple[str, ...] = PAPER_LINKAGES,
    further: Mapping[str, Clusters] | None = None,
    price_usd: float | None = None,
) -> Trial:
    """Cluster the surroundings of labelled transactions every way, and count right and wrong pairs.

    seed: of the transactions, their surroundings, the pairs, and the random splits
    linkages, further: as in `LocalGraphs`
    price_usd: USD for one bitcoin; None: the paper's where the chain begins in an interval of the paper, else unknown,
        and then features have no dollars
    """
    price, config = price_and_rules(txs, price_usd)
    engine = LocalGraphs(
        model, lambda local: heuristic_clusters(local, config=config), price, linkages, PAPER_CUTS, further or {}
    )
    trial = Trial(engine.names(), draws, seed)
    candidates = len(labelled_transactions(txs))
    waiting: deque[EntityGraph] = deque()

    def pieces() -> Iterator[Transactions]:
        for graph in entity_graphs(txs, transactions=transactions, draws=draws, seed=seed):
            waiting.append(graph)
            yield graph.txs

    for local in engine.run(pieces()):
        trial.add(waiting.popleft(), local)
    trial.totals |= {
        "transactions": len(trial.graphs),
        "candidates": candidates,
        "too_few_labels": len(txs) - candidates,  # transactions with fewer than two labelled addresses
    }
    return trial


def heuristic_pairs(labels: IntArray, rng: np.random.Generator, most: int = 5) -> tuple[IntArray, IntArray]:
    """At most `most` random pairs of addresses of one cluster, and as many of two; (k, 2) each."""
    several = np.flatnonzero(np.bincount(labels)[labels] > 1)
    same = []
    for a in rng.permutation(several)[:most]:
        others = np.flatnonzero(labels == labels[a])
        same.append((a, rng.choice(others[others != a])))
    drawn = rng.integers(len(labels), size=(4 * most, 2))
    two = drawn[labels[drawn[:, 0]] != labels[drawn[:, 1]]][:most]
    return np.array(same, dtype=np.int64).reshape(-1, 2), two.astype(np.int64)


def _fall(before: IntArray, after: npt.NDArray[np.number]) -> float | None:
    """How many of the false positives are gone, in %; None where there were none."""
    had = float(before[:, 1].sum())
    return 100 * (1 - float(after[:, 1].sum()) / had) if had else None


def _area(same: list[float], two: list[float]) -> float | None:
    return separation([*same, *two], [True] * len(same) + [False] * len(two))
