"""The bitcoin-etl schema: exact round trips, exports as they come in the wild, and what is refused."""

from __future__ import annotations

import gzip
import json
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import BTC, RBF, chain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from btcnb.data import SCRIPT_TYPES, Transactions, Truth
from btcnb.data.readers import MissingOutputsWarning, read_etl, write_etl
from btcnb.errors import DataError, ParameterError

FORMATS = ("jsonl", "json.gz", "parquet")


def story() -> Transactions:
    """Coinbase, payment with OP_RETURN, a spend in the same block, an outside coin, and a script without address."""
    return (
        chain(types={"alice": "pubkeyhash", "ac" * 30: "nonstandard", "m1,m2": "multisig"})
        .coinbase("pool", 50 * BTC)
        .pay("pool", [("alice", 20 * BTC), (None, 0), ("pool2", 30 * BTC - 500)], version=1, lock_time=99)
        .pay("alice", {"ac" * 30: 7 * BTC, "m1,m2": 13 * BTC}, block="same", sequence=RBF)
        .pay(["m1,m2", ("far", BTC)], {"bob": 14 * BTC}, block=140)
        .pay("ac" * 30, {"bob": 7 * BTC})
        .build()
    )


def with_truth() -> Transactions:
    return (
        chain()
        .coinbase("pool", 50 * BTC)
        .pay("pool", {"a": BTC, "b": 49 * BTC}, change=1)
        .pay(["a", "b"], {"c": 50 * BTC}, coinjoin="wasabi2")
        .owners(alice="a c", pool="pool b")
        .build("simulated scenario")
    )


def same(one: Transactions, two: Transactions) -> None:
    for table in ("transactions", "inputs", "outputs"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(two, table))
    assert one.addresses.tolist() == two.addresses.tolist()
    assert one.fingerprint() == two.fingerprint()


def records(txs: Transactions, tmp_path) -> list[dict]:
    write_etl(txs, tmp_path / "records.jsonl", sidecar=False)
    return [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]


def saved(rows: list[dict], path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_round_trip_is_exact(tmp_path, suffix):
    txs = story()
    path = write_etl(txs, tmp_path / f"story.{suffix}")
    same(read_etl(path), txs)
    assert [file.name for file in tmp_path.iterdir()] == [f"story.{suffix}"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_truth_ids_and_source_ride_in_a_sidecar(tmp_path, suffix):
    txs = with_truth()
    backwards = Transactions.checked(  # ids that do not follow first appearance, and an address nobody used
        txs.transactions,
        txs.inputs.assign(address=4 - txs.inputs["address"]),
        txs.outputs.assign(address=4 - txs.outputs["address"]),
        np.array(["unused", *txs.addresses[::-1]], dtype=object),
        Truth(
            owner=np.array([-1, *txs.truth.owner[::-1]]),
            entities=txs.truth.entities,
            label=np.array(["", "", "shop", "", ""], dtype=object),
            coinjoin=txs.truth.coinjoin,
            change=txs.truth.change,
        ),
        "simulated scenario",
    )
    path = write_etl(backwards, tmp_path / f"t.{suffix}")
    back = read_etl(path)
    same(back, backwards)
    assert back.source == "simulated scenario"
    for name in ("owner", "label", "coinjoin", "change"):
        assert getattr(back.truth, name).tolist() == getattr(backwards.truth, name).tolist()
    pd.testing.assert_frame_equal(back.truth.entities, backwards.truth.entities)

    write_etl(backwards, path, sidecar=False)  # the old sidecar goes, ids follow first appearance
    bare = read_etl(path)
    assert bare.truth is None
    assert bare.addresses.tolist() == ["pool", "a", "b", "c"]


def test_a_sidecar_of_other_transactions_is_refused(tmp_path):
    write_etl(with_truth(), tmp_path / "a.jsonl")
    write_etl(story(), tmp_path / "b.jsonl")
    (tmp_path / "a.jsonl.truth.json.gz").rename(tmp_path / "b.jsonl.truth.json.gz")
    with pytest.raises(DataError, match="does not fit its transactions"):
        read_etl(tmp_path / "b.jsonl")


names = st.sampled_from(["a", "b", "c", "ab", "1Address", "bc1qxyz", "ff" * 25])
payments = st.lists(
    st.tuples(
        st.lists(names, min_size=1, max_size=3),
        st.lists(
            st.tuples(names, st.integers(0, 21 * 10**14 // 9 - 1000)), min_size=1, max_size=3
        ),  # 21 million in all
        st.integers(0, 1000),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payments, st.sampled_from(FORMATS))
def test_any_story_survives_a_round_trip(tmp_path, story, suffix):
    told = chain(types={"ff" * 25: "nonstandard"})
    for senders, outputs, fee, same_block in story:
        missing = sum(value for _, value in outputs) + fee
        told.pay([(name, missing) for name in senders], outputs, block="same" if same_block else None)
    txs = told.build()
    same(read_etl(write_etl(txs, tmp_path / f"x.{suffix}")), txs)


def test_parts_in_a_folder_or_zip_equal_one_file(tmp_path):
    rows = records(story(), tmp_path)
    folder = tmp_path / "parts"
    folder.mkdir()
    saved(rows[3:], folder / "part-000000000001")  # exports often have no suffix, and no order
    (folder / "part-000000000002.json.gz").write_bytes(gzip.compress(json.dumps(rows[0]).encode()))
    pq.write_table(pa.Table.from_pylist(rows[1:3]), folder / "part-3.parquet")
    same(read_etl(folder), story())
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"export/{file.name}")
    same(read_etl(tmp_path / "parts.zip"), story())


def test_small_chunks_equal_one_shot(tmp_path, monkeypatch):
    for suffix in FORMATS:
        write_etl(story(), tmp_path / f"s.{suffix}")
    monkeypatch.setattr("btcnb.data.readers.etl.LINES_A_PART", 2)
    monkeypatch.setattr("btcnb.data.readers.etl.ROWS_A_PART", 2)
    monkeypatch.setattr("btcnb.data.readers.etl_write.ROWS_A_GROUP", 2)
    for suffix in FORMATS:
        same(read_etl(tmp_path / f"s.{suffix}"), story())
        same(read_etl(write_etl(story(), tmp_path / f"small.{suffix}")), story())


def bigquery(rows: list[dict]) -> list[dict]:
    """As BigQuery prints JSON: integers and numerics as text, times as text, block records in between."""
    for row in rows:
        row["block_timestamp"] = str(pd.Timestamp(row["block_timestamp"], unit="s")) + " UTC"
        row["block_timestamp_month"] = "2020-09-01"
        for column in ("block_number", "version", "index", "fee", "size"):
            row[column] = str(row[column])
        for item in row["inputs"] + row["outputs"]:
            item["value"] = str(item["value"])
            item["index"] = str(item["index"])
    return [*rows, {"type": "block", "hash": "00", "number": 1, "merkle_root": "ff"}]


def test_a_bigquery_export_reads_the_same(tmp_path):
    same(read_etl(saved(bigquery(records(story(), tmp_path)), tmp_path / "bq.json")), story())


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2018-01-01 00:00:00 UTC", 1514764800),
        ("2018-01-01T00:00:00Z", 1514764800),
        ("2018-01-01T01:00:00+01:00", 1514764800),
        ("2018-01-01 00:00:00", 1514764800),
        ("1514764800", 1514764800),
        ("1.5147648E9", 1514764800),
        (1514764800, 1514764800),
        (1514764800000, 1514764800),
        (1514764800000000, 1514764800),
        (None, 0),
    ],
)
def test_times_in_every_spelling(tmp_path, written, seconds):
    rows = records(story(), tmp_path)
    rows[0]["block_timestamp"] = written
    assert read_etl(saved(rows, tmp_path / "t.json")).transactions["block_timestamp"].iloc[0] == seconds


def test_parquet_with_timestamps_decimals_and_wrapped_lists(tmp_path):
    rows = records(story(), tmp_path)
    for row in rows:
        row["block_timestamp"] = pd.Timestamp(row["block_timestamp"], unit="s", tz="UTC")
        row["fee"] = Decimal(row["fee"])
        for side in ("inputs", "outputs"):
            for item in row[side]:
                item["value"] = Decimal(item["value"])
                item["addresses"] = {"list": [{"element": address} for address in item["addresses"]]}
            row[side] = {"list": [{"element": item} for item in row[side]]}
    numeric = pa.decimal128(38, 9)  # BigQuery's NUMERIC
    table = pa.Table.from_pylist(rows)
    table = table.set_column(table.schema.get_field_index("fee"), "fee", table["fee"].cast(numeric))
    pq.write_table(table, tmp_path / "bq.parquet")
    same(read_etl(tmp_path / "bq.parquet"), story())


def test_amounts_in_bitcoin_are_exact(tmp_path):
    """The AWS public dataset: doubles in bitcoin, one `address` an item. 0.1 + 0.2 has no place here."""
    rows = records(chain().pay([("a", 30_000_003)], {"b": 10_000_001, "c": 20_000_002}).build(), tmp_path)
    for row in rows:
        row["fee"] = 0.0
        for item in row["inputs"] + row["outputs"]:
            item["value"] /= BTC
            item["address"] = item.pop("addresses")[0]
    saved(rows, tmp_path / "aws.json")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "aws.parquet")
    for path in (tmp_path / "aws.json", tmp_path / "aws.parquet"):
        txs = read_etl(path, unit="btc")
        assert txs.outputs["value"].tolist() == [10_000_001, 20_000_002]
        assert txs.inputs["value"].tolist() == [30_000_003]
        assert txs.addresses.tolist() == ["a", "b", "c"]
        with pytest.raises(DataError, match=r"value: 0.\d+ is not a whole number; .*unit='btc'"):
            read_etl(path)


def test_without_index_the_file_order_counts_and_the_coinbase_leads(tmp_path):
    txs = chain().pay("a", {"b": 5}).coinbase("m", block=101).pay("b", {"c": 5}, block="same").build()
    rows = records(txs, tmp_path)
    for row in rows:
        del row["index"], row["is_coinbase"]
        for item in row["inputs"] + row["outputs"]:
            del item["index"]
    found = read_etl(saved([rows[0], rows[2], rows[1]], tmp_path / "x.json"))
    assert found.transactions["index"].tolist() == [1, 0, 1]
    assert found.transactions["is_coinbase"].tolist() == [False, True, False]
    assert found.transactions["hash"].tolist() == txs.transactions["hash"].tolist()


def test_only_the_bare_minimum(tmp_path):
    rows = [
        {"hash": "t1", "block_number": 5, "inputs": [], "outputs": [{"value": 7, "addresses": "a"}, {"value": 1}]},
        {
            "hash": "t2",
            "block_number": 6,
            "inputs": [{"spent_transaction_hash": "t1", "spent_output_index": 0}],
            "outputs": [{"value": 6, "script_hex": "6a01", "type": "nonstandard", "addresses": "nonstandard9f"}],
        },
    ]
    saved(rows, tmp_path / "min.json")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "min.parquet")
    for name in ("min.json", "min.parquet"):
        txs = read_etl(tmp_path / name)
        assert txs.addresses.tolist() == ["a", "t1:1"]  # no address, no script: the outpoint stands for its owner
        assert txs.inputs.loc[0, ["address", "value", "spent_output"]].tolist() == [0, 7, 0]
        assert txs.inputs["sequence"].tolist() == [0xFFFFFFFF]
        assert txs.transactions["fee"].tolist() == [0, 1]
        assert txs.transactions["version"].tolist() == [1, 1]
        assert txs.outputs["address"].tolist() == [0, 1, -1]
        assert SCRIPT_TYPES[txs.outputs["script_type"].iloc[2]] == "nulldata"


@pytest.mark.parametrize("flag", [True, None])
def test_a_coinbase_may_spend_the_null_transaction(tmp_path, flag):
    """So some exports write it; alone it has no inputs at all."""
    null = {"index": 0, "spent_transaction_hash": "0" * 64, "spent_output_index": 2**32 - 1}
    for inputs in ([null], []):
        rows = [records(story(), tmp_path)[0] | {"inputs": inputs, "is_coinbase": flag}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        for path in (saved(rows, tmp_path / "t.json"), tmp_path / "t.parquet"):
            txs = read_etl(path)
            assert txs.transactions["is_coinbase"].tolist() == [True]
            assert not len(txs.inputs)


def test_a_raw_export_without_previous_outputs_is_reported_once(tmp_path):
    rows = records(chain().pay(["a", "b"], {"c": 5}).pay("c", {"d": 5}).build(), tmp_path)
    for row in rows:
        row["fee"] = None
        for item in row["inputs"]:
            item["value"], item["addresses"] = None, None
    path = saved(rows, tmp_path / "raw.json")
    with pytest.warns(MissingOutputsWarning, match="2 of 3 inputs") as caught:
        txs = read_etl(path)
    assert len(caught) == 1
    assert txs.inputs["address"].tolist() == [-1, -1, 0]
    assert txs.inputs["value"].tolist() == [-1, -1, 5]
    assert txs.transactions["fee"].tolist() == [-1, 0]
    assert read_etl(path, missing="ignore").fingerprint() == txs.fingerprint()
    with pytest.raises(DataError, match="2 of 3 inputs"):
        read_etl(path, missing="error")


def broken(tmp_path, change) -> DataError:
    rows = records(story(), tmp_path)
    change(rows)
    with pytest.raises(DataError) as error:
        read_etl(saved(rows, tmp_path / "bad.json"))
    return error.value


def drop(row, name):
    return lambda rows: rows[row].pop(name)


def put(row, path, value):
    def change(rows):
        *steps, last = path
        place = rows[row]
        for step in steps:
            place = place[step]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop(1, "hash"), "line 2: hash"),
        (drop(1, "block_number"), "line 2: block_number: is missing"),
        (drop(1, "outputs"), "line 2: outputs: is missing"),
        (put(1, ["block_number"], "x"), "line 2: block_number: 'x' is not a whole number"),
        (put(1, ["block_number"], float("nan")), "line 2: block_number: nan is not a whole number"),
        (put(1, ["block_timestamp"], "soon"), "line 2: block_timestamp: 'soon' is not a time"),
        (put(1, ["is_coinbase"], "maybe"), "line 2: is_coinbase: 'maybe'"),
        (put(1, ["inputs"], "none"), "line 2: inputs: is not a list of objects"),
        (put(1, ["outputs", 2, "value"], -5), "line 2: outputs[2].value: -5 is negative"),
        (put(1, ["outputs", 2, "value"], None), "line 2: outputs[2].value: is missing"),
        (put(1, ["outputs", 2, "value"], 1.5), "line 2: outputs[2].value: 1.5 is not a whole number"),
        (put(1, ["outputs", 2, "value"], 10**30), "line 2: outputs[2].value"),
        (put(3, ["inputs", 1, "value"], -1), "line 4: inputs[1].value: -1 is negative"),
        (put(3, ["inputs", 0, "value"], 1), "states 1 satoshi, the output it spends holds 1300000000"),
        (put(1, ["inputs", 0, "spent_output_index"], 9), "has no output 9"),
        (put(4, ["outputs", 0, "value"], 8 * BTC), "pays out 800000000 satoshi and takes in 700000000"),
        (put(1, ["hash"], None), "line 2: hash"),
        (put(2, ["index"], 1), "out of chain order"),
        (put(1, ["inputs", 0, "spent_output_index"], 2**32), "spent_output_index: row 0 holds 4294967296"),
        (put(1, ["outputs", 0, "value"], 21 * 10**14 + 1), "outputs.value: row 1 holds 2100000000000001"),
        (put(0, ["block_timestamp"], float("inf")), "'inf' is not a time"),
        (put(0, ["block_timestamp"], 2**32), "block_timestamp: row 0 holds 4294967296"),
        (put(0, ["block_timestamp"], -5), "block_timestamp: row 0 holds -5"),
        (put(0, ["is_coinbase"], []), "is neither true nor false"),
        (put(1, ["is_coinbase"], True), "line 2: is_coinbase: is true, but the transaction spends others"),
        (put(0, ["hash"], ["x"]), "hash: ['x'] stands where text belongs"),
        (put(1, ["outputs", 0, "type"], ["x"]), "outputs[0].type"),
        (put(1, ["outputs", 0, "addresses"], [["x"]]), "is no list of texts"),
        (put(1, ["outputs", 0, "addresses"], {"a": 1, "b": 2}), "is no list of texts"),
        (put(1, ["outputs", 0, "addresses"], 7), "is no list of texts"),
        (put(1, ["outputs", 0, "addresses"], ["\ud800"]), "addresses: holds text that is no Unicode"),
    ],
)
def test_broken_fields_are_named_with_file_line_and_field(tmp_path, change, message):
    error = broken(tmp_path, change)
    assert message in str(error)
    assert "bad.json" in str(error)


def test_a_negative_or_missing_value_in_parquet_is_named(tmp_path):
    rows = records(story(), tmp_path)
    rows[1]["outputs"][2]["value"] = -5
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"bad\.parquet, row 1: outputs\[2\]\.value: -5 is negative"):
        read_etl(tmp_path / "bad.parquet")
    rows[1]["outputs"][2]["value"] = None
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"bad\.parquet, row 1: outputs\[2\]\.value: is missing"):
        read_etl(tmp_path / "bad.parquet")
    pq.write_table(pa.table({"hash": ["a"], "block": [1]}), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"bad\.parquet: block_number: column is missing"):
        read_etl(tmp_path / "bad.parquet")
    pq.write_table(pa.table({"hash": ["a"], "block_number": [1], "outputs": [3]}), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"outputs: holds int64, not a list of records"):
        read_etl(tmp_path / "bad.parquet")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_truncated_file_is_named(tmp_path, suffix):
    path = write_etl(story(), tmp_path / f"cut.{suffix}")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=rf"cut\.{suffix}.*is broken or cut short"):
        read_etl(path)


def test_empty_files_and_wrong_parameters(tmp_path):
    (tmp_path / "empty.json").write_text("\n")
    with pytest.raises(DataError, match="transactions: there are none"):
        read_etl(tmp_path / "empty.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="files: there are none"):
        read_etl(tmp_path / "empty")
    with pytest.raises(ParameterError, match="unit"):
        read_etl(tmp_path / "empty.json", unit="cent")
    with pytest.raises(ParameterError, match="missing"):
        read_etl(write_etl(story(), tmp_path / "x.jsonl"), missing="perhaps")
    with pytest.raises(ParameterError, match=r"x\.xlsx ends neither"):
        write_etl(story(), tmp_path / "x.xlsx")
    assert not (tmp_path / "x.xlsx").exists()


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = write_etl(story(), tmp_path / "x.jsonl")
    before = path.read_bytes()
    monkeypatch.setattr("btcnb.data.readers.etl_write._sums", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_etl(with_truth(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]


def test_two_early_coinbases_share_a_hash(tmp_path):
    """Before block 227,836 a coinbase could repeat an earlier one's hash, which then replaced it."""
    txs = chain().coinbase("m", 50, hash="dd").coinbase("m", 50, hash="dd").pay("m", {"a": 50}).build()
    rows = records(txs, tmp_path)
    found = read_etl(saved(rows, tmp_path / "x.json"))
    assert len(found) == 3
    assert found.inputs["spent_output"].tolist() == [1]
