"""σ_min(U_kᵀXW) is bounded by the rank of XW: neither many outputs nor many features alone make it positive."""

from __future__ import annotations

import numpy as np

from btcnb.theory import gcn_filter, ideal_adjacency, theorem_margin

LABELS = np.repeat(np.arange(5), 4)
GCN = {"normalised": True, "self_loops": True}


def sigma(features, outputs):
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((20, features)), rng.standard_normal((features, outputs))
    return theorem_margin(ideal_adjacency(LABELS), LABELS, X, gcn_filter(1), W=W, **GCN).sigma_min


def test_sigma_min_is_zero_with_fewer_features_than_clusters():
    """Four features, 128 outputs, five clusters: a wide W cannot make up for what X does not tell."""
    assert sigma(features=4, outputs=128) == 0.0


def test_sigma_min_is_positive_when_both_reach_the_number_of_clusters():
    assert sigma(features=5, outputs=5) > 0.01
    assert sigma(features=128, outputs=4) == 0.0
