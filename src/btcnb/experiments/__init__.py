"""Part IV: the experiments. Only notebooks and the command line import this."""

from btcnb.experiments.baseline_scores import COMMUNITIES, NETWORKS, baseline_scores

__all__ = ["COMMUNITIES", "NETWORKS", "baseline_scores"]
