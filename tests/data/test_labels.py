"""Labels of addresses: tables, TagPacks, and which label an address gets."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from btcnb.data import attach_labels, read_labels
from btcnb.data.readers import labels as module
from btcnb.errors import BtcnbError, DataError

A, B, C = (
    "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "3NDzzVxiLBUs1WPvVGRfCYDTAD2Ua2PvW4",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
)
CSV = f"""address,label,category,actor,source,confidence
{A},"Boat, Inc.",exchange,boat,list,service_data
{B},NA,,,list,
{A},Ship,,,other,forensic
"""
PACK = f"""---
title: Some harbours
creator: nobody
confidence: web_crawl
category: exchange
currency: BTC
source: https://example.org
actor: harbour
lastmod: 2023-01-26
tags:
  - address: {A}
    label: Pier
  - address: {B}
    label: Quay
    confidence: ownership
    category:
    concepts: [hosting, shop]
    source: 7
  - address: "0xFA8E3920daF271daB92Be9B87d9998DDd94FEF08"
    label: no Bitcoin
  - address: {C}
    currency: LTC
    label: neither
"""


def test_a_table(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    for name in ("t.csv", "t.csv.gz"):
        labels = read_labels(tmp_path / name)
        assert list(labels) == ["address", "label", "category", "actor", "source", "confidence"]
        assert labels["label"].tolist() == ["Boat, Inc.", "NA", "Ship"]
        assert labels.iloc[1].tolist() == [B, "NA", "", "", "list", ""]
    (tmp_path / "short.csv").write_text(f"label,address,note\nx,{A},n\n")
    assert read_labels(tmp_path / "short.csv").values.tolist() == [[A, "x", "", "", "", ""]]


def test_a_pack_says_what_its_tags_do_not(tmp_path):
    (tmp_path / "p.yaml").write_text(PACK)
    labels = read_labels(tmp_path / "p.yaml")
    assert labels.values.tolist() == [
        [A, "Pier", "exchange", "harbour", "https://example.org", "web_crawl"],
        [B, "Quay", "exchange", "harbour", "7", "ownership"],
    ]
    (tmp_path / "p.yaml").write_text(PACK.replace("category: exchange\n", ""))
    assert read_labels(tmp_path / "p.yaml")["category"].tolist() == ["", "hosting+shop"]
    (tmp_path / "p.yaml").write_text(f"label: L\ntags:\n- address: {C}\n- address: {A}\n  network: BTC\n")
    assert read_labels(tmp_path / "p.yaml")["label"].tolist() == ["L", "L"]


def test_the_surest_label_counts_then_the_first(tmp_path):
    txs = chain(start_block=5).coinbase(A, 50 * BTC).pay(A, {B: 20 * BTC, C: 30 * BTC}).owners(me=A).build("mine")
    (tmp_path / "b.yaml").write_text(PACK)
    (tmp_path / "c.csv").write_text(CSV + f"{A},Late,,,x,service_data\n{B},odd,,,x,by hearsay\n1unused,u,,,x,\n")
    labels = read_labels(tmp_path)
    known = attach_labels(txs, labels)
    name = dict(zip(known.addresses, known.truth.label, strict=True))
    assert name == {A: "Boat, Inc.", B: "Quay", C: ""}
    assert np.array_equal(known.truth.owner, txs.truth.owner)
    again = attach_labels(known, pd.DataFrame({"address": [C, B], "label": ["new", "newer"]}))
    assert dict(zip(again.addresses, again.truth.label, strict=True)) == {A: "Boat, Inc.", B: "newer", C: "new"}
    bare = attach_labels(txs.__class__(**{**txs.__dict__, "truth": None}), labels)
    assert bare.truth.owner.tolist() == [-1] * txs.num_addresses
    assert bare.truth.label.tolist() == known.truth.label.tolist()
    assert len(attach_labels(txs, labels.iloc[:0]).truth.label) == txs.num_addresses
    with pytest.raises(DataError, match="labels: address: column is missing"):
        attach_labels(txs, pd.DataFrame({"label": ["x"]}))


def test_labels_of_addresses_that_do_not_occur_are_told(tmp_path):
    txs = chain(start_block=5).pay(A, {B: 20 * BTC, C: 30 * BTC}).build()
    table = pd.DataFrame({"address": [A, "1elsewhere", "1typo", "1typo"], "label": ["x", "y", "z", "w"]})
    with pytest.warns(UserWarning, match="^2 of 3 labelled addresses do not occur in the transactions") as told:
        known = attach_labels(txs, table)
    assert "'1elsewhere', '1typo'" in str(told[0].message) and told[0].filename == __file__
    assert sorted(known.truth.label) == ["", "", "x"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attach_labels(txs, table.iloc[:1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "address,name\nx,y\n", "label: column is missing"),
        ("t.csv", f"address,label\n{A},\n", "label: row 0 is empty"),
        ("t.csv", "", "CSV: cannot be read"),
        ("t.csv", 'address,label\n"x', "CSV: cannot be read|label: row 0"),
        ("p.yaml", "title: [", "YAML: is broken"),
        ("p.yaml", "title: x", "tags: there are none"),
        ("p.yaml", "tags: [7]", r"tags\[0\]: is not a tag"),
        ("p.yaml", f"tags: [{{address: {A}}}]", r"tags\[0\].label: is missing"),
        ("p.yaml", "!!python/object/apply:os.getcwd []", "tags: there are none"),  # a list that stays empty
        ("t.csv", f"address,label\n{A},Boat,x\n{B},Quay,y\n", "CSV: cannot be read .rows have more fields"),
        (
            "p.yaml",
            f"label: {'x' * 10_001}\ntags: [{{address: {A}}}]",
            r"tags\[0\].label: has more than 10,000 letters",
        ),
        (
            "p.yaml",
            f"x: &x [{'a,' * 5_001}]\ntags: [{{address: {A}, label: a, concepts: *x}}]",
            "concepts: has more than",
        ),
        ("p.yaml", "a: &a {x: 1}\nb: {<<: [*a, *a]}\n", "has merge keys"),
        ("p.yaml", "[" * 5000, "YAML: is broken|cannot be read"),
        ("x.txt", "", "no labels are there"),
    ],
)
def test_what_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read_labels(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["0123", "12:30", "On", "no", "1_000", "0x10", "1.50", "2020-01-01", "1e400", "9" * 5000]
)
def test_a_label_is_the_text_that_stands_there(tmp_path, text):
    (tmp_path / "p.yaml").write_text(f"tags: [{{address: {A}, label: {text}, actor: ~, source: null, category: }}]")
    assert read_labels(tmp_path / "p.yaml").loc[0].tolist() == [A, text, "", "", "", ""]


def test_few_lines_that_stand_for_very_much_are_not_written_out(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]  # 10^12 letters
    for label in ("!!pairs [{k: *a11}]", "!!omap [{k: *a11}]", "*a11", "[{k: *a11}]"):
        (tmp_path / "p.yaml").write_text("\n".join([*lines, f"tags: [{{address: {A}, label: {label}}}]"]))
        with pytest.raises(DataError, match=r"label: is missing"):
            read_labels(tmp_path / "p.yaml")


@pytest.mark.parametrize("column", ["address", "label"])
@pytest.mark.parametrize("value", [None, np.nan, pd.NA, 3, True, b"x", [1], {}, ""])
def test_only_text_is_attached(column, value):
    txs = chain().coinbase(A).build()
    table = pd.DataFrame({"address": [A], "label": ["x"]}, dtype=object)
    table[column] = pd.Series([value], dtype=object)
    with pytest.raises(DataError, match=f"labels: {column}: is not text everywhere"):
        attach_labels(txs, table)


def test_a_pack_that_is_too_large(tmp_path, monkeypatch):
    (tmp_path / "p.yaml").write_text(PACK)
    monkeypatch.setattr(module, "MAX_YAML", 100)
    with pytest.raises(DataError, match="has more than 100 bytes; cut it into several packs"):
        read_labels(tmp_path / "p.yaml")


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["t.csv", "p.yaml"]), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=8))
def test_damaged_files_are_read_or_refused(tmp_path, name, changes):
    content = bytearray((CSV if name == "t.csv" else PACK).encode())
    for place, value in changes:
        content[int(place * (len(content) - 1))] = value
    (tmp_path / name).write_bytes(content)
    try:
        found = read_labels(tmp_path / name)
    except BtcnbError as error:
        assert "\n" not in str(error)
    else:
        assert list(found) == list(module.COLUMNS)
        assert found.notna().all(axis=None)
