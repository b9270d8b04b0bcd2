"""The cache gives back what was computed, and forgets it when an argument or a source changes."""

import multiprocessing
import time
from pathlib import Path

import pytest

from btcnb import cache

CALLS = "calls.txt"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path / "cache"))


@cache.cached("paper")
def _slow_square(x: int, folder: str, offset: int = 0) -> int:
    with (Path(folder) / CALLS).open("a") as file:
        file.write("call\n")
    time.sleep(0.3)
    return x * x + offset


def _calls(folder: Path) -> int:
    path = folder / CALLS
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_the_second_call_computes_nothing_however_it_is_spelt(tmp_path: Path) -> None:
    assert _slow_square(3, str(tmp_path)) == 9
    assert _slow_square(x=3, folder=str(tmp_path), offset=0) == 9
    assert _calls(tmp_path) == 1


def test_another_argument_is_computed(tmp_path: Path) -> None:
    assert _slow_square(3, str(tmp_path)) == 9
    assert _slow_square(3, str(tmp_path), offset=1) == 10
    assert _calls(tmp_path) == 2


def test_a_changed_source_is_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _slow_square(3, str(tmp_path))
    monkeypatch.setattr(cache, "source_hash", lambda *parts: "another source")
    _slow_square(3, str(tmp_path))
    assert _calls(tmp_path) == 2


def test_the_source_hash_sees_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "errors.py").write_text("")
    module = tmp_path / "room" / "module.py"
    module.write_text("a = 1\n")
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    cache.source_hash.cache_clear()
    before = cache.source_hash("room")
    module.write_text("a = 2\n")
    cache.source_hash.cache_clear()
    after = cache.source_hash("room")
    cache.source_hash.cache_clear()
    assert before != after


def test_two_processes_compute_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        results = pool.starmap(_slow_square, [(4, str(tmp_path)), (4, str(tmp_path))])
    assert results == [16, 16]
    assert _calls(tmp_path) == 1


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    @cache.cached("paper")
    def fails() -> None:
        raise ValueError("no result")

    with pytest.raises(ValueError, match="no result"):
        fails()
    assert not list((tmp_path / "cache").rglob("*.joblib"))
    assert not list((tmp_path / "cache").rglob("*.partial"))
