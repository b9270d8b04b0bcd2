"""Point sets of known character, and oracles that do everything the slow way."""

from __future__ import annotations

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist


def clustered(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(2, n // 25), d))
    return (centres[rng.integers(len(centres), size=n)] + 0.4 * rng.normal(size=(n, d))).astype(np.float32)


def uniform(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def repeated(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Few distinct directions, each many times: ties at height 0, none elsewhere."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(max(2, n // 10), d))[rng.integers(max(2, n // 10), size=n)].astype(np.float32)


def bits(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Rows of zeros and ones: ties at every height, so that the dendrogram is not unique."""
    rows = np.random.default_rng(seed).integers(0, 2, size=(n, d)).astype(np.float32)
    rows[:, 0] = 1.0
    return rows


def speck(n: int, d: int, seed: int = 0) -> np.ndarray:
    """All points within 1e-4 of each other: float32 products cannot tell the distances apart."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=d) + 1e-4 * rng.normal(size=(n, d))


def spiral(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Angles that shrink by a constant factor: one reciprocal pair a round, a chain for a dendrogram."""
    angle = 0.8 ** np.arange(n) + 0 * seed
    rows = np.zeros((n, max(d, 2)))
    rows[:, 0], rows[:, 1] = np.cos(angle), np.sin(angle)
    return rows


def two_clumps(n: int, d: int, seed: int = 5) -> np.ndarray:
    """Two specks on opposite sides."""
    rows = speck(n, d, seed)
    rows[: n // 2] *= -1.0
    return rows


def late_axes(n: int, d: int, seed: int = 5) -> np.ndarray:
    """What tells rows apart stands in the last coordinates, the first ones are the same everywhere."""
    rows = np.ones((n, d))
    rows[:, d // 2 :] = clustered(n, d - d // 2, seed)
    return rows


def trained_like(n: int, d: int, seed: int = 5) -> np.ndarray:
    """Clusters in clusters over many orders of magnitude, in few directions."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, d))
    for size, spread in ((n // 4 + 1, 1.0), (n // 20 + 1, 0.3), (n // 2 + 1, 0.01), (n, 1e-4)):
        rows += spread * rng.normal(size=(size, d))[rng.integers(size, size=n)] / (1.0 + np.arange(d))
    return rows + 2.0 * np.eye(d)[0]


def unit(X: np.ndarray) -> np.ndarray:
    rows = X.astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def scipy_linkage(X: np.ndarray, method: str) -> np.ndarray:
    if method == "ward":
        return hierarchy.linkage(unit(X), "ward")
    return hierarchy.linkage(np.maximum(pdist(unit(X), "cosine"), 0.0), method)


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two label vectors group the points alike, whatever the labels are called."""
    pairs = len(np.unique(np.stack([a, b]), axis=1).T)
    return pairs == len(np.unique(a)) == len(np.unique(b))


def cuts_away_from_ties(heights: np.ndarray, number: int, gap: float = 1e-7) -> np.ndarray:
    """Up to `number` thresholds, spread over the tree, each in the middle of a gap between heights of at least
    `gap`.
    """
    heights = np.unique(heights)
    wide = np.flatnonzero(np.diff(heights) > gap)
    if not len(wide):
        return np.array([])
    chosen = wide[np.unique(np.linspace(0, len(wide) - 1, number).astype(int))]
    return (heights[chosen] + heights[chosen + 1]) / 2


def replay(X: np.ndarray, Z: np.ndarray, method: str, tolerance: float = 1e-9) -> None:
    """Merge naively, in the order of Z: every merge must join a closest pair of clusters, at that pair's distance."""
    rows = unit(X)
    clusters = {i: [i] for i in range(len(X))}
    cosine = np.maximum(1.0 - rows @ rows.T, 0.0)

    def distance(a: list[int], b: list[int]) -> float:
        if method == "average":
            return float(cosine[np.ix_(a, b)].mean())
        centres = rows[a].mean(axis=0) - rows[b].mean(axis=0)
        return float(np.sqrt(2 * len(a) * len(b) / (len(a) + len(b))) * np.linalg.norm(centres))

    for step, (a, b, height, size) in enumerate(Z):
        names = list(clusters)
        closest = min(distance(clusters[p], clusters[q]) for k, p in enumerate(names) for q in names[:k])
        left, right = clusters.pop(int(a)), clusters.pop(int(b))
        assert abs(height - distance(left, right)) <= tolerance
        assert height <= closest + tolerance
        assert size == len(left) + len(right)
        clusters[len(X) + step] = left + right
