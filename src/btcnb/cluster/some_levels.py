"""The silhouette at some levels of a large dendrogram, for the price of the lowest of them.

`levels` measures all of them, or finds the best; in a tree of hundreds of thousands of leaves even that is long. Who
asks for some levels has them measured from the leaves up: the lists of nearest clusters that the lowest one needs serve
the levels above it, most of which then take no search at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from btcnb.cluster import _gate
from btcnb.cluster._progress import nobody
from btcnb.cluster._trees import ascending
from btcnb.cluster.levels import Levels, _Search
from btcnb.errors import ParameterError


def silhouettes_at(X: Any, Z: Any, clusters: Any, beat: Callable[[], None] = nobody) -> Levels:
    """Exact silhouettes of those flat partitions of Z (n-1, 4) that leave so many clusters, cosine distance.

    clusters: numbers from 2 to n-1; where merges of equal height make one impossible, the level with the next larger
        number is taken, and where there is none, none
    beat: called every second or so
    """
    rows = _gate.embedding(X)
    tree = ascending(_gate.tree(Z, len(rows)))
    wanted = np.atleast_1d(_gate.integers(clusters, "clusters", "numbers"))
    if not ((wanted >= 2) & (wanted < len(rows))).all():
        raise ParameterError(f"clusters must be numbers from 2 to {len(rows) - 1} for {len(rows)} points.")
    heights = tree.height
    last = np.flatnonzero(heights[1:] > heights[:-1])  # merge m closes a level if the next one is higher
    left = len(rows) - 1 - last  # clusters of each level, falling
    chosen = np.unique(np.searchsorted(-left, -wanted, side="right") - 1)
    chosen = chosen[chosen >= 0]
    search = _Search(_gate.unit_rows(X), tree, last, beat)
    for level in chosen:
        search.probe(int(level))
    here, above = heights[last[chosen]], heights[last[chosen] + 1]
    middle = here + (above - here) / 2
    return Levels(np.where(middle > here, middle, above), left[chosen], search.scores[chosen])
