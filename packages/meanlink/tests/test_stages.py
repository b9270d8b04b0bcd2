"""Linkage in stages: the trees of SciPy, whatever the rows, the tiles and the interruptions."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster import hierarchy

from meanlink import _checkpoint, _search, linkage

module = sys.modules["meanlink.linkage"]


SHAPES = (
    shapes.clustered,
    shapes.uniform,
    shapes.repeated,
    shapes.speck,
    shapes.two_clumps,
    shapes.late_axes,
    shapes.trained_like,
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stages for any number of rows, down to ten clusters."""
    monkeypatch.setattr(module, "MATRIX_POINTS", 1)
    monkeypatch.setattr(_search, "FEW", 10)
    yield


@pytest.mark.parametrize("n, d", [(2, 3), (40, 1), (300, 2), (700, 33)])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_heights_and_cuts_agree_with_scipy(shape, n: int, d: int) -> None:
    X = shape(n, max(d, 2))
    ours, theirs = linkage(X), shapes.scipy_linkage(X, "average")
    assert hierarchy.is_valid_linkage(ours) and hierarchy.is_monotonic(ours)
    assert np.abs(ours[:, 2] - theirs[:, 2]).max() < 1e-6
    for cut in shapes.cuts_away_from_ties(theirs[:, 2], 30, gap=max(1e-7 * theirs[-1, 2], 1e-13)):
        assert shapes.same_partition(
            hierarchy.fcluster(ours, cut, "distance"), hierarchy.fcluster(theirs, cut, "distance")
        )


@pytest.mark.parametrize("shape", [shapes.clustered, shapes.uniform, shapes.trained_like], ids=lambda s: s.__name__)
def test_stages_and_tiles_do_not_change_a_bit(shape, monkeypatch: pytest.MonkeyPatch) -> None:
    X = shape(2500, 24)
    stages = linkage(X)
    for name, value in {"FEW": 10_000, "TILE": 200, "HEIGHT": 100}.items():
        monkeypatch.setattr(_search, name, value)
    np.testing.assert_array_equal(linkage(X), stages)


@pytest.mark.parametrize("shape", [*SHAPES, shapes.bits, shapes.spiral], ids=lambda shape: shape.__name__)
def test_every_merge_joins_a_closest_pair(shape) -> None:
    X = shape(60, 6)
    shapes.replay(X, linkage(X), "average")


def test_equal_rows_merge_at_height_zero() -> None:
    Z = linkage(np.full((500, 7), 0.3))
    assert (Z[:, 2] == 0).all() and Z[-1, 3] == 500
    X = np.repeat(np.eye(4), [400, 1, 50, 1], axis=0)
    assert (linkage(X)[:, 2] == [0.0] * 448 + [1.0] * 3).all()


@settings(max_examples=20, deadline=None)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 90), st.integers(1, 4)),
        elements=st.integers(-3, 3).map(float) | st.floats(-1, 1, width=32),
    )
)
def test_any_points_give_a_tree_that_replays(X: np.ndarray) -> None:
    X = X[np.abs(X).max(axis=1) > 1e-6]
    assume(len(X) >= 2)
    Z = linkage(X)
    assert hierarchy.is_valid_linkage(Z)
    shapes.replay(X, Z, "average", tolerance=1e-7)


# --- progress, interrupts, checkpoints ---


class Stop:
    """Progress that interrupts at its nth call."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_progress_counts_every_merge_from_the_start() -> None:
    heard: list[tuple[int, int]] = []
    linkage(shapes.repeated(3000, 8), progress=lambda done, total: heard.append((done, total)))
    done = [d for d, _ in heard]
    assert done == sorted(done) and heard[0] == (0, 2999) and heard[-1] == (2999, 2999)


def test_a_run_goes_on_after_any_interruption_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checkpoint.Checkpoint.__init__, "__defaults__", (0.0, lambda: 0.0))
    monkeypatch.setattr(_search, "HEIGHT", 64)
    X, path = shapes.trained_like(1500, 24), tmp_path / "state"
    whole, stops = linkage(X, progress=False), 0
    while True:
        stops += 1
        try:
            Z = linkage(X, progress=Stop(6 + 3 * stops), checkpoint=path)
            break
        except KeyboardInterrupt:
            continue
    assert stops > 5
    np.testing.assert_array_equal(Z, whole)
    assert not list(tmp_path.iterdir()), "nothing is left behind"


KILLED = """
import os, signal, sys
import numpy as np
from meanlink import _checkpoint, _search, linkage
sys.modules["meanlink.linkage"].MATRIX_POINTS = 1
_search.FEW = 10
_checkpoint.Checkpoint.__init__.__defaults__ = (0.0, lambda: 0.0)
turns = int(sys.argv[3])
save = _checkpoint.Checkpoint.save
def saved(self, state):
    save(self, state)
    if state.turn >= turns:
        os.kill(os.getpid(), signal.SIGKILL)
_checkpoint.Checkpoint.save = saved
linkage(np.load(sys.argv[1]), progress=False, checkpoint=sys.argv[2])
"""


def test_a_killed_process_leaves_what_another_can_go_on_from(tmp_path: Path) -> None:
    X, path = shapes.trained_like(1200, 16), tmp_path / "state"
    np.save(tmp_path / "rows.npy", X)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "rows.npy"), str(path), "4"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert path.exists()
    np.testing.assert_array_equal(linkage(X, checkpoint=path), linkage(X))
    assert not path.exists()


def interrupted(X: np.ndarray, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint.Checkpoint.__init__, "__defaults__", (0.0, lambda: 0.0))
        with pytest.raises(KeyboardInterrupt):
            linkage(X, progress=Stop(12), checkpoint=path)
    assert path.exists()


def test_checkpoints_that_do_not_fit_are_refused_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, path = shapes.trained_like(800, 12), tmp_path / "state"
    interrupted(X, path, monkeypatch)
    content = path.read_bytes()
    other = X.copy()
    other[3, 1] += 1e-9
    with pytest.raises(ValueError, match="other rows or settings"):
        linkage(other, checkpoint=path)
    for broken in (content[: len(content) // 2], b"", b"nonsense" * 99, content[:900] + b"\0" + content[901:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="is no checkpoint, or not a whole one"):
            linkage(X, checkpoint=path)
        assert path.read_bytes() == broken
    path.write_bytes(content)
    np.testing.assert_array_equal(linkage(X, checkpoint=path), linkage(X))


def test_checkpoints_need_a_folder_and_average_linkage(tmp_path: Path) -> None:
    X = shapes.clustered(200, 4)
    with pytest.raises(ValueError, match="does not exist"):
        linkage(X, checkpoint=tmp_path / "nowhere" / "state")
    with pytest.raises(ValueError, match="average linkage"):
        linkage(X, "ward", checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match="checkpoint must"):
        linkage(X, checkpoint=3)  # type: ignore[arg-type]
