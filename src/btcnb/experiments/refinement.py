"""How good a refinement is where the true owners are known: pairs, collapsed clusters, and what a cut does in them."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.cluster import (
    CUTS,
    Forest,
    ari,
    cut_forest,
    global_threshold,
    local_thresholds,
    merge_values,
    nmi,
    pairwise_scores,
    refine,
)
from btcnb.cluster.scores import ami
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]


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
    parts, truth = _known(partition, owners)
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
    parts, truth = np.asarray(labels), np.asarray(owners)
    several = owners_per_cluster(parts, truth) > 1
    fits = [
        t for t in range(len(forest)) if max(smallest, 2) <= forest.sizes[t] <= biggest and several[forest.clusters[t]]
    ]
    if not fits:
        return most_mixed(parts, truth, smallest, biggest)
    return int(forest.clusters[max(fits, key=lambda t: float(forest.tree(t)[-1, 2]))])


def mended(X: Any, labels: Any, owners: Any, threshold: float) -> Mended | None:
    """Cut only the clusters that hold several owners at `threshold`; None where no cluster does."""
    parts, truth = np.asarray(labels), np.asarray(owners)
    several = (owners_per_cluster(parts, truth) > 1)[parts] & (truth >= 0)
    if not several.any():
        return None
    before = pairwise_scores(parts[several], truth[several])
    cut = refine(np.asarray(X)[several], parts[several], threshold=threshold).partition
    after = pairwise_scores(cut, truth[several])
    return Mended(
        clusters=len(np.unique(parts[several])),
        addresses=int(several.sum()),
        precision_before=before.tp / max(before.tp + before.fp, 1),
        precision_after=after.tp / max(after.tp + after.fp, 1),
        kept=after.tp / max(before.tp, 1),
    )


def wrong_share(Z: Any, owners: Any) -> npt.NDArray[np.float64]:
    """For every merge of a linkage matrix the share of the pairs it joins whose owners differ, (n - 1,).

    owners: of every leaf its owner, or the owners of all addresses in it, counted (`Counter`). Owners that are not
        known (negative) do not count; a merge that joins no two known ones is NaN.
    """
    n = len(owners)
    bags = {i: _known_only(bag if isinstance(bag, Counter) else Counter([bag])) for i, bag in enumerate(owners)}
    shares = np.empty(n - 1)
    for m, (a, b) in enumerate(np.asarray(Z)[:, :2].astype(int)):
        small, large = sorted((bags.pop(a), bags.pop(b)), key=len)
        pairs = small.total() * large.total()
        same = sum(number * large[owner] for owner, number in small.items())
        shares[m] = 1 - same / pairs if pairs else np.nan
        large.update(small)  # the smaller bag goes into the larger one
        bags[n + m] = large
    return shares


def _known_only(bag: Counter[int]) -> Counter[int]:
    return Counter({owner: number for owner, number in bag.items() if owner >= 0})


def judged_merges(forest: Any, owners: Any) -> pd.DataFrame:
    """Every merge of a forest: its height, and whether most of the pairs it joins have two owners (`wrong`).

    Merges that join no two known owners are left out.
    """
    truth = np.asarray(owners)
    trees = [(Z, members) for _, members, Z in forest if len(members) > 1]
    if not trees:
        return pd.DataFrame({"height": np.empty(0), "wrong": np.empty(0, dtype=bool)})
    shares = np.concatenate([wrong_share(Z, truth[members]) for Z, members in trees])
    table = pd.DataFrame({"height": np.concatenate([Z[:, 2] for Z, _ in trees]), "wrong": shares > 0.5})
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


def _known(partition: Any, owners: Any) -> tuple[Any, Any]:
    parts, truth = np.asarray(partition), np.asarray(owners)
    if parts.shape != truth.shape:
        raise DataError("owners", "length", f"is {truth.shape} for {parts.shape} addresses", "give one for each")
    known = truth >= 0
    if not known.any():
        raise DataError("owners", "truth", "no owner is known", "score against data that tells owners")
    return parts[known], truth[known]


def _entropy(owners: Any) -> float:
    share = np.unique(owners, return_counts=True)[1] / len(owners)
    return float(-(share * np.log(share)).sum())
