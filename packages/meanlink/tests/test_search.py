"""The search in tiles for points among clusters: the lists of the search that leaves out nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import point_sets as shapes
import pytest

import meanlink
from meanlink import _tile_search
from meanlink._neighbours import Table, empty_lists
from meanlink._products import ProductSearch
from meanlink._tile_search import TileSearch
from meanlink._validate import unit_rows


def clusters_of(X: np.ndarray, members: int) -> tuple[Table, Table, np.ndarray]:
    """Points, clusters of so many points that stand together in a coherent order, and the cluster of each point."""
    rows = unit_rows(X)
    rows = rows[np.lexsort(np.round(rows, 1).T)]
    own = (np.arange(len(rows)) // members).astype(np.int32)
    sums = np.add.reduceat(rows, np.arange(0, len(rows), members), axis=0)
    return Table(rows, np.ones(len(rows))), Table(sums, np.bincount(own).astype(np.float64)), own


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("length", [1, 12])
@pytest.mark.parametrize("shape", [shapes.clustered, shapes.uniform, shapes.speck, shapes.spiral])
def test_the_lists_are_those_of_the_full_search(shape: Callable[..., np.ndarray], length: int, members: int) -> None:
    points, table, own = clusters_of(shape(400, 6, 1), members)
    active = np.arange(len(table.size), dtype=np.int32)
    which = np.arange(0, 400, 2, dtype=np.int32)
    found, wanted = empty_lists(400, length), empty_lists(400, length)
    tiles = TileSearch(table, active)
    rows = which[tiles.order(own[which])]
    tiles.search(points, rows, own[rows], np.inf, found, lambda _: None)
    ProductSearch(table, active).search(points, which, own[which], np.inf, wanted, lambda _: None)
    rounding = {"rtol": 0, "atol": 1e-14}  # of the float64 products that decide between near-duplicates
    np.testing.assert_allclose(found.distances[which], wanted.distances[which], **rounding)
    np.testing.assert_allclose(found.bound[which], wanted.bound[which], **rounding)
    np.testing.assert_array_equal(found.filled[which], wanted.filled[which])


def test_tiles_pay_for_tight_groups_and_not_without_structure() -> None:
    rng = np.random.default_rng(0)
    tight = np.repeat(rng.normal(size=(60, 16)), 50, axis=0) + 0.01 * rng.normal(size=(3000, 16))
    for X, pays in ((tight, True), (rng.normal(size=(3000, 64)), False)):
        points = Table(unit_rows(X), np.ones(3000))
        tiles = TileSearch(points, np.arange(3000, dtype=np.int32))
        rows = np.arange(3000, dtype=np.int32)[tiles.order(np.arange(3000))]
        lists = empty_lists(3000)
        assert tiles.pays(points, rows, rows, np.inf, lists) == pays
        assert not lists.filled.any() and np.isinf(lists.distances).all(), "the probe leaves nothing behind"


def test_the_silhouette_is_the_same_with_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = shapes.clustered(3000, 12), np.arange(3000) // 2
    plain = meanlink.silhouette_samples(X, labels)
    monkeypatch.setattr(sys.modules["meanlink.silhouette"], "TILES_FROM", 100)
    monkeypatch.setattr(_tile_search.TileSearch, "pays", lambda *_: True)
    np.testing.assert_allclose(meanlink.silhouette_samples(X, labels), plain, atol=1e-13)
