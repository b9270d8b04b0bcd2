"""Long work reports how far it is from its beginning to its end, and an interrupt at any report ends it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meanlink import dendrograms, linkage, local_thresholds, progress

ROWS = np.random.default_rng(0).normal(size=(600, 8))
PARTITION = np.repeat(np.arange(6), 100)
TREES = dendrograms(ROWS, PARTITION, progress=False)
WORK: dict[str, Callable[[Any], object]] = {
    "average linkage": lambda progress: linkage(ROWS, "average", progress=progress),
    "Ward linkage": lambda progress: linkage(ROWS, "ward", progress=progress),
    "complete linkage": lambda progress: linkage(ROWS, "complete", progress=progress),
    "single linkage": lambda progress: linkage(ROWS, "single", progress=progress),
    "dendrograms": lambda progress: dendrograms(ROWS, PARTITION, progress=progress),
    "complete dendrograms": lambda progress: dendrograms(ROWS, PARTITION, "complete", progress=progress),
    "silhouette cut": lambda progress: local_thresholds(ROWS, TREES, "silhouette", progress=progress),
    "gap cut": lambda progress: local_thresholds(ROWS, TREES, "gap", progress=progress),
    "inconsistency cut": lambda progress: local_thresholds(ROWS, TREES, "inconsistency", progress=progress),
}


@pytest.fixture(params=[5_000, 1], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the matrix of small inputs, and by the engines of large ones."""
    monkeypatch.setattr(sys.modules["meanlink.linkage"], "MATRIX_POINTS", request.param)


@pytest.mark.parametrize("work", WORK)
def test_work_counts_from_nothing_to_all(work: str) -> None:
    heard: list[tuple[int, int]] = []
    WORK[work](lambda done, total: heard.append((done, total)))
    assert heard[0][0] == 0 and heard[-1][0] == heard[-1][1] > 0
    for (before, total), (after, whole) in itertools.pairwise(heard):
        assert after >= before and whole == total


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("word", [1, 2, "last"])
def test_an_interrupt_at_any_report_arrives_and_leaves_no_bar_open(
    work: str, word: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = [0]
    WORK[work](lambda *_: count.__setitem__(0, count[0] + 1))
    when = count[0] if word == "last" else min(int(word), count[0])
    bars, words = [], [0]

    class Bar:
        """Interrupted while it draws."""

        def __init__(self, *_: object) -> None:
            self.closed = False
            bars.append(self)

        def update(self, _: int) -> None:
            words[0] += 1
            if words[0] == when:
                raise KeyboardInterrupt

        def refresh(self) -> None:
            pass

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(progress, "_bar", Bar)
    with pytest.raises(KeyboardInterrupt):
        WORK[work](True)
    assert bars and all(bar.closed for bar in bars)


def test_without_tqdm_a_line_shows_the_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    linkage(ROWS, progress=True)
    assert "linkage: 0 of 599" in capsys.readouterr().err


def test_progress_that_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="progress must be"):
        linkage(ROWS, progress=3)  # type: ignore[arg-type]
