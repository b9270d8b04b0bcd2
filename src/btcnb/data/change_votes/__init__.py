"""Change votes: what each of many heuristics says about the two outputs of a transaction, and how right it is.

    votes = change_votes(txs)                      # 26 heuristics on every transaction with two outputs
    truth = revealed_change(txs)                   # change that later common inputs reveal
    vote_scores(votes, truth.known, truth.remaining).join(published_votes().add_prefix("published "))
    supercluster(txs)                              # what a permissive rule does to named services

The definitions follow Möser and Narayanan, "Resurrecting Address Clustering in Bitcoin", by their public notebooks.
"""

from btcnb.data.change_votes.constrained import constrained_merges
from btcnb.data.change_votes.permissive import permissive_clusters, services_together, supercluster
from btcnb.data.change_votes.truth import (
    KnownChange,
    RevealedChange,
    freshness,
    one_sender,
    published_votes,
    revealed_change,
    rule_precision,
    true_change,
    vote_scores,
)
from btcnb.data.change_votes.votes import (
    COLUMNS,
    EXTRA,
    FINGERPRINTS,
    HEURISTICS,
    UNIVERSAL,
    UNIVERSAL_COLUMNS,
    ChangeVotes,
    change_votes,
    has_vote,
    input_clusters,
    multi_input_clusters,
    output_rows,
    two_outputs,
    universal,
)

__all__ = [
    "COLUMNS",
    "EXTRA",
    "FINGERPRINTS",
    "HEURISTICS",
    "UNIVERSAL",
    "UNIVERSAL_COLUMNS",
    "ChangeVotes",
    "KnownChange",
    "RevealedChange",
    "change_votes",
    "constrained_merges",
    "freshness",
    "has_vote",
    "input_clusters",
    "multi_input_clusters",
    "one_sender",
    "output_rows",
    "permissive_clusters",
    "published_votes",
    "revealed_change",
    "rule_precision",
    "services_together",
    "supercluster",
    "true_change",
    "two_outputs",
    "universal",
    "vote_scores",
]
