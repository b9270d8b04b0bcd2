"""A node behind JSON-RPC, played by a local server: credentials, patience, and going on after an interruption."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from builders import BTC, chain
from core_blocks import blocks
from servers import answering

from btcnb.data import Transactions
from btcnb.data.readers import Node, read_bitcoin_core
from btcnb.errors import DataError, ParameterError

USER, PASSWORD = "satoshi", "correct horse/battery@staple"


def story(number: int = 6) -> Transactions:
    told = chain(start_block=0).coinbase("c0", 50 * BTC)
    for height in range(1, number):
        told.coinbase(f"c{height}", 50 * BTC).pay(f"c{height - 1}", {f"d{height}": 50 * BTC - 123}, block="same")
    return told.build()


class FakeNode:
    """Answers like bitcoind; `fails` lists what to do to the next requests before it behaves."""

    def __init__(self, txs: Transactions) -> None:
        self.blocks = blocks(txs, 3)
        self.fails: list[str] = []
        self.dies_after: int | None = None  # number of getblock calls it still answers
        self.seen: list[str] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        self.seen.append(method)
        reply: dict[str, Any] = {"result": None, "error": None, "id": request["id"]}
        if method == "getblockcount":
            reply["result"] = len(self.blocks) - 1
        elif method == "getblockhash" and params[0] < len(self.blocks):
            reply["result"] = self.blocks[params[0]]["hash"]
        elif method == "getblock":
            reply["result"] = next(block for block in self.blocks if block["hash"] == params[0])
        else:
            reply["error"] = {"code": -8, "message": "Block height out of range"}
        return reply


@contextmanager
def serving(node: FakeNode) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if self.headers.get("Authorization") != expected:
                return self.reply(401, b"")
            if isinstance(body, dict) and body["method"] == "getblock" and node.dies_after is not None:
                node.dies_after -= 1
                if node.dies_after < 0:
                    node.fails.insert(0, "drop")
            failure = node.fails.pop(0) if node.fails else ""
            if failure == "drop":
                return self.connection.close()
            if failure == "warm":
                error = {"code": -28, "message": "Loading block index"}
                return self.reply(500, json.dumps({"result": None, "error": error, "id": 1}).encode())
            if failure.isdigit():
                return self.reply(int(failure), b"busy")
            answers = [node.answer(one) for one in body] if isinstance(body, list) else node.answer(body)
            failed = isinstance(answers, dict) and answers["error"]
            text = json.dumps(answers).encode()
            return self.reply(500 if failed else 200, text[:-40] if failure == "cut" else text)

        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with answering(Handler) as address:
        yield address


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    return waits


def test_blocks_of_a_node_equal_the_story_by_every_way_in(tmp_path):
    cookie = tmp_path / ".cookie"
    cookie.write_text(f"{USER}:{PASSWORD}\n")
    node = FakeNode(story())
    with serving(node) as url:
        in_url = url.replace("//", "//satoshi:correct%20horse%2Fbattery%40staple@")
        for txs in (
            read_bitcoin_core(url, user=USER, password=PASSWORD),
            read_bitcoin_core(url, cookie=cookie),
            read_bitcoin_core(in_url),
            read_bitcoin_core(Node(url, USER, PASSWORD)),
        ):
            assert txs.fingerprint() == story().fingerprint()
            assert txs.source == url
        node.seen.clear()
        part = read_bitcoin_core(url, user=USER, password=PASSWORD, start=1, end=3)
    assert "getblockcount" not in node.seen
    assert sorted(set(part.transactions["block_number"])) == [1, 2, 3]
    assert part.inputs["value"].tolist() == [50 * BTC] * 3  # verbosity 3 tells what lies before the first block


def test_a_wrong_password_is_one_clear_sentence_and_not_retried(caplog, _no_waiting):
    caplog.set_level(logging.DEBUG)
    with serving(FakeNode(story())) as url, pytest.raises(DataError) as error:
        read_bitcoin_core(url.replace("//", "//satoshi:s3cret@"))
    assert "credentials: the node refuses them; check user, password or cookie file." in str(error.value)
    assert _no_waiting == []
    everything = f"{error.value!r} {error.value} {error.value.__cause__} {error.value.__context__} {caplog.text}"
    assert "s3cret" not in everything


def test_a_node_that_repeats_the_password(monkeypatch):
    node = FakeNode(story())
    monkeypatch.setattr(node, "answer", lambda request: {"error": {"message": f"not {PASSWORD}"}, "id": request["id"]})
    with serving(node) as url, pytest.raises(DataError, match="the node answers: not …;"):
        Node(url, USER, PASSWORD).block_count()


def test_passing_failures_are_waited_out_ever_longer(_no_waiting):
    node = FakeNode(story())
    node.fails = ["drop", "warm", "503", "cut"]
    with serving(node) as url:
        txs = read_bitcoin_core(Node(url, USER, PASSWORD))
    assert txs.fingerprint() == story().fingerprint()
    assert _no_waiting == [1.0, 2.0, 4.0]  # the first further attempt comes at once


def test_a_node_gone_half_way_loses_nothing(tmp_path, _no_waiting):
    node = FakeNode(story())
    node.dies_after = 3
    cache = tmp_path / "cache"
    with serving(node) as url:
        with pytest.raises(DataError, match=r"getblock: no answer after 7 attempts .*run again: blocks in the cache"):
            read_bitcoin_core(url, user=USER, password=PASSWORD, cache=cache)
        assert sorted(file.name for file in cache.iterdir()) == [f"block_{h}.json.gz" for h in range(3)]
        node.dies_after, node.seen = None, []
        txs = read_bitcoin_core(url, user=USER, password=PASSWORD, cache=cache)
    assert node.seen.count("getblock") == 3  # only the rest
    assert txs.fingerprint() == story().fingerprint()
    assert read_bitcoin_core(cache).fingerprint() == txs.fingerprint()  # the cache is a source itself
    assert len(_no_waiting) == 5


def test_a_damaged_or_outdated_cache_entry_is_fetched_again(tmp_path):
    node = FakeNode(story())
    with serving(node) as url:
        read_bitcoin_core(url, user=USER, password=PASSWORD, cache=tmp_path)
        cut = tmp_path / "block_2.json.gz"
        cut.write_bytes(cut.read_bytes()[:50])
        (tmp_path / "block_5.json.gz").write_bytes((tmp_path / "block_4.json.gz").read_bytes())  # another block's
        node.seen = []
        txs = read_bitcoin_core(url, user=USER, password=PASSWORD, cache=tmp_path)
    assert node.seen.count("getblock") == 2
    assert txs.fingerprint() == story().fingerprint()


def test_heights_beyond_the_tip_and_no_range_at_all():
    with serving(FakeNode(story())) as url:
        node = Node(url, USER, PASSWORD)
        with pytest.raises(DataError, match="getblockhash 6: the node answers: Block height out of range"):
            read_bitcoin_core(node, end=9)
        with pytest.raises(DataError, match="4 to 2 is no range of heights"):
            read_bitcoin_core(node, start=4, end=2)


def test_nobody_there(_no_waiting):
    with pytest.raises(DataError, match=r"no answer after 7 attempts \(ConnectionError\)"):
        read_bitcoin_core(Node("http://127.0.0.1:1", USER, PASSWORD))


def test_a_cookie_that_is_none(tmp_path):
    with pytest.raises(DataError, match="cookie: cannot be read"):
        read_bitcoin_core("http://127.0.0.1:1", cookie=tmp_path / "missing")
    (tmp_path / "odd").write_text("no colon")
    with pytest.raises(DataError, match="cookie: is not of the form user:password") as error:
        read_bitcoin_core("http://127.0.0.1:1", cookie=tmp_path / "odd")
    assert "no colon" not in str(error.value)
    with pytest.raises(ParameterError, match="cookie: "):
        Node.at("http://localhost:8332", cookie=3)


def test_a_forbidden_address_is_told_apart():
    node = FakeNode(story())
    node.fails = ["403"]
    with serving(node) as url, pytest.raises(DataError, match="rpcallowip"):
        read_bitcoin_core(url, user=USER, password=PASSWORD)
