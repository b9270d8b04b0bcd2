"""Files, folders and zips: what is found, what is refused, and that nothing is ever half-written."""

from __future__ import annotations

import gzip
import zipfile

import pytest

from btcnb.data.readers.files import members, replacing
from btcnb.errors import DataError


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_folder_a_zip_and_a_zip_in_a_folder_hold_the_same_files(tmp_path):
    folder = tmp_path / "data"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "b.txt").write_text("two")
    (folder / "a.txt").write_text("one")
    (folder / ".hidden").write_text("no")
    (folder / "_SUCCESS").write_text("")
    zipped(tmp_path / "data.zip", {"in/b.txt": "two", "a.txt": "one", "__MACOSX/a.txt": "no"})
    from_folder = {member.name: member.read() for member in members(folder)}
    assert from_folder == {"a.txt": b"one", "in/b.txt": b"two"}
    assert {member.name: member.read() for member in members(tmp_path / "data.zip")} == from_folder
    assert [member.name for member in members(tmp_path, "b.*")] == ["data/in/b.txt", "data/in/b.txt"]
    assert members(tmp_path / "data.zip", "a.txt")[0].source.endswith("data.zip!a.txt")


def test_gzip_is_taken_off_by_content_not_by_name(tmp_path):
    (tmp_path / "plain").write_bytes(gzip.compress(b"hello"))
    assert members(tmp_path / "plain")[0].read() == b"hello"
    zipped(tmp_path / "z.zip", {"x.gz": gzip.compress(b"hello")})
    assert members(tmp_path / "z.zip")[0].read() == b"hello"


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "ok/../../evil.txt", "..\\evil.txt", "C:/evil.txt"])
def test_a_zip_that_tries_to_leave_its_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "slip.zip", "w") as archive:
        archive.writestr("good.txt", "fine")
        archive.writestr(name, "evil")
    with pytest.raises(DataError, match="points outside the archive"):
        members(tmp_path / "slip.zip")
    assert [file.name for file in tmp_path.rglob("*")] == ["slip.zip"]


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_zip_is_named(tmp_path, keep):
    whole = zipped(tmp_path / "whole.zip", {"a.txt": bytes(range(256)) * 50}).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
    with pytest.raises(DataError, match=r"cut\.zip: archive: is broken or cut short"):
        members(tmp_path / "cut.zip")


def test_a_damaged_member_and_a_truncated_gzip_are_named(tmp_path):
    content = bytearray(zipped(tmp_path / "z.zip", {"a.txt": b"abcdefgh" * 500}).read_bytes())
    content[40:44] = b"\xff\xff\xff\xff"
    (tmp_path / "z.zip").write_bytes(content)
    with pytest.raises(DataError, match=r"z\.zip!a\.txt: archive: is broken"):
        members(tmp_path / "z.zip")[0].read()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"abcdefgh" * 500)[:-12])
    with pytest.raises(DataError, match=r"cut\.gz: archive: is broken"):
        members(tmp_path / "cut.gz")[0].read()


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    file = tmp_path / "out" / "x.txt"
    with replacing(file) as part:
        part.write_text("old")
    with pytest.raises(RuntimeError), replacing(file) as part:
        part.write_text("half")
        raise RuntimeError
    assert file.read_text() == "old"
    assert [f.name for f in file.parent.iterdir()] == ["x.txt"]


def test_a_failed_write_leaves_the_old_folder_and_no_litter(tmp_path):
    folder = tmp_path / "out"
    with replacing(folder, folder=True) as part:
        (part / "x").write_text("old")
    with pytest.raises(RuntimeError), replacing(folder, folder=True) as part:
        (part / "y").write_text("half")
        raise RuntimeError
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"x": "old"}
    with replacing(folder, folder=True) as part:
        (part / "z").write_text("new")
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"z": "new"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
