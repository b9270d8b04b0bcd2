"""How good partitions and refinements are where the true owners are known.

One embedding, every way to cut the trees inside heuristic clusters, all against true owners. The paper could show one
example; with owners known, every merge is right or wrong and every cut has a price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from btcnb.cluster import (
    CUTS,
    Forest,
    ari,
    cut,
    cut_forest,
    fill_zero_rows,
    global_threshold,
    local_thresholds,
    merge_values,
    nmi,
    pairwise_scores,
    refine,
    silhouette,
)
from btcnb.cluster.scores import ami
from btcnb.data import AddressGraph, load_clusters, load_linked_twice
from btcnb.errors import DataError
from btcnb.experiments.recipe import Recipe
from btcnb.experiments.refine import Refined, Refiner, group_rows, refined
from meanlink.cuts import N_MIN

Numbers = dict[str, float | int | str | None]
IntArray = npt.NDArray[np.int64]

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""Fixed thresholds at which every forest is cut besides, 0.05 to 1."""
SCORES = ("ari", "precision", "recall", "ami", "clusters")
AT_FIXED = ("ari", "precision", "clusters")
"""What is kept of a cut; of the many fixed ones a little less, so that records stay small."""
UNITS = ("addresses", "inputs", "twice")
"""Leaves of the trees: single addresses (the paper's), addresses spent together, addresses that two payments link."""
SILHOUETTE_FROM = 10
"""Leaves from which on a cluster has a say in the one threshold that maximises the silhouette."""


class Quality(NamedTuple):
    """A partition against owners.

    precision: of the pairs in one cluster, the share with one owner
    recall: of the pairs of one owner, the share in one cluster
    ari, nmi: the paper's scores; ami: the mutual information again, corrected for chance as NMI is not
    """

    precision: float
    recall: float
    ari: float
    nmi: float
    ami: float
    clusters: int


class Mended(NamedTuple):
    """What a cut does to the clusters that really hold several owners."""

    clusters: int
    addresses: int
    precision_before: float
    precision_after: float
    kept: float  # of the pairs of one owner that were together, the share that still is


def quality(partition: Any, owners: Any, information: bool = True) -> Quality:
    """Score a partition (n,) against owners (n,); addresses whose owner is unknown (negative) do not count.

    information: whether NMI and AMI are wanted, which take most of the time; NaN where they are not
    """
    known = np.asarray(owners) >= 0
    parts, truth = np.asarray(partition)[known], np.asarray(owners)[known]
    pairs = pairwise_scores(parts, truth)
    together, same = pairs.tp + pairs.fp, pairs.tp + pairs.fn
    return Quality(
        precision=pairs.tp / together if together else 1.0,
        recall=pairs.tp / same if same else 1.0,
        ari=ari(parts, truth),
        nmi=nmi(parts, truth) if information else float("nan"),
        ami=ami(parts, truth) if information else float("nan"),
        clusters=len(np.unique(parts)),
    )


def owners_per_cluster(labels: Any, owners: Any) -> IntArray:
    """Number of distinct known owners in each cluster 0..k-1, (k,)."""
    parts, truth = np.asarray(labels), np.asarray(owners)
    known = truth >= 0
    pairs = np.unique(np.stack([parts[known], truth[known]]), axis=1)
    return np.bincount(pairs[0], minlength=int(parts.max()) + 1)


def most_mixed(labels: Any, owners: Any, smallest: int, biggest: int) -> int:
    """The cluster of `smallest` to `biggest` addresses whose known owners are mixed most evenly (largest entropy).

    Where no collapsed cluster is of that size, the collapsed one nearest to `biggest`; where none has collapsed, any.
    """
    parts, truth = np.asarray(labels), np.asarray(owners)
    sizes, number = np.bincount(parts), owners_per_cluster(parts, truth)
    collapsed = np.flatnonzero(number > 1)
    drawable = [c for c in collapsed if smallest <= sizes[c] <= biggest]
    if drawable:
        return int(max(drawable, key=lambda c: _entropy(truth[(parts == c) & (truth >= 0)])))
    others = collapsed if len(collapsed) else np.arange(len(sizes))
    return int(others[np.argmin(np.abs(sizes[others] - biggest))])


def most_divided(forest: Forest, labels: Any, owners: Any, smallest: int, biggest: int) -> int:
    """The collapsed cluster of `smallest` to `biggest` addresses whose last merge is highest: the example to show.

    forest: a tree for each cluster of `labels`, over addresses. Where no collapsed cluster is of that size, the choice
    of `most_mixed`.
    """
    several = owners_per_cluster(labels, owners) > 1
    fits = [
        t for t in range(len(forest)) if max(smallest, 2) <= forest.sizes[t] <= biggest and several[forest.clusters[t]]
    ]
    if not fits:
        return most_mixed(labels, owners, smallest, biggest)
    return int(forest.clusters[max(fits, key=lambda t: float(forest.tree(t)[-1, 2]))])


def mended(X: Any, labels: Any, owners: Any, threshold: float) -> Mended | None:
    """Cut only the clusters that hold several owners at `threshold`; None where no cluster does."""
    parts, truth = np.asarray(labels), np.asarray(owners)
    several = (owners_per_cluster(parts, truth) > 1)[parts] & (truth >= 0)
    if not several.any():
        return None
    before = pairwise_scores(parts[several], truth[several])
    after = pairwise_scores(
        refine(np.asarray(X)[several], parts[several], threshold=threshold).partition, truth[several]
    )
    return Mended(
        clusters=len(np.unique(parts[several])),
        addresses=int(several.sum()),
        precision_before=before.tp / max(before.tp + before.fp, 1),
        precision_after=after.tp / max(after.tp + after.fp, 1),
        kept=after.tp / max(before.tp, 1),
    )


def wrong_shares(forest: Forest, owners: IntArray, leaf: IntArray | None = None) -> npt.NDArray[np.float64]:
    """For every merge of a forest the share of the pairs of addresses it joins whose owners differ.

    owners (n,): negative where not known, which do not count; a merge that joins no two known owners is NaN
    leaf (n,): the leaf of the forest that an address belongs to; None: each is one
    """
    bags: dict[int, Counter[int]] = {}
    for place, owner in zip(np.arange(len(owners)) if leaf is None else leaf, owners.tolist(), strict=True):
        bags.setdefault(int(place), Counter()).update([owner] if owner >= 0 else [])
    shares = [
        _wrong_shares(forest.tree(t), [bags[place] for place in forest.leaves(t).tolist()])
        for t in np.flatnonzero(forest.sizes > 1).tolist()
    ]
    return np.concatenate([*shares, np.empty(0)])


def _wrong_shares(Z: npt.NDArray[np.float64], owners: Sequence[Counter[int]]) -> npt.NDArray[np.float64]:
    """The same of one linkage matrix, (n - 1,); owners: those of all addresses of each leaf, counted."""
    n = len(owners)
    bags = {i: bag.copy() for i, bag in enumerate(owners)}
    shares = np.empty(n - 1)
    for m, (a, b) in enumerate(Z[:, :2].astype(int)):
        small, large = sorted((bags.pop(a), bags.pop(b)), key=len)
        pairs = small.total() * large.total()
        same = sum(number * large[owner] for owner, number in small.items())
        shares[m] = 1 - same / pairs if pairs else np.nan
        large.update(small)  # the smaller bag goes into the larger one
        bags[n + m] = large
    return shares


def judged_merges(forest: Forest, owners: IntArray, leaf: IntArray | None = None) -> pd.DataFrame:
    """Every merge of a forest: its height, and whether most of the pairs it joins have two owners (`wrong`).

    Merges that join no two known owners are left out.
    """
    shares = wrong_shares(forest, owners, leaf)
    table = pd.DataFrame({"height": forest.merges[:, 2], "wrong": shares > 0.5})
    return table[~np.isnan(shares)].reset_index(drop=True)


def inconsistency_readings(X: Any, forest: Forest, alphas: tuple[float, ...] = (0.5, 1.0, 2.0)) -> pd.DataFrame:
    """The inconsistency cut of a forest of the rows of X (n, d), under both readings of its threshold λ = μ + ασ.

    One row per reading ("coefficients", "heights") and α: λ, the share of merges that it undoes, and the clusters left.
    """
    rows = []
    for reading, rule in (("coefficients", "inconsistency"), ("heights", "inconsistency-height")):
        values = merge_values(forest, CUTS[rule].criterion)
        for alpha in alphas:
            local = local_thresholds(X, forest, rule, alpha=alpha, progress=False)
            found = global_threshold(forest.sizes, local)
            threshold = float("inf") if np.isnan(found) else found
            partition = cut_forest(forest, values, threshold)
            undone = float((values >= threshold).mean()) if len(values) else 0.0
            rows.append((reading, alpha, threshold, undone, len(np.unique(partition))))
    return pd.DataFrame(rows, columns=["reading", "alpha", "threshold", "undone", "clusters"])


def refinement_numbers(X: Any, graph: AddressGraph, recipe: Recipe, seed: int) -> Numbers:
    """Quality of the heuristic clusters of the test graph before and after every cut; see `cuts` for the names."""
    if graph.truth is None:
        raise DataError("graph", "truth", "is missing", "refinement is judged by true owners: simulate, or attach them")
    rows, _ = fill_zero_rows(X, recipe.cluster.zero_rows)
    labels, owners = graph.labels(), graph.truth
    inputs = load_clusters(recipe.source, "test", ("common_input",))
    groups = {"inputs": inputs, "twice": load_linked_twice(recipe.source, "test")}
    numbers = _named("heuristics", labels, owners)
    for units in UNITS:
        refiner = Refiner("addresses" if units == "addresses" else "inputs", "local")
        found = refined(rows, labels, refiner, groups.get(units), progress=False)
        head = "" if units == "addresses" else f"{units}."
        one = best_silhouette(rows, found)
        numbers |= {f"{head}lambda.threshold": found.threshold, f"{head}silhouette.threshold": one}
        for name, partition in cuts(found, labels, one, seed):
            wanted = AT_FIXED if name.startswith("at.") else SCORES
            numbers |= _named(f"{head}{name}", partition, owners, wanted)
        details = flags(found, owners) | examples(found, labels, owners, seed)
        numbers |= {f"{head}{name}": value for name, value in details.items()}
    return numbers


def cuts(found: Refined, labels: IntArray, one: float, seed: int) -> Iterator[tuple[str, IntArray]]:
    """Every cut of a forest by name, one label per address. `found` is of the rule `local`, `one` the single λ of
    `silhouette`.

    `lambda`: one λ, the size-weighted mean of the clusters' own thresholds (the paper's appendix); `local`: each
    cluster its own; `silhouette`: one λ for the best mean silhouette (the caption of the paper's Figure 2); `random`:
    parts of the same sizes as `lambda`'s, dealt out at random inside each cluster; `at.T`: a fixed threshold T.
    """
    forest, leaf = found.forest, found.leaf
    heights = forest.merges[:, 2]
    paper = cut_forest(forest, heights, found.threshold)[leaf]
    yield "lambda", paper
    yield "random", shuffled_within(paper, labels, seed)
    yield "local", found.partition
    yield "silhouette", cut_forest(forest, heights, one)[leaf]
    for threshold in THRESHOLDS:
        yield f"at.{threshold:.2f}", cut_forest(forest, heights, threshold)[leaf]


def shuffled_within(partition: IntArray, within: IntArray, seed: int) -> IntArray:
    """The labels of `partition` (n,) permuted at random inside each cluster of `within` (n,): equal sizes, no sense."""
    order = np.argsort(within, kind="stable")
    mixed = np.lexsort((np.random.default_rng([seed, 13]).random(len(within)), within))
    out = np.empty_like(partition)
    out[order] = partition[mixed]
    return out


def best_silhouette(X: Any, found: Refined) -> float:
    """The threshold out of `THRESHOLDS` with the best mean silhouette inside clusters, each weighted by its leaves.

    Clusters of fewer than `SILHOUETTE_FROM` leaves have no say. A cut that leaves a cluster whole, or nothing but
    single leaves, has silhouette 0 there.
    """
    forest = found.forest
    rows = np.asarray(X)
    if len(forest.members) != len(found.leaf):
        rows, _ = fill_zero_rows(group_rows(rows, found.leaf), "fixed")  # as `refined` had it where rows cancel out
    total = np.zeros(len(THRESHOLDS))
    for t in np.flatnonzero(forest.sizes >= SILHOUETTE_FROM).tolist():
        leaves, Z = forest.leaves(t), forest.tree(t)
        for place, threshold in enumerate(THRESHOLDS):
            parts = cut(Z, threshold)
            if 1 < parts.max() + 1 < len(leaves):
                total[place] += len(leaves) * silhouette(rows[leaves], parts)
    return THRESHOLDS[int(total.argmax())]


def flags(found: Refined, owners: IntArray) -> Numbers:
    """Every merge judged: is it wrong (most of the pairs it joins have two owners), and does its height tell?

    Merges that join no two known owners cannot be judged and do not count. `flags.precision` and `flags.recall` are of
    the merges at λ or above; `flags.base` is the share of wrong merges.
    """
    judged = judged_merges(found.forest, owners, found.leaf)
    heights, wrong = judged["height"].to_numpy(), judged["wrong"].to_numpy()
    flagged = heights >= found.threshold
    both = bool(wrong.any() and not wrong.all())
    return {
        "flags.merges": len(heights),
        "flags.flagged": int(flagged.sum()),
        "flags.base": _mean(wrong),
        "flags.precision": _mean(wrong[flagged]),
        "flags.recall": _mean(flagged[wrong]),
        "flags.auc": float(roc_auc_score(wrong, heights)) if both else float("nan"),
        "flags.average_precision": float(average_precision_score(wrong, heights)) if both else float("nan"),
    }


def examples(found: Refined, labels: IntArray, owners: IntArray, seed: int) -> Numbers:
    """What the paper shows of one cluster, over all clusters of `N_MIN` leaves or more: collapsed and sound ones apart.

    `example.last_minus_lambda.*`: the last merge's height minus λ, mean; of collapsed clusters the median share of
    merges that are flagged and of addresses in the largest part. `parts.purity`: the share of addresses whose part's
    most frequent owner is theirs, in collapsed clusters, after the cut at λ; `_random`: parts dealt out at random.
    """
    forest, names = found.forest, np.asarray(found.forest.clusters)
    several = owners_per_cluster(labels, owners) > 1
    one = cut_forest(forest, forest.merges[:, 2], found.threshold)[found.leaf]
    trees = np.flatnonzero(forest.sizes >= N_MIN)
    last = np.array([forest.tree(t)[-1, 2] for t in trees.tolist()]) - found.threshold
    collapsed = several[names[trees]] if len(trees) else np.empty(0, dtype=bool)
    share = np.array([float((forest.tree(t)[:, 2] >= found.threshold).mean()) for t in trees.tolist()])
    inside = np.isin(labels, names[trees[collapsed]]) & (owners >= 0)
    parts = (one[inside & (labels == c)] for c in names[trees[collapsed]])
    largest = [float(np.unique(part, return_counts=True)[1].max() / len(part)) for part in parts]
    return {
        "example.collapsed": int(collapsed.sum()),
        "example.last_minus_lambda.collapsed": _mean(last[collapsed]),
        "example.last_minus_lambda.sound": _mean(last[~collapsed]),
        "example.flagged_share": float(np.median(share[collapsed])) if collapsed.any() else float("nan"),
        "example.largest_part": float(np.median(largest)) if largest else float("nan"),
        "parts.purity": purity(one[inside], owners[inside]),
        "parts.purity_random": purity(shuffled_within(one, labels, seed)[inside], owners[inside]),
    }


def purity(partition: IntArray, owners: IntArray) -> float:
    """The share of addresses that belong to the most frequent owner of their part; NaN without any address."""
    if not len(partition):
        return float("nan")
    pairs, counts = np.unique(np.stack([partition, owners]), axis=1, return_counts=True)
    return float(pd.Series(counts).groupby(pairs[0]).max().sum() / len(partition))


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _named(name: str, partition: IntArray, owners: IntArray, wanted: Sequence[str] = SCORES) -> Numbers:
    found = quality(partition, owners, information="ami" in wanted)
    return {f"{name}.{field}": getattr(found, field) for field in wanted}


def _entropy(owners: IntArray) -> float:
    share = np.unique(owners, return_counts=True)[1] / len(owners)
    return float(-(share * np.log(share)).sum())
