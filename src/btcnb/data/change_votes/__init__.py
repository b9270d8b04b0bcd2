"""Change votes: what each of many heuristics says about the two outputs of a transaction, and how right it is.

    votes = change_votes(txs)                      # 26 heuristics on every transaction with two outputs
    truth = revealed_change(txs)                   # change that later common inputs reveal
    vote_scores(votes, truth.known, truth.remaining).join(published_votes().add_prefix("published "))
    supercluster(txs)                              # what a permissive rule does to named services

The definitions follow Möser and Narayanan, "Resurrecting Address Clustering in Bitcoin", by their public notebooks.
"""

from btcnb.data.change_votes.constrained import Constrained, constrained_merges, naive_merges
from btcnb.data.change_votes.output_rows import (
    COLUMNS,
    EXTRA,
    UNIVERSAL_COLUMNS,
    extra_features,
    has_vote,
    output_rows,
    universal,
)
from btcnb.data.change_votes.permissive import (
    Supercluster,
    permissive_clusters,
    services_together,
    supercluster,
    supercluster_share,
)
from btcnb.data.change_votes.revealed import (
    KnownChange,
    RevealedChange,
    freshness,
    one_sender,
    revealed_change,
    true_change,
)
from btcnb.data.change_votes.scores import published_votes, rule_precision, vote_scores
from btcnb.data.change_votes.two_outputs import TwoOutputs, input_clusters, multi_input_clusters, two_outputs
from btcnb.data.change_votes.votes import FINGERPRINTS, HEURISTICS, UNIVERSAL, ChangeVotes, change_votes

__all__ = [
    "COLUMNS",
    "EXTRA",
    "FINGERPRINTS",
    "HEURISTICS",
    "UNIVERSAL",
    "UNIVERSAL_COLUMNS",
    "ChangeVotes",
    "Constrained",
    "KnownChange",
    "RevealedChange",
    "Supercluster",
    "TwoOutputs",
    "change_votes",
    "constrained_merges",
    "extra_features",
    "freshness",
    "has_vote",
    "input_clusters",
    "multi_input_clusters",
    "naive_merges",
    "one_sender",
    "output_rows",
    "permissive_clusters",
    "published_votes",
    "revealed_change",
    "rule_precision",
    "services_together",
    "supercluster",
    "supercluster_share",
    "true_change",
    "two_outputs",
    "universal",
    "vote_scores",
]
