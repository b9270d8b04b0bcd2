"""Malformed answers of an archive: `fetch_release` gives a folder or an error of ours, and leaves the folder clean."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import answering

from btcnb.data import fetch_release
from btcnb.errors import BtcnbError, DataError, ParameterError

CONTENT = b"a,b\n1,2\n"
MD5 = hashlib.md5(CONTENT).hexdigest()


class Answers:
    """What the server says next: (status, headers, body) of the record and of its files."""

    record: tuple[int, dict[str, str], bytes] = (200, {}, b"")
    file: tuple[int, dict[str, str], bytes] = (200, {}, CONTENT)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, body = Answers.record if self.path.startswith("/api/records/1") else Answers.file
        self.send_response_only(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with answering(Handler) as address:
        yield address


def fetched(
    host: str, record: Any, file: tuple[int, dict[str, str], bytes] = (200, {}, CONTENT), **options: Any
) -> Any:
    """The files that arrived, or the error; whatever happened, only whole files with the right hash are in place."""
    body = record if isinstance(record, bytes) else json.dumps(record).replace("HOST", host).encode()
    status, headers = options.pop("status", 200), options.pop("headers", {})
    Answers.record, Answers.file = (status, headers, body), file
    with tempfile.TemporaryDirectory() as temporary:
        try:
            options = {"base": f"{host}/api/records"} | options
            folder = fetch_release("10.5281/zenodo.1", Path(temporary) / "in", **options)
        except BtcnbError as error:
            assert 0 < len(str(error)) < 600
            folder = error
        assert {each.name for each in Path(temporary).iterdir()} <= {"in"}
        placed = [path for path in Path(temporary).rglob("*") if path.is_file() and ".partial" not in path.parts]
        assert all(path.read_bytes() == CONTENT for path in placed)
        return folder if isinstance(folder, BtcnbError) else [path.name for path in placed]


def entry(**changes: Any) -> dict[str, Any]:
    return {"key": "a.csv", "checksum": f"md5:{MD5}", "links": {"self": "HOST/content/a.csv"}} | changes


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
odd_names = st.sampled_from(
    [
        "",
        ".",
        "..",
        "/etc/x",
        "..\\x",
        "C:\\x",
        "a\0b",
        "a\nb",
        "x" * 300,
        "é" * 150,
        ".partial",
        ".partial/a.csv",
        "a/b/c",
    ]
)
odd_hashes = st.sampled_from(
    [f"md5:{MD5}"[:-1], MD5, "md5:", "crc:12345678", ":", "sha256:" + "0" * 64, "md5:" + "g" * 32]
)
odd_links = st.sampled_from(
    ["", "HOST", "file:///etc/passwd", "ftp://host/a", "http://", "http://[::1", "HOST/a b", "//x/y"]
)
values = scalars | odd_names | odd_hashes | odd_links | st.lists(scalars, max_size=2)
entries = st.one_of(
    values,
    st.builds(lambda key, value: entry(**{key: value}), st.sampled_from(["key", "checksum", "links"]), values),
    st.builds(lambda value: entry(links={"self": value}), values),
    st.builds(lambda name, told: {"filename": name, "checksum": told}, values, values),
    st.just(entry()),
)
records = st.one_of(
    values, st.binary(max_size=40), st.builds(lambda files: {"files": files}, values | st.lists(entries, max_size=3))
)
headers = st.dictionaries(
    st.sampled_from(["Content-Length", "Content-Encoding", "Content-Range", "Location", "Transfer-Encoding"]),
    st.sampled_from(
        ["abc", "-5", "0", "1", "9" * 30, "gzip", "deflate", "identity", "bytes 5-1/0", "/api/records/1", "x://y"]
    ),
    max_size=2,
)
statuses = st.sampled_from([200, 201, 204, 206, 301, 302, 400, 401, 403, 404, 410, 416, 429, 500, 503, 999])


@settings(max_examples=150)
@given(record=records, status=statuses, headers=headers)
def test_any_record(host: str, record: Any, status: int, headers: dict[str, str]) -> None:
    fetched(host, record, status=status, headers=headers, timeout=0.3)


@settings(max_examples=100)
@given(status=statuses, headers=headers, body=st.sampled_from([CONTENT, CONTENT[:3], CONTENT * 2, b""]))
def test_any_answer_for_a_file(host: str, status: int, headers: dict[str, str], body: bytes) -> None:
    fetched(host, {"files": [entry()]}, (status, headers, body), timeout=0.3)


anything = st.one_of(
    values, st.just(b"x"), st.just({}), st.just(object()), st.sampled_from([float("nan"), -1, 0, 1e400])
)


@settings(max_examples=100)
@given(name=st.sampled_from(["files", "hash", "base", "timeout"]), value=anything | st.lists(anything, max_size=2))
def test_any_argument(host: str, name: str, value: Any) -> None:
    fetched(host, {"files": [entry()]}, **({"timeout": 0.5} | {name: value}))


@pytest.mark.parametrize(
    "doi", [None, 3, "", "x", "https://bob:PW@host/x", "10.5281/zenodo.1/../2", b"10.5281/zenodo.1"]
)
def test_any_doi(doi: Any, tmp_path: Path) -> None:
    with pytest.raises(BtcnbError) as caught:
        fetch_release(doi, tmp_path, base="http://127.0.0.1:1/records", timeout=0.1)
    assert "PW" not in str(caught.value)


def test_a_file_without_a_hash_is_not_taken(host: str) -> None:
    for told in (None, "", MD5[:6], "crc:12345678"):
        assert isinstance(fetched(host, {"files": [entry(checksum=told)]}), DataError)
    assert fetched(host, {"files": [{"filename": "a.csv", "checksum": MD5}], "id": 1}) is not None  # as it once was
    assert fetched(host, {"files": [entry(checksum="SHA256:" + hashlib.sha256(CONTENT).hexdigest())]}) == ["a.csv"]


def test_arguments_out_of_range(host: str) -> None:
    for options in ({"timeout": 0}, {"timeout": float("nan")}, {"files": 3}, {"files": [3]}):
        assert isinstance(fetched(host, {"files": [entry()]}, **options), ParameterError)
