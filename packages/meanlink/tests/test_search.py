"""The search for nearest clusters: the lists are those of a comparison of everything with everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import point_sets as shapes
import pytest

from meanlink import _search
from meanlink._neighbours import Lists, Table, empty_lists
from meanlink._search import Search
from meanlink._validate import unit_rows

SHAPES = (shapes.clustered, shapes.uniform, shapes.speck, shapes.spiral, shapes.two_clumps, shapes.trained_like)


def all_pairs(left: Table, rows: np.ndarray, own: np.ndarray, table: Table, active: np.ndarray, length: int) -> Lists:
    """Lists of some rows by the distances to all active clusters, without a radius."""
    found = empty_lists(len(left.size), length)
    for i, skipped in zip(rows, own, strict=True):
        others = active[active != skipped]
        distance = np.maximum(1.0 - table.sums[others] @ left.sums[i] / (table.size[others] * left.size[i]), 0.0)
        nearest = np.sort(distance)[:length]
        found.distances[i, : len(nearest)] = nearest
        found.filled[i] = len(nearest)
        found.bound[i] = nearest[-1] if len(nearest) == length < len(others) else np.inf
    return found


def assert_same(found: Lists, wanted: Lists, rows: np.ndarray, radius: float) -> None:
    rounding = {"rtol": 0, "atol": 1e-14}
    near = np.where(wanted.distances < radius, wanted.distances, np.inf)
    np.testing.assert_allclose(found.distances[rows], near[rows], **rounding)
    np.testing.assert_allclose(found.bound[rows], np.minimum(wanted.bound, radius)[rows], **rounding)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("length", [1, 12])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_points_among_clusters(shape: Callable[..., np.ndarray], length: int, members: int) -> None:
    """Clusters of so many points that stand together in a coherent order."""
    rows = unit_rows(shape(700, 6, 1))
    rows = rows[np.lexsort(np.round(rows, 1).T)]
    own = (np.arange(len(rows)) // members).astype(np.int32)
    sums = np.add.reduceat(rows, np.arange(0, len(rows), members), axis=0)
    points, table = Table(rows, np.ones(len(rows))), Table(sums, np.bincount(own).astype(np.float64))
    active, which = np.arange(len(table.size), dtype=np.int32), np.arange(0, 700, 2, dtype=np.int32)
    found, search = empty_lists(700, length), Search(table, active)
    which = which[search.order(own[which])]
    search.search(points, which, own[which], np.inf, found, lambda _: None)
    assert_same(found, all_pairs(points, which, own[which], table, active, length), which, np.inf)


@pytest.mark.parametrize("radius", [1e-9, 0.01, 0.4, np.inf])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_clusters_among_each_other_after_some_have_merged(
    shape: Callable[..., np.ndarray], radius: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in several blocks, and after the clusters that are left were indexed again."""
    for name, value in {"HEIGHT": 64, "CELLS": 64 * 100, "FIRST": 40}.items():
        monkeypatch.setattr(_search, name, value)
    table = Table(np.asarray(unit_rows(shape(900, 40))), np.ones(900))
    search = Search(table, np.arange(900, dtype=np.int32))
    pairs = np.arange(600).reshape(-1, 2)[::-1].copy()
    table.sums[pairs[:, 0]] += table.sums[pairs[:, 1]]
    table.size[pairs[:, 0]] += 1.0
    search.moved(pairs)
    active = np.setdiff1d(np.arange(900), pairs[:, 1]).astype(np.int32)
    wanted = all_pairs(table, active, active, table, active, 12)
    for again in (False, True):
        if again:
            search.rebuild()
        found, rows = empty_lists(900), active[search.order(active)]
        search.search(table, rows, rows, radius, found, lambda _: None)
        assert_same(found, wanted, active, radius)


def test_tight_groups_leave_out_most_of_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made = np.random.default_rng(0), [0]
    rows = np.repeat(rng.normal(size=(60, 16)), 50, axis=0) + 0.01 * rng.normal(size=(3000, 16))
    scan = _search.scan
    monkeypatch.setattr(_search, "scan", lambda block, *rest: made.append(block.values.size) or scan(block, *rest))
    table, every = Table(unit_rows(rows), np.ones(3000)), np.arange(3000, dtype=np.int32)
    search = Search(table, every)
    every = every[search.order(every)]
    search.search(table, every, every, 0.05, empty_lists(3000), lambda _: None)
    assert sum(made) < 0.25 * 3000**2
