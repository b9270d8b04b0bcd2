"""Raw blocks and labels on real files, where they are at hand: in the folder `BTCNB_REAL_DATA`."""

from __future__ import annotations

import io
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from embit.compact import read_from
from embit.transaction import Transaction
from raw_blocks import undo_record

from btcnb.data import SCRIPT_TYPES, read_blocks, read_labels
from btcnb.data.readers import RewardWarning, scripts, sniff
from btcnb.data.readers.scripts import NETWORKS

PROJECT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
BLOCKS, KNOWN = DATA / "mainnet-blocks", DATA / "mainnet-blocks-with-prevouts"
HEIGHTS = (367_891, 866_342)

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"real data not found at {DATA}; set BTCNB_REAL_DATA to the folder that holds it"
)


def needed(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


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


def test_labels_at_hand():
    labels = read_labels(needed(DATA / "labels" / "btc_labels.csv.gz"))
    assert (len(labels), labels["address"].nunique()) == (504_458, 487_576)
    assert (labels["label"] != "").all()
