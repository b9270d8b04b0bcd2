"""Results are computed once, never used when stale or damaged, never half-written."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
import pytest
from call_log import CALLS, called

from btcnb.store import StoreWarning, kept, keys, note_read, reads, store_folder
from btcnb.store.kept import entries as listed
from btcnb.store.kept import prune
from btcnb.store.reads import recording

module = importlib.import_module("btcnb.store.kept")  # the package's attribute of this name is the function
MANIFEST, VALUE = module.MANIFEST, module.VALUE


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path / "cache"))
    CALLS.clear()


@kept
def square(x: float, power: int = 2) -> np.ndarray:
    called(f"square {x}")
    return np.array([x**power])


@kept
def from_file(path: str) -> str:
    called("from_file")
    return note_read(path).read_text() if Path(path).exists() else str(note_read(path) and "nothing")


@kept
def outer(path: str) -> str:
    called("outer")
    return from_file(path).upper()


def test_a_result_is_computed_once_however_the_call_is_written() -> None:
    assert square(3.0).tolist() == [9.0]
    assert square(x=3.0, power=2).tolist() == [9.0]
    assert square(4.0).tolist() == [16.0]
    assert CALLS == ["square 3.0", "square 4.0"]


def test_a_result_holds_while_the_files_it_read_hold(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("one")
    before = path.stat()
    assert outer(str(path)) == outer(str(path)) == "ONE"
    assert CALLS == ["outer", "from_file"]
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time, other content
    assert outer(str(path)) == "TWO"
    path.unlink()
    assert outer(str(path)) == "NOTHING"


def test_reads_of_a_stored_result_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("one")
    outer(str(path))
    with recording() as first:
        outer(str(path))
    assert list(first) == [str(path)]
    assert CALLS == ["outer", "from_file"]


def _make(body: str) -> Callable[..., Any]:
    """A kept function whose source is `body`, as a notebook cell would define it."""
    import linecache

    name = f"<cell {abs(hash(body))}>"
    linecache.cache[name] = (len(body), None, body.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "__main__", "kept": kept}
    exec(compile(body, name, "exec"), scope)
    scope["f"].__wrapped__.__module__ = "__main__"
    return scope["f"]


def test_the_body_of_a_notebooks_function_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _make("@kept\ndef f(x):\n    return x + 1\n")
    two = _make("@kept\ndef f(x):\n    return x + 2\n")
    again = _make("@kept\ndef f(x):\n    return x + 1\n")
    assert (one(1), two(1), again(1)) == (2, 3, 2)
    names = [entry.function for entry in listed()]
    assert names == ["__main__.f", "__main__.f"]


def test_a_library_version_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    square(3.0)
    monkeypatch.setattr(keys, "library_version", lambda name: "99.0")
    module.code_today.cache_clear()
    square(3.0)
    assert CALLS == ["square 3.0", "square 3.0"]


def _damage_value(folder: Path) -> None:
    data = bytearray((folder / VALUE).read_bytes())
    data[-1] ^= 1
    (folder / VALUE).write_bytes(data)


def _remove_value(folder: Path) -> None:
    (folder / VALUE).unlink()


def _truncate_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:50])


def _edit_manifest(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["seconds"] += 1
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _deep_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("[" * 100_000)


HARMS = [
    _damage_value,
    _remove_value,
    _truncate_manifest,
    _edit_manifest,
    _deep_manifest,
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_entry_is_listed_and_made_anew_with_one_warning(harm: Callable[[Path], None]) -> None:
    square(3.0)
    (entry,) = listed()
    harm(entry.folder)
    (found,) = listed()
    assert found.state == ("current" if harm is _damage_value else "damaged"), "values are not hashed for a listing"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert square(3.0).tolist() == [9.0]
    assert {w.category for w in caught} == {StoreWarning}
    assert "is damaged and is made anew" in str(caught[0].message)
    assert square(3.0).tolist() == [9.0]
    assert CALLS == ["square 3.0", "square 3.0"]


@pytest.mark.parametrize("place", ["a file", "nowhere", "a name too long", "a lock in the way"])
def test_a_store_that_cannot_be_used_costs_the_entry_not_the_result(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache = tmp_path / "file", tmp_path / "odd"
    file.write_text("in the way")
    if place == "nowhere":
        cache.symlink_to(tmp_path / "not" / "here")
    elif place == "a lock in the way":
        monkeypatch.setattr(module, "FileLock", _Locked)
    else:
        cache = {"a file": file, "a name too long": tmp_path / ("x" * 300)}[place]
    monkeypatch.setenv("BTCNB_CACHE", str(cache))
    with pytest.warns(StoreWarning, match="nothing is kept"):
        assert square(3.0).tolist() == [9.0]
    assert CALLS == ["square 3.0"]


class _Locked:
    def __init__(self, path: Path) -> None:
        pass

    def acquire(self) -> None:
        raise OSError(30, "Read-only file system")


def test_a_file_in_the_place_of_an_entry_makes_room_for_it() -> None:
    square(3.0)
    (entry,) = listed()
    prune(everything=True)
    entry.folder.write_text("in the way")
    square(3.0)
    square(3.0)
    assert CALLS == ["square 3.0", "square 3.0"]


def test_a_file_that_cannot_be_read_any_more_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reads, "digest", unreadable)
    assert not reads.unchanged({"file": "mark"}, tmp_path)


def _slow(started: str, path: str) -> None:
    @kept
    def slow(x: int) -> int:
        with Path(path).open("a") as file:
            file.write("computed\n")
        time.sleep(0.5)
        return x

    Path(started).touch()
    assert slow(7) == 7


def test_two_processes_compute_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_slow, args=(str(tmp_path / "s"), str(log))) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert log.read_text() == "computed\n"


def test_an_interrupted_write_is_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(joblib, "dump", killed)
        with pytest.raises(KeyboardInterrupt):
            square(3.0)
    assert list(listed()) == []
    assert list(store_folder().glob("*/.*.part")) == []
    assert square(3.0).tolist() == [9.0]


def test_a_full_disk_costs_the_entry_not_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(joblib, "dump", full)
    with pytest.warns(StoreWarning, match="could not be kept"):
        assert square(3.0).tolist() == [9.0]


def test_edited_source_is_not_kept_under_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_IMPORT", "another state")
    with pytest.warns(StoreWarning, match="was edited while"):
        square(3.0)
    assert list(listed()) == []


def test_what_cannot_be_compared_or_kept_is_refused_by_name() -> None:
    with pytest.raises(PicklingError, match="lambda"):
        square(lambda: 3)  # type: ignore[arg-type]
    with pytest.raises(PicklingError, match="lambda"):
        unkeepable()
    assert list(listed()) == []
    assert list(store_folder().glob("*/.*.part")) == []


@kept
def unkeepable() -> Callable[[], int]:
    return lambda: 3


def test_a_planted_value_is_not_unpickled(tmp_path: Path) -> None:
    """A value that does not fit the digest in the manifest is refused before anything in it can run."""

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    square(3.0)
    (entry,) = listed()
    joblib.dump(Bomb(), entry.folder / VALUE)
    with pytest.warns(StoreWarning, match="damaged"):
        square(3.0)
    assert not (tmp_path / "executed").exists()


def test_pruning_keeps_what_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.txt"
    path.write_text("one")
    square(3.0)
    from_file(str(path))
    path.write_text("two")
    assert {entry.function.rpartition(".")[2]: entry.state for entry in listed()} == {
        "square": "current",
        "from_file": "stale",
    }
    leftover = store_folder() / next(iter(listed())).function / ".0123.999.part"
    leftover.mkdir()
    assert [entry.function.rpartition(".")[2] for entry in prune()] == ["from_file"]
    assert not leftover.exists()
    assert [entry.state for entry in listed()] == ["current"]
    prune(everything=True)
    assert list(listed()) == []


def test_entries_of_another_format_are_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "FORMAT", 1)
        square(3.0)
    assert [entry.state for entry in listed()] == ["stale"]


FACTOR = 2


def _helper(x: int) -> int:
    return x * FACTOR


@kept
def with_helpers(x: int) -> list[int]:
    called("with_helpers")
    return [_helper(each) for each in range(x)]


def test_helpers_and_variables_of_a_notebook_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_helpers(3) == with_helpers(3) == [0, 2, 4]
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert with_helpers(3) == [0, 3, 6]
    monkeypatch.setitem(globals(), "_helper", called_helper)
    assert with_helpers(3) == [0, -1, -2]
    assert len(CALLS) == 3


def called_helper(x: int) -> int:
    return -x


def test_large_files_are_known_by_size_and_time_and_others_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "LARGE", 10)
    node = tmp_path / "blocks"
    node.mkdir()
    large, small = node / "blk00000.dat", node / "index"
    large.write_bytes(bytes(11))
    small.write_bytes(bytes(10))
    os.utime(large, (1, 1))
    before, hashed = reads.digest(node), []
    monkeypatch.setattr(reads.hashlib, "file_digest", lambda file, kind: hashed.append(file.name) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reads.digest(node)
    assert hashed == [str(small)], "the large file is not read"
    monkeypatch.undo()
    monkeypatch.setattr(reads, "LARGE", 10)
    os.utime(large, (2, 2))
    changed = reads.digest(node)
    large.write_bytes(bytes(12))
    os.utime(large, (2, 2))
    assert len({before, changed, reads.digest(node)}) == 3


def test_a_file_is_hashed_once_as_long_as_it_does_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_SETTLED", 0)
    path = tmp_path / "data"
    path.write_text("one")
    first = reads.digest(path)
    with monkeypatch.context() as patch:
        patch.setattr(reads.hashlib, "file_digest", lambda file, kind: 1 / 0)
        assert reads.digest(path) == first
    path.write_text("longer")
    assert reads.digest(path) != first
