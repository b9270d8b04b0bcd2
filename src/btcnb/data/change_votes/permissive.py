"""The permissive rule and what it does: the only fresh output is change, and services fall into one supercluster.

The rule goes back to Meiklejohn et al. (2013). `local`: an output is fresh when its address was never seen before this
transaction. `global`: when its address is paid only once in all of the data (our reading of the name: it needs to know
the future). In both, the one fresh output of two is change. Möser and Narayanan count 273 services with a name; after
merging, 166 of them (61 %) lie in one cluster with the local rule, 113 (41 %) with a random forest's votes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from btcnb.data.change_votes.votes import (
    TwoOutputs,
    VoteArray,
    first_seen,
    input_clusters,
    multi_input_clusters,
    only_candidate,
    two_outputs,
)
from btcnb.data.components import components
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError

Variant = Literal["local", "global"]


class Supercluster(NamedTuple):
    """The cluster in which most named services end, after merging by a permissive rule."""

    services: int  # names that occur as public labels
    swallowed: int  # of them, those whose home lies in the cluster
    touched: int  # of them, those with any labelled address in it
    before: int  # most homes in one cluster before the rule, by common inputs only
    addresses: float  # share of all addresses that lie in the cluster
    coverage: float  # share of the remaining transactions (no output known as change) in which the rule votes

    @property
    def share(self) -> float:
        """Published: 0.61 (local rule), 0.41 (random forest)."""
        return self.swallowed / self.services


def permissive_clusters(txs: Transactions, variant: Variant = "local", base: IntArray | None = None) -> IntArray:
    """One label per address: common inputs, and every input cluster merged with its only fresh output.

    base: the clustering by common inputs, where it is at hand. Transactions that it shows an output of the senders in
    are left alone.
    """
    return _merged(txs, multi_input_clusters(txs) if base is None else base, variant)[0]


def supercluster(txs: Transactions, variant: Variant = "local") -> Supercluster:
    """How many named services the permissive rule throws together.

    A service's home is the cluster of common inputs that holds most of its labelled addresses (of several such the
    largest), as public tags name a service's largest cluster.
    """
    base = multi_input_clusters(txs)
    merged, coverage = _merged(txs, base, variant)
    return services_together(txs, base, merged, coverage)


def services_together(
    txs: Transactions, base: IntArray, merged: IntArray, coverage: float = float("nan")
) -> Supercluster:
    """The cluster of `merged` in which most named services have their homes; homes are clusters of `base`.

    base, merged: one label per address, 0..k-1; coverage is handed through
    """
    label = np.array([]) if txs.truth is None or txs.truth.label is None else np.asarray(txs.truth.label, dtype=object)
    labelled = np.flatnonzero(label != "")
    if not len(labelled):
        raise DataError(txs.source, "truth.label", "names nobody", "give public names of addresses, or simulate")
    named = pd.DataFrame({"name": label[labelled], "address": labelled, "cluster": base[labelled]})
    named["size"] = np.bincount(base)[named["cluster"]]
    named["count"] = named.groupby(["name", "cluster"])["address"].transform("size")
    ranked = named.sort_values(["count", "size", "address"], ascending=[False, False, True], kind="stable")
    home = ranked.groupby("name")["address"].first().to_numpy()  # one address of each service, in its home
    giant = int(np.bincount(merged[home]).argmax())
    return Supercluster(
        services=len(home),
        swallowed=int((merged[home] == giant).sum()),
        touched=int(named["name"][merged[labelled] == giant].nunique()),
        before=int(np.bincount(base[home]).max()),
        addresses=float((merged == giant).mean()),
        coverage=coverage,
    )


def fresh_output(txs: Transactions, two: TwoOutputs, variant: Variant = "local") -> VoteArray:
    """Per eligible transaction the index (0, 1) of its only fresh output, -1 where none or both are fresh."""
    address = txs.outputs["address"].to_numpy()
    if variant == "local":
        return only_candidate(first_seen(txs)[address[two.rows]] == two.tx[:, None])
    receipts = np.bincount(address[address >= 0], minlength=txs.num_addresses)
    return only_candidate(receipts[address[two.rows]] == 1)


def _merged(txs: Transactions, base: IntArray, variant: Variant) -> tuple[IntArray, float]:
    """Clusters after the rule, and the share of remaining transactions in which it voted."""
    two = two_outputs(txs)
    own = input_clusters(txs, two.tx, base)
    address = txs.outputs["address"].to_numpy()[two.rows]
    remaining = (own >= 0) & (base[address] != own[:, None]).all(axis=1)
    vote = fresh_output(txs, two, variant)
    merges = remaining & (vote >= 0)
    change = address[np.arange(len(vote)), np.maximum(vote, 0)][merges]
    merged = components(int(base.max()) + 1 if len(base) else 0, own[merges], base[change])
    coverage = float((vote[remaining] >= 0).mean()) if remaining.any() else float("nan")
    return merged[base], coverage
