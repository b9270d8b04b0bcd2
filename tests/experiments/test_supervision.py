"""Wrong comparisons, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.errors import DataError
from btcnb.experiments.supervision import label_noise
from btcnb.learn import Tuples, TupleSampler

OWNERS = np.array([1, 1, 2, 2, 3, -1])


def tuples(anchor: list[int], positive: list[int], negatives: list[list[int]]) -> Tuples:
    return Tuples(np.array(anchor), np.array(positive), np.array(negatives))


def test_wrong_comparisons_by_hand() -> None:
    """Anchor 0 is right throughout; anchor 2 has a wrong positive; anchor 3 a wrong negative (2) and a right one."""
    found = label_noise(tuples([0, 2, 3], [1, 4, 2], [[2, 4], [0, 1], [2, 4]]), OWNERS)
    assert found.positives == pytest.approx(1 / 3)
    assert found.negatives == pytest.approx(1 / 6)
    assert found.anchors == pytest.approx(2 / 3)


def test_unknown_owners_are_not_judged() -> None:
    found = label_noise(tuples([0, 5], [5, 0], [[1, 5], [1, 2]]), OWNERS)
    assert np.isnan(found.positives), "neither positive can be judged"
    assert found.negatives == 1.0, "of the four negatives only (0, 1) can be judged, and it is wrong"
    assert found.anchors == 1.0
    assert np.isnan(label_noise(tuples([5], [0], [[1]]), OWNERS)).all()


def test_clusters_that_are_owners_give_no_noise_and_split_owners_give_false_negatives() -> None:
    owners = np.repeat(np.arange(4), 10)
    rng = np.random.default_rng(0)
    assert label_noise(TupleSampler(owners).draw(500, 4, rng), owners) == (0.0, 0.0, 0.0)
    halves = np.arange(40) // 5  # each owner in two clusters: of seven other clusters one is the owner's too
    found = label_noise(TupleSampler(halves).draw(20_000, 4, rng), owners)
    assert found.positives == 0.0
    assert found.negatives == pytest.approx(1 / 7, abs=0.005)
    assert found.anchors == pytest.approx(1 - (6 / 7) ** 4, abs=0.01)


def test_every_node_needs_an_owner() -> None:
    with pytest.raises(DataError, match="node 7 was drawn"):
        label_noise(tuples([0], [7], [[1]]), OWNERS)
