"""Whatever bytes come in: a result, or an error of ours; nothing else, and soon. Then the known faults one by one."""

from __future__ import annotations

import functools
import gzip
import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import BTC, chain
from core_blocks import blocks
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from btcnb.data import (
    AddressGraph,
    Node,
    Transactions,
    attach_wallets,
    build_graph,
    read_bitcoin_core,
    read_dumplings,
    read_etl,
    read_release,
    write_etl,
    write_release,
)
from btcnb.data.readers import READERS, RepeatedTransactionsWarning, files, sniff
from btcnb.errors import BtcnbError, DataError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
often = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
READ = {name: reader.read for name, reader in READERS.items()} | {
    "release": read_release,
    "sniff": sniff,
}


@functools.cache  # whoever changes a table changes a copy
def story() -> Transactions:
    return (
        chain(start_block=5)
        .coinbase("pool", 50 * BTC)
        .pay("pool", {"alice": 20 * BTC, "pool2": 30 * BTC - 7})
        .pay(["alice", "pool2"], {"shop": 50 * BTC - 9})
        .owners(alice="alice", pool="pool pool2")
        .build("simulated story")
    )


@functools.cache
def graph() -> AddressGraph:
    return build_graph(story(), labels=np.array([0, 1, 1, 2]))


def harmless(call, *args, **options):
    """The result, or None where btcnb refuses; anything else fails, and so does computing for long (CPU, not clock)."""
    start = time.process_time()
    try:
        return call(*args, **options)
    except BtcnbError as error:
        assert "\n" not in str(error)
        return None
    finally:
        assert time.process_time() - start < 20


# Any bytes, and good files damaged --------------------------------------------------------------------------------

LINE = f"{'a' * 64}:::{'b' * 64}:::1:::1600000000:::{'c' * 64}-0-7+0014{'ab' * 20}+x:::5+0014{'cd' * 20}+x\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> dict[str, bytes]:
    """One small good file of every kind, by name."""
    folder = tmp_path_factory.mktemp("good")
    for suffix in ("jsonl", "json.gz", "parquet"):
        write_etl(story(), folder / f"t.{suffix}", sidecar=False)
    (folder / "block.json").write_text(json.dumps(blocks(story(), 3)))
    (folder / "wallets_info.json").write_text(json.dumps({"w": {"alice": {}}, "v": [{"address": "pool"}]}))
    (folder / "WasabiCoinJoins.txt").write_text(LINE)
    with zipfile.ZipFile(folder / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "block.json", "block.json")
        archive.writestr("x.txt", LINE)
    for name, table in (("nodes", graph().nodes), ("edges", graph().edges), ("clusters", graph().clusters)):
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


NAMES = [
    "t.jsonl",
    "t.json.gz",
    "t.parquet",
    "block.json",
    "wallets_info.json",
    "WasabiCoinJoins.txt",
    "z.zip",
    "nodes.csv",
    "clusters.parquet",
]


@pytest.mark.parametrize("reader", READ)
@often
@given(st.binary(max_size=300), st.sampled_from(NAMES))
@example(b"", "z.zip")
@example(b"PAR1PAR1", "t.parquet")
@example(b"[" * 100_000, "block.json")
@example(b'{"outputs":' + b"[" * 100_000, "t.jsonl")
@example(b'{"hash": 1e999999999}', "t.jsonl")
@example(b"\x1f\x8b\x08\x00", "t.json.gz")
def test_any_bytes(tmp_path, reader, content, name):
    (tmp_path / name).write_bytes(content)
    harmless(READ[reader], tmp_path / name)
    (tmp_path / name).unlink()


def applied(content: bytes, changes: list[tuple[float, int]], cut: float) -> bytes:
    damaged = bytearray(content)
    for place, value in changes:
        damaged[int(place * (len(damaged) - 1))] = value
    return bytes(damaged[: max(1, int(len(damaged) * cut))])


flips = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6)


@pytest.mark.parametrize("name", NAMES)
@often
@given(flips, st.just(1.0) | st.floats(0, 1))
def test_flipped_and_missing_bytes(tmp_path, good, name, changes, cut):
    readers = {"wallets_info.json": ["core"], "WasabiCoinJoins.txt": ["dumplings"], "z.zip": ["core", "dumplings"]}
    readers |= {"block.json": ["core"], "nodes.csv": ["release"], "clusters.parquet": ["release"]}
    for other in ("nodes", "edges", "clusters") if readers.get(name) == ["release"] else ():
        suffix = Path(name).suffix
        (tmp_path / f"{other}{suffix}").write_bytes(good[f"{other}{suffix}"])
    (tmp_path / name).write_bytes(applied(good[name], changes, cut))
    for reader in ["sniff", *readers.get(name, ["etl"])]:
        harmless(READ[reader], tmp_path if reader == "release" else tmp_path / name)


# Good structure, odd values ---------------------------------------------------------------------------------------

odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 21 * 10**14, 21 * 10**14 + 1, -1])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "1e999999999", "NaN", "Infinity", "2020-01-01", "0001-01-01T00:00:00+23:59"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def paths(value, here=()):
    yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from paths(one, (*here, key))


def changed(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


def etl_rows() -> list:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = write_etl(story(), Path(folder) / "t.jsonl", sidecar=False)
        return [json.loads(line) for line in file.read_text().splitlines()]


ROWS, BLOCKS = etl_rows(), blocks(story(), 3)


@often
@given(st.sampled_from(list(paths(ROWS))[1:]), odd, st.sampled_from(["satoshi", "btc"]))
def test_odd_values_in_etl(tmp_path, path, value, unit):
    rows = changed(ROWS, path, value)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    txs = harmless(read_etl, tmp_path / "t.jsonl", unit=unit)
    if txs is not None:
        assert txs.outputs["value"].between(0, 21 * 10**14).all()
        assert all(type(address) is str for address in txs.addresses)
    try:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError):
        return  # Arrow cannot say such a thing
    harmless(read_etl, tmp_path / "t.parquet", unit=unit)


@often
@given(st.sampled_from(list(paths(BLOCKS))), odd)
def test_odd_values_in_blocks(tmp_path, path, value):
    (tmp_path / "b.json").write_text(json.dumps(changed(BLOCKS, path, value)))
    harmless(read_bitcoin_core, tmp_path / "b.json")


@often
@given(st.data(), odd)
def test_odd_values_in_sidecars_and_meta(tmp_path, data, value):
    path = write_etl(story(), tmp_path / "t.jsonl")
    sidecar = tmp_path / "t.jsonl.truth.json.gz"
    content = json.loads(gzip.decompress(sidecar.read_bytes()))
    place = data.draw(st.sampled_from(list(paths(content))))
    sidecar.write_bytes(gzip.compress(json.dumps(changed(content, place, value)).encode()))
    harmless(read_etl, path)
    meta = write_release(graph(), tmp_path / "g") / "meta.json"
    content = json.loads(meta.read_text())
    place = data.draw(st.sampled_from(list(paths(content))))
    meta.write_text(json.dumps(changed(content, place, value)))
    harmless(read_release, tmp_path / "g")


@often
@given(st.data(), odd)
def test_odd_values_in_tables(tmp_path, data, value):
    name = data.draw(st.sampled_from(["transactions", "inputs", "outputs"]))
    tables = {one: getattr(story(), one).astype(object) for one in ("transactions", "inputs", "outputs")}
    column = data.draw(st.sampled_from(list(tables[name].columns)))
    tables[name][column] = pd.Series([value, *tables[name][column].tolist()[1:]], dtype=object)
    harmless(Transactions.checked, **tables, addresses=story().addresses)
    kept = {one: getattr(graph(), one).astype(object) for one in ("nodes", "edges", "clusters")}
    name = data.draw(st.sampled_from(["nodes", "edges", "clusters"]))
    column = data.draw(st.sampled_from(list(kept[name].columns)))
    kept[name][column] = pd.Series([value, *kept[name][column].tolist()[1:]], dtype=object).infer_objects()
    for table in kept:
        kept[table] = kept[table].infer_objects()
    strange = AddressGraph(**kept)
    harmless(write_release, strange, tmp_path / "g")
    harmless(strange.validated)


@settings(often, max_examples=20)  # each is passed to two dozen calls
@given(odd)
def test_odd_arguments(tmp_path, value):
    good = write_etl(story(), tmp_path / "t.jsonl")
    for call, args, options in (
        *((read, (value,), {}) for read in READ.values()),
        (read_etl, (good,), {"pattern": value}),
        (read_etl, (good,), {"missing": value}),
        (read_bitcoin_core, (good,), {"start": value}),
        (read_dumplings, (good,), {"names": value}),
        (read_dumplings, (good,), {"heights": value}),
        (write_etl, (story(), value), {}),
        (write_etl, (value, tmp_path / "x.jsonl"), {}),
        (write_release, (value, tmp_path / "x"), {}),
        (write_release, (graph(), value), {}),
        (attach_wallets, (story(), value), {}),
        (Node, (value,), {}),
    ):
        if (
            isinstance(value, str)
            and Path(value).anchor == ""
            and call in (write_etl, write_release)
            and args[1] is value
        ):
            args = (args[0], str(tmp_path / "out" / value))  # not beside the tests
        harmless(call, *args, **options)


# The gate ---------------------------------------------------------------------------------------------------------


def test_amounts_that_overflow_when_counted_in_satoshi_are_refused(tmp_path):
    row = {"hash": "t", "block_number": 1, "outputs": [{"value": 2**40, "addresses": ["a"]}]}
    for rows in ([row], [changed(row, ("outputs", 0, "value"), 2**40 + 1), {**row, "hash": "u"}]):
        (tmp_path / "t.json").write_text("".join(json.dumps(one) + "\n" for one in rows))
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        for name in ("t.json", "t.parquet"):
            with pytest.raises(DataError, match="value"):
                read_etl(tmp_path / name, unit="btc")


def test_sums_that_would_overflow_are_refused():
    txs = chain().coinbase([(f"a{n}", 21 * 10**14) for n in range(4000)])
    assert len(txs.build().outputs) == 4000  # 8.4e18 fits
    with pytest.raises(DataError, match="the sum of all does not fit 64 bits"):
        txs.coinbase([(f"b{n}", 21 * 10**14) for n in range(4000)]).build()


def test_a_repeated_hash_must_be_the_same_transaction(tmp_path):
    def saved(rows):
        (tmp_path / "t.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / "t.json"

    with pytest.warns(RepeatedTransactionsWarning, match="2 transactions stand there again"):
        assert len(read_etl(saved([*ROWS, *ROWS[1:]]))) == 3
    for path, value in (
        ((2, "outputs", 0, "value"), 1),
        ((2, "outputs", 0, "addresses"), ["thief"]),
        ((2, "inputs"), ROWS[2]["inputs"][:1]),
        ((2, "lock_time"), 9),
        ((2, "block_number"), 99),
        ((2, "block_timestamp"), 1),
        ((0, "outputs", 0, "value"), 1),
    ):
        with pytest.raises(DataError, match="stands there twice with other content"):
            read_etl(saved([*ROWS, changed(ROWS, path, value)[path[0]]]))
    both = changed(BLOCKS, (0, "tx", 0, "vout", 0, "value"), 1.5)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.json").write_text(json.dumps(BLOCKS))
    (tmp_path / "b" / "b.json").write_text(json.dumps(both[0]))
    with pytest.raises(DataError, match="stands there twice with other content"):
        read_bitcoin_core(tmp_path / "b")
    (tmp_path / "x.txt").write_text(LINE + LINE.replace(":::5+", ":::6+"))
    with pytest.raises(DataError, match="stands there twice with other content"):
        read_dumplings(tmp_path / "x.txt")


def test_a_coinbase_has_no_inputs_and_addresses_are_text():
    txs = story()
    with pytest.raises(DataError, match="a coinbase has inputs"):
        Transactions.checked(txs.transactions.assign(is_coinbase=True), txs.inputs, txs.outputs, txs.addresses)
    for wrong in (None, 7, "", ["x"]):
        odd = txs.addresses.copy()
        odd[1] = wrong
        with pytest.raises(DataError, match=r"addresses: row 1 holds .*expected text"):
            Transactions.checked(txs.transactions, txs.inputs, txs.outputs, odd)


@pytest.mark.parametrize("number", ["1e999999999", "0.9", "1.0", "true", '"1"', '" 1 "', "-2147483649", "NaN"])
@pytest.mark.parametrize(
    "path", [(n, "tx", 0, name) for n in (0, 1) for name in ("version", "size", "vsize", "locktime")]
    + [(1, "tx", 0, "vin", 0, "vout"), (1, "tx", 0, "vin", 0, "sequence"), (1, "tx", 0, "vout", 0, "n")]
)  # fmt: skip
def test_numbers_in_blocks_are_whole_numbers(tmp_path, path, number):
    """Nothing is rounded to another output, and no number takes for ever."""
    text = json.dumps(changed(BLOCKS, path, "here")).replace('"here"', number)
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(DataError):
        read_bitcoin_core(tmp_path / "b.json")


def test_an_output_outside_the_table_is_spent_once(tmp_path):
    spend = f"{'c' * 64}-0-7+0014{'ab' * 20}+x"
    (tmp_path / "x.txt").write_text(LINE.replace(spend, f"{spend}}}{{{spend}"))
    with pytest.raises(DataError, match=f"output 0 of {'c' * 64} is spent twice"):
        read_dumplings(tmp_path / "x.txt")
    (tmp_path / "x.txt").write_text(LINE.replace(spend, f"{spend}}}{{{spend.replace('-0-7', '-1-7')}"))
    assert read_dumplings(tmp_path / "x.txt").inputs["value"].tolist() == [7, 7]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("owner", 0), value) for value in (1.5, True, "1", -7, 99, None)),
        *((("change", 1), value) for value in (1.5, True, "1", -7, 99, 2**40)),
        *((("coinjoin", 0), value) for value in (None, 1, [], {}, "\ud800")),
        *((("entities",), value) for value in ({}, {"kind": ["a", "b"]}, {"kind": ["a"], "name": ["b"]}, [1, 2], None)),
        (("entities", "kind", 0), 7),
        (("entities", "name", 0), ["x"]),
    ],
)
def test_the_truth_of_a_sidecar_fits_its_transactions(tmp_path, path, value):
    source = write_etl(story(), tmp_path / "t.jsonl")
    sidecar = tmp_path / "t.jsonl.truth.json.gz"
    content = json.loads(gzip.decompress(sidecar.read_bytes()))
    sidecar.write_bytes(gzip.compress(json.dumps(changed(content, ("truth", *path), value)).encode()))
    with pytest.raises(DataError, match=r"truth|sidecar"):
        read_etl(source)


# Releases ---------------------------------------------------------------------------------------------------------


def test_a_node_without_cluster_has_no_label():
    one = graph()
    with pytest.raises(DataError, match="node 3 has no cluster"):
        AddressGraph(one.nodes, one.edges, one.clusters.iloc[:-1]).labels()
    with pytest.raises(DataError, match="node 0 has no cluster"):
        AddressGraph(one.nodes, one.edges, one.clusters.assign(alias=[np.nan, 1, 1, 1])).labels()
    for strange in (7, -1):
        with pytest.raises(DataError, match=f"edges.b: row 0 holds {strange}"):
            AddressGraph(one.nodes, one.edges.assign(b=strange), one.clusters).edge_index()


# Faults of our own --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [AttributeError, TypeError, MemoryError, KeyError, ZeroDivisionError])
@pytest.mark.parametrize(
    ("name", "reader", "place"),
    [
        ("t.jsonl", "etl", "etl.assemble"),
        ("t.parquet", "etl", "etl._part"),
        ("block.json", "core", "core.assemble"),
        ("WasabiCoinJoins.txt", "dumplings", "dumplings._fill_positions"),
        ("block.json", "core", "core._owner"),
        ("nodes.csv", "release", "release._as"),
    ],
)
def test_a_fault_of_our_own_is_not_blamed_on_the_file(tmp_path, good, monkeypatch, name, reader, place, fault):
    def broken(*_args, **_options):
        raise fault("a bug")

    for file in ("nodes.csv", "edges.csv", "clusters.csv") if reader == "release" else (name,):
        (tmp_path / file).write_bytes(good[file])
    monkeypatch.setattr(f"btcnb.data.readers.{place}", broken)
    with pytest.raises(fault, match="a bug"):
        READ[reader](tmp_path if reader == "release" else tmp_path / name)


# Unpacking --------------------------------------------------------------------------------------------------------


def test_what_grows_too_much_is_refused_while_it_grows(tmp_path, monkeypatch):
    line = json.dumps(ROWS[0]).encode() + b"\n"
    bomb = tmp_path / "t.json.gz"
    bomb.write_bytes(gzip.compress(line + b" " * 5_000_000))
    assert len(read_etl(bomb)) == 1
    monkeypatch.setattr(files, "MAX_PLAIN", 1_000_000)
    for read in (read_etl, read_bitcoin_core, sniff):
        if read is not sniff:
            with pytest.raises(DataError, match=r"would grow from \d+ to \d+ bytes or more; if you trust it"):
                read(bomb)
    monkeypatch.setenv("BTCNB_UNPACK_LIMIT", "10000000")
    assert len(read_etl(bomb)) == 1
    monkeypatch.setenv("BTCNB_UNPACK_LIMIT", "much")
    with pytest.raises(ParameterError, match="BTCNB_UNPACK_LIMIT"):
        read_etl(bomb)


def test_few_bytes_of_parquet_that_stand_for_very_many_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_PLAIN", 100_000)
    rows = 2_000_000
    table = pa.table({"hash": pa.nulls(rows, pa.string()), "block_number": pa.nulls(rows, pa.int64())})
    pq.write_table(table.append_column("outputs", pa.nulls(rows, pa.list_(pa.int64()))), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="Parquet: would grow"):
        read_etl(tmp_path / "t.parquet")


def test_names_in_an_archive_become_plain_text(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a\x1b[31m\n<svg onload=x>.txt", LINE)
    txs = read_dumplings(tmp_path / "z.zip")
    assert txs.transactions["file"].tolist() == ["a [31m <svg onload=x>"]  # the page escapes it
    assert Transactions.checked(txs.transactions, txs.inputs, txs.outputs, txs.addresses, source="a\nb").source == "a b"


# Which reader -----------------------------------------------------------------------------------------------------


def test_every_kind_of_path_finds_its_reader(tmp_path, good):
    kinds = {"t.jsonl": "etl", "t.json.gz": "etl", "t.parquet": "etl", "block.json": "core"}
    for name, kind in {**kinds, "WasabiCoinJoins.txt": "dumplings", "z.zip": "core"}.items():
        (tmp_path / name).write_bytes(good[name])
        assert sniff(tmp_path / name) == kind
        folder = tmp_path / f"in {name}"
        folder.mkdir()
        (folder / name).write_bytes(good[name])
        assert sniff(folder) == kind
    assert sniff(write_release(graph(), tmp_path / "g", "parquet")) == "release"
    assert sniff(write_release({"train1": graph(), "test": graph()}, tmp_path / "gs")) == "release"
    (tmp_path / "nothing.json").write_text("{}")
    with pytest.raises(DataError, match="is of no kind that btcnb reads; give files of one of these kinds: release,"):
        sniff(tmp_path / "nothing.json")
