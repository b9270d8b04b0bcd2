"""Random points in separated clusters, and whether each linkage, cut inside the gap, gives the clusters back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from btcnb.theory.separation import separation


def same_partition(p: npt.ArrayLike, q: npt.ArrayLike) -> bool:
    """Whether two labellings of the same points are equal up to the names of the clusters."""
    both = np.stack([np.asarray(p), np.asarray(q)])
    pairs = np.unique(both, axis=1).shape[1]
    return bool(pairs == len(np.unique(both[0])) == len(np.unique(both[1])))


def perfect_cut_trials(trials: int, methods: Sequence[str], rng: np.random.Generator) -> tuple[int, dict[str, int]]:
    """How many of `trials` random sets were separated, and for how many of these each method's cut was perfect.

    A set has 25 points in up to four clusters in four dimensions. The cut lies at a random height inside the gap.
    """
    separated, perfect = 0, dict.fromkeys(methods, 0)
    for _ in range(trials):
        labels = rng.integers(0, 4, 25)
        points = 4 * np.eye(4)[labels] + rng.uniform(-0.8, 0.8, (25, 4))
        gap = separation(points, labels)
        if not gap.separable:
            continue
        separated += 1
        for method in methods:
            height = rng.uniform(gap.intra_max, gap.inter_min)
            perfect[method] += same_partition(fcluster(linkage(points, method), height, "distance"), labels)
    return separated, perfect
