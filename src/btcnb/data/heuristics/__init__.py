"""Address clustering by rules: who moves coins together is taken for one user.

The five rules of the graph-construction pipeline that the paper uses. Each rule looks at one transaction (and at
whether an address receives again later) and links some of its addresses; clusters are the connected components of all
links.
"""

from btcnb.data.heuristics.clusters import DEFAULT_RULES, heuristic_clusters, heuristic_merges, linked_twice
from btcnb.data.heuristics.rules import RULES, HeuristicConfig

__all__ = ["DEFAULT_RULES", "RULES", "HeuristicConfig", "heuristic_clusters", "heuristic_merges", "linked_twice"]
