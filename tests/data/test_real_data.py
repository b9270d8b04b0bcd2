"""The readers on real files, where they are at hand: in the folder `BTCNB_REAL_DATA`."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from btcnb.data import (
    SCRIPT_TYPES,
    read_bitcoin_core,
    read_dumplings,
    read_etl,
    write_etl,
)

PROJECT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
REGTEST = DATA / "bitcoin-core-regtest" / "wasabi2-run.zip"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"real data not found at {DATA}; set BTCNB_REAL_DATA to the folder that holds it"
)

COUNTS = {  # transactions a file, as its description states them
    "joinmarket-2024-06.zip": {"OtherCoinJoins": 567, "OtherCoinJoinPostMixTxs": 1_055},
    "whirlpool-2024-03.zip": {"SamouraiCoinJoins": 1_403, "SamouraiTx0s": 900, "SamouraiPostMixTxs": 2_636},
    "wasabi-2018-and-wasabi2-2024-05.zip": {"WasabiCoinJoins": 152, "Wasabi2CoinJoins": 35},
}


def needed(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.mark.parametrize("name", COUNTS)
def test_dumplings_files_hold_what_they_are_said_to_hold(name):
    path = needed(DATA / "dumplings" / name)
    txs = read_dumplings(path)
    files = txs.transactions["file"].str.split("+")
    for file, count in COUNTS[name].items():
        assert files.map(lambda listed, file=file: file in listed).sum() == count
        assert len(read_dumplings(path, names=file)) == count
    assert txs.transactions["hash"].is_unique
    assert (txs.transactions["fee"] >= 0).all()
    assert (txs.inputs["value"] >= 0).all()


@pytest.mark.parametrize("name", COUNTS)
def test_every_previous_output_inside_the_set_is_found(name):
    """An oracle that shares no code with the reader: plain splitting, one dictionary of outputs."""
    path = needed(DATA / "dumplings" / name)
    outputs, spends = {}, {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            for line in archive.read(entry).decode().splitlines():
                txid, *_, inputs, paid = line.split(":::")
                outputs |= {(txid, n): item.split("+")[:2] for n, item in enumerate(paid.split("}{"))}
                for item in inputs.split("}{"):
                    point, script, _ = item.split("+")
                    parent, number, value = point.split("-")
                    spends[parent, int(number)] = [value, script]
    inside = spends.keys() & outputs.keys()
    assert all(spends[key] == outputs[key] for key in inside)
    txs = read_dumplings(path)
    assert (txs.inputs["spent_output"] >= 0).sum() == len(inside)
    assert len(txs.inputs) == len(spends)
    assert len(txs.outputs) == len(outputs)
    owners = {script for _, script in (*spends.values(), *outputs.values()) if not script.startswith("6a")}
    assert txs.num_addresses == len(owners)


def test_real_mixes_have_the_addresses_and_types_of_their_time():
    txs = read_dumplings(needed(DATA / "dumplings" / "wasabi-2018-and-wasabi2-2024-05.zip"))
    kinds = np.array(SCRIPT_TYPES)[txs.outputs["script_type"]]
    file = txs.transactions["file"].to_numpy()[txs.outputs["tx"]]
    assert set(kinds[file == "WasabiCoinJoins"]) == {"witness_v0_keyhash"}  # Wasabi 1 knew nothing else
    assert set(kinds[file == "Wasabi2CoinJoins"]) == {"witness_v0_keyhash", "witness_v1_taproot"}
    heads = {"witness_v0_keyhash": "bc1q", "witness_v1_taproot": "bc1p", "pubkeyhash": "1", "scripthash": "3"}
    for kind, head in heads.items():
        rows = txs.outputs["address"].to_numpy()[kinds == kind]
        assert all(address.startswith(head) for address in txs.addresses[rows]), kind


def test_the_regtest_chain_is_whole_and_its_addresses_map_to_their_wallets():
    txs = read_bitcoin_core(needed(REGTEST), missing="error")
    assert txs.transactions["block_number"].nunique() == 324
    assert txs.transactions["is_coinbase"].sum() == 324
    with zipfile.ZipFile(REGTEST) as archive:
        wallets = json.loads(archive.read("wallets_info.json"))
    assert txs.truth is not None
    mapped = {
        address: txs.truth.entities["name"][owner]
        for address, owner in zip(txs.addresses, txs.truth.owner, strict=True)
        if owner >= 0
    }
    assert len(mapped) == 260
    assert len(txs.truth.entities) == 10
    assert all(address in wallets[wallet] for address, wallet in mapped.items())


def test_no_coin_of_the_regtest_chain_is_lost():
    txs = read_bitcoin_core(needed(REGTEST))
    fees = txs.transactions.groupby("block_number")["fee"].sum()
    minted = txs.outputs.groupby("tx")["value"].sum()[txs.transactions["is_coinbase"].to_numpy()].to_numpy()
    subsidy = 50 * 100_000_000 // 2 ** (np.arange(324) // 150)  # regtest halves every 150 blocks
    assert (minted == subsidy + fees.to_numpy()).all()


@pytest.mark.parametrize("suffix", ["jsonl.gz", "parquet"])
def test_real_transactions_survive_a_round_trip(tmp_path, suffix):
    txs = read_bitcoin_core(needed(REGTEST))
    assert read_etl(write_etl(txs, tmp_path / f"regtest.{suffix}")).fingerprint() == txs.fingerprint()
