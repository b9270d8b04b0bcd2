"""Change votes: what each of many heuristics says about the two outputs of a transaction, and how right it is."""

from btcnb.data.change_votes.permissive import Supercluster, permissive_clusters, supercluster, supercluster_share

__all__ = ["Supercluster", "permissive_clusters", "supercluster", "supercluster_share"]
