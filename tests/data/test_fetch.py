"""Fetching a record by its DOI, a file by its address, and a collection of blocks, from a server on this machine."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_blocks import SIGNATURE, In, Tx, block, key, p2pkh, p2wpkh
from servers import Files, serving

from btcnb.build.cli import main
from btcnb.data import fetch_blocks, fetch_release, read_blocks, read_release
from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.errors import BtcnbError, DataError, ParameterError

RECORD, API = "/api/records/22239038", "/api/records"
TABLES = {
    "nodes.csv": (",".join(NODE_COLUMNS) + "\n" + "".join(f"{n},{'1,' * 13}1\n" for n in range(9))).encode(),
    "edges.csv": (",".join(EDGE_COLUMNS) + "\n0,1,5,6,1,2,3,4\n").encode(),
    "clusters.csv": (",".join(CLUSTER_COLUMNS) + "\n" + "".join(f"{n},0\n" for n in range(9))).encode(),
}


def entry(name: str, content: bytes, **changes: Any) -> dict[str, Any]:
    told = f"md5:{hashlib.md5(content).hexdigest()}"
    return {"key": name, "checksum": told, "links": {"self": f"HOST/content/{name}"}} | changes


def archive(**hashes: str) -> Files:
    """A record of three tables, as Zenodo's API tells it; `hashes` replace those of tables."""
    entries = [entry(name, content) for name, content in TABLES.items()]
    entries = [one | ({"checksum": hashes[name]} if (name := one["key"][:-4]) in hashes else {}) for one in entries]
    files = {f"/content/{name}": content for name, content in TABLES.items()}
    return Files({RECORD: json.dumps({"id": 22239038, "files": entries}).encode()} | files)


def content(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# The released dataset ----------------------------------------------------------------------------------------------


def test_all_files_arrive_and_are_not_fetched_again(tmp_path):
    files = archive()
    with serving(files) as host:
        folder = fetch_release(folder=tmp_path / "release", base=host + API)
        assert content(folder) == TABLES
        assert read_release(folder).num_nodes == 9
        files.requests.clear()
        (folder / "edges.csv").write_text("damaged")
        fetch_release(folder=folder, base=host + API)
        assert files.asked("/content") == ["/content/edges.csv"]
        assert content(folder) == TABLES
        fetch_release(folder=tmp_path / "some", files=["edge*", "nodes.csv"], base=host + API)
        assert set(content(tmp_path / "some")) == {"nodes.csv", "edges.csv"}
        with pytest.raises(DataError, match=r"files: 'train\*' matches none; it has nodes.csv, edges.csv, clusters"):
            fetch_release(folder=tmp_path, files="train*", base=host + API)


def test_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path):
    told = r"doi:10\.5281/zenodo\.22239038: edges\.csv: its hash is not the one"
    with serving(archive(edges="md5:" + "0" * 32)) as host, pytest.raises(DataError, match=told):
        fetch_release(folder=tmp_path, files="edges.csv", base=host + API)
    assert content(tmp_path) == {}


def test_one_file_by_its_address_and_hash(tmp_path):
    good = "sha256:" + hashlib.sha256(TABLES["edges.csv"]).hexdigest()
    with serving(archive()) as host:
        url = f"{host}/content/edges.csv"
        assert content(fetch_release(url, tmp_path, hash=good)) == {"edges.csv": TABLES["edges.csv"]}
        with pytest.raises(DataError, match=r"edges\.csv: its hash is not the one"):
            fetch_release(url, tmp_path / "new", hash="sha256:" + "0" * 64)
        with pytest.raises(DataError, match="hash: of a file is missing or of an unknown kind"):
            fetch_release(url, tmp_path / "new")
    assert content(tmp_path) == {"edges.csv": TABLES["edges.csv"]}


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_stopped(tmp_path, ranges):
    """Within a run, and in the next one; a server that knows no ranges is asked for all of it."""
    files, name = archive(), "/content/nodes.csv"
    files.ranges = ranges
    with serving(files) as host:
        files.cut_after[name] = [100, 50] if ranges else [100]
        fetch_release(folder=tmp_path / "a", files="nodes.csv", base=host + API)
        if ranges:
            assert [wanted for path, wanted in files.requests if path == name] == [None, "bytes=100-", "bytes=150-"]
        files.cut_after[name] = [100, 1, 1, 1]
        with pytest.raises(DataError, match=r"nodes\.csv: the download did not finish .*goes on where it stopped"):
            fetch_release(folder=tmp_path / "b", files="nodes.csv", base=host + API)
        assert not (tmp_path / "b" / "nodes.csv").exists()
        files.requests.clear()
        fetch_release(folder=tmp_path / "b", files="nodes.csv", base=host + API)
        if ranges:
            assert [wanted for path, wanted in files.requests if path == name] == ["bytes=103-"]
        (tmp_path / "c" / ".partial").mkdir(parents=True)
        (tmp_path / "c" / ".partial" / "nodes.csv").write_bytes(TABLES["nodes.csv"])  # whole already
        fetch_release(folder=tmp_path / "c", files="nodes.csv", base=host + API)
    for folder in "abc":
        assert content(tmp_path / folder) == {"nodes.csv": TABLES["nodes.csv"]}


def test_a_record_or_file_that_is_gone_and_one_that_leaves_its_folder(tmp_path):
    files = archive()
    with serving(files) as host:
        with pytest.raises(DataError, match=r"zenodo\.1: record: is not there or lists no files"):
            fetch_release("10.5281/zenodo.1", folder=tmp_path, base=host + API)
        del files.content["/content/edges.csv"]
        with pytest.raises(DataError, match=r"edges\.csv: is gone \(status 404\)"):
            fetch_release(folder=tmp_path, files="edges.csv", base=host + API)
        files.content[RECORD] = json.dumps({"files": [entry("../evil.csv", b"")]}).encode()
        with pytest.raises(DataError, match=r"'\.\./evil\.csv' points outside the folder"):
            fetch_release(folder=tmp_path, base=host + API)
    with pytest.raises(DataError, match=r"record: no readable answer \(ConnectionError\)"):
        fetch_release(folder=tmp_path, base=host + API)  # the server is closed by now
    assert content(tmp_path) == {}


def test_the_command_for_the_release(tmp_path, capsys):
    with serving(archive()) as host:
        assert main(["fetch", "release", "--to", str(tmp_path / "r"), "--files", "*.csv", "--base", host + API]) == 0
        assert f"The files lie in {tmp_path / 'r'}" in capsys.readouterr().out
        assert main(["fetch", "release", "10.5281/zenodo.1", "--to", str(tmp_path / "x"), "--base", host + API]) == 1
    assert read_release(tmp_path / "r").num_nodes == 9
    assert main(["fetch", "release", "https://bob:secret@127.0.0.1/x.zip", "--hash", "md5:00000000"]) == 2
    assert "secret" not in capsys.readouterr().err


# Answers that are malformed: a folder or an error of ours, and nothing but whole files in place --------------------

CONTENT = b"a,b\n1,2\n"


@pytest.fixture(scope="module")
def server():
    files = Files({})
    with serving(files) as host:
        yield files, host


def fetched(server: Any, record: Any, file: bytes = CONTENT, odd: dict | None = None, **options: Any) -> Any:
    """The names of the files that arrived, or the error."""
    files, host = server
    body = record if isinstance(record, bytes) else json.dumps(record).encode()
    files.content, files.odd = {"/api/records/1": body, "/content/a.csv": file}, odd or {}
    with tempfile.TemporaryDirectory() as temporary:
        try:
            fetch_release("10.5281/zenodo.1", Path(temporary) / "in", **{"base": host + API, "timeout": 0.5} | options)
        except BtcnbError as error:
            assert 0 < len(str(error)) < 600
            return error
        finally:
            assert {each.name for each in Path(temporary).iterdir()} <= {"in"}
            placed = [path for path in Path(temporary).rglob("*") if path.is_file() and ".partial" not in path.parts]
            assert all(path.read_bytes() == CONTENT for path in placed)
        return [path.name for path in placed]


GOOD = entry("a.csv", CONTENT)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
odd_names = st.sampled_from(["", "..", "/etc/x", "C:\\x", "a\0b", "x" * 300, "é" * 150, ".partial/a.csv", "a/b"])
odd_hashes = st.sampled_from([GOOD["checksum"][:-1], "md5:", "crc:12345678", ":", "sha256:" + "0" * 64])
odd_links = st.sampled_from(["", "HOST", "file:///etc/passwd", "ftp://host/a", "http://", "http://[::1", "HOST/a b"])
values = scalars | odd_names | odd_hashes | odd_links | st.lists(scalars, max_size=2)
entries = st.one_of(
    values,
    st.builds(lambda name, value: GOOD | {name: value}, st.sampled_from(["key", "checksum", "links"]), values),
    st.builds(lambda value: GOOD | {"links": {"self": value}}, values),
    st.builds(lambda name, told: {"filename": name, "checksum": told}, values, values),
    st.just(GOOD),
)
records = st.one_of(
    values, st.binary(max_size=40), st.builds(lambda files: {"files": files}, values | st.lists(entries, max_size=3))
)
headers = st.dictionaries(
    st.sampled_from(["Content-Length", "Content-Encoding", "Content-Range", "Location", "Transfer-Encoding"]),
    st.sampled_from(["abc", "-5", "0", "1", "9" * 30, "gzip", "identity", "bytes 5-1/0", "/api/records/1", "x://y"]),
    max_size=2,
)
statuses = st.sampled_from([200, 204, 206, 301, 302, 400, 401, 403, 404, 410, 416, 429, 500, 503, 999])


@settings(max_examples=150)
@given(record=records, status=statuses, headers=headers)
def test_any_record(server, record, status, headers):
    fetched(server, record, odd={"/api/records/1": (status, headers)}, timeout=0.3)


@settings(max_examples=100)
@given(status=statuses, headers=headers, body=st.sampled_from([CONTENT, CONTENT[:3], CONTENT * 2, b""]))
def test_any_answer_for_a_file(server, status, headers, body):
    fetched(server, {"files": [GOOD]}, body, {"/content/a.csv": (status, headers)}, timeout=0.3)


@settings(max_examples=100)
@given(
    name=st.sampled_from(["files", "hash", "base", "timeout"]),
    value=values | st.sampled_from([b"x", {}, object(), float("nan"), -1, 0]) | st.lists(scalars, max_size=2),
)
def test_any_argument(server, name, value):
    fetched(server, {"files": [GOOD]}, **{name: value})


@pytest.mark.parametrize("doi", [None, 3, "", "x", "https://bob:PW@host/x", "10.5281/zenodo.1/../2", b"10.5281/x"])
def test_any_doi(doi, tmp_path):
    with pytest.raises(BtcnbError) as caught:
        fetch_release(doi, tmp_path, base="http://127.0.0.1:1/records", timeout=0.1)
    assert "PW" not in str(caught.value)


def test_a_file_without_a_hash_is_not_taken(server):
    for told in (None, "", GOOD["checksum"][:6], "crc:12345678"):
        assert isinstance(fetched(server, {"files": [GOOD | {"checksum": told}]}), DataError)
    sha = "SHA256:" + hashlib.sha256(CONTENT).hexdigest()
    assert fetched(server, {"files": [GOOD | {"checksum": sha}]}) == ["a.csv"]


# Blocks ------------------------------------------------------------------------------------------------------------

PAY = Tx((In(b"\x77" * 32, 0, witness=(SIGNATURE, key(2))),), ((9, p2wpkh(key(3))), (8, p2pkh(key(4)))))
BLOCKS = [block(550_000 + 1000 * i, bytes([i + 1]) * 32, *([PAY] if i == 1 else []), pay=9) for i in range(3)]
HEADER_ONLY = f"560000-{'00' * 31}ab"
PATHS = [f"/stale/blocks/{one.file}" for one in BLOCKS]


def collection() -> Files:
    rows = [one.file[:-4] for one in BLOCKS[::-1]] + [HEADER_ONLY]
    listed = "height,hash,header\n" + "".join(f"{row.replace('-', ',')},\n" for row in rows)
    blocks = {path: one.raw() for path, one in zip(PATHS, BLOCKS, strict=True)}
    return Files({"/stale/stale-blocks.csv": listed.encode()} | blocks)


def test_blocks_arrive_and_are_not_fetched_again(tmp_path):
    files = collection()
    with serving(files) as host:
        folder = fetch_blocks(tmp_path / "b", base=f"{host}/stale")
        assert content(folder) == {one.file: one.raw() for one in BLOCKS}
        files.requests.clear()
        (folder / BLOCKS[1].file).write_bytes(BLOCKS[1].raw()[:-1])  # damaged: fetched anew
        fetch_blocks(folder, base=f"{host}/stale")
    assert files.asked("/stale/blocks") == [PATHS[1], f"/stale/blocks/{HEADER_ONLY}.bin"]
    txs = read_blocks(folder, missing="ignore")
    assert txs.transactions["block_number"].tolist() == [550_000, 551_000, 551_000, 552_000]


def test_only_the_heights_asked_for(tmp_path, capsys):
    with serving(collection()) as host:
        base = f"{host}/stale"
        assert list(content(fetch_blocks(tmp_path / "a", start=551_000, end=551_999, base=base))) == [BLOCKS[1].file]
        with pytest.raises(DataError, match="there are none of these heights"):
            fetch_blocks(tmp_path, start=560_000, base=base)  # of which only the header is known
        for options in ({"start": -1}, {"end": 1.5}):
            with pytest.raises(ParameterError):
                fetch_blocks(tmp_path, base=base, **options)
        call = ["fetch", "blocks", "--to", str(tmp_path / "b"), "--base", base, "--from-height"]
        assert main([*call, "551000"]) == 0
        assert f"2 blocks lie in {tmp_path / 'b'}" in capsys.readouterr().out
        assert main([*call, "990000"]) == 1
        assert main([*call, "-1"]) == 2


def test_a_block_that_breaks_off_goes_on_where_it_stopped(tmp_path):
    files = collection()
    files.cut_after = {PATHS[0]: [100, 20], PATHS[1]: [50] + [1] * 9}
    with serving(files) as host:
        with pytest.raises(DataError, match=r"the download did not finish \(.*\); run again: it goes on"):
            fetch_blocks(tmp_path, end=551_000, base=f"{host}/stale")
        asked = [wanted for path, wanted in files.requests if path == PATHS[0]]
        assert asked == [None, "bytes=100-", "bytes=120-"]
        assert set(content(tmp_path)) == {f".partial/{BLOCKS[1].file}", BLOCKS[0].file}  # only whole files outside
        files.cut_after.clear()
        fetch_blocks(tmp_path, end=551_000, base=f"{host}/stale")
    assert set(content(tmp_path)) == {BLOCKS[0].file, BLOCKS[1].file}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-1], "it ends in the middle of a transaction"),
        (lambda raw: raw[:70] + b"\x00" + raw[71:], "block hash: is [0-9a-f]{64}, not the one in its name"),
        (lambda raw: raw.replace(p2pkh(key(4)), p2pkh(key(5))), "Merkle root: of block"),
        (lambda raw: raw.replace(b"\x11" * 32, b"\x12" * 32), "witness commitment: of block"),
        (lambda raw: bytes(4_000_001), "has more than 4000000 bytes"),
        (lambda raw: b"<html>not found</html>", "22 bytes are no block"),
    ],
)
def test_what_is_no_such_block_is_refused_and_leaves_nothing(tmp_path, damage, message):
    files = collection()
    files.content[PATHS[1]] = damage(files.content[PATHS[1]])
    with serving(files) as host, pytest.raises(DataError, match=message):
        fetch_blocks(tmp_path, start=551_000, base=f"{host}/stale")
    assert content(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<html>", "does not begin with the columns height and hash"),
        (b"height,hash,header\n1,../../x,\n", "line 2: is no height and hash"),
        (b"height,hash,header\n-1," + b"0" * 64, "line 2: is no height and hash"),
        (b"x" * 200_000, r"stale-blocks\.csv: cannot be read \(field larger"),
    ],
)
def test_a_list_that_is_none(tmp_path, text, message):
    files = collection()
    files.content["/stale/stale-blocks.csv"] = text
    with serving(files) as host, pytest.raises(DataError, match=message):
        fetch_blocks(tmp_path, base=f"{host}/stale")


def test_a_server_that_drips_is_given_up(tmp_path):
    """At 50 bytes a second the list would take a quarter of an hour, and no single byte is late."""
    files = collection()
    files.content["/stale/stale-blocks.csv"], files.drips = b"height,hash\n" + b"#" * 50_000, True
    with serving(files) as host, pytest.raises(DataError, match=r"did not finish \(Timeout\)"):
        fetch_blocks(tmp_path, base=f"{host}/stale", timeout=0.2)


@pytest.mark.parametrize("address", ["http://h/?password=secret", "http://h/#secret@", "http://bob:secret@h"])
def test_an_address_with_a_secret_is_refused_unread(tmp_path, address):
    with pytest.raises(ParameterError, match="base: takes an address") as error:
        fetch_blocks(tmp_path, base=address)
    assert "secret" not in str(error.value)
