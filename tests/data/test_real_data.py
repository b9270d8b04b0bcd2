"""The readers on real files, where they are at hand: in the folder `BTCNB_REAL_DATA`."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from embit.compact import read_from
from embit.transaction import Transaction
from raw_blocks import undo_record

from btcnb.data import (
    SCRIPT_TYPES,
    read_bitcoin_core,
    read_blocks,
    read_dumplings,
    read_etl,
    write_etl,
)
from btcnb.data.readers import RewardWarning, scripts, sniff
from btcnb.data.readers.scripts import NETWORKS

DATA = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
BLOCKS, KNOWN = DATA / "mainnet-blocks", DATA / "mainnet-blocks-with-prevouts"
HEIGHTS = (367_891, 866_342)
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


# Raw blocks --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blocks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_blocks(needed(BLOCKS))


def test_the_scattered_blocks_are_read_completely(blocks):
    assert (len(blocks), len(blocks.inputs)) == (144_490, 380_280)
    assert blocks.transactions["is_coinbase"].sum() == 67
    assert blocks.transactions["hash"].is_unique
    known = blocks.inputs["value"] >= 0
    assert round(100 * known.mean(), 1) == 7.7
    assert round(100 * (blocks.inputs["address"] >= 0).mean(), 2) == 99.66
    assert (blocks.transactions["fee"] >= -1).all()
    heights = {int(file.name.split("-")[0]) for file in BLOCKS.glob("*.bin")}
    assert set(blocks.transactions["block_number"]) == heights


def test_another_parser_finds_the_same(blocks):
    """Ids, amounts, scripts and links of some blocks, by embit and plain dictionaries."""
    names, owners = blocks.transactions["hash"].to_numpy(dtype=object), blocks.addresses
    offsets = blocks.output_offsets()
    first = {int(height): row for row, height in reversed(list(enumerate(blocks.transactions["block_number"])))}
    for file in sorted(BLOCKS.glob("*.bin"))[::13]:
        stream = io.BytesIO(file.read_bytes())
        stream.read(80)
        for tx in range(first[int(file.name.split("-")[0])], len(blocks))[: read_from(stream)]:
            other = Transaction.read_from(stream)
            assert other.txid().hex() == names[tx]
            mine = blocks.outputs.iloc[offsets[tx] : offsets[tx + 1]]
            assert mine["value"].tolist() == [out.value for out in other.vout]
            told, kinds = scripts.addresses([out.script_pubkey.data for out in other.vout])
            assert [None if a < 0 else owners[a] for a in mine["address"]] == told.tolist()
            assert mine["script_type"].tolist() == kinds.tolist()


def test_a_block_that_takes_too_much_is_told():
    """One of these blocks, without a payment, claims fees: it has valid work and is not valid."""
    with pytest.warns(RewardWarning, match="block 584802 takes 1326546691 satoshi; subsidy and fees are 1250000000"):
        assert len(read_blocks(needed(BLOCKS), start=584_802, end=584_802)) == 1


def oracle(height: int):
    """Raw bytes of a block, and script and value of every output it spends, in input order."""
    folder = needed(KNOWN / f"block_{height}")
    raw, spent = (
        pa.CompressedInputStream(pa.OSFile(str(folder / f"{name}.zst")), "zstd").read()
        for name in ("raw", "spent_utxos")
    )
    told = [(coin["txout"]["value"], bytes.fromhex(coin["txout"]["script_pubkey"])) for coin in json.loads(spent)]
    return raw, told


@pytest.mark.parametrize("height", HEIGHTS)
def test_what_a_spender_reveals_is_true(height):
    """Every address that is derived, or found among outputs of the block, is that of the output that is spent."""
    folder = needed(KNOWN / f"block_{height}")
    assert sniff(folder) == "blocks"
    txs = read_blocks(folder, missing="ignore")
    _, spent = oracle(height)
    addresses, kinds = scripts.addresses([script for _, script in spent])
    assert txs.transactions["block_number"].unique().tolist() == [height]
    assert len(txs.inputs) == len(spent)
    known = txs.inputs["address"].to_numpy() >= 0
    assert txs.addresses[txs.inputs["address"].to_numpy()[known]].tolist() == addresses[known].tolist()
    assert (txs.inputs["script_type"].to_numpy()[known] == kinds[known]).all()
    assert {SCRIPT_TYPES[kind] for kind in kinds[~known]} <= {"witness_v1_taproot", "nonstandard", "pubkey", "multisig"}
    told = txs.inputs["value"].to_numpy() >= 0
    assert txs.inputs["value"].to_numpy()[told].tolist() == np.array([value for value, _ in spent])[told].tolist()


@pytest.mark.parametrize("height", HEIGHTS)
def test_undo_data_of_a_real_block(tmp_path, height):
    """Undo data as a node would write them: then all inputs are known, and the coinbase takes what it may."""
    raw, spent = oracle(height)
    magic = NETWORKS["main"].magic
    (tmp_path / "blk00000.dat").write_bytes(magic + len(raw).to_bytes(4, "little") + raw)
    plain = read_blocks(tmp_path, missing="ignore")
    counts = np.diff(plain.input_offsets())[1:]
    coins = iter(spent)
    groups = [[next(coins) for _ in range(count)] for count in counts]
    (tmp_path / "rev00000.dat").write_bytes(undo_record(raw[4:36], groups, "main"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        txs = read_blocks(tmp_path)
    assert txs.inputs["value"].tolist() == [value for value, _ in spent]
    addresses, kinds = scripts.addresses([script for _, script in spent])
    assert txs.inputs["script_type"].tolist() == kinds.tolist()
    named = np.array([len(script) > 0 for _, script in spent])  # an empty script goes by its place
    assert txs.addresses[txs.inputs["address"].to_numpy()[named]].tolist() == addresses[named].tolist()
    assert (txs.transactions["fee"] >= 0).all()
    reward = txs.outputs["value"][: txs.output_offsets()[1]].sum()
    assert reward == (50 * 10**8 >> height // 210_000) + txs.transactions["fee"].sum()
    early = plain.transactions["fee"] >= 0
    assert txs.transactions["fee"][early].equals(plain.transactions["fee"][early])


def test_imputed_values_are_the_true_ones_but_for_fees():
    txs = read_blocks(needed(KNOWN / "block_866342"), missing="ignore", impute=True)
    _, spent = oracle(866_342)
    true = np.array([value for value, _ in spent])
    alone = np.isin(txs.inputs["tx"], np.flatnonzero(np.diff(txs.input_offsets()) == 1)) & txs.inputs["imputed"]
    share = txs.inputs["value"].to_numpy()[alone] / true[alone]
    assert alone.sum() > 500
    assert (share <= 1).all()
    assert np.median(share) > 0.9
    assert (txs.inputs["value"].to_numpy()[~txs.inputs["imputed"]] == true[~txs.inputs["imputed"]]).all()
