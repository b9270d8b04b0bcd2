"""Fetching the public collection of blocks, from a local server that holds a few made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any

import pytest
from raw_blocks import SIGNATURE, In, Tx, block, key, p2pkh, p2wpkh
from servers import answering

from btcnb.build.cli import main
from btcnb.data import fetch_blocks, read_blocks
from btcnb.errors import DataError, ParameterError

PAY = Tx((In(b"\x77" * 32, 0, witness=(SIGNATURE, key(2))),), ((9, p2wpkh(key(3))), (8, p2pkh(key(4)))))
BLOCKS = [block(550_000 + 1000 * i, bytes([i + 1]) * 32, *([PAY] if i == 1 else []), pay=9) for i in range(3)]
HEADER_ONLY = (560_000, "00" * 31 + "ab")


class Collection:
    """What the server holds and how it misbehaves."""

    def __init__(self) -> None:
        rows = [(one.height, one.name) for one in BLOCKS[::-1]] + [HEADER_ONLY]
        self.files = {f"blocks/{one.file}": one.raw() for one in BLOCKS}
        self.files["stale-blocks.csv"] = ("height,hash,header\n" + "".join(f"{h},{n},\n" for h, n in rows)).encode()
        self.cut_after: dict[str, list[int]] = {}  # name -> bytes after which the next answers break off
        self.requests: list[tuple[str, str | None]] = []
        self.drips = False  # a byte now and then

    def asked(self) -> list[str]:
        return [name for name, _ in self.requests if name.startswith("blocks/")]


@contextmanager
def serving(collection: Collection) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/stale/")
            wanted = self.headers.get("Range")
            collection.requests.append((name, wanted))
            content = collection.files.get(name)
            if content is None:
                return self.reply(404, b"")
            first = int(wanted[6:-1]) if wanted else 0
            cuts = collection.cut_after.get(name, [])
            return self.reply(206 if first else 200, content[first:], cuts.pop(0) if cuts else None)

        def reply(self, status: int, content: bytes, cut: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            for letter in content if collection.drips else b"":
                if stopped.wait(0.02):
                    return
                self.wfile.write(bytes([letter]))
            self.wfile.write(b"" if collection.drips else content[:cut])

        def log_message(self, *_: Any) -> None:
            pass

    stopped = Event()
    with answering(Handler) as address:
        try:
            yield f"{address}/stale"
        finally:
            stopped.set()


def names(folder) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_blocks_arrive_and_are_not_fetched_again(tmp_path):
    collection = Collection()
    with serving(collection) as base:
        folder = fetch_blocks(tmp_path / "b", base=base)
        assert names(folder) == [one.file for one in BLOCKS]
        assert all((folder / one.file).read_bytes() == one.raw() for one in BLOCKS)
        collection.requests.clear()
        (folder / BLOCKS[1].file).write_bytes(BLOCKS[1].raw()[:-1])  # damaged: fetched anew
        fetch_blocks(folder, base=base)
    assert collection.asked() == [f"blocks/{BLOCKS[1].file}", f"blocks/{HEADER_ONLY[0]}-{HEADER_ONLY[1]}.bin"]
    txs = read_blocks(folder, missing="ignore")
    assert txs.transactions["block_number"].tolist() == [550_000, 551_000, 551_000, 552_000]


def test_only_the_heights_asked_for(tmp_path):
    with serving(Collection()) as base:
        assert names(fetch_blocks(tmp_path, start=551_000, end=551_999, base=base)) == [BLOCKS[1].file]
        with pytest.raises(DataError, match="there are none of these heights"):
            fetch_blocks(tmp_path, start=HEADER_ONLY[0], base=base)  # of which only the header is known
        for options in ({"start": -1}, {"end": 1.5}, {"base": "http://bob:secret@127.0.0.1"}):
            with pytest.raises(ParameterError):
                fetch_blocks(tmp_path, **{"base": base, **options})


def test_a_download_that_breaks_off_goes_on_where_it_stopped(tmp_path):
    collection = Collection()
    name = f"blocks/{BLOCKS[0].file}"
    collection.cut_after[name] = [100, 20]
    with serving(collection) as base:
        fetch_blocks(tmp_path, end=550_000, base=base)
        assert [wanted for asked, wanted in collection.requests if asked == name] == [None, "bytes=100-", "bytes=120-"]
        assert names(tmp_path) == [BLOCKS[0].file]
        collection.cut_after[f"blocks/{BLOCKS[1].file}"] = [50] + [1] * 9
        with pytest.raises(DataError, match=r"the download did not finish \(.*\); run again: it goes on"):
            fetch_blocks(tmp_path, end=551_000, base=base)
        assert names(tmp_path) == [f".partial/{BLOCKS[1].file}", BLOCKS[0].file]  # only whole files outside
        collection.cut_after.clear()
        fetch_blocks(tmp_path, end=551_000, base=base)
    assert names(tmp_path) == [BLOCKS[0].file, BLOCKS[1].file]


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
    collection = Collection()
    name = f"blocks/{BLOCKS[1].file}"
    collection.files[name] = damage(collection.files[name])
    with serving(collection) as base, pytest.raises(DataError, match=message):
        fetch_blocks(tmp_path, start=551_000, base=base)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin with the columns height and hash"),
        (b"<html>", "does not begin with the columns height and hash"),
        (b"height,hash,header\n1,../../x,\n", "line 2: is no height and hash"),
        (b"height,hash,header\n-1," + b"0" * 64, "line 2: is no height and hash"),
        (b"x" * 200_000, r"stale-blocks\.csv: cannot be read \(field larger"),
    ],
)
def test_a_list_that_is_none(tmp_path, content, message):
    collection = Collection()
    collection.files["stale-blocks.csv"] = content
    with serving(collection) as base, pytest.raises(DataError, match=message):
        fetch_blocks(tmp_path, base=base)


def test_a_server_that_drips_is_given_up(tmp_path):
    """At 50 bytes a second the list would take a quarter of an hour, and no single byte is late."""
    collection = Collection()
    collection.files["stale-blocks.csv"] = b"height,hash\n" + b"#" * 50_000
    collection.drips = True
    with serving(collection) as base, pytest.raises(DataError, match=r"did not finish \(Timeout\)"):
        fetch_blocks(tmp_path, base=base, timeout=0.2)


@pytest.mark.parametrize("address", ["http://h/?password=secret", "http://h/#secret@", "http://bob:secret@h"])
def test_an_address_with_a_secret_is_refused_unread(tmp_path, address):
    with pytest.raises(ParameterError, match="base: takes an address") as error:
        fetch_blocks(tmp_path, base=address)
    assert "secret" not in str(error.value)


def test_the_command(tmp_path, capsys):
    with serving(Collection()) as base:
        call = ["fetch", "blocks", "--to", str(tmp_path / "b"), "--from-height", "551000", "--base", base]
        assert main(call) == 0
        assert f"2 blocks lie in {tmp_path / 'b'}" in capsys.readouterr().out
        assert main([*call[:-4], "--from-height", "990000", "--base", base]) == 1
        assert "there are none of these heights" in capsys.readouterr().err
        assert main([*call[:-4], "--from-height", "-1", "--base", base]) == 2
    assert names(tmp_path / "b") == [one.file for one in BLOCKS[1:]]
