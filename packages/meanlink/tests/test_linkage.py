"""`linkage` against SciPy, against a naive replay of its own merges, and at the edges of its contract."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster import hierarchy

from meanlink import cut, linkage
from meanlink.linkage import distinct_rows

module = sys.modules["meanlink.linkage"]

UNIQUE = (shapes.clustered, shapes.uniform, shapes.repeated, shapes.speck)


@pytest.mark.parametrize("method", ["average", "ward"])
@pytest.mark.parametrize("n, d", [(2, 3), (3, 2), (40, 1), (300, 2), (900, 16), (1500, 128)])
@pytest.mark.parametrize("shape", UNIQUE, ids=lambda shape: shape.__name__)
def test_heights_and_cuts_agree_with_scipy(shape, n: int, d: int, method: str) -> None:
    X = shape(n, d)
    ours, theirs = linkage(X, method), shapes.scipy_linkage(X, method)
    assert np.abs(ours[:, 2] - theirs[:, 2]).max() < 1e-6
    scale = theirs[-1, 2]
    for height in shapes.cuts_away_from_ties(theirs[:, 2], 100, gap=max(1e-7 * scale, 1e-13)):
        assert shapes.same_partition(
            hierarchy.fcluster(ours, height, "distance"), hierarchy.fcluster(theirs, height, "distance")
        )


@pytest.mark.parametrize("method", ["average", "ward"])
@pytest.mark.parametrize("shape", [*UNIQUE, shapes.bits, shapes.spiral], ids=lambda shape: shape.__name__)
def test_every_merge_joins_a_closest_pair(shape, method: str) -> None:
    X = shape(60, 6)
    shapes.replay(X, linkage(X, method), method)


@pytest.mark.parametrize("shape", [*UNIQUE, shapes.bits, shapes.spiral], ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
def test_result_is_a_valid_monotone_tree(shape, method: str) -> None:
    Z = linkage(shape(400, 8), method)
    assert Z.shape == (399, 4) and Z.dtype == np.float64
    assert hierarchy.is_valid_linkage(Z) and hierarchy.is_monotonic(Z)
    assert (np.diff(Z[:, 2]) >= 0).all() and (Z[:, 2] >= 0).all() and (Z[:, 0] < Z[:, 1]).all()


@pytest.mark.parametrize("limit", [5_000, 1])
@pytest.mark.parametrize("method", ["ward", "complete", "single"])
@pytest.mark.parametrize("n", [2, 3, 255, 256, 257, 258, 513])
def test_the_other_methods_are_scipys_with_either_matrix(
    n: int, method: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MATRIX_POINTS", limit)
    X = shapes.clustered(n, 5)
    np.testing.assert_allclose(linkage(X, method), shapes.scipy_linkage(X, method), atol=1e-12)


@pytest.mark.parametrize("method", ["ward", "single"])
def test_without_memory_for_distances_wards_and_single_linkage_do_without(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MATRIX_POINTS", 1)
    monkeypatch.setattr(module._validate, "_free_bytes", lambda: 500_000)
    X = shapes.clustered(400, 5)
    np.testing.assert_allclose(linkage(X, method), shapes.scipy_linkage(X, method), atol=1e-12)
    with pytest.raises(ValueError, match="bytes"):
        linkage(X, "complete")


@pytest.mark.parametrize("shape", UNIQUE, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
def test_the_ways_of_small_and_of_large_inputs_agree(shape, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = shape(700, 24)
    small = linkage(X, method)
    monkeypatch.setattr(module, "MATRIX_POINTS", 1)
    large = linkage(X, method)
    assert np.abs(small[:, 2] - large[:, 2]).max() < (1e-7 if method == "ward" else 1e-14)
    for threshold in shapes.cuts_away_from_ties(large[:, 2], 30, gap=max(1e-7 * large[-1, 2], 1e-13)):
        assert shapes.same_partition(cut(small, threshold), cut(large, threshold))


def test_two_points_at_a_right_angle() -> None:
    X = np.array([[3.0, 0.0], [0.0, 0.5]])
    np.testing.assert_allclose(linkage(X, "average"), [[0, 1, 1.0, 2]])
    np.testing.assert_allclose(linkage(X, "ward"), [[0, 1, np.sqrt(2), 2]])


def test_three_points_by_hand() -> None:
    # angles 0°, 60°, 90°: the nearest pair is (60°, 90°); the third is at (1 - cos 60° + 1 - cos 90°) / 2 = 3/4
    angle = np.deg2rad([0.0, 60.0, 90.0])
    Z = linkage(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    np.testing.assert_allclose(Z, [[1, 2, 1 - np.sqrt(3) / 2, 2], [0, 3, 0.75, 3]])


def test_progress_is_heard_before_the_first_merge_and_can_end_the_work() -> None:
    heard: list[int] = []

    def stop(done: int, total: int) -> None:
        heard.append(done)
        if len(heard) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        linkage(shapes.uniform(9000, 16), progress=stop)
    assert heard == [0] * 5


def test_progress_counts_every_merge() -> None:
    heard: list[tuple[int, int]] = []
    linkage(shapes.repeated(300, 4), progress=lambda done, total: heard.append((done, total)))
    done = [d for d, _ in heard]
    assert done == sorted(done) and heard[-1] == (299, 299)


def test_equal_rows_are_found_whatever_stands_between_them() -> None:
    """Rows that differ by less than any rounding of a projection, in turn: every second one is the same."""
    near = np.array([0.6, 0.8])
    rows = np.stack([near, np.nextafter(near, 1), near, np.nextafter(near, 1), near, [-0.0, 1.0], [0.0, 1.0]])
    first, copies, sizes = distinct_rows(rows)
    assert first.tolist() == [0, 1, 5] and copies.tolist() == [0, 1, 0, 1, 0, 2, 2]
    assert sizes.tolist() == [3, 2, 2]


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 24), st.integers(1, 4)),
        elements=st.integers(-3, 3).map(float) | st.floats(-1, 1, width=32),
    ),
    st.sampled_from(["average", "ward"]),
)
def test_any_points_give_a_tree_that_replays(X: np.ndarray, method: str) -> None:
    X = X[np.abs(X).max(axis=1) > 1e-6]
    assume(len(X) >= 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = linkage(X, method)
    assert hierarchy.is_valid_linkage(Z)
    shapes.replay(X, Z, method, tolerance=1e-7)
