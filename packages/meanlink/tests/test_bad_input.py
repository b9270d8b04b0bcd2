"""Unusual and malformed input: a result that equals that of plain input, or one clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import meanlink

N = 12
X = np.random.default_rng(0).normal(size=(N, 3))
LABELS = np.arange(N) % 3
Z = meanlink.linkage(X)

OF_ROWS: dict[str, Callable[[Any], Any]] = {
    "linkage": meanlink.linkage,
    "ward linkage": lambda rows: meanlink.linkage(rows, "ward"),
    "complete linkage": lambda rows: meanlink.linkage(rows, "complete"),
    "single linkage": lambda rows: meanlink.linkage(rows, "single"),
    "silhouette": lambda rows: meanlink.silhouette(rows, LABELS),
    "silhouette_samples": lambda rows: meanlink.silhouette_samples(rows, LABELS),
    "silhouette_levels": lambda rows: meanlink.silhouette_levels(rows, Z).score,
    "cut_silhouette": lambda rows: meanlink.cut_silhouette(rows, Z),
    "dendrograms": lambda rows: meanlink.dendrograms(rows, LABELS).merges,
}
"""Every function of rows, with its other arguments fixed."""

OF_TREES: dict[str, Callable[[Any], Any]] = {
    "cut": lambda tree: meanlink.cut(tree, 0.5),
    "cut_gap": meanlink.cut_gap,
    "cut_inconsistency": meanlink.cut_inconsistency,
    "cut_silhouette": lambda tree: meanlink.cut_silhouette(X, tree),
    "silhouette_levels": lambda tree: meanlink.silhouette_levels(X, tree),
    "dendrogram_purity": lambda tree: meanlink.dendrogram_purity(tree, LABELS),
}

OF_LABELS: dict[str, Callable[[Any], Any]] = {
    "silhouette": lambda labels: meanlink.silhouette(X, labels),
    "silhouette_samples": lambda labels: meanlink.silhouette_samples(X, labels),
    "dendrograms": lambda labels: meanlink.dendrograms(X, labels),
    "dendrogram_purity": lambda labels: meanlink.dendrogram_purity(Z, labels),
}


class Hostile:
    """Refuses to be an array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array here")


def padded(rows: np.ndarray) -> np.ndarray:
    """The same numbers, every second one of a larger array: not contiguous."""
    wide = np.full((2 * len(rows), 2 * rows.shape[1]), 7.0)
    wide[::2, ::2] = rows
    return wide[::2, ::2]


def read_only(rows: np.ndarray) -> np.ndarray:
    copy = rows.copy()
    copy.setflags(write=False)
    return copy


SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "a list": lambda rows: rows.tolist(),
    "read-only": read_only,
    "not contiguous": padded,
    "Fortran order": np.asfortranarray,
    "reversed twice": lambda rows: rows[::-1].copy()[::-1],
    "other byte order": lambda rows: rows.astype(">f8"),
    "other lengths": lambda rows: rows * np.geomspace(1e-150, 1e150, len(rows))[:, None],
    "objects that hold numbers": lambda rows: [[float(value) for value in row] for row in rows],
}


@pytest.mark.parametrize("function", OF_ROWS)
@pytest.mark.parametrize("form", SAME)
def test_the_form_of_the_rows_does_not_matter(function: str, form: str) -> None:
    plain = OF_ROWS[function](X)
    np.testing.assert_allclose(OF_ROWS[function](SAME[form](X)), plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", OF_ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint16])
def test_narrow_numbers_count_as_the_numbers_they_are(function: str, dtype: type) -> None:
    rows = (np.abs(4 * X) + 1).astype(dtype)
    np.testing.assert_array_equal(OF_ROWS[function](rows), OF_ROWS[function](rows.astype(np.float64)))


@pytest.mark.parametrize("function", OF_ROWS)
def test_tensors_with_a_gradient_are_read(function: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(OF_ROWS[function](tensor), OF_ROWS[function](X))
    assert tensor.requires_grad


@pytest.mark.parametrize("function", OF_ROWS)
def test_the_rows_are_left_alone(function: str) -> None:
    rows = 5 * X
    OF_ROWS[function](rows)
    np.testing.assert_array_equal(rows, 5 * X)


def with_row(value: float) -> np.ndarray:
    rows = X.copy()
    rows[7] = value
    return rows


WRONG_ROWS = {
    "NaN": (with_row(np.nan), "(?i)row 7 .*NaN"),
    "infinity": (with_row(np.inf), "(?i)row 7 .*infinity"),
    "a row of zeros": (with_row(0.0), "(?i)row 7 .*zeros"),
    "one dimension": (X[:, 0], "shape"),
    "three dimensions": (X[None], "shape"),
    "no columns": (X[:, :0], "shape"),
    "complex numbers": (X + 1j, "complex"),
    "text": (X.astype(str), "(?i)real numbers"),
    "dates": (X.astype("datetime64[s]"), "(?i)real numbers"),
    "ragged lists": ([[1.0, 2.0], [3.0]], "array"),
    "no array": (Hostile(), "array"),
    "nothing": (None, "X"),
    "a number": (3.0, "shape"),
}


@pytest.mark.parametrize("function", OF_ROWS)
@pytest.mark.parametrize("problem", WRONG_ROWS)
def test_rows_without_a_meaning_are_refused_in_one_sentence(function: str, problem: str) -> None:
    rows, said = WRONG_ROWS[problem]
    with pytest.raises(ValueError, match=said) as caught:
        OF_ROWS[function](rows)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
def test_one_point_has_no_tree(method: str) -> None:
    for rows in (X[:1], X[:0]):
        with pytest.raises(ValueError, match="two"):
            meanlink.linkage(rows, method)


@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
@pytest.mark.parametrize("n", [2, 3, 40])
def test_identical_points_merge_at_height_zero(method: str, n: int) -> None:
    tree = meanlink.linkage(np.tile([0.3, -0.2, 0.1], (n, 1)), method)
    np.testing.assert_allclose(tree[:, 2], 0.0, atol=1e-7 if method == "ward" else 1e-12)
    assert tree[-1, 3] == n
    assert meanlink.cut(tree, 0.5).tolist() == [0] * n


@pytest.mark.parametrize("function", OF_TREES)
def test_tables_that_are_no_trees_are_refused(function: str) -> None:
    wrong_entries = [(0, -1.0), (0, 1e9), (0, 0.5), (1, np.nan), (2, np.nan), (2, np.inf), (3, 1.0), (3, -1.0)]
    for column, value in wrong_entries:
        wrong = Z.copy()
        wrong[4, column] = value
        with pytest.raises(ValueError, match="Z"):
            OF_TREES[function](wrong)
    for wrong in (Z[:, :3], Z[0], None, "tree", Z[::-1]):
        with pytest.raises(ValueError, match="Z"):
            OF_TREES[function](wrong)


@pytest.mark.parametrize("function", OF_LABELS)
def test_labels_of_another_length_are_refused(function: str) -> None:
    for wrong in (LABELS[:-1], LABELS[None], LABELS + np.nan, [{}] * N, Hostile()):
        with pytest.raises(ValueError, match=r"labels|partition"):
            OF_LABELS[function](wrong)


@pytest.mark.parametrize("function", OF_LABELS)
def test_labels_may_be_text(function: str) -> None:
    names = np.array(["a", "b", "c"])[LABELS]
    wanted, found = OF_LABELS[function](LABELS), OF_LABELS[function](names)
    if function == "dendrograms":
        wanted, found = wanted.merges, found.merges
    np.testing.assert_array_equal(found, wanted)


def test_unknown_names_are_refused() -> None:
    for wrong in ("median", None, 3, "average" * 100):
        with pytest.raises(ValueError, match="method is"):
            meanlink.linkage(X, wrong)
    with pytest.raises(ValueError, match="cut"):
        meanlink.local_thresholds(X, meanlink.dendrograms(X, LABELS), "elbow")


def test_a_request_beyond_the_memory_is_refused_before_it_is_taken() -> None:
    rows = np.broadcast_to(np.ones((1, 64), dtype=np.float32), (2**36, 64))  # 16 TB, of which 256 bytes exist
    with pytest.raises(ValueError, match="bytes"):
        meanlink.linkage(rows)
    with pytest.raises(ValueError, match="bytes"):
        meanlink.linkage(np.broadcast_to(np.ones((1, 2), dtype=np.float32), (2**22, 2)), "complete")


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int8, np.uint64, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
    ),
    st.sampled_from(sorted(OF_ROWS)),
)
def test_any_array_gives_a_result_or_an_error_that_can_be_read(rows: np.ndarray, function: str) -> None:
    try:
        OF_ROWS[function](rows)
    except ValueError as error:
        assert 0 < len(str(error)) < 300
