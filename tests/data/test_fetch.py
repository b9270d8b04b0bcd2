"""Fetching a record by its DOI, from a local server that answers as Zenodo's API does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from servers import answering

from btcnb.build.cli import main
from btcnb.data import fetch_release, read_release
from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.errors import DataError

RECORD = "22239038"
FILES = {
    "nodes.csv": (",".join(NODE_COLUMNS) + "\n" + "".join(f"{n},{'1,' * 13}1\n" for n in range(9))).encode(),
    "edges.csv": (",".join(EDGE_COLUMNS) + "\n0,1,5,6,1,2,3,4\n").encode(),
    "clusters.csv": (",".join(CLUSTER_COLUMNS) + "\n" + "".join(f"{n},0\n" for n in range(9))).encode(),
}


class Archive:
    """What the server holds and how it misbehaves."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.hashes = {name: "md5:" + hashlib.md5(content).hexdigest() for name, content in FILES.items()}
        self.cut_after: dict[str, list[int]] = {}  # name -> bytes after which the next answers break off
        self.ranges = True
        self.requests: list[tuple[str, str | None]] = []


@contextmanager
def serving(archive: Archive) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            archive.requests.append((name, self.headers.get("Range")))
            host = f"http://127.0.0.1:{self.server.server_port}"
            if self.path == f"/api/records/{RECORD}":
                listed = [
                    {"key": file, "checksum": told, "links": {"self": f"{host}/content/{file}"}}
                    for file, told in archive.hashes.items()
                ]
                return self.reply(200, json.dumps({"id": int(RECORD), "files": listed}).encode())
            if self.path.startswith("/content/") and name in archive.files:
                return self.send_file(name, archive.files[name])
            return self.reply(404, json.dumps({"status": 404, "message": "gone"}).encode())

        def send_file(self, name: str, content: bytes) -> None:
            first = int(self.headers["Range"][6:-1]) if archive.ranges and "Range" in self.headers else 0
            if first >= len(content):
                return self.reply(416, b"")
            rest = content[first:]
            cuts = archive.cut_after.get(name, [])
            return self.reply(206 if first else 200, rest, cuts.pop(0) if cuts else None)

        def reply(self, status: int, content: bytes, cut: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content if cut is None else content[:cut])

        def log_message(self, *_: Any) -> None:
            pass

    with answering(Handler) as address:
        yield f"{address}/api/records"


def content(folder) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def asked(archive: Archive) -> list[str]:
    return [name for name, _ in archive.requests if name != RECORD]


def test_all_files_arrive_and_are_not_fetched_again(tmp_path):
    archive = Archive()
    with serving(archive) as base:
        folder = fetch_release(folder=tmp_path / "release", base=base)
        assert content(folder) == FILES
        assert read_release(folder).num_nodes == 9
        archive.requests.clear()
        fetch_release(folder=folder, base=base)
        assert asked(archive) == []
        (folder / "edges.csv").write_text("damaged")
        fetch_release(folder=folder, base=base)
    assert asked(archive) == ["edges.csv"]
    assert content(folder) == FILES


def test_only_the_files_asked_for(tmp_path):
    archive = Archive()
    with serving(archive) as base:
        fetch_release(folder=tmp_path, files=["edge*", "nodes.csv"], base=base)
        assert set(content(tmp_path)) == {"nodes.csv", "edges.csv"}
        with pytest.raises(
            DataError, match=r"files: 'train\*' matches none; it has nodes.csv, edges.csv, clusters.csv"
        ):
            fetch_release(folder=tmp_path, files="train*", base=base)


def test_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path):
    archive = Archive()
    archive.hashes["edges.csv"] = "md5:" + "0" * 32
    with serving(archive) as base:
        with pytest.raises(DataError, match=r"doi:10\.5281/zenodo\.22239038: edges\.csv: its hash is not the one"):
            fetch_release(folder=tmp_path, files="edges.csv", base=base)
        assert content(tmp_path) == {}


def test_one_file_by_its_address_and_hash(tmp_path):
    good = "sha256:" + hashlib.sha256(FILES["edges.csv"]).hexdigest()
    with serving(Archive()) as base:
        url = base.replace("/api/records", "/content/edges.csv")
        assert content(fetch_release(url, tmp_path, hash=good)) == {"edges.csv": FILES["edges.csv"]}
        with pytest.raises(DataError, match=r"edges\.csv: its hash is not the one"):
            fetch_release(url, tmp_path / "new", hash="sha256:" + "0" * 64)
        with pytest.raises(DataError, match="hash: of a file is missing or of an unknown kind"):
            fetch_release(url, tmp_path / "new")
    assert content(tmp_path) == {"edges.csv": FILES["edges.csv"]}


def test_the_command(tmp_path, capsys):
    with serving(Archive()) as base:
        assert main(["fetch", "release", "--to", str(tmp_path / "r"), "--files", "*.csv", "--base", base]) == 0
        assert f"The files lie in {tmp_path / 'r'}" in capsys.readouterr().out
        assert main(["fetch", "release", "10.5281/zenodo.1", "--to", str(tmp_path / "x"), "--base", base]) == 1
    assert read_release(tmp_path / "r").num_nodes == 9
    assert main(["fetch", "release", "https://bob:secret@127.0.0.1/x.zip", "--hash", "md5:00000000"]) == 2
    assert "secret" not in capsys.readouterr().err


def test_a_download_that_breaks_off_goes_on_where_it_stopped(tmp_path):
    archive = Archive()
    archive.cut_after["nodes.csv"] = [100, 50]
    with serving(archive) as base:
        fetch_release(folder=tmp_path, files="nodes.csv", base=base)
    assert content(tmp_path) == {"nodes.csv": FILES["nodes.csv"]}
    assert [wanted for name, wanted in archive.requests if name == "nodes.csv"] == [None, "bytes=100-", "bytes=150-"]


def test_what_is_left_of_a_failed_run_is_used_by_the_next(tmp_path):
    archive = Archive()
    archive.cut_after["nodes.csv"] = [100, 1, 1, 1]
    with serving(archive) as base:
        with pytest.raises(DataError, match=r"nodes\.csv: the download did not finish .*goes on where it stopped"):
            fetch_release(folder=tmp_path, files="nodes.csv", base=base)
        assert not (tmp_path / "nodes.csv").exists()
        archive.requests.clear()
        fetch_release(folder=tmp_path, files="nodes.csv", base=base)
    assert [wanted for name, wanted in archive.requests if name == "nodes.csv"] == ["bytes=103-"]
    assert content(tmp_path) == {"nodes.csv": FILES["nodes.csv"]}


def test_a_server_that_knows_no_ranges_is_asked_for_all(tmp_path):
    archive = Archive()
    archive.cut_after["nodes.csv"], archive.ranges = [100], False
    with serving(archive) as base:
        fetch_release(folder=tmp_path, files="nodes.csv", base=base)
    assert content(tmp_path) == {"nodes.csv": FILES["nodes.csv"]}


def test_a_complete_partial_file_only_needs_its_hash(tmp_path):
    archive = Archive()
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "nodes.csv").write_bytes(FILES["nodes.csv"])
    with serving(archive) as base:
        fetch_release(folder=tmp_path, files="nodes.csv", base=base)
    assert content(tmp_path) == {"nodes.csv": FILES["nodes.csv"]}


def test_a_record_or_file_that_is_gone(tmp_path):
    archive = Archive()
    with serving(archive) as base:
        with pytest.raises(DataError, match=r"zenodo\.1: record: is not there or lists no files"):
            fetch_release("10.5281/zenodo.1", folder=tmp_path, base=base)
        del archive.files["edges.csv"]
        with pytest.raises(DataError, match=r"edges\.csv: is gone \(status 404\)"):
            fetch_release(folder=tmp_path, files="edges.csv", base=base)
    with pytest.raises(DataError, match=r"record: no readable answer \(ConnectionError\)"):
        fetch_release(folder=tmp_path, base=base)  # the server is closed by now
    assert content(tmp_path) == {}


def test_a_record_that_tries_to_leave_the_folder_is_refused(tmp_path):
    archive = Archive()
    archive.hashes["../evil.csv"] = "md5:" + "0" * 32
    with serving(archive) as base, pytest.raises(DataError, match=r"'\.\./evil\.csv' points outside the folder"):
        fetch_release(folder=tmp_path / "in", base=base)
    assert list(tmp_path.rglob("*.csv")) == []
