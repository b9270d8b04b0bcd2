"""Which trees are grown inside heuristic clusters, and where they are cut: a `Refiner`, and what it finds.

    refined(X, clusters, Refiner())                                    # the paper's way
    refined(X, clusters, Refiner(units="inputs"), groups=together)     # what was spent together stays together

A merge is undone where its height reaches the threshold; what is left is a refinement of the clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from btcnb.cluster import Forest, cut_forest, refine
from btcnb.configuration import configuration
from btcnb.errors import ParameterError
from meanlink.cuts import N_MIN
from meanlink.forest import first_leaf, layout
from meanlink.progress import Progress

Units = Literal["addresses", "inputs"]
Rule = Literal["fixed", "lambda", "local"]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

ROWS_AT_ONCE = 2**15
"""Rows averaged at a time: their float64 copy takes 32 MB at 128 dimensions."""
VANISHED = 1e-6
"""Length below which a mean of unit rows says nothing: float32 rounding is of that order."""


@configuration
class Refiner:
    """How clusters are refined; the defaults are the paper's."""

    units: Units = "addresses"
    """leaves of the trees: single `addresses`, or groups of addresses that were `inputs` of one transaction"""
    threshold_rule: Rule = "lambda"
    """`fixed`: the number in `threshold`; `lambda`: the size-weighted mean of the clusters' own silhouette cuts;
    `local`: each cluster's own cut (clusters of fewer than `N_MIN` leaves take λ)"""
    threshold: Annotated[float, Field(gt=0, strict=True)] | None = None
    """of the rule `fixed`; None: the number that comes with the encoder, to be filled in before it is used"""
    method: Literal["average", "ward", "complete", "single"] = "average"
    """linkage, see `btcnb.cluster.linkage`"""

    def __post_init__(self) -> None:
        if self.threshold is not None and self.threshold_rule != "fixed":
            raise ParameterError(f"the rule {self.threshold_rule!r} finds its threshold itself: give none, or 'fixed'.")


@dataclass(frozen=True)
class Refined:
    """What `refined` found, for n addresses in k clusters.

    partition:  int64 (n,), a refinement of the initial partition
    threshold:  λ, or the fixed number; +inf where no cluster was large enough to say
    thresholds: float64 (k,), what the merges of each tree were compared with
    forest:     the trees, one for each initial cluster, over the leaves
    leaf:       int64 (n,), the leaf that an address belongs to: 0..leaves-1, in order of first appearance
    flagged:    table of undone merges, most suspicious first, in terms of addresses:
        cluster, height, threshold, excess    the initial cluster, the merge's height, its threshold, their difference
        size_left, size_right, left, right    addresses on either side, the larger on the left; position of the first
        suspicion                             excess times balance, see `btcnb.cluster.Refinement`
    zero_rows:  leaves whose embedding has no direction, see `btcnb.cluster.ClusterConfig`
    """

    partition: IntArray
    threshold: float
    thresholds: FloatArray
    forest: Forest
    leaf: IntArray
    flagged: pd.DataFrame
    zero_rows: int = 0

    @property
    def leaf_sizes(self) -> IntArray:
        """Addresses in every leaf."""
        return np.bincount(self.leaf, minlength=1).astype(np.int64)

    def above(self) -> npt.NDArray[np.bool_]:
        """Per merge of the forest whether it is undone for its own height."""
        return _excess(self.forest, self.thresholds) >= 0.0


def refined(X: Any, partition: Any, refiner: Refiner, groups: Any = None, progress: Progress = None) -> Refined:
    """Split the clusters of a partition (n,) where the embeddings X (n, d) and the recipe say so.

    groups: for units "inputs", one label per address, (n,): addresses of one group and one cluster are one leaf, whose
        row is the mean of their unit rows, and are never separated. Units "addresses" do not look at it.
    progress: as in `btcnb.cluster.dendrograms`
    """
    if refiner.threshold_rule == "fixed" and refiner.threshold is None:
        raise ParameterError("threshold_rule is 'fixed', but threshold is None: give the number.")
    rows, clusters = np.asarray(X), np.asarray(partition)
    leaf = np.arange(len(clusters))
    if refiner.units == "inputs":
        a, b = (np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in (clusters, groups))
        leaf = pd.factorize(a * (int(b.max(initial=0)) + 1) + b)[0].astype(np.int64)
    first = np.unique(leaf, return_index=True)[1].astype(np.int64)  # ascending: leaves are numbered by appearance
    if refiner.units == "inputs":
        rows, clusters = group_rows(rows, leaf), clusters[first]
    found = refine(rows, clusters, threshold=refiner.threshold, method=refiner.method, progress=progress)
    forest, labels, thresholds = found.forest, found.partition, np.full(len(found.forest), found.threshold)
    if refiner.threshold_rule == "local":
        own = forest.sizes >= N_MIN
        thresholds[own] = found.local["threshold"].to_numpy()
        if own.any():  # without any, nothing is cut
            labels = cut_forest(forest, _excess(forest, thresholds), 0.0)
    flagged = _flagged(forest, thresholds, np.bincount(leaf, minlength=len(first)), first)
    return Refined(labels[leaf], found.threshold, thresholds, forest, leaf, flagged, found.zero_rows)


def group_rows(X: npt.NDArray[Any], leaf: IntArray) -> npt.NDArray[np.float32]:
    """One row per leaf 0..g-1 of `leaf` (n,): the mean of its members' unit rows, scaled to length 1, float32 (g, d).

    Rows of zeros count for nothing in a mean; a leaf of such rows only, or of rows that cancel out, is a zero row.
    """
    sizes = np.bincount(leaf, minlength=1)
    out = np.zeros((len(sizes), X.shape[1]), dtype=np.float32)
    members = np.argsort(leaf, kind="stable")
    for start in range(0, len(members), ROWS_AT_ONCE):
        points = members[start : start + ROWS_AT_ONCE]
        opens = np.flatnonzero(np.diff(leaf[points], prepend=-1))  # where another leaf begins
        here = leaf[points[opens]]
        out[here] += np.add.reduceat(_unit(X[points].astype(np.float64)), opens, axis=0) / sizes[here, None]
    for start in range(0, len(out), ROWS_AT_ONCE):
        part = out[start : start + ROWS_AT_ONCE]
        part[:] = _unit(part.astype(np.float64), VANISHED)
    return out


def _unit(rows: FloatArray, least: float = 0.0) -> FloatArray:
    """Rows scaled to length 1; those of at most the `least` length become zero."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    none = length <= least
    return np.where(none, 0.0, rows / np.where(none, 1.0, length))


def _excess(forest: Forest, thresholds: FloatArray) -> FloatArray:
    """Height of every merge minus the threshold of its tree; negative exactly where the height is below it."""
    tree = np.repeat(np.arange(len(forest)), forest.sizes - 1)
    return np.asarray(forest.merges[:, 2] - thresholds[tree], dtype=np.float64)


def _flagged(forest: Forest, thresholds: FloatArray, sizes: IntArray, first: IntArray) -> pd.DataFrame:
    """The table of `Refined`; sizes, first: addresses in every leaf, and the position of its first one."""
    trees = forest.trees()
    excess, tree = _excess(forest, thresholds), trees.tree_of_merge
    flagged = np.flatnonzero(excess >= 0.0)
    start, order = layout(trees)  # in drawing order every subtree is a run of leaves
    total = np.concatenate([[0], np.cumsum(sizes[forest.members[order]])])
    addresses = total[start + trees.size] - total[start]
    sides = trees.children[flagged]
    swapped = addresses[sides[:, 1]] > addresses[sides[:, 0]]
    sides[swapped] = sides[swapped, ::-1]
    number, points = addresses[sides], first[forest.members[first_leaf(trees)[sides]]]
    balance = 4.0 * number[:, 0] * number[:, 1] / (number.sum(axis=1) ** 2.0)
    table = pd.DataFrame(
        {
            "cluster": forest.clusters[tree[flagged]],
            "height": trees.height[flagged],
            "threshold": thresholds[tree[flagged]],
            "excess": excess[flagged],
            "size_left": number[:, 0],
            "size_right": number[:, 1],
            "left": points[:, 0],
            "right": points[:, 1],
            "suspicion": excess[flagged] * balance,
        }
    )
    return table.sort_values(["suspicion", "excess"], ascending=False, kind="stable", ignore_index=True)
