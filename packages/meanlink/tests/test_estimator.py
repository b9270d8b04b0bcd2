"""The estimator: scikit-learn's own checks, and the same trees and clusters as AgglomerativeClustering."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import meanlink

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from meanlink import MeanLinkage


def points(n: int = 120, d: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 3.0 * np.eye(d)[rng.integers(d, size=n)] + rng.normal(size=(n, d))


@parametrize_with_checks([MeanLinkage(), MeanLinkage(method="ward"), MeanLinkage(n_clusters=1, method="complete")])
def test_the_conventions_of_scikit_learn_are_kept(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("method", ["average", "complete", "single"])
@pytest.mark.parametrize("settings", [{"n_clusters": 7}, {"n_clusters": None, "distance_threshold": 0.4}], ids=str)
def test_tree_and_clusters_are_those_of_scikit_learn(method: str, settings: dict) -> None:
    X = points()
    ours = MeanLinkage(method=method, **settings).fit(X)
    theirs = AgglomerativeClustering(metric="cosine", linkage=method, compute_distances=True, **settings).fit(X)
    np.testing.assert_allclose(ours.distances_, np.sort(theirs.distances_), atol=1e-12)
    assert ours.n_clusters_ == theirs.n_clusters_ == len(np.unique(ours.labels_))
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0
    assert ours.n_leaves_ == 120 and ours.n_features_in_ == 6


def test_ward_works_on_rows_of_length_one() -> None:
    X = points()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    ours = MeanLinkage(n_clusters=5, method="ward").fit(X)
    theirs = AgglomerativeClustering(n_clusters=5, linkage="ward", compute_distances=True).fit(unit)
    np.testing.assert_allclose(ours.distances_, np.sort(theirs.distances_), atol=1e-9)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1.0


def test_the_attributes_are_parts_of_the_linkage_matrix() -> None:
    X = points(30)
    model = MeanLinkage(n_clusters=4).fit(X)
    Z = meanlink.linkage(X)
    np.testing.assert_array_equal(model.linkage_, Z)
    np.testing.assert_array_equal(model.children_, Z[:, :2])
    np.testing.assert_array_equal(model.distances_, Z[:, 2])
    assert model.children_.dtype == np.int64


def test_clusters_are_numbered_in_order_of_appearance() -> None:
    X = np.repeat(np.eye(3), 2, axis=0)[[4, 0, 5, 2, 1, 3]]
    assert MeanLinkage(n_clusters=3).fit_predict(X).tolist() == [0, 1, 0, 2, 1, 2]


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 6])
def test_every_number_of_clusters_can_be_had_also_among_ties(n_clusters: int) -> None:
    """Six rows at right angles: all merges have height 1, and yet every number of clusters is possible."""
    model = MeanLinkage(n_clusters=n_clusters).fit(np.eye(6))
    assert model.n_clusters_ == len(np.unique(model.labels_)) == n_clusters


def test_a_merge_at_the_threshold_is_undone() -> None:
    X = np.eye(2)  # one merge, at height 1
    assert MeanLinkage(n_clusters=None, distance_threshold=1.0).fit(X).n_clusters_ == 2
    assert MeanLinkage(n_clusters=None, distance_threshold=np.nextafter(1.0, 2.0)).fit(X).n_clusters_ == 1


def test_one_row_is_one_cluster() -> None:
    model = MeanLinkage(n_clusters=1).fit(np.ones((1, 3)))
    assert model.labels_.tolist() == [0] and model.children_.shape == (0, 2) and model.n_clusters_ == 1
    assert MeanLinkage(n_clusters=None, distance_threshold=0.3).fit(np.ones((1, 3))).labels_.tolist() == [0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_clusters": None}, "Exactly one of n_clusters and distance_threshold"),
        ({"n_clusters": 2, "distance_threshold": 0.1}, "Exactly one of n_clusters and distance_threshold"),
        ({"n_clusters": 0}, "n_clusters is 0"),
        ({"n_clusters": 2.0}, "n_clusters is 2.0"),
        ({"n_clusters": True}, "n_clusters is True"),
        ({"n_clusters": 31}, "n_clusters=31 is more than n_samples=30"),
        ({"n_clusters": None, "distance_threshold": -0.1}, "distance_threshold is -0.1"),
        ({"n_clusters": None, "distance_threshold": float("nan")}, "distance_threshold is nan"),
        ({"n_clusters": None, "distance_threshold": "0.1"}, "distance_threshold is '0.1'"),
        ({"method": "median"}, "method"),
    ],
)
def test_wrong_settings_are_named(settings: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MeanLinkage(**settings).fit(points(30))


@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
def test_rows_of_zeros_are_one_cluster_at_right_angles_to_all_others(method: str) -> None:
    X = np.concatenate([np.tile([1.0, 0.1], (5, 1)), np.zeros((3, 2))])[[0, 5, 1, 6, 2, 7, 3, 4]]
    with pytest.warns(UserWarning, match="3 of 8 rows are all zeros"):
        model = MeanLinkage(n_clusters=2, method=method).fit(X)
    assert model.labels_.tolist() == [0, 1, 0, 1, 0, 1, 0, 0] and model.n_features_in_ == 2
    top = np.sqrt(2 * 2 * 5 * 3 / 8) if method == "ward" else 1.0
    np.testing.assert_allclose(model.distances_, [0.0] * 6 + [top], atol=1e-9)


def test_copies_keep_settings_and_results() -> None:
    model = MeanLinkage(n_clusters=3, method="ward").fit(points(30))
    assert clone(model).get_params() == {"n_clusters": 3, "distance_threshold": None, "method": "ward"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)


def test_without_scikit_learn_the_functions_work_and_the_estimator_says_what_is_missing() -> None:
    code = """if True:
        import sys
        import numpy as np
        sys.modules["sklearn"] = None  # as if it were not installed
        import meanlink
        assert meanlink.linkage(np.eye(3)).shape == (2, 4)
        try:
            meanlink.MeanLinkage
        except ImportError as error:
            assert "pip install scikit-learn" in str(error), error
        else:
            raise SystemExit("no error")"""
    subprocess.run([sys.executable, "-c", code], check=True)
