"""Lists of mixes read from folders, the counts that are made of them, and the tables of the counts."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from builders import chain

from btcnb.data.coinjoin.lists import read_emulated, read_lists
from btcnb.data.coinjoin.scores import (
    COLUMNS,
    LEFT_OUT,
    alarm_table,
    called,
    in_short,
    recognised_table,
    score_lists,
    score_ordinary,
    share_recognised,
    tidy,
)
from btcnb.data.readers import files
from btcnb.errors import DataError

OUTPUTS = [1_594_323, 1_594_323, 1_062_882, 1_000_000, 531_441, 50_000, 44_100]
INPUTS = [3_000_000, 1_500_000, 700_000, 500_000, 450_000, 9_000]


def emulated(path: Path, rounds: int = 2) -> Path:
    """A file of emulated rounds; positions are written as text, and not in order."""
    content = {}
    for n in range(rounds):
        sides = {}
        for side, values in (("inputs", INPUTS), ("outputs", OUTPUTS)):
            rows = {str(i): {"address": f"bcrt1q{side}{n}{i}", "value": v, "txid": "?"} for i, v in enumerate(values)}
            sides[side] = dict(reversed(rows.items()))
        content[f"{n:064x}"] = {"txid": f"{n:064x}", "broadcast_time": f"2025-04-1{9 - n} 10:00:00.5", **sides}
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps({"coinjoins": content}).encode()))
    return path


def dumplings(path: Path) -> Path:
    """An archive with one Whirlpool mix that two files list, and an ordinary spend."""
    script = "0014" + "{:040x}"
    item = "witness_v0_keyhash"

    def line(txid: int, inputs: list[int], outputs: list[int]) -> str:
        spends = [f"{100 * txid + i:064x}-0-{v}+{script.format(txid * 50 + i)}+{item}" for i, v in enumerate(inputs)]
        pays = [f"{v}+{script.format(txid * 50 + 20 + i)}+{item}" for i, v in enumerate(outputs)]
        return ":::".join([f"{txid:064x}", f"{7:064x}", str(txid), "1710000000", "}{".join(spends), "}{".join(pays)])

    mix = line(1, [100_000] * 3 + [104_000] * 2, [100_000] * 5)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("SamouraiCoinJoins.txt", mix)
        archive.writestr("SamouraiPostMixTxs.txt", f"{mix}\n{line(2, [100_000], [60_000, 39_000])}\n")
    return path


def test_emulated_rounds_keep_their_order_values_and_types(tmp_path):
    txs = read_emulated(emulated(tmp_path / "rounds.json.gz"))
    assert txs.transactions["hash"].tolist() == [f"{1:064x}", f"{0:064x}"]  # by time of broadcast
    assert txs.outputs["value"].tolist() == OUTPUTS * 2
    assert txs.inputs["value"].tolist() == INPUTS * 2
    assert set(txs.outputs["script_type"]) == {3}


def test_emulated_rounds_that_grow_too_much_or_hold_no_whole_values_are_refused(tmp_path, monkeypatch):
    path = emulated(tmp_path / "rounds.json.gz")
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["coinjoins"][f"{0:064x}"]["outputs"]["0"]["value"] += 0.5
    (tmp_path / "half.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    with pytest.raises(DataError, match=r"outputs\.value"):
        read_emulated(tmp_path / "half.json.gz")
    monkeypatch.setattr(files, "MAX_PLAIN", 1_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 10_000_000))
    with pytest.raises(DataError, match="would grow from"):
        read_emulated(tmp_path / "bomb.json.gz")


def test_lists_come_from_all_folders_and_what_stands_in_two_files_counts_in_each(tmp_path):
    dumplings(tmp_path / "whirlpool-2024-03.zip")
    emulated(tmp_path / "more" / "rounds.json.gz")
    lists = read_lists([tmp_path, tmp_path / "more"])
    assert [(listed.archive, listed.file, listed.protocols, len(listed.mixes)) for listed in lists] == [
        ("rounds", "emulated", ("wasabi2",), 2),
        ("whirlpool-2024-03", "SamouraiCoinJoins", ("whirlpool",), 1),
        ("whirlpool-2024-03", "SamouraiPostMixTxs", (), 2),
    ]


def test_counts_have_a_row_per_list_year_rules_and_name(tmp_path):
    dumplings(tmp_path / "whirlpool-2024-03.zip")
    emulated(tmp_path / "rounds.json.gz")
    counts = score_lists([tmp_path])
    assert counts.columns.tolist() == COLUMNS
    by_list = counts.groupby(["file", "rules"])["transactions"].sum()
    assert by_list.xs("SamouraiPostMixTxs").to_dict() == {"improved": 2, LEFT_OUT: 2, "published": 2}
    rounds = counts[(counts["file"] == "emulated") & (counts["name"] == "wasabi2")]
    assert rounds[["year", "rules", "transactions"]].to_numpy().tolist() == [
        [2025, "improved", 2],
        [2025, LEFT_OUT, 2],
    ]
    mix = counts[(counts["file"] == "SamouraiCoinJoins") & (counts["rules"] == "published")]
    assert mix[["protocol", "year", "name", "transactions"]].to_numpy().tolist() == [
        ["whirlpool", 2024, "whirlpool", 1]
    ]


def test_ordinary_blocks_are_counted_by_year_under_both_rule_sets():
    txs = chain().coinbase("pool").pay("pool", {"a": 10, "b": 49 * 10**8}).build()
    counts = score_ordinary(txs, "blocks-of-mine")
    assert counts[["protocol", "year", "name", "transactions"]].to_numpy().tolist() == [["ordinary", 2020, "", 2]] * 2
    assert counts["rules"].tolist() == ["improved", "published"]


def test_what_is_no_list_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(DataError, match="no zip of Dumplings files"):
        read_lists([tmp_path])
    (tmp_path / "rounds.json.gz").write_bytes(gzip.compress(b'{"coinjoins": {"a": {"txid": "a"}}}'))
    with pytest.raises(DataError, match="coinjoins"):
        read_lists([tmp_path])
    (tmp_path / "rounds.json.gz").write_bytes(gzip.compress(b'{"coinj'))
    with pytest.raises(DataError, match="broken or cut short"):
        read_lists([tmp_path])


# tables ---------------------------------------------------------------------------------------------------------

WASABI, OTHER = ("wasabi1-2021", "WasabiCoinJoins", "wasabi1", 2021), ("jm", "OtherCoinJoins", "joinmarket", 2024)
BLOCKS = ("blocks", "blocks", "ordinary")
ROWS = [
    (*WASABI, "published", "wasabi1.1", 52),
    (*WASABI, "published", "wasabi1.0", 45),
    (*WASABI, "published", "joinmarket", 1),
    (*WASABI, "improved", "wasabi1.1", 93),
    (*WASABI, "improved", "joinmarket", 5),
    (*WASABI, LEFT_OUT, "wasabi1.1", 90),
    (*WASABI, LEFT_OUT, None, 8),
    ("wasabi1-2021", "WasabiPostMixTxs", None, 2021, "published", None, 7),
    (*OTHER, "published", "joinmarket", 9),
    (*OTHER, "improved", None, 9),
    (*BLOCKS, 2019, "published", None, 49_996),
    (*BLOCKS, 2019, "published", "whirlpool-tx0", 4),
    (*BLOCKS, 2020, "published", None, 50_000),
    (*BLOCKS, 2019, "improved", None, 50_000),
    (*BLOCKS, 2020, "improved", None, 49_999),
    (*BLOCKS, 2020, "improved", "whirlpool", 1),
]
COUNTS = tidy(pd.DataFrame(ROWS, columns=COLUMNS))


def test_lists_of_a_protocol_by_year_recognised_at_all_and_under_the_right_name():
    table = recognised_table(COUNTS)
    assert table[["protocol", "year", "listed"]].to_numpy().tolist() == [["joinmarket", 2024, 9], ["wasabi1", 2021, 98]]
    wasabi = table.iloc[1]
    assert wasabi[["recognised, published", "right name, published"]].tolist() == [98, 97]
    assert wasabi[["recognised, improved", "right name, improved"]].tolist() == [98, 93]
    assert wasabi[["recognised, left out", "right name, left out"]].tolist() == [90, 90]
    short = ["wasabi1", "2021", "wasabi1-2021", 98, "98 (97)", "98 (93)", "90 (90)"]
    assert in_short(table).iloc[1].tolist() == short


def test_alarms_on_ordinary_blocks_are_counted_by_detector_over_all_years():
    table = alarm_table(COUNTS).set_index("detector")
    assert table.loc["whirlpool-tx0"].tolist() == [4, 4.0, 0, 0.0]
    assert table.loc["whirlpool"].tolist() == [0, 0.0, 1, 1.0]
    assert table.loc["joinmarket"].tolist() == [0, 0.0, 0, 0.0]
    assert len(alarm_table(COUNTS[COUNTS["protocol"] != "ordinary"])) == len(table)


def test_shares_leave_out_lists_whose_truth_nobody_knows():
    assert share_recognised(COUNTS, "published", right=True) == (97, 98)
    assert share_recognised(COUNTS, "improved", right=False) == (98, 98)
    assert share_recognised(COUNTS, LEFT_OUT, right=False) == (90, 98)
    assert share_recognised(COUNTS[:0], "published", right=True) == (0, 0)


def test_what_a_rule_set_calls_a_file():
    assert called(COUNTS, "wasabi1-2021", "WasabiCoinJoins", "published", "joinmarket") == (1, 98)
    assert called(COUNTS, "wasabi1-2021", "WasabiCoinJoins", LEFT_OUT, "") == (8, 98)
    assert called(COUNTS, "absent", "WasabiCoinJoins", "improved", "") == (0, 0)
