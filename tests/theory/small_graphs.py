"""A graph that one can check by hand."""

from __future__ import annotations

import numpy as np

from btcnb.theory import ideal_adjacency


def two_cliques_and_a_bridge(size):
    """Adjacency and labels of two cliques of `size` nodes, joined by one edge between node 0 and node `size`."""
    labels = np.repeat(np.arange(2), size)
    A = ideal_adjacency(labels)
    A[0, size] = A[size, 0] = 1.0
    return A, labels
