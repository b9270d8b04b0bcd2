"""Dumplings files: what a line says, what it leaves out, and lines that are broken."""

from __future__ import annotations

import pytest

from btcnb.data import SCRIPT_TYPES
from btcnb.data.readers import read_dumplings
from btcnb.errors import DataError


def txid(name: str) -> str:
    return name.encode().hex().rjust(64, "0")


def script(name: str) -> str:
    return "0014" + name.encode().hex().rjust(40, "0")


def line(name: str, block: str, index: int, time: int, inputs: list[tuple[str, int, int, str]], outputs) -> str:
    """A transaction; inputs are (spent transaction, output, value, owner), outputs (value, owner)."""
    spent = "}{".join(f"{txid(t)}-{n}-{v}+{script(o)}+TxWitnessV0Keyhash" for t, n, v, o in inputs)
    paid = "}{".join(f"{v}+{script(o)}+TxWitnessV0Keyhash" for v, o in outputs)
    return f"{txid(name)}:::{txid(block)}:::{index}:::{time}:::{spent}:::{paid}"


TX0 = line("tx0", "A", 0, 100, [("far", 3, 90, "alice")], [(40, "premix"), (41, "change")])
MIX = line("mix", "B", 7, 200, [("tx0", 0, 40, "premix"), ("out", 0, 60, "bob")], [(50, "x"), (50, "y")])
POST = line("post", "C", 9, 300, [("mix", 1, 50, "y"), ("tx0", 1, 41, "change")], [(91, "shop")])


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "Scanner"
    place.mkdir()
    (place / "SamouraiCoinJoins.txt").write_bytes(MIX.encode() + b"\r\n")
    (place / "SamouraiPostMixTxs.txt").write_bytes(POST.encode())  # no newline at the end
    (place / "SamouraiTx0s.txt").write_bytes(b"\xef\xbb\xbf" + TX0.encode() + b"\r\n\r\n")
    (tmp_path / "Stats.txt").write_text("not a Dumplings file\n")
    return tmp_path


def test_a_folder_is_read_in_chain_order_with_previous_outputs_resolved(folder):
    txs = read_dumplings(folder)
    assert txs.transactions["hash"].tolist() == [txid("tx0"), txid("mix"), txid("post")]
    assert txs.transactions["block_number"].tolist() == [0, 1, 2]
    assert txs.transactions["block_timestamp"].tolist() == [100, 200, 300]
    assert txs.transactions["index"].tolist() == [1, 7, 9]  # Tx0 files say 0: unknown, and 0 is the coinbase's
    assert txs.transactions["fee"].tolist() == [9, 0, 0]
    assert txs.transactions["file"].tolist() == ["SamouraiTx0s", "SamouraiCoinJoins", "SamouraiPostMixTxs"]
    assert txs.inputs["spent_output"].tolist() == [-1, 0, -1, 3, 1]
    assert txs.inputs["value"].tolist() == [90, 40, 60, 50, 41]
    assert txs.inputs["spent_transaction_hash"].iloc[[0, 2]].tolist() == [txid("far"), txid("out")]
    assert all(address.startswith("bc1q") for address in txs.addresses)
    assert {SCRIPT_TYPES[kind] for kind in txs.outputs["script_type"]} == {"witness_v0_keyhash"}


def test_names_choose_files(folder):
    assert len(read_dumplings(folder, names="SamouraiCoinJoins")) == 1
    assert len(read_dumplings(folder, names=["*PostMix*", "*Tx0s"])) == 2
    with pytest.raises(DataError, match="no Dumplings file"):
        read_dumplings(folder, names="Wasabi*")


def test_a_transaction_in_two_files_counts_once_and_names_both(folder):
    """A Tx0 that spends mixed coins stands in two files, and only one of them knows its place in the block."""
    with (folder / "Scanner" / "SamouraiPostMixTxs.txt").open("a") as file:
        file.write("\n" + TX0.replace(":::0:::100", ":::12:::100"))
    txs = read_dumplings(folder)
    assert len(txs) == 3
    assert txs.transactions["file"].iloc[0] == "SamouraiPostMixTxs+SamouraiTx0s"
    assert txs.transactions["index"].iloc[0] == 12


def test_a_block_time_that_runs_backwards_does_not_put_the_spender_first(tmp_path):
    """B is mined after A and spends from it, but its clock is behind; C, unrelated, keeps its place by time."""
    lines = [
        line("child", "B", 1, 90, [("parent", 0, 5, "p")], [(5, "q")]),
        line("parent", "A", 1, 100, [("far", 0, 5, "a")], [(5, "p")]),
        line("other", "C", 1, 95, [("far", 1, 5, "c")], [(5, "d")]),
    ]
    (tmp_path / "x.txt").write_text("\n".join(lines))
    assert read_dumplings(tmp_path / "x.txt").transactions["hash"].tolist() == [
        txid("other"),
        txid("parent"),
        txid("child"),
    ]


def test_unknown_positions_go_behind_what_they_spend_in_the_same_block(tmp_path):
    lines = [
        line("grandchild", "A", 0, 100, [("child", 0, 5, "q")], [(5, "r")]),
        line("child", "A", 0, 100, [("parent", 0, 5, "p")], [(5, "q")]),
        line("parent", "A", 4, 100, [("far", 0, 5, "a")], [(5, "p")]),
        line("fifth", "A", 5, 100, [("far", 1, 5, "c")], [(5, "d")]),
        line("free", "A", 0, 100, [("far", 2, 5, "e")], [(5, "f")]),
    ]
    (tmp_path / "x.txt").write_text("\n".join(lines))
    found = read_dumplings(tmp_path / "x.txt").transactions
    assert dict(zip(found["hash"], found["index"], strict=True)) == {
        txid("free"): 1,
        txid("parent"): 4,
        txid("fifth"): 5,
        txid("child"): 6,
        txid("grandchild"): 7,
    }


def test_heights_replace_the_rank_where_known(folder):
    heights = {txid("A"): 800_000, txid("B"): 800_003, txid("C"): 800_100}
    assert read_dumplings(folder, heights=heights).transactions["block_number"].tolist() == [800_000, 800_003, 800_100]
    del heights[txid("C")]
    with pytest.raises(DataError, match=r"heights: block .*43 has none"):
        read_dumplings(folder, heights=heights)


def test_scripts_without_address_keep_their_hex_and_nulldata_has_no_owner(tmp_path):
    spent, paid = f"{txid('f')}-0-9+51+TxNonstandard", f"0+6a0468+TxNullData}}{{9+5121{'02' * 33}51ae+X"
    odd = f"{txid('t')}:::{txid('A')}:::1:::5:::{spent}:::{paid}"
    (tmp_path / "x.txt").write_text(odd)
    txs = read_dumplings(tmp_path / "x.txt")
    assert txs.addresses.tolist() == ["51", f"5121{'02' * 33}51ae"]
    assert txs.outputs["address"].tolist() == [-1, 1]
    assert [SCRIPT_TYPES[kind] for kind in txs.outputs["script_type"]] == ["nulldata", "multisig"]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (txid("mix") + ":::", "xyz:::", "txid: 'xyz' is not one"),
        (txid("B"), txid("B")[:-1], "block hash"),
        (":::7:::", ":::-7:::", "index in block: '-7' is not one"),
        (":::200:::", ":::soon:::", "unix time: 'soon' is not one"),
        ("-0-60+", "-0-6o+", "inputs[1]"),
        ("-0-60+", "-0--60+", "inputs[1]"),
        ("50+" + script("y"), "-50+" + script("y"), "outputs[1]"),
        ("50+" + script("y"), "50.5+" + script("y"), "outputs[1]"),
        ("50+" + script("y"), "nan+" + script("y"), "outputs[1]"),
        (script("y"), script("y")[:-1], "outputs[1]"),
        ("50+" + script("y") + "+TxWitnessV0Keyhash", "", "outputs[1]"),
        (":::200:::", ":::", "line: has 5 fields, not 6"),
    ],
)
def test_a_broken_field_is_named_with_file_and_line(tmp_path, old, new, field):
    assert old in MIX
    (tmp_path / "SamouraiCoinJoins.txt").write_text(f"{TX0}\n{MIX.replace(old, new)}\n")
    with pytest.raises(DataError) as error:
        read_dumplings(tmp_path / "SamouraiCoinJoins.txt")
    assert f"SamouraiCoinJoins.txt, line 2: {field}" in str(error.value)
    assert len(str(error.value)) < 400


def test_a_line_cut_short_is_named_even_when_it_is_the_first(tmp_path):
    (tmp_path / "WasabiCoinJoins.txt").write_text(MIX[:40])
    (tmp_path / "WasabiPostMixTxs.txt").write_text(POST)
    with pytest.raises(DataError, match=r"WasabiCoinJoins\.txt, line 1: line: has 1 fields"):
        read_dumplings(tmp_path)


def test_blocks_that_spend_from_each_other_are_refused(tmp_path):
    lines = [
        line("a", "A", 1, 90, [("b", 0, 5, "p")], [(5, "q")]),
        line("b", "B", 1, 90, [("a", 0, 5, "q")], [(5, "p")]),
    ]
    (tmp_path / "x.txt").write_text("\n".join(lines))
    with pytest.raises(DataError, match="two blocks spend from each other"):
        read_dumplings(tmp_path / "x.txt")


def test_empty_and_absent(tmp_path):
    (tmp_path / "SamouraiCoinJoins.txt").write_text("")
    with pytest.raises(DataError, match="transactions: there are none"):
        read_dumplings(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        read_dumplings(tmp_path / "nothing.txt")
