"""Bitcoin Core block files: verbosity 2 and 3, amounts as decimals, previous outputs, and broken blocks."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest
from builders import BTC, RBF, chain
from core_blocks import blocks, save

from btcnb.data import SCRIPT_TYPES, Transactions
from btcnb.data.readers import MissingOutputsWarning, attach_wallets, read_bitcoin_core
from btcnb.errors import DataError


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
