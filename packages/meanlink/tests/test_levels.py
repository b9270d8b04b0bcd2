"""Some levels of a dendrogram, each as if it had been cut and measured alone."""

from __future__ import annotations

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanlink import cut, linkage, silhouette, silhouette_levels

SHAPES = [shapes.clustered, shapes.uniform, shapes.bits, shapes.repeated]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_level_asked_for_is_the_silhouette_of_its_cut(shape) -> None:
    X = shape(3000, 12)
    Z = linkage(X)
    found = silhouette_levels(X, Z, clusters=np.geomspace(2, 1500, 12).astype(int))
    assert len(found.score) > 1 and np.all(np.diff(found.clusters) < 0)
    for threshold, clusters, score in zip(found.threshold, found.clusters, found.score, strict=True):
        flat = cut(Z, threshold)
        assert len(np.unique(flat)) == clusters
        assert score == pytest.approx(silhouette(X, flat), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(4, 60), seed=st.integers(0, 99), data=st.data())
def test_asking_for_all_levels_gives_all_levels(n: int, seed: int, data: st.DataObject) -> None:
    X = data.draw(st.sampled_from(SHAPES))(n, 3, seed)
    Z = linkage(X)
    every, found = silhouette_levels(X, Z), silhouette_levels(X, Z, clusters=np.arange(2, n))
    np.testing.assert_array_equal(found.clusters, every.clusters)
    np.testing.assert_array_equal(found.threshold, every.threshold)
    np.testing.assert_allclose(found.score, every.score, atol=1e-9)
    assert len(every.score) == 0 or found.best == every.best


def test_a_number_that_ties_forbid_is_the_next_larger_one_or_none() -> None:
    """Three pairs at one height, joined at two more: 6, then 3 clusters (2 equal merges skip 5 and 4), then 2."""
    Z = np.array([[0, 1, 0.1, 2], [2, 3, 0.1, 2], [4, 5, 0.1, 2], [6, 7, 0.5, 4], [8, 9, 0.9, 6]])
    X = shapes.uniform(6, 4)
    assert silhouette_levels(X, Z, clusters=[2]).clusters.tolist() == [2]
    assert silhouette_levels(X, Z, clusters=[2, 3]).clusters.tolist() == [3, 2]
    assert silhouette_levels(X, Z, clusters=[4, 5]).clusters.tolist() == [], (
        "no level leaves 4 or more and fewer than 6"
    )


@pytest.mark.parametrize("clusters", [[1], [6], ["two"], [2.5], [np.nan]])
def test_numbers_that_no_level_can_have_are_refused(clusters) -> None:
    X = shapes.uniform(6, 4)
    with pytest.raises(ValueError, match="clusters"):
        silhouette_levels(X, linkage(X), clusters=clusters)
