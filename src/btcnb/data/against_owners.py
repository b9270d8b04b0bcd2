"""Partitions of addresses against the true owners: which clusters hold strangers, and how many pairs are right.

Addresses whose owner nobody knows (-1) are left out of every count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.union_find import UnionFind
from btcnb.errors import ParameterError

IntArray = npt.NDArray[np.int64]


def components(size: int, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
    """The partition of 0..size-1 that the merges a[i], b[i] make: labels 0..k-1, numbered by their lowest member."""
    merges = UnionFind(size)
    merges.union(a, b)
    return merges.labels()


def owners_in(labels: IntArray, owner: IntArray) -> pd.DataFrame:
    """Per cluster with a known owner: `addresses` (of known owners) and `owners`, indexed by label."""
    known = _known(labels, owner)
    grouped = pd.Series(owner[known]).groupby(labels[known])
    return pd.DataFrame({"addresses": grouped.size(), "owners": grouped.nunique()})


def pair_scores(labels: IntArray, owner: IntArray) -> tuple[float, float]:
    """Precision and recall over pairs of addresses; NaN where there is no pair to count."""
    known = _known(labels, owner)
    both = pd.DataFrame({"label": labels[known], "owner": owner[known]})
    right, together, same = (_pairs(both.groupby(columns).size()) for columns in (["label", "owner"], "label", "owner"))
    return right / together if together else float("nan"), right / same if same else float("nan")


def pieces_per_owner(labels: IntArray, owner: IntArray) -> float:
    """Clusters over which an owner is scattered, on average; NaN where no owner is known."""
    known = _known(labels, owner)
    both = pd.DataFrame({"label": labels[known], "owner": owner[known]}).drop_duplicates()
    return len(both) / both["owner"].nunique() if len(both) else float("nan")


def against_owners(labels: IntArray, owner: IntArray) -> dict[str, float]:
    """One row of a table that compares partitions. A cluster has collapsed when it holds several owners.

    clusters, largest (share of addresses in the largest cluster), collapsed (clusters), in_collapsed (share of
    addresses in them), most_owners (in one cluster), precision, recall (pairs)
    """
    held = owners_in(labels, owner)
    number = max(int(held["addresses"].sum()), 1)
    over = held["owners"] > 1
    precision, recall = pair_scores(labels, owner)
    return {
        "clusters": len(held),
        "largest": float(held["addresses"].max()) / number if len(held) else float("nan"),
        "collapsed": int(over.sum()),
        "in_collapsed": float(held.loc[over, "addresses"].sum()) / number,
        "most_owners": int(held["owners"].max()) if len(held) else 0,
        "precision": precision,
        "recall": recall,
    }


def _pairs(sizes: pd.Series) -> float:
    count = sizes.to_numpy(dtype=np.float64)
    return float((count * (count - 1) / 2).sum())


def _known(labels: IntArray, owner: IntArray) -> npt.NDArray[np.bool_]:
    if len(labels) != len(owner):
        raise ParameterError(f"{len(labels)} labels stand against {len(owner)} owners; both are one per address.")
    return owner >= 0
