"""The search that leaves out balls of centres: the lists of the search that leaves out nothing."""

from __future__ import annotations

from collections.abc import Callable

import cluster_shapes as shapes
import numpy as np
import pytest

from btcnb.cluster import _gate, _near
from btcnb.cluster._distance import AVERAGE, WARD, Table
from btcnb.cluster._neighbours import empty_lists
from btcnb.cluster._search import Centres, search


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balls of four, so that hundreds of points make many."""
    for name, value in {"RUN": 4, "ROWS": 16, "FIRST": 24, "WIDE": 40, "FROM": 1, "HOPELESS": 2.0}.items():
        monkeypatch.setattr(_near, name, value)


def clusters_of(X: np.ndarray, members: int) -> tuple[Table, Table, np.ndarray]:
    """Points, clusters of so many points that stand together in a coherent order, and the cluster of each point."""
    rows = _gate.unit_rows(X)
    rows = rows[np.lexsort(np.round(rows, 1).T)]
    own = (np.arange(len(rows)) // members).astype(np.int32)
    size = np.bincount(own).astype(np.float64)
    sums = np.add.reduceat(rows, np.arange(0, len(rows), members), axis=0)
    return Table(rows, np.ones(len(rows))), Table(sums, size), own


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("length", [1, 12])
@pytest.mark.parametrize("shape", [shapes.clustered, shapes.uniform, shapes.speck, shapes.spiral])
def test_the_lists_are_those_of_the_full_search(shape: Callable[..., np.ndarray], length: int, members: int) -> None:
    points, table, own = clusters_of(shape(400, 6, 1), members)
    which = np.arange(0, 400, 2, dtype=np.int32)
    found, wanted = empty_lists(400, length), empty_lists(400, length)
    for lists, way in ((found, _near.search_near), (wanted, search)):
        centres = Centres(table, np.arange(len(table.size), dtype=np.int32), AVERAGE)
        way(lists, which, own[which], points, centres, len(table.size) - 1)
    rounding = {"rtol": 0, "atol": 1e-14}  # of the float64 products that decide between near-duplicates
    np.testing.assert_allclose(found.distances[which], wanted.distances[which], **rounding)
    np.testing.assert_allclose(found.bound[which], wanted.bound[which], **rounding)
    np.testing.assert_array_equal(found.filled[which], wanted.filled[which])


@pytest.mark.parametrize("shape", [shapes.clustered, shapes.uniform, shapes.speck])
def test_no_centre_of_a_ball_is_nearer_than_its_bound(shape: Callable[..., np.ndarray]) -> None:
    points, table, _ = clusters_of(shape(300, 8, 2), 3)
    centres = table.sums / table.size[:, None]
    begin, *balls = _near._balls(centres.astype(np.float32))
    least = _near._least_distance(points.sums.astype(np.float32), *balls)
    exact = 1.0 - points.sums @ centres.T
    for ball, (first, stop) in enumerate(zip(begin, [*begin[1:], len(centres)], strict=True)):
        assert (least[:, ball] <= exact[:, first:stop].min(axis=1)).all()


def test_far_balls_are_left_out_and_hopeless_data_searched_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[int] = []
    offer = _near.offer

    def count(lists, block, left, centres) -> None:
        cells.append(block.values.size)
        offer(lists, block, left, centres)

    monkeypatch.setattr(_near, "offer", count)
    rng = np.random.default_rng(0)
    tight = np.repeat(rng.normal(size=(20, 16)), 20, axis=0) + 0.01 * rng.normal(size=(400, 16))
    every = np.arange(400, dtype=np.int32)

    def multiplied(X: np.ndarray) -> int:
        points = Table(_gate.unit_rows(X), np.ones(400))
        cells.clear()
        _near.search_near(empty_lists(400), every, every, points, Centres(points, every, AVERAGE), 399)
        return sum(cells)

    assert multiplied(tight) < 400 * 400 / 4
    monkeypatch.setattr(_near, "HOPELESS", 0.5)
    assert multiplied(rng.normal(size=(400, 16))) == 4 * 16 * 400  # four times sixteen rows showed that it is in vain


def test_wards_distances_are_searched_plainly() -> None:
    points, table, own = clusters_of(shapes.clustered(200, 6), 1)
    found, wanted = empty_lists(200), empty_lists(200)
    every = np.arange(200, dtype=np.int32)
    for lists, way in ((found, _near.search_near), (wanted, search)):
        way(lists, every, own, points, Centres(table, every, WARD), 199)
    np.testing.assert_array_equal(found.ids, wanted.ids)
