"""Results are computed once, never served stale, never half-written, and never executed."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_log import CALLS, called

from btcnb.errors import BtcnbError
from btcnb.store import StoreWarning, entries, kept, note_read, reads, store_folder
from btcnb.store.codec import StorableError
from btcnb.store.manage import entries as listed
from btcnb.store.manage import prune
from btcnb.store.reads import recording


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
    again = _make("@kept\ndef f(x):\n    '''Adds one.'''\n    return x + 1  # one\n")
    assert (one(1), two(1), again(1)) == (2, 3, 2)
    names = [entry.function for entry in listed()]
    assert names == ["__main__.f", "__main__.f"]


def test_a_library_version_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    square(3.0)
    monkeypatch.setattr(entries, "library_version", lambda name: "99.0")
    square(3.0)
    assert CALLS == ["square 3.0", "square 3.0"]


def _damage_part(folder: Path) -> None:
    part = folder / "0.npy"
    data = bytearray(part.read_bytes())
    data[-1] ^= 1
    part.write_bytes(data)


def _truncate_manifest(folder: Path) -> None:
    (folder / entries.MANIFEST).write_text((folder / entries.MANIFEST).read_text()[:50])


def _edit_manifest(folder: Path) -> None:
    manifest = json.loads((folder / entries.MANIFEST).read_text())
    manifest["value"]["value"] = "../../secret.npy"
    (folder / entries.MANIFEST).write_text(json.dumps(manifest))


def _remove_part(folder: Path) -> None:
    (folder / "0.npy").unlink()


def _list_for_manifest(folder: Path) -> None:
    (folder / entries.MANIFEST).write_text("[1]")


def _deep_manifest(folder: Path) -> None:
    (folder / entries.MANIFEST).write_text("[" * 100_000)


def _without_files(folder: Path) -> None:
    """Sealed, as another version of this program might have done."""
    manifest = json.loads((folder / entries.MANIFEST).read_text())
    manifest = {name: manifest[name] for name in manifest if name not in ("digest", "files", "arguments")}
    seal = entries._sha(entries._json(manifest))
    (folder / entries.MANIFEST).write_text(json.dumps({**manifest, "digest": seal}))


HARMS = [
    _damage_part,
    _truncate_manifest,
    _edit_manifest,
    _remove_part,
    _list_for_manifest,
    _deep_manifest,
    _without_files,
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_entry_does_not_stop_the_listing(harm: Callable[[Path], None]) -> None:
    square(3.0)
    (entry,) = listed()
    harm(entry.folder)
    (found,) = listed()
    assert found.state == ("current" if harm in (_damage_part, _remove_part) else "damaged")


@pytest.mark.parametrize(
    "place", ["a file", "below a file", "nowhere", "a loop", "a name too long", "a lock in the way"]
)
def test_a_store_that_cannot_be_used_costs_the_entry_not_the_result(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache = tmp_path / "file", tmp_path / "odd"
    file.write_text("in the way")
    if place == "nowhere":
        cache.symlink_to(tmp_path / "not" / "here")
    elif place == "a loop":
        cache.symlink_to(cache)
    elif place == "a lock in the way":
        monkeypatch.setattr(entries, "FileLock", _Locked)
    else:
        cache = {"a file": file, "below a file": file / "x", "a name too long": tmp_path / ("x" * 300)}[place]
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


@pytest.mark.parametrize("path", [None, 3, b"x", ["x"], "x" * 5000])
def test_what_is_no_path_is_not_noted(path: Any) -> None:
    with pytest.raises(BtcnbError):
        note_read(path)


def test_a_file_that_cannot_be_read_any_more_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reads, "digest", unreadable)
    assert not reads.unchanged({"file": "mark"}, tmp_path)


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_entry_is_made_anew_with_one_warning(harm: Callable[[Path], None]) -> None:
    square(3.0)
    (entry,) = listed()
    harm(entry.folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert square(3.0).tolist() == [9.0]
    assert {w.category for w in caught} == {StoreWarning}
    assert "is damaged and is made anew" in str(caught[0].message)
    assert CALLS == ["square 3.0", "square 3.0"]
    assert square(3.0).tolist() == [9.0]
    assert len(CALLS) == 2


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
        patch.setattr(np, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            square(3.0)
    assert list(listed()) == []
    assert list(store_folder().glob("*/.*.part")) == []
    assert square(3.0).tolist() == [9.0]


def test_a_full_disk_costs_the_entry_not_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.warns(StoreWarning, match="could not be kept"):
        assert square(3.0).tolist() == [9.0]


def test_edited_source_is_not_kept_under_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_AT_IMPORT", "another state")
    with pytest.warns(StoreWarning, match="was edited while"):
        square(3.0)
    assert list(listed()) == []


def test_unknown_kinds_are_refused_by_name() -> None:
    with pytest.raises(StorableError, match=r"an argument of .*square cannot be compared by value"):
        square(object())  # type: ignore[arg-type]


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """A planted entry with a pickled array inside is refused by numpy, not executed."""

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    square(3.0)
    (entry,) = listed()
    np.save(entry.folder / "0.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
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


def test_a_digest_of_sources_knows_content_and_names_and_no_times(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.txt").write_text("no code\n")
    first = entries.sources_digest(tmp_path)
    os.utime(tmp_path / "a.py", (1, 1))
    (tmp_path / "b.txt").write_text("still no code\n")
    assert entries.sources_digest(tmp_path) == first
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    assert entries.sources_digest(tmp_path) != first
    (tmp_path / "c.py").rename(tmp_path / "a.py")
    (tmp_path / "a.py").write_text("x = 2\n")
    assert entries.sources_digest(tmp_path) != first
