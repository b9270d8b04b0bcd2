"""How badly the heuristics fail on a chain whose owners are known: one row for each setting of the dial `disorder`."""

from __future__ import annotations

from contextlib import suppress

from btcnb.data.against_owners import against_owners
from btcnb.data.change_votes import supercluster_share
from btcnb.data.collapses import marked
from btcnb.data.entity_pairs import COUNTS, entity_counts, interval_config
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters, heuristic_merges
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError
from btcnb.gates import instance

NOTHING = float("nan")


def failures(
    txs: Transactions, config: HeuristicConfig | None = None, *, transactions: int = 250, seed: int = 0
) -> dict[str, float]:
    """The heuristics' failures on a whole chain with truth.

    precision, recall (pairs of addresses, against owners), in_collapsed (share of addresses that share a cluster with a
    stranger's), largest (share of addresses in the largest cluster), most_owners (in one cluster), wrong (share of all
    merges), services (share of the named services that the permissive rule throws together), and TP, FP, FN, TN: the
    four counts of the paper's entity test in % of its pairs. NaN where there is nothing to count.

    config:       thresholds of the rules; default: with the price of the paper's interval
    transactions: drawn in the entity test, with `seed`
    """
    truth = instance("txs", txs, Transactions).truth
    if truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    config = interval_config(txs) if config is None else config
    merges = marked(heuristic_merges(txs, config=config), truth.owner)
    row = against_owners(heuristic_clusters(txs, config=config), truth.owner)
    row["wrong"] = float(merges["wrong"].mean()) if len(merges) else NOTHING
    row["services"] = NOTHING
    row |= dict.fromkeys(COUNTS, NOTHING)
    with suppress(DataError):  # public names do not suffice
        row["services"] = supercluster_share(txs)
    with suppress(DataError):
        counts = entity_counts(txs, transactions=transactions, seed=seed, config=config).mean
        row |= {name: float(counts[name]) for name in COUNTS}
    return row
