"""Graphs whose communities are known: cliques in a ring."""

from __future__ import annotations

import numpy as np


def cliques(sizes: list[int], bridges: int = 1) -> tuple[np.ndarray, int]:
    """Cliques in a ring, neighbours joined by single edges."""
    edges, start, firsts = [], 0, []
    for size in sizes:
        firsts.append(start)
        edges += [(start + i, start + j) for i in range(size) for j in range(i)]
        start += size
    edges += [(firsts[i], firsts[(i + 1) % len(firsts)]) for i in range(len(firsts)) for _ in range(bridges)]
    return np.array(edges).T, start
