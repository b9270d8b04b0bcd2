"""Malformed input to every public function: a result or a `BtcnbError`, nothing else, and no crash."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import btcnb.cluster as room
from btcnb.cluster import _gate
from btcnb.errors import BtcnbError, DataError, ParameterError

N = 12
X = np.random.default_rng(0).normal(size=(N, 3))
Z = room.linkage(X)
LABELS = np.arange(N) % 3
FOREST = room.dendrograms(X, LABELS)
DEGREE = np.full(N, 2)
RING = np.stack([np.arange(N), np.roll(np.arange(N), 1)])


class Graph:
    """A ring; any part of it can be replaced by something else."""

    def __init__(self, edges: Any = RING, nodes: Any = N, labels: Any = LABELS, degree: Any = DEGREE) -> None:
        self.num_nodes, self._parts = nodes, (edges, labels, degree)

    def edge_index(self) -> Any:
        return self._parts[0]

    def labels(self) -> Any:
        return self._parts[1]

    def degree(self) -> Any:
        return self._parts[2]


class Hostile:
    """Refuses to be an array, or a key."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array here")

    __hash__ = None  # type: ignore[assignment]


class Mute(Hostile):
    """Cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no text either")


def garbage(around: np.ndarray) -> st.SearchStrategy[Any]:
    """Values of the wrong type, the wrong shape, and `around` with a few entries or its dtype spoilt."""
    wrong = st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e300, -1e300, 2.0**63, 2.0**31, N, 2 * N - 2])

    def spoil(places: list[int], values: list[float]) -> np.ndarray:
        copy = np.array(around, dtype=np.float64)
        for place, value in zip(places, values, strict=False):
            copy.ravel()[place % copy.size] = value
        return copy

    spoilt = st.builds(spoil, st.lists(st.integers(0, 400), min_size=1, max_size=3), st.lists(wrong, min_size=3))
    shapes = hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint64, np.bool_, np.complex128]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=N),
    )
    return st.one_of(anything(), spoilt, shapes, st.sampled_from([around[:-1], around[None], around.astype(object)]))


def anything() -> st.SearchStrategy[Any]:
    plain = [None, "text", b"bytes", 3, -1, 0, True, 2.5, np.nan, np.inf, -np.inf, 10**30, 2**63, 1j, lambda: 3]
    nested = [[], [[]], [1, [2, 3]], {}, {"a": 1}, range(4), object(), Hostile(), Graph]
    arrays = [np.float32(0.5), np.array(0.5), np.array("x"), np.array([None]), np.empty((0, 4)), np.empty((0, 3))]
    return st.sampled_from([*plain, *nested, *arrays, np.datetime64("2020-01-01"), np.ma.masked])


GOOD: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "linkage": (room.linkage, {"X": X, "method": "average", "memory_limit": None, "progress": False}),
    "silhouette": (room.silhouette, {"X": X, "labels": LABELS}),
    "silhouette_samples": (room.silhouette_samples, {"X": X, "labels": LABELS}),
    "silhouette_levels": (room.silhouette_levels, {"X": X, "Z": Z, "best_only": True}),
    "cut": (room.cut, {"Z": Z, "threshold": 0.5}),
    "flat": (room.flat, {"Z": Z, "threshold": 0.5, "criterion": "inconsistent", "depth": 2}),
    "cut_silhouette": (room.cut_silhouette, {"X": X, "Z": Z}),
    "cut_gap": (room.cut_gap, {"Z": Z}),
    "cut_inconsistency": (room.cut_inconsistency, {"Z": Z, "alpha": 1.0, "depth": 2}),
    "global_threshold": (
        room.global_threshold,
        {"sizes": np.array([3, 4]), "thresholds": np.array([0.3, 0.4]), "n_min": 3},
    ),
    "dendrograms": (room.dendrograms, {"X": X, "partition": LABELS, "method": "ward", "memory_limit": None}),
    "local_thresholds": (
        room.local_thresholds,
        {"X": X, "forest": FOREST, "cut": "gap", "n_min": 3, "alpha": 1.0, "depth": 2},
    ),
    "cut_forest": (room.cut_forest, {"forest": FOREST, "values": FOREST.merges[:, 2], "threshold": 0.5}),
    "dendrogram_purity": (
        room.dendrogram_purity,
        {"Z": Z, "labels": LABELS, "mask": np.ones(N, dtype=bool), "weighting": "pair"},
    ),
    "dendrogram_purity_sampled": (
        room.dendrogram_purity_sampled,
        {"Z": Z, "labels": LABELS, "pairs": 50, "seed": 0, "mask": None},
    ),
    "forest_purity": (room.forest_purity, {"trees": [(Z, LABELS, None)], "weighting": "leaf"}),
    "forest_purity_sampled": (room.forest_purity_sampled, {"trees": [(Z, LABELS, None)], "pairs": 50, "seed": 0}),
    "nmi": (room.nmi, {"a": LABELS, "b": LABELS}),
    "ari": (room.ari, {"a": LABELS, "b": LABELS}),
    "pairwise_counts": (
        room.pairwise_counts,
        {"labels": LABELS, "pairs": np.array([[0, 1], [2, 3]]), "same": np.array([True, False])},
    ),
    "pairwise_scores": (room.pairwise_scores, {"predicted": LABELS, "truth": LABELS}),
    "scored_nodes": (room.scored_nodes, {"graph": Graph(), "min_degree": 2}),
    "coarse_partition": (
        room.coarse_partition,
        {"graph": (RING, N), "max_size": 5, "resolution": 1.0, "seed": 0, "iterations": 2, "method": "igraph"},
    ),
    "communities": (room.communities, {"graph": (RING, N), "method": "leiden", "resolution": 1.0, "seed": 0}),
    "tune_resolution": (
        room.tune_resolution,
        {"graph": (RING, N), "method": "leiden", "grid": np.array([0.5, 1.0]), "seed": 0},
    ),
    "refine": (
        room.refine,
        {"X": X, "partition": LABELS, "threshold": 0.5, "method": "average", "cut": "inconsistency", "alpha": 1.0}
        | {"depth": 2, "n_min": 3, "criterion": None, "zero_rows": "fixed", "memory_limit": None},
    ),
    "evaluate": (
        room.evaluate,
        {"X": X, "graph": Graph(), "labels": LABELS, "partition": LABELS, "seed": 0, "config": None, "pairs": 50}
        | {"max_size": 5, "resolution": 1.0, "min_degree": 2, "coarse": "igraph", "cut": "gap"},
    ),
}


def survives(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*all zeros.*")
        try:
            function(**arguments)
        except BtcnbError as error:
            assert 0 < len(str(error)) < 500


def test_every_public_function_is_here() -> None:
    public = {
        name for name in room.__all__ if callable(getattr(room, name)) and not isinstance(getattr(room, name), type)
    }
    assert public == set(GOOD)
    for function, arguments in GOOD.values():
        function(**arguments)


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_only_a_result_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    function, good = GOOD[name]
    parameter = data.draw(st.sampled_from(sorted(good)))
    value = good[parameter]
    strategy = garbage(value) if isinstance(value, np.ndarray) else anything()
    wrong = data.draw(strategy)
    assume(parameter != "progress" or not callable(wrong))  # what a caller's own function raises is the caller's
    survives(function, good | {parameter: wrong})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["edges", "nodes", "labels", "degree"]), st.data())
def test_graphs_of_anything(part: str, data: st.DataObject) -> None:
    good = {"edges": RING, "nodes": None, "labels": LABELS, "degree": DEGREE}[part]
    graph = Graph(**{part: data.draw(anything() if good is None else garbage(good))})
    survives(room.evaluate, {"X": X, "graph": graph})
    survives(room.coarse_partition, {"graph": graph})
    survives(room.scored_nodes, {"graph": graph})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["clusters", "members", "offsets", "merges"]), st.data())
def test_forests_of_anything(part: str, data: st.DataObject) -> None:
    forest = replace(FOREST, **{part: data.draw(garbage(getattr(FOREST, part)))})
    survives(room.cut_forest, {"forest": forest, "values": FOREST.merges[:, 2], "threshold": 0.4})
    for cut in room.CUTS:
        survives(room.local_thresholds, {"X": X, "forest": forest, "cut": cut})


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_several_trees_of_anything(data: st.DataObject) -> None:
    parts = [garbage(Z), garbage(LABELS), garbage(np.ones(N))]
    good = [Z, LABELS, None]
    at = data.draw(st.integers(0, 2))
    item = [*good[:at], data.draw(parts[at]), *good[at + 1 :]]
    survives(room.forest_purity, {"trees": [tuple(good), tuple(item)]})
    survives(room.forest_purity_sampled, {"trees": [tuple(item), (Z,)], "pairs": 20})


@settings(max_examples=80, deadline=None)
@given(hnp.arrays(np.float64, (5, 4), elements=st.integers(-1, 10).map(float)))
def test_what_passes_as_a_tree_is_one(Z: np.ndarray) -> None:
    try:
        tree = _gate.tree(Z)
    except DataError:
        return
    below = [{i} for i in range(6)]
    for (a, b), size in zip(tree.children, tree.size[6:], strict=True):
        assert not below[a] & below[b]
        below.append(below[a] | below[b])
        assert len(below[-1]) == size
    assert below[-1] == set(range(6))


def test_messages_are_short_whatever_the_value() -> None:
    with pytest.raises(ParameterError, match="a Mute"):
        room.cut(Z, Mute())
    with pytest.raises(ParameterError, match="method is a str"):
        room.linkage(X, "average" * 100)
