"""Bitcoin Core blocks: files of verbosity 2 and 3, and a node behind JSON-RPC, played by a local server."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from builders import BTC, RBF, chain
from core_blocks import blocks, save
from servers import answering

from btcnb.data import SCRIPT_TYPES, Transactions, read_dumplings, read_etl, read_release
from btcnb.data.readers import MissingOutputsWarning, Node, attach_wallets, read_bitcoin_core, sniff
from btcnb.data.readers import node as node_module
from btcnb.errors import BtcnbError, DataError, ParameterError


def story() -> Transactions:
    return (
        chain(types={"alice": "pubkeyhash"})
        .coinbase("pool", 50 * BTC)
        .pay("pool", [("alice", 29 * BTC + 4_782_969), (None, 0), ("pool2", 20 * BTC)], block="same", lock_time=99)
        .coinbase("pool", 50 * BTC)
        .pay(["alice", "pool2"], {"bob": 49 * BTC}, block="same", version=1, sequence=RBF)
        .build()
    )


@pytest.mark.parametrize("verbosity", [2, 3])
def test_blocks_give_back_the_story(tmp_path, verbosity):
    txs = read_bitcoin_core(save(blocks(story(), verbosity), tmp_path / "blocks"))
    assert txs.fingerprint() == story().fingerprint()
    assert txs.outputs["value"].iloc[1] == 29 * BTC + 4_782_969  # 29.04782969 has no exact binary fraction


def test_a_zip_gzipped_files_one_list_and_one_line_each_read_the_same(tmp_path):
    told = blocks(story(), 2)
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for height, block in enumerate(told):
            archive.writestr(f"run/blocks/block_{height}.json", json.dumps(block))
        archive.writestr("run/scenario.json", '{"rounds": 10}')
        archive.writestr("run/notes.txt", "not JSON at all {")
    (tmp_path / "list.json").write_text(json.dumps(told))
    (tmp_path / "lines.json.gz").write_bytes(gzip.compress("\n".join(json.dumps(block) for block in told).encode()))
    (tmp_path / "replies").mkdir()
    for height, block in enumerate(told):
        (tmp_path / "replies" / f"{height}.json").write_text(json.dumps({"result": block, "error": None, "id": 1}))
    for name in ("run.zip", "list.json", "lines.json.gz", "replies"):
        assert read_bitcoin_core(tmp_path / name).fingerprint() == story().fingerprint(), name


def test_a_previous_output_that_is_unknown_is_counted_in_one_warning(tmp_path):
    told = blocks(story(), 2)
    save(told[1:], tmp_path / "late")
    with pytest.warns(MissingOutputsWarning, match=r"late: 2 of 2 inputs spend outputs that lie outside") as caught:
        txs = read_bitcoin_core(tmp_path / "late")
    assert len(caught) == 1
    assert txs.inputs["address"].tolist() == [-1, -1]
    assert txs.inputs["value"].tolist() == [-1, -1]
    assert txs.inputs["spent_transaction_hash"].tolist() == [told[0]["tx"][1]["txid"]] * 2
    assert txs.transactions["fee"].tolist() == [0, 4_782_969]  # the node knew the fee
    with pytest.raises(DataError, match="2 of 2 inputs"):
        read_bitcoin_core(tmp_path / "late", missing="error")
    save(blocks(story(), 3)[1:], tmp_path / "full")
    full = read_bitcoin_core(tmp_path / "full", missing="error")  # verbosity 3 tells previous outputs
    assert full.inputs["value"].tolist() == [29 * BTC + 4_782_969, 20 * BTC]
    assert [SCRIPT_TYPES[kind] for kind in full.inputs["script_type"]] == ["pubkeyhash", "witness_v0_keyhash"]


def test_heights_choose_blocks_and_repeats_count_once(tmp_path):
    told = blocks(story(), 3)
    save([*told, told[1]], tmp_path / "b")
    assert len(read_bitcoin_core(tmp_path / "b", end=100)) == 2
    assert read_bitcoin_core(tmp_path / "b", start=101).transactions["block_number"].tolist() == [101, 101]
    with pytest.raises(DataError, match="transactions: there are none"):
        read_bitcoin_core(tmp_path / "b", start=900)


def test_scripts_of_every_kind(tmp_path):
    told = blocks(story(), 2)
    outputs = told[0]["tx"][0]["vout"]
    outputs[0]["scriptPubKey"] = {"hex": f"41{'04' * 65}ac", "type": "pubkey"}
    outputs += [
        {"value": 0, "n": 1, "scriptPubKey": {"hex": "6aff", "type": "nonstandard"}},
        {"value": "0.00000001", "n": 2, "scriptPubKey": {"hex": f"5220{'11' * 32}", "type": "witness_unknown"}},
        {"value": 1e-8, "n": 3, "scriptPubKey": {"hex": "aa", "type": "pubkeyhash", "addresses": ["1Old"]}},
        {"value": 0.0, "n": 4, "scriptPubKey": {"hex": "bb", "type": "multisig", "addresses": ["1A", "1B"]}},
    ]
    told[0]["tx"], told[1]["tx"] = told[0]["tx"][:1], told[1]["tx"][:1]
    txs = read_bitcoin_core(save(told, tmp_path / "b"))
    assert txs.addresses.tolist() == [f"41{'04' * 65}ac", f"5220{'11' * 32}", "1Old", "bb", "pool"]
    assert txs.outputs["value"].tolist() == [50 * BTC, 0, 1, 1, 0, 50 * BTC]
    assert [SCRIPT_TYPES[kind] for kind in txs.outputs["script_type"]][:5] == [
        "pubkey",
        "nulldata",
        "nonstandard",
        "pubkeyhash",
        "multisig",
    ]


def changed(tmp_path, change) -> str:
    told = blocks(story(), 3)
    change(told)
    save(told, tmp_path / "bad")
    with pytest.raises(DataError) as error:
        read_bitcoin_core(tmp_path / "bad")
    return str(error.value)


def out(told, **fields):
    told[1]["tx"][1]["vout"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda told: told[1].update(tx=["aa", "bb"]),
            "block_101.json: tx: lists transaction ids only (verbosity 1); ask",
        ),
        (lambda told: told[1].pop("height"), "height: is missing"),
        (lambda told: told[1].update(time="noon"), "block_101.json: time: 'noon' is not a valid integer"),
        (lambda told: told[1]["tx"][1].pop("vout"), "block_101.json: tx[1].vout: is missing"),
        (lambda told: told[1]["tx"][1].pop("txid"), "block_101.json: tx[1].txid: is missing"),
        (lambda told: told[1]["tx"][1].update(vin=3), "block_101.json: tx[1].vin: 3 is not a valid list"),
        (lambda told: out(told, value=-1), "tx[1].vout[0].value: -1 is not an amount in bitcoin"),
        (lambda told: out(told, value="0.000000001"), "tx[1].vout[0].value: '0.000000001' is not an amount"),
        (lambda told: out(told, value="many"), "vout[0].value: 'many' is not an amount"),
        (lambda told: out(told, value=float("nan")), "vout[0].value: NaN is not an amount"),
        (lambda told: out(told, scriptPubKey={"address": 7}), "vout[0].scriptPubKey.address: 7 is not a valid string"),
        (lambda told: out(told, scriptPubKey={"addresses": "a"}), "vout[0].scriptPubKey.addresses: 'a' is not a"),
        (lambda told: told[1]["tx"][1]["vin"][0].pop("txid"), "tx[1].vin[0].txid, vout: is missing"),
        (lambda told: out(told, value=70), "pays out 7000000000 satoshi and takes in 4904782969"),
        (lambda told: told[1].update(previousblockhash="ff"), "block 101 does not follow the block 100"),
        (lambda told: told.append(told[1] | {"hash": "ee"}), "height: 101 stands in"),
    ],
)
def test_a_broken_block_is_named(tmp_path, change, message):
    assert message.lower() in changed(tmp_path, change).lower()


def test_truncated_json_and_no_json(tmp_path):
    folder = save(blocks(story(), 2), tmp_path / "b")
    file = folder / "block_101.json"
    file.write_text(file.read_text()[:-30])
    with pytest.raises(DataError, match=r"block_101\.json: JSON: is broken or cut short"):
        read_bitcoin_core(folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no JSON file is there"):
        read_bitcoin_core(tmp_path / "none")
    (tmp_path / "hex.json").write_text('"0100000000"')  # verbosity 0
    with pytest.raises(DataError, match=r"this is not a block with its transactions; ask the node"):
        read_bitcoin_core(tmp_path / "hex.json")


def test_wallets_tell_the_true_owners(tmp_path):
    folder = save(blocks(story(), 2), tmp_path / "run")
    wallets = {"w1": {"bob": {"address": "bob"}, "never seen": {}}, "w0": {"pool": {}, "pool2": {}}}
    (folder / "wallets_info.json").write_text(json.dumps(wallets))
    txs = read_bitcoin_core(folder)
    assert dict(zip(txs.addresses, txs.truth.owner, strict=True)) == {"pool": 0, "alice": -1, "pool2": 0, "bob": 1}
    assert txs.truth.entities["name"].tolist() == ["w0", "w1"]
    assert read_bitcoin_core(folder, wallets=False).truth is None
    owners = {address: wallet for wallet, keys in wallets.items() for address in keys}
    assert attach_wallets(story(), owners).truth.owner.tolist() == txs.truth.owner.tolist()
    listed = {wallet: [{"address": address} for address in keys] for wallet, keys in wallets.items()}
    (folder / "wallets_info.json").write_text(json.dumps(listed))
    assert read_bitcoin_core(folder).truth.owner.tolist() == txs.truth.owner.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"w1": {"a"', "JSON: is broken or cut short"),
        ('{"w1": ["a"]}', "is not wallet -> address -> key"),
        ('{"w1": {"a": {}}, "w2": {"a": {}}}', "a: belongs to w1 and w2"),
        (r'{"\ud800": {"a": {}}}', "wallets: holds text that is no Unicode"),
    ],
)
def test_a_broken_wallet_file_is_named(tmp_path, content, message):
    (tmp_path / "block.json").write_text(json.dumps(blocks(story(), 3)))
    (tmp_path / "wallets_info.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_bitcoin_core(tmp_path)


# A node ------------------------------------------------------------------------------------------------------------

USER, PASSWORD = "satoshi", "correct horse/battery@staple"


def heights(number: int = 6) -> Transactions:
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
    node = FakeNode(heights())
    with serving(node) as url:
        in_url = url.replace("//", "//satoshi:correct%20horse%2Fbattery%40staple@")
        for txs in (
            read_bitcoin_core(url, user=USER, password=PASSWORD),
            read_bitcoin_core(url, cookie=cookie),
            read_bitcoin_core(in_url),
            read_bitcoin_core(Node(url, USER, PASSWORD)),
        ):
            assert txs.fingerprint() == heights().fingerprint()
            assert txs.source == url
        node.seen.clear()
        part = read_bitcoin_core(url, user=USER, password=PASSWORD, start=1, end=3)
    assert "getblockcount" not in node.seen
    assert sorted(set(part.transactions["block_number"])) == [1, 2, 3]
    assert part.inputs["value"].tolist() == [50 * BTC] * 3  # verbosity 3 tells what lies before the first block


def test_a_wrong_password_is_one_clear_sentence_and_not_retried(caplog, _no_waiting):
    caplog.set_level(logging.DEBUG)
    with serving(FakeNode(heights())) as url, pytest.raises(DataError) as error:
        read_bitcoin_core(url.replace("//", "//satoshi:s3cret@"))
    assert "credentials: the node refuses them; check user, password or cookie file." in str(error.value)
    assert _no_waiting == []
    everything = f"{error.value!r} {error.value} {error.value.__cause__} {error.value.__context__} {caplog.text}"
    assert "s3cret" not in everything


def test_a_node_that_repeats_the_password(monkeypatch):
    node = FakeNode(heights())
    monkeypatch.setattr(node, "answer", lambda request: {"error": {"message": f"not {PASSWORD}"}, "id": request["id"]})
    with serving(node) as url, pytest.raises(DataError, match="the node answers: not …;"):
        Node(url, USER, PASSWORD).block_count()


def test_passing_failures_are_waited_out_ever_longer(_no_waiting):
    node = FakeNode(heights())
    node.fails = ["drop", "warm", "503", "cut"]
    with serving(node) as url:
        txs = read_bitcoin_core(Node(url, USER, PASSWORD))
    assert txs.fingerprint() == heights().fingerprint()
    assert _no_waiting == [1.0, 2.0, 4.0]  # the first further attempt comes at once


def test_a_node_gone_half_way_loses_nothing(tmp_path, _no_waiting):
    node = FakeNode(heights())
    node.dies_after = 3
    cache = tmp_path / "cache"
    with serving(node) as url:
        with pytest.raises(DataError, match=r"getblock: no answer after 7 attempts .*run again: blocks in the cache"):
            read_bitcoin_core(url, user=USER, password=PASSWORD, cache=cache)
        assert sorted(file.name for file in cache.iterdir()) == [f"block_{h}.json.gz" for h in range(3)]
        node.dies_after, node.seen = None, []
        txs = read_bitcoin_core(url, user=USER, password=PASSWORD, cache=cache)
    assert node.seen.count("getblock") == 3  # only the rest
    assert txs.fingerprint() == heights().fingerprint()
    assert read_bitcoin_core(cache).fingerprint() == txs.fingerprint()  # the cache is a source itself
    assert len(_no_waiting) == 5


def test_a_damaged_or_outdated_cache_entry_is_fetched_again(tmp_path):
    node = FakeNode(heights())
    with serving(node) as url:
        read_bitcoin_core(url, user=USER, password=PASSWORD, cache=tmp_path)
        cut = tmp_path / "block_2.json.gz"
        cut.write_bytes(cut.read_bytes()[:50])
        (tmp_path / "block_5.json.gz").write_bytes((tmp_path / "block_4.json.gz").read_bytes())  # another block's
        node.seen = []
        txs = read_bitcoin_core(url, user=USER, password=PASSWORD, cache=tmp_path)
    assert node.seen.count("getblock") == 2
    assert txs.fingerprint() == heights().fingerprint()


def test_heights_beyond_the_tip_and_no_range_at_all():
    with serving(FakeNode(heights())) as url:
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
    node = FakeNode(heights())
    node.fails = ["403"]
    with serving(node) as url, pytest.raises(DataError, match="rpcallowip"):
        read_bitcoin_core(url, user=USER, password=PASSWORD)


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"http://bob:{SECRET}/x@127.0.0.1:1",
        f"http://bob:{SECRET}#x@127.0.0.1:1",
        f"http://bob:{SECRET}?x@127.0.0.1:1",
        f"http://bob:12{SECRET}@",
        f"HTTP:/bob:{SECRET}@127.0.0.1:1",
        f"bob:{SECRET}@127.0.0.1:1",
        f"//bob:{SECRET}@127.0.0.1:1",
        f"ftp://bob:{SECRET}@127.0.0.1:1",
        f"http://bob:{SECRET}@127.0.0.1:port",
        f"http://bob:{SECRET}@127.0.0.1:99999999",
        f"http://bob:{SECRET}@[::1",
        f"http://bob:{SECRET}@a..b",
        f"http://bob:{SECRET}@a b",
        f"http://bob:{SECRET}@",
    ],
)
def test_a_malformed_address_is_refused_at_once_and_never_shown(url, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    for waiting in ("socket.socket.connect", "socket.getaddrinfo", "time.sleep"):  # neither tried nor tried again
        monkeypatch.setattr(waiting, lambda *args, waiting=waiting, **options: pytest.fail(f"{waiting} was called"))
    for call in (read_bitcoin_core, Node, Node.at, read_etl, sniff, read_release, read_dumplings):
        with pytest.raises(BtcnbError) as error:
            call(url)
        seen = [error.value, error.value.__cause__, error.value.__context__]
        assert SECRET not in f"{seen!r} {[str(one) for one in seen]} {caplog.text}"
    with pytest.raises(BtcnbError) as error:
        read_bitcoin_core(Path(url))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("url", [f"Http://bob:{SECRET}@127.0.0.1:1", f"  http://bob:{SECRET}@127.0.0.1:1 "])
def test_an_oddly_written_address_is_understood(url, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert (Node(url).url, Node(url).user, Node(url).password) == ("http://127.0.0.1:1", "bob", SECRET)
    with pytest.raises(DataError, match=r"http://127.0.0.1:1: getblockcount: no answer") as error:
        read_bitcoin_core(url)
    seen = [error.value, error.value.__cause__, error.value.__context__]
    assert SECRET not in f"{seen!r} {[str(one) for one in seen]} {caplog.text} {Node(url)!r}"


@contextmanager
def talking(*answers: bytes, drip: float = 0.0):
    """A server that says each answer in turn (the last one for ever), byte by byte with pauses where it drips."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        number = 0
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(2**16)
                answer = answers[min(number, len(answers) - 1)]
                number += 1
                try:
                    for byte in [answer[i : i + 1] for i in range(len(answer))] if drip else [answer]:
                        connection.sendall(byte)
                        if stop.wait(drip):
                            return
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        stop.set()
        server.close()


def http(body: object, status: int = 200) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(text)) + text


@pytest.mark.parametrize("answer", [http({"result": "x" * 500}), b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 90])
def test_a_dripping_node_does_not_outlast_the_timeout(answer):
    with talking(answer, drip=0.05) as url:
        start = time.monotonic()
        with pytest.raises(DataError, match=r"no whole answer within 0.5 seconds"):
            read_bitcoin_core(Node(url, timeout=0.5))
        assert time.monotonic() - start < 0.05 * len(answer)  # sooner than the whole answer would have dripped in


HASH = "0" * 63 + "5"
ONE = {"result": HASH, "error": None}


@pytest.mark.parametrize(
    "answers",
    [
        [{"result": None, "error": "no"}],
        [{"result": 2**63, "error": None}],
        [{"result": "7"}],
        [{"result": -1}],
        [[]],
        [b"[" * 100_000],
        [b"\xff\xfe"],
        [{"result": 0}, {"result": None}],
        [{"result": 0}, {"result": ["x"]}],
        [{"result": 0}, {"error": {"code": -1, "message": "no"}}],
        [{"result": 0}, ONE, {"result": "text"}],
        [{"result": 0}, ONE, {"result": {"hash": "other"}}],
        [{"result": 0}, ONE, {"result": {"hash": HASH}}],
        [{"result": 0}, ONE, {"result": {"hash": HASH, "height": 2**63, "time": 1, "tx": []}}],
        [{"result": 0}, ONE, {"result": {"hash": HASH, "height": 0, "time": 1, "tx": [{"vin": None}]}}],
    ],
)
def test_strange_answers_are_one_clear_error(answers, tmp_path, monkeypatch):
    monkeypatch.setattr(node_module, "RETRIES", 1)
    with talking(*map(http, answers)) as url, pytest.raises(DataError) as error:
        read_bitcoin_core(Node(url, timeout=5), cache=tmp_path / "cache")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.part"))
