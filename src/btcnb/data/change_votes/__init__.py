"""Change votes: what each of many heuristics says about the two outputs of a transaction, and how right it is.

    votes = change_votes(txs)                      # 26 heuristics on every transaction with two outputs
    truth = revealed_change(txs)                   # change that later common inputs reveal
    vote_scores(votes, truth.known, truth.remaining).join(published_votes().add_prefix("published "))
    supercluster(txs)                              # what a permissive rule does to named services

The definitions follow Möser and Narayanan, "Resurrecting Address Clustering in Bitcoin", by their public notebooks.
"""

from btcnb.data.change_votes.permissive import (
    PUBLISHED_COVERAGE,
    PUBLISHED_SERVICES,
    PUBLISHED_SWALLOWED,
    Supercluster,
    permissive_clusters,
    supercluster,
    supercluster_share,
)
from btcnb.data.change_votes.revealed import KnownChange, RevealedChange, freshness, revealed_change, true_change
from btcnb.data.change_votes.scores import published_votes, rule_precision, vote_scores
from btcnb.data.change_votes.two_outputs import TwoOutputs, multi_input_clusters, two_outputs
from btcnb.data.change_votes.votes import FINGERPRINTS, HEURISTICS, UNIVERSAL, ChangeVotes, change_votes

__all__ = [
    "FINGERPRINTS",
    "HEURISTICS",
    "PUBLISHED_COVERAGE",
    "PUBLISHED_SERVICES",
    "PUBLISHED_SWALLOWED",
    "UNIVERSAL",
    "ChangeVotes",
    "KnownChange",
    "RevealedChange",
    "Supercluster",
    "TwoOutputs",
    "change_votes",
    "freshness",
    "multi_input_clusters",
    "permissive_clusters",
    "published_votes",
    "revealed_change",
    "rule_precision",
    "supercluster",
    "supercluster_share",
    "true_change",
    "two_outputs",
    "vote_scores",
]
