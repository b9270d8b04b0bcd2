"""Records: whole lines or none, whatever happens while one is written."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.errors import DataError
from btcnb.experiments.sweep import records as module
from btcnb.experiments.sweep.records import FIELDS, OTHER_VERSION, Records


def record(row: str = "gat", **changes: Any) -> dict[str, Any]:
    plain: dict[type, Any] = {str: "x", int: 1, float: 0.5}
    return {name: plain[kind] for name, kind in FIELDS.items()} | {"row": row, "state": "done", **changes}


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "results" / "ablation.jsonl")


def test_a_line_each_in_the_order_of_appending(records: Records) -> None:
    assert records.read() == []
    records.append(record("gat", DP=0.5))
    records.append(record("größer", state="failed", DP=None))
    assert [each["row"] for each in records.read()] == ["gat", "größer"]
    assert records.path.read_text(encoding="utf-8").count("\n") == 2
    assert "größer" in records.path.read_text(encoding="utf-8")


def test_no_number_is_null(records: Records) -> None:
    records.append(record(DP=float("nan"), NMI=float("inf"), ARI=0.25))
    assert (records.read()[0]["DP"], records.read()[0]["NMI"], records.read()[0]["ARI"]) == (None, None, 0.25)


def test_locks_are_not_for_git(records: Records) -> None:
    records.append(record())
    assert (records.path.parent / ".locks" / ".gitignore").read_text() == "*\n"
    assert [path.name for path in records.path.parent.glob("*") if path.is_file()] == ["ablation.jsonl"]


def test_half_a_line_is_cut_off_and_told(records: Records) -> None:
    records.append(record("first"))
    whole = records.path.read_bytes()
    records.path.write_bytes(whole + whole[:40])
    assert [each["row"] for each in records.read()] == ["first"]  # a reader leaves it to the one who writes
    assert records.mend().endswith("the last line was only half written and is cut off; its run counts as not done.")
    assert records.path.read_bytes() == whole and records.mend() == ""


def test_a_whole_line_without_its_end_is_kept(records: Records) -> None:
    records.append(record("first"))
    records.path.write_bytes(records.path.read_bytes() + json.dumps(record("second")).encode())
    assert [each["row"] for each in records.read()] == ["first", "second"]
    assert "it is whole and is kept" in records.mend()
    records.append(record("third"))
    assert [each["row"] for each in records.read()] == ["first", "second", "third"]


def test_appending_mends_first(records: Records) -> None:
    records.append(record("first"))
    records.path.write_bytes(records.path.read_bytes() + b'{"format": 1, "row": "ha')
    records.append(record("second"))
    assert [each["row"] for each in records.read()] == ["first", "second"]


@given(cut=st.integers(0, 10_000), tail=st.sampled_from([b"", b"{", b"\x00\xff"]))
def test_wherever_a_file_is_cut_off_whole_records_stay(
    tmp_path_factory: pytest.TempPathFactory, cut: int, tail: bytes
) -> None:
    lines = [json.dumps(record(f"row {number}", words="ä" * number), ensure_ascii=False) for number in range(4)]
    whole = "".join(f"{line}\n" for line in lines).encode()
    records = Records(tmp_path_factory.mktemp("cut") / "a.jsonl")
    records.path.write_bytes(whole[: cut % (len(whole) + 1)] + tail)
    records.append(record("new"))
    rows = [each["row"] for each in records.read()]
    assert rows[:-1] == [f"row {number}" for number in range(len(rows) - 1)] and rows[-1] == "new"
    assert len(rows) - 1 >= whole[: cut % (len(whole) + 1)].count(b"\n")


def test_a_long_last_line_is_found_whole(records: Records) -> None:
    records.append(record("first"))
    whole = records.path.read_bytes()
    records.path.write_bytes(whole + b'{"long": "' + b"x" * 200_000)
    records.mend()
    assert records.path.read_bytes() == whole


@pytest.mark.parametrize("damage", [b"not json\n", b"[1]\n", b"\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_a_damaged_line_in_the_middle_is_named(records: Records, damage: bytes) -> None:
    records.append(record("first"))
    records.path.write_bytes(records.path.read_bytes() + damage + json.dumps(record("third")).encode() + b"\n")
    with pytest.raises(DataError, match=re.escape(f"{records.path}: line 2: is no record; remove the line")):
        records.read()


@pytest.mark.parametrize(
    "changes",
    [{"format": 0}, {"format": 2}, {"format": True}, {"seed": "1"}, {"state": "half"}, {"run": None}, {"data": 3}],
)
def test_records_of_another_version_are_marked(records: Records, changes: dict[str, Any]) -> None:
    records.append(record("old", **changes))
    records.append(record("new"))
    assert [each["state"] for each in records.read()] == [OTHER_VERSION, "done"]
    assert records.read()[0]["row"] == "old"


def test_a_record_without_a_needed_field_is_of_another_version(records: Records) -> None:
    for name in FIELDS:
        records.append({key: value for key, value in record().items() if key != name})
    assert {each["state"] for each in records.read()} == {OTHER_VERSION}


def test_a_full_disk_leaves_the_file_as_it_was(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    records.append(record("first"))
    before, write = records.path.read_bytes(), os.write

    def half(file: int, content: bytes) -> int:
        write(file, content[:30])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", half)
        with pytest.raises(DataError, match="records: the disk is full; free some space and run the same command"):
            records.append(record("second"))
    assert records.path.read_bytes() == before
    records.append(record("second"))
    assert len(records.read()) == 2


@pytest.mark.parametrize("problem", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_what_is_not_on_the_disk_is_not_in_the_file(
    records: Records, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    records.append(record("first"))
    before = records.path.read_bytes()

    def fails(file: int) -> None:
        raise problem

    monkeypatch.setattr(module.os, "fsync", fails)
    wanted = DataError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(wanted):
        records.append(record("second"))
    assert records.path.read_bytes() == before


ALONE = f"""
import runpy, sys
from btcnb.errors import DataError
Records = runpy.run_path({module.__file__!r})["Records"]  # not its package, which imports networks
"""

LIMITED = f"""{ALONE}
import resource
records = Records(sys.argv[1])
line = records.read()[0]
resource.setrlimit(resource.RLIMIT_FSIZE, (records.path.stat().st_size + 100,) * 2)
try:
    records.append(line)
except DataError as error:
    print(error)
"""


def test_the_system_refuses_in_the_middle_of_a_line(records: Records) -> None:
    """No space for more than 100 bytes: here the operating system itself writes half a line and then fails."""
    records.append(record("first"))
    before = records.path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(records.path)], capture_output=True, text=True, timeout=300
    )
    assert "cannot be written (File too large); mend that and run the same command again" in done.stdout, done.stderr
    assert records.path.read_bytes() == before


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file stands where the folder should be")
    with pytest.raises(DataError, match="records: cannot be written"):
        Records(tmp_path / "results" / "a.jsonl").append(record())
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(DataError, match="records: cannot be written"):
        Records(tmp_path / "a.jsonl").append(record())
    with pytest.raises(DataError, match="records: cannot be read"):
        Records(tmp_path / "a.jsonl").read()


def test_a_run_is_claimed_once(records: Records) -> None:
    first = records.claim("run")
    other = Records(records.path)
    assert first is not None and other.claim("run") is None
    elsewhere = other.claim("another")
    assert elsewhere is not None
    first.release()
    again = other.claim("run")
    assert again is not None
    again.release(recorded=True), elsewhere.release(recorded=True)
    assert list((records.path.parent / ".locks").glob("*.lock")) == []


APPENDING = f"""{ALONE}
records = Records(sys.argv[1])
line = records.read()[0]
for number in range(100):
    records.append(line | dict(row=sys.argv[2], seed=number))
"""


def test_processes_that_append_at_once(records: Records) -> None:
    records.append(record("first"))
    command = [sys.executable, "-c", APPENDING, str(records.path)]
    both = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    found = records.read()
    assert len(found) == 201
    for name in ("a", "b"):
        assert [each["seed"] for each in found if each["row"] == name] == list(range(100))
