"""Raw blocks by hand: every way they lie on a disk, whose coins they spend, which of them count, what is refused."""

from __future__ import annotations

import gzip
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from raw_blocks import (
    COIN,
    G_X,
    G_Y,
    NOWHERE,
    SIGNATURE,
    Block,
    In,
    Tx,
    block,
    coinbase,
    key,
    masked,
    multisig,
    node_file,
    p2pk,
    p2pkh,
    p2sh,
    p2tr,
    p2wpkh,
    p2wsh,
    push,
    sha256d,
    undo_record,
)

from btcnb.data import SCRIPT_TYPES, MissingOutputsWarning, Source, Transactions, load_graph, read_blocks
from btcnb.data.readers import (
    DroppedLinksWarning,
    RepeatedTransactionsWarning,
    RewardWarning,
    SideBranchWarning,
    scripts,
    sniff,
)
from btcnb.errors import BtcnbError, DataError, ParameterError

OUTSIDE = b"\x77" * 32  # a transaction that nobody has


def told(script: bytes) -> str:
    """The mainnet address of a script, by the code of the other readers."""
    return scripts.addresses([script])[0][0]


def story(start: int = 200) -> list[Block]:
    """A pays B from her coinbase and keeps change; in the next block B sweeps his coin and one from outside."""
    one = block(start, sha256d(b"before"), to=p2pkh(key(1)), time=1_600_000_000)
    pay = Tx(
        (In(one.txs[0].id, 0, push(SIGNATURE, key(1))),),
        ((20 * COIN, p2wpkh(key(2))), (30 * COIN - 500, p2sh(p2pk(key(3)))), (0, b"\x6a\x03abc")),
        version=1,
        lock_time=199,
    )
    two = block(start + 1, one.id, pay, pay=50 * COIN + 500, to=p2tr(key(9)), time=1_600_000_600)
    sweep = Tx(
        (
            In(pay.id, 0, witness=(SIGNATURE, key(2)), sequence=0xFFFFFFFD),
            In(OUTSIDE, 7, push(push(SIGNATURE), p2pk(key(4)))),
        ),
        ((21 * COIN, p2wsh(multisig(1, key(5)))),),
    )
    three = block(start + 2, two.id, sweep, pay=50 * COIN, time=1_600_001_200)
    return [one, two, three]


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def saved(folder, blocks, name=None):
    folder.mkdir(exist_ok=True)
    for one in blocks:
        (folder / (name or one.file)).write_bytes(one.raw())
    return folder


def test_a_story_in_three_blocks(tmp_path):
    blocks = story()
    with pytest.warns(MissingOutputsWarning, match="1 of 3 inputs spend outputs that lie outside"):
        txs = read_blocks(saved(tmp_path / "b", blocks))
    pay, sweep = blocks[1].txs[1], blocks[2].txs[1]
    table = txs.transactions
    assert table["hash"].tolist() == [tx.name for one in blocks for tx in one.txs]
    assert table["block_number"].tolist() == [200, 201, 201, 202, 202]
    assert table["block_timestamp"].tolist() == [1_600_000_000] + [1_600_000_600] * 2 + [1_600_001_200] * 2
    assert table["index"].tolist() == [0, 0, 1, 0, 1]
    assert table["is_coinbase"].tolist() == [True, True, False, True, False]
    assert table["fee"].tolist() == [0, 0, 500, 0, -1]
    assert (table["version"][2], table["lock_time"][2], table["size"][2]) == (1, 199, len(pay.raw()))
    weight = 3 * len(sweep.raw(witness=False)) + len(sweep.raw())
    assert (table["size"][4], table["virtual_size"][4]) == (len(sweep.raw()), -(-weight // 4))
    assert txs.outputs["value"].tolist() == [
        50 * COIN,
        50 * COIN + 500,
        20 * COIN,
        30 * COIN - 500,
        0,
        *([50 * COIN]),
        0,
        21 * COIN,
    ]
    assert txs.outputs["address"].tolist() == [0, 1, 2, 3, -1, 0, -1, 5]
    assert txs.inputs["tx"].tolist() == [2, 4, 4]
    assert txs.inputs["address"].tolist() == [0, 2, 4]
    assert txs.inputs["value"].tolist() == [50 * COIN, 20 * COIN, -1]
    assert txs.inputs["spent_output"].tolist() == [0, 2, -1]
    assert txs.inputs["spent_transaction_hash"].isna().tolist() == [True, True, False]
    assert txs.inputs["spent_transaction_hash"][2] == OUTSIDE.hex()
    assert txs.inputs["spent_output_index"].tolist() == [0, 0, 7]
    assert txs.inputs["sequence"].tolist() == [0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFF]
    kinds = ["pubkeyhash", "witness_v0_keyhash", "scripthash"]
    assert [SCRIPT_TYPES[kind] for kind in txs.inputs["script_type"]] == kinds
    made = [
        p2pkh(key(1)),
        p2tr(key(9)),
        p2wpkh(key(2)),
        p2sh(p2pk(key(3))),
        p2sh(p2pk(key(4))),
        p2wsh(multisig(1, key(5))),
    ]
    assert txs.addresses.tolist() == [told(script) for script in made]
    assert txs.source == str(tmp_path / "b")


def same(one, other) -> bool:
    tables = all(getattr(one, name).equals(getattr(other, name)) for name in ("transactions", "inputs", "outputs"))
    return tables and one.addresses.tolist() == other.addresses.tolist()


KEY = bytes.fromhex("00fa5500000102b5")  # its second byte hides the magic's first


def test_however_the_blocks_lie_there(tmp_path, quiet):
    """Binary, hex, packed, in a zip, in one node file or several, out of order, padded, obfuscated."""
    blocks = story()
    known = read_blocks(saved(tmp_path / "bin", blocks), network="regtest")
    folders = {name: tmp_path / name for name in ("hex", "txt", "gz", "zst", "one", "two", "xor", "gap", "plain")}
    for folder in folders.values():
        folder.mkdir()
    for number, one in enumerate(blocks):
        text = one.raw().hex()
        (folders["hex"] / f"{number}.hex").write_text(text.upper() + "\n")
        (folders["txt"] / f"{number}.txt").write_text("\n".join(text[i : i + 64] for i in range(0, len(text), 64)))
        (folders["gz"] / f"{number}.bin.gz").write_bytes(gzip.compress(one.raw()))
        packed = pa.compress(one.raw(), codec="zstd", asbytes=True)
        (folders["zst"] / f"{number}.zst").write_bytes(packed)
        (folders["plain"] / f"{number}.bin").write_bytes(one.raw())
    (folders["zst"] / "note.zst").write_bytes(pa.compress(b"no block", codec="zstd", asbytes=True))
    (folders["txt"] / "readme.txt").write_text("no block either")
    (folders["one"] / "blk00000.dat").write_bytes(node_file(blocks) + bytes(5000))
    (folders["two"] / "blk00003.dat").write_bytes(node_file(blocks[2:]) + node_file(blocks[:1]))
    (folders["two"] / "blk00004.dat").write_bytes(node_file(blocks[1:2]) + node_file(blocks[1:2]))  # twice
    (folders["two"] / "blk00005.dat").write_bytes(bytes(100))
    (folders["xor"] / "blk00000.dat").write_bytes(masked(node_file(blocks), KEY) + bytes(5000))
    (folders["xor"] / "xor.dat").write_bytes(KEY)
    middle = node_file(blocks[:2])
    (folders["gap"] / "blk00000.dat").write_bytes(middle + bytes(77) + node_file(blocks[2:]))
    for folder in folders.values():
        assert sniff(folder) == "blocks"
        assert same(read_blocks(folder, network="regtest"), known), folder.name
        assert same(
            read_blocks(folder, network=None if folder.name in ("one", "two", "xor", "gap") else "regtest"), known
        )
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("blocks/blk00000.dat", (folders["xor"] / "blk00000.dat").read_bytes())
        archive.writestr("blocks/xor.dat", KEY)
    assert same(read_blocks(tmp_path / "all.zip"), known)
    alone = read_blocks(folders["txt"] / "0.txt")
    assert len(alone) == 1
    assert sniff(folders["txt"] / "0.txt") == "blocks"


def test_heights_and_options(tmp_path, quiet):
    folder = saved(tmp_path / "b", story())
    assert read_blocks(folder, start=201).transactions["block_number"].unique().tolist() == [201, 202]
    assert read_blocks(folder, end=200).transactions["block_number"].unique().tolist() == [200]
    with pytest.raises(DataError, match="there are none to read; check the path and the heights: it holds 200 to 202"):
        read_blocks(folder, start=300)
    for wrong in (-1, 1.0, True, "7"):
        with pytest.raises(ParameterError, match="is not a height"):
            read_blocks(folder, start=wrong)
    for options in ({"impute": 1}, {"missing": "maybe"}, {"network": "lite"}):
        with pytest.raises(ParameterError):
            read_blocks(folder, **options)
    with pytest.raises(DataError, match=r"1 of 3 inputs .* add the earlier blocks or the node's rev\*\.dat"):
        read_blocks(folder, missing="error")


# Whose coins -------------------------------------------------------------------------------------------------------

LONG = b"\x04" + b"\x33" * 64
REDEEM = multisig(2, key(1), key(2), key(3))
SEEN = {  # what is spent, and how
    "P2PKH": (p2pkh(key(1)), push(SIGNATURE, key(1)), ()),
    "P2PKH, long key": (p2pkh(LONG), push(SIGNATURE, LONG), ()),
    "P2SH multisig": (p2sh(REDEEM), b"\x00" + push(SIGNATURE, SIGNATURE, REDEEM), ()),
    "P2SH of a key": (p2sh(p2pk(key(1))), push(SIGNATURE, p2pk(key(1))), ()),
    "P2SH-P2WPKH": (p2sh(p2wpkh(key(1))), push(p2wpkh(key(1))), (SIGNATURE, key(1))),
    "P2SH-P2WSH": (p2sh(p2wsh(REDEEM)), push(p2wsh(REDEEM)), (b"", SIGNATURE, SIGNATURE, REDEEM)),
    "P2WPKH": (p2wpkh(key(1)), b"", (SIGNATURE, key(1))),
    "P2WSH": (p2wsh(REDEEM), b"", (b"", SIGNATURE, SIGNATURE, REDEEM)),
    "P2WSH of one item": (p2wsh(b"\x51"), b"", (b"\x51",)),
}
LEAF = b"\x20" + b"\x44" * 32 + b"\xac"
UNSEEN = {
    "P2PK": (p2pk(key(1)), push(SIGNATURE), ()),
    "bare multisig": (REDEEM, b"\x00" + push(SIGNATURE, SIGNATURE), ()),
    "Taproot key": (p2tr(key(1)), b"", (b"\x55" * 64,)),
    "Taproot key, hash type": (p2tr(key(1)), b"", (b"\x55" * 65,)),
    "Taproot script": (p2tr(key(1)), b"", (b"\x55" * 64, LEAF, b"\xc0" + b"\x66" * 32)),
    "Taproot script, deeper": (p2tr(key(1)), b"", (LEAF, b"\xc1" + b"\x66" * 96)),
    "Taproot annex": (p2tr(key(1)), b"", (b"\x55" * 64, b"\x50annex")),
    "anybody's": (b"\x51", b"", ()),
    "a number": (b"\x87", b"\x51\x51", ()),
    "no push": (b"\x51", b"\x61", ()),
    "cut push": (b"\x51", b"\x4d\x05", ()),
}


@pytest.mark.parametrize("name", SEEN | UNSEEN)
def test_what_a_spender_reveals(tmp_path, name, quiet):
    """With the output at hand it is known; without, only what the spender shows; never something else."""
    script, unlock, witness = (SEEN | UNSEEN)[name]
    one = block(200, OUTSIDE[:-1] + b"\x01", to=script)
    spend = Tx((In(one.txs[0].id, 0, unlock, witness),), ((49 * COIN, p2pkh(key(8))),))
    two = block(201, one.id, spend)
    both = read_blocks(saved(tmp_path / "both", [one, two]))
    assert both.addresses[both.inputs["address"][0]] == (told(script) or script.hex())
    assert both.inputs["value"][0] == 50 * COIN
    alone = read_blocks(saved(tmp_path / "alone", [two]))
    found = alone.inputs["address"][0]
    assert alone.inputs["value"][0] == -1
    if name in SEEN:
        assert alone.addresses[found] == told(script)
        assert alone.inputs["script_type"][0] == both.inputs["script_type"][0]
    else:
        assert (found, SCRIPT_TYPES[alone.inputs["script_type"][0]]) == (-1, "unknown")


def test_before_2012_a_last_push_is_no_script(tmp_path, quiet):
    spend = Tx((In(OUTSIDE, 0, push(b"\x01\x02", b"odd data")),), ((1, p2pkh(key(1))),))
    for time, found in ((1_333_238_399, -1), (1_333_238_400, 1)):
        txs = read_blocks(saved(tmp_path / str(time), [block(200, OUTSIDE, spend, time=time, version=2)]))
        assert txs.inputs["address"][0] == found


def test_scripts_without_an_address(tmp_path, quiet):
    """P2PK, multisig and odd scripts go by their hex, an empty one by its place, later SegWit by its address."""
    empty, anchor = b"", bytes.fromhex("51024e73")
    odd = [p2pk(key(1)), REDEEM, b"\x87\x87", empty, anchor, b"\x6a", p2pk(key(1)), empty, multisig(2, key(1))]
    pay = Tx((In(OUTSIDE),), tuple((1, script) for script in odd))
    one = block(200, OUTSIDE, pay)
    again = Tx((In(pay.id, 3), In(pay.id, 7)), ((2, p2pkh(key(1))),))
    txs = read_blocks(saved(tmp_path / "b", [one, block(201, one.id, again)]))
    made = txs.outputs[txs.outputs["tx"] == 1]
    names = [None if a < 0 else txs.addresses[a] for a in made["address"]]
    p2a = "bc1pfeessrawgf"
    hexes = [
        odd[0].hex(),
        odd[1].hex(),
        "8787",
        f"{pay.name}:3",
        p2a,
        None,
        odd[0].hex(),
        f"{pay.name}:7",
        odd[8].hex(),
    ]
    assert names == hexes
    kinds = ["pubkey", "multisig", *["nonstandard"] * 3, "nulldata", "pubkey", "nonstandard", "nonstandard"]
    assert [SCRIPT_TYPES[kind] for kind in made["script_type"]] == kinds
    spent = txs.inputs[txs.inputs["tx"] == 3]
    assert [txs.addresses[a] for a in spent["address"]] == [f"{pay.name}:3", f"{pay.name}:7"]


@pytest.mark.parametrize(
    ("network", "prefixes"),
    [
        ("main", ("1", "3", "bc1q", "bc1p")),
        ("testnet4", ("mn", "2", "tb1q", "tb1p")),
        ("regtest", ("mn", "2", "bcrt1q", "bcrt1p")),
    ],
)
def test_addresses_of_each_network(tmp_path, network, prefixes, quiet):
    pay = Tx(
        (In(OUTSIDE),), tuple((1, script) for script in (p2pkh(key(1)), p2sh(REDEEM), p2wpkh(key(1)), p2tr(key(1))))
    )
    (tmp_path / "blk00000.dat").write_bytes(node_file([block(200, OUTSIDE, pay, to=REDEEM)], network))
    names = read_blocks(tmp_path).addresses[-4:]
    assert all(
        name.startswith(tuple(prefix) if prefix == "mn" else prefix)
        for name, prefix in zip(names, prefixes, strict=True)
    )
    with pytest.raises(DataError, match=f"magic: is that of {network}, not of signet"):
        read_blocks(tmp_path, network="signet")


# Unknown values ----------------------------------------------------------------------------------------------------


def test_imputed_values_by_hand(tmp_path, quiet):
    """Outputs of 21 coins, one input of 20 known: the other is given 1. Of 10 satoshi, three unknown get 4, 3, 3."""
    blocks = story()
    three = Tx(tuple(In(OUTSIDE, i, push(SIGNATURE, key(1))) for i in range(3)), ((10, p2pkh(key(7))),))
    poor = Tx((In(three.id, 0, push(SIGNATURE, key(7))), In(OUTSIDE, 9)), ((4, p2pkh(key(6))),))
    blocks.append(block(203, blocks[-1].id, three, poor))
    folder = saved(tmp_path / "b", blocks)
    txs = read_blocks(folder, impute=True)
    assert txs.inputs["value"].tolist() == [50 * COIN, 20 * COIN, COIN, 4, 3, 3, 10, 0]
    assert txs.inputs["imputed"].tolist() == [False, False, True, True, True, True, False, True]
    assert txs.transactions["fee"].tolist() == [0, 0, 500, 0, -1, 0, -1, -1]
    assert txs.source == f"{folder} (values of 5 of 8 inputs imputed)"
    plain = read_blocks(folder)
    assert "imputed" not in plain.inputs
    assert plain.inputs["value"].tolist() == [50 * COIN, 20 * COIN, -1, -1, -1, -1, 10, -1]
    part = txs.select(np.array([4, 6]))
    assert part.inputs["imputed"].tolist() == [False, True, True, True, True]


# Undo data ---------------------------------------------------------------------------------------------------------

SPENT = [[(50 * COIN, p2pkh(key(1)))]], [[(20 * COIN, p2wpkh(key(2))), (3 * COIN, p2sh(p2pk(key(4))))]]


def node(folder, key=bytes(8), shuffled=False, **files):
    """A node's folder of the story, undo records in the order of connection."""
    folder.mkdir()
    blocks = story(100)
    records = [undo_record(one.previous, spent) for one, spent in zip(blocks, ([], *SPENT), strict=True)]
    content = {
        "blk00000.dat": node_file(blocks[::-1] if shuffled else blocks) + bytes(300),
        "rev00000.dat": b"".join(records) + bytes(300),
        **files,
    }
    for name, data in content.items():
        (folder / name).write_bytes(masked(data, key))
    if any(key):
        (folder / "xor.dat").write_bytes(key)
    return folder


def test_with_undo_data_everything_is_known(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, odd, mixed = node(tmp_path / "p"), node(tmp_path / "x", KEY), node(tmp_path / "s", shuffled=True)
        txs = read_blocks(plain)
        assert same(read_blocks(odd), txs)
        assert same(read_blocks(mixed), txs)
    assert txs.inputs["value"].tolist() == [50 * COIN, 20 * COIN, 3 * COIN]
    assert txs.transactions["fee"].tolist() == [0, 0, 500, 0, 2 * COIN]
    assert (txs.inputs["address"] >= 0).all()
    part = read_blocks(plain, start=102)
    assert part.inputs["value"].tolist() == [20 * COIN, 3 * COIN]


def test_every_packed_script_is_unpacked(tmp_path):
    """P2PKH, P2SH, keys of both lengths and parities, plain scripts, an empty one, one too long, odd amounts."""
    other = b"\x04" + G_X + (2**256 - 2**32 - 977 - int.from_bytes(G_Y, "big")).to_bytes(32, "big")
    taken = [p2pkh(key(1)), p2sh(REDEEM), p2pk(key(5)), p2pk(b"\x03" + G_X), p2pk(b"\x04" + G_X + G_Y), p2pk(other)]
    taken += [p2wsh(REDEEM), p2tr(G_X), REDEEM, b"", b"\x51" * 10_001]
    values = [0, 1, 9, 10, 1_000_000_000, 50 * COIN, 21 * 10**14, 123_456_789, 999_999_999, 10**10, 7]
    spend = Tx(tuple(In(OUTSIDE, i, b"\x51") for i in range(len(taken))), ((5, p2pkh(key(8))),))
    one = block(200, OUTSIDE, spend)
    (tmp_path / "blk00000.dat").write_bytes(node_file([one]))
    for made in (0, 100):
        coins = list(zip(values, taken, strict=True))
        (tmp_path / "rev00000.dat").write_bytes(undo_record(one.previous, [coins], made=made))
        txs = read_blocks(tmp_path, missing="ignore")
        assert txs.inputs["value"].tolist() == values
        names = [None if a < 0 else txs.addresses[a] for a in txs.inputs["address"]]
        assert names[2:6] == [script.hex() for script in taken[2:6]]
        assert names[8:] == [REDEEM.hex(), f"{OUTSIDE.hex()}:9", None]  # a script of that length is kept as unspendable
        assert [name[:6] for name in names[6:8]] == ["bcrt1q", "bcrt1p"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"rev00000.dat": b""}, r"rev00000\.dat: undo: holds nothing for block [0-9a-f]{64}, which the node has not"),
        ({"rev00000.dat": undo_record(NOWHERE, SPENT[0])}, "holds nothing for block"),
        ({"rev00000.dat": undo_record(NOWHERE, SPENT[0])[:-1]}, r"rev00000\.dat: byte 0: a record is cut short"),
        ({"rev00000.dat": b"\x01" * 99}, r"byte 0: 01010101 is not the magic of regtest"),
        ({"blk00001.dat": node_file(story(500))}, r"blk00001\.dat: rev00001\.dat: is missing, though other files"),
        ({"xor.dat": b"\x01" * 7}, r"xor\.dat: key: has 7 bytes, not 8"),
        ({"xor.dat": b"\x01" * 8}, r"blk00000\.dat: magic: is fbbeb4db; expected one of .* needs the xor\.dat"),
    ],
)
def test_undo_data_that_do_not_fit(tmp_path, files, message):
    with pytest.raises(DataError, match=message) as error:
        read_blocks(node(tmp_path / "n", **files))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spent", "problem"),
    [
        ([[(50 * COIN, p2pkh(key(1)))] * 2], "its numbers of transactions or inputs are not the block's"),
        ([[(50 * COIN, p2pk(b"\x04" + b"\xff" * 32 + G_Y))]], "a key lies not on the curve"),
        ([[(10**18, p2pkh(key(1)))]], "expected at most 2100000000000000|an amount is no amount"),
        ([[(COIN, p2pkh(key(1)))]], "pays out 4999999500 satoshi and takes in 100000000"),
    ],
)
def test_undo_data_of_the_block_that_say_something_else(tmp_path, spent, problem):
    blocks = story()[1:2]
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "blk00000.dat").write_bytes(node_file(blocks))
    (folder / "rev00000.dat").write_bytes(undo_record(blocks[0].previous, spent))
    with pytest.raises(DataError, match=problem):
        read_blocks(folder)


# Which blocks count ------------------------------------------------------------------------------------------------


def test_the_longest_chain_counts(tmp_path, quiet):
    """Two branches behind block 200; the longer one is read, however the files are ordered; of equal ones the first."""
    root = block(200, OUTSIDE)
    left, right = block(201, root.id, time=1), block(201, root.id, time=2)
    further = block(202, right.id)
    for number, order in enumerate(([root, left, right, further], [further, right, left, root])):
        (tmp_path / f"blk0000{number}.dat").write_bytes(node_file(order))
        with pytest.warns(SideBranchWarning, match="1 of 4 blocks are left out"):
            txs = read_blocks(tmp_path / f"blk0000{number}.dat")
        assert txs.transactions["hash"].tolist() == [one.txs[0].name for one in (root, right, further)]
    late = block(202, left.id)
    (tmp_path / "blk00002.dat").write_bytes(node_file([root, left, right, further, late]))
    txs = read_blocks(tmp_path / "blk00002.dat")
    assert txs.transactions["block_timestamp"].tolist() == [1_600_000_000, 2, 1_600_000_000]


def test_heights_come_from_genesis_names_or_coinbases(tmp_path, quiet):
    old = [Block(0, NOWHERE, (coinbase(0, ((1, b"\x51"),), told=b"\x04what"),), version=1)]
    for height in (1, 2):
        first = coinbase(height, ((height, b"\x51"),), told=b"\x03\x01\x02\x03")
        old.append(Block(height, old[-1].id, (first,), version=1))
    (tmp_path / "blk00000.dat").write_bytes(node_file(old[::-1]))
    assert read_blocks(tmp_path).transactions["block_number"].tolist() == [0, 1, 2]
    with pytest.raises(DataError, match=r"height: neither block [0-9a-f]{64} nor a block linked to it tells one"):
        read_blocks(saved(tmp_path / "two", old[2:], "x.bin"))
    assert read_blocks(saved(tmp_path / "named", old[2:])).transactions["block_number"].tolist() == [2]
    new = block(300_000, OUTSIDE)
    assert read_blocks(saved(tmp_path / "new", [new], "x.bin")).transactions["block_number"].tolist() == [300_000]
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / f"300001-{new.name}.bin").write_bytes(new.raw())
    with pytest.raises(DataError, match="300000 by its coinbase, but 300001 by other names"):
        read_blocks(tmp_path / "wrong")


@pytest.mark.parametrize("height", [1, 16, 17, 127, 128, 255, 256, 32_768, 65_535, 8_388_608])
def test_a_height_in_a_coinbase(tmp_path, height, quiet):
    txs = read_blocks(saved(tmp_path / "b", [block(height, OUTSIDE)], "x.bin"), network="signet")
    assert txs.transactions["block_number"].tolist() == [height]


def test_a_block_that_does_not_follow_the_one_below_is_told(tmp_path):
    """One flipped bit of a header: the block above names another hash, and the two are of two chains."""
    one = block(200, OUTSIDE)
    two = block(201, one.id)
    content = bytearray(node_file([one, two]))
    content[8 + 68] ^= 1  # behind magic and size, the time in the first header
    (tmp_path / "blk00000.dat").write_bytes(content)
    with pytest.warns(SideBranchWarning, match=r"1 of 2 blocks .first: height 201. do not follow the block"):
        assert len(read_blocks(tmp_path)) == 2


def test_a_transaction_in_two_branches_counts_once(tmp_path):
    """Blocks of different branches: the same payment in both, a coin spent once in each, a parent that comes later."""
    pay = Tx((In(OUTSIDE),), ((9, p2pkh(key(1))),))
    ours = Tx((In(pay.id),), ((8, p2pkh(key(2))),))
    theirs = Tx((In(pay.id),), ((7, p2pkh(key(3))),))
    parent = Tx((In(OUTSIDE, 1),), ((6, p2pkh(key(4))),))
    child = Tx((In(parent.id),), ((5, p2pkh(key(5))),))
    one, other = block(200, OUTSIDE, pay, ours, child), block(202, OUTSIDE[::-1], pay, theirs, parent)
    with pytest.warns(RepeatedTransactionsWarning, match="1 transactions stand in several blocks"):
        txs = read_blocks(saved(tmp_path / "b", [one, other]), missing="ignore")
    names = [one.txs[0], pay, ours, child, other.txs[0], theirs, parent]
    assert txs.transactions["hash"].tolist() == [tx.name for tx in names]
    assert txs.transactions["index"].tolist() == [0, 1, 2, 3, 0, 2, 3]
    assert txs.inputs["spent_output"].tolist() == [-1, 1, -1, -1, -1]
    assert txs.inputs["value"].tolist() == [-1, 9, 6, 9, -1]
    assert txs.inputs["spent_transaction_hash"].tolist()[3] == pay.name


@pytest.mark.parametrize(
    ("txs", "message"),
    [
        (lambda a: (Tx((In(a.id, 1),), ((1, b"\x51"),)),), "[0-9a-f]{64} has no output 1"),
        (lambda a: (Tx((In(a.id),), ((1, b"\x51"),)), Tx((In(a.id),), ((2, b"\x51"),))), "that is spent already"),
        (lambda a: (Tx((In(a.id),), ((51 * COIN, b"\x51"),)),), "pays out 5100000000 satoshi and takes in 5000000000"),
        (lambda a: (Tx((In(a.id),), ((2, b"\x51"),)),) * 2, "stands in block 201 and in block 201"),
        (lambda a: (Tx((In(OUTSIDE),), ((21 * 10**14 + 1, b"\x51"),)),), r"vout\[0\].value: is more than 21 million"),
        (lambda a: (Tx((In(OUTSIDE),), ((2**63, b"\x51"),)),), r"vout\[0\].value: is more than 21 million"),
    ],
)
def test_a_chain_that_cannot_be(tmp_path, txs, message):
    one = block(200, OUTSIDE)
    with pytest.raises(DataError, match=message):
        read_blocks(saved(tmp_path / "b", [one, block(201, one.id, *txs(one.txs[0]))]), missing="ignore")


def test_an_input_that_spends_an_output_of_a_later_transaction_is_not_linked(tmp_path):
    """One impossible link is dropped and counted; the other blocks of the folder are read."""
    one = block(200, OUTSIDE)
    parent = Tx((In(one.txs[0].id),), ((7, p2pkh(key(2))),))
    child = Tx((In(parent.id),), ((5, p2pkh(key(3))),))
    folder = saved(tmp_path / "b", [one, block(201, one.id, child, parent)])
    with pytest.warns(DroppedLinksWarning, match="1 of 2 inputs spend an output of a transaction that comes later"):
        txs = read_blocks(folder)
    assert txs.transactions["hash"].tolist()[2:] == [child.name, parent.name]
    assert txs.inputs["spent_output"].tolist() == [-1, 0]
    assert txs.inputs["spent_transaction_hash"][0] == parent.name
    assert txs.inputs["value"].tolist() == [7, 50 * COIN]  # the output is known all the same
    assert txs.transactions["fee"].tolist()[2:] == [2, 50 * COIN - 7]


def test_two_coinbases_that_are_alike_stay_both(tmp_path):
    """As in 2010: the same coinbase in two blocks of one chain; the later coin is the one that can be spent."""
    first = Block(0, NOWHERE, (coinbase(0, ((COIN, p2pkh(key(1))),)),), version=1)
    second = Block(1, first.id, first.txs, version=1)
    spend = Tx((In(first.txs[0].id, 0, push(SIGNATURE, key(1))),), ((COIN, b"\x51"),))
    third = Block(2, second.id, (coinbase(2, ((1, b"\x51"),)), spend), version=1)
    (tmp_path / "blk00000.dat").write_bytes(node_file([first, second, third]))
    txs = read_blocks(tmp_path)
    assert len(txs) == 4
    assert txs.inputs["spent_output"].tolist() == [1]


def test_a_block_that_takes_too_much_is_told(tmp_path):
    blocks = story()
    greedy = block(201, blocks[0].id, blocks[1].txs[1], pay=50 * COIN + 501)
    with pytest.warns(RewardWarning, match="block 201 takes 5000000501 satoshi; subsidy and fees are 5000000500: no"):
        assert len(read_blocks(saved(tmp_path / "b", [blocks[0], greedy]))) == 3
    (tmp_path / "blk00000.dat").write_bytes(node_file([block(150, OUTSIDE, pay=25 * COIN + 1)]))
    with pytest.warns(RewardWarning, match="subsidy and fees are 2500000000"):  # regtest halves every 150 blocks
        read_blocks(tmp_path / "blk00000.dat")


# What is refused ---------------------------------------------------------------------------------------------------


def damaged(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_damage_is_named(tmp_path):
    one = story()[2]
    raw, swept = one.raw(), one.txs[1].raw()
    witness = raw.index(key(2)) + 5
    count = raw[80:81]
    assert count == b"\x02"
    cases = {
        damaged(raw, 100 + len(one.txs[0].raw())): "Merkle root: of block [0-9a-f]{64} is not that of its transactions",
        damaged(raw, witness): "witness commitment: of block [0-9a-f]{64} is not that of its transactions",
        raw[:-1]: r"block [0-9a-f]{64}, byte \d+, size: it ends in the middle of a transaction",
        raw[:-200]: "it ends in the middle of a transaction",
        raw[:81]: "byte 0: behind its header stands no coinbase, so it is no block, or cut short",
        raw + b"\x00": "bytes are left over behind its last transaction",
        raw[:80]: "size: 80 bytes are no block: a header alone has 80",
        raw[:80] + b"\x00": "behind its header stands no coinbase",
        raw[:80] + b"\x01" + swept: "behind its header stands no coinbase",
        raw[:80] + b"\x02" + one.txs[0].raw() * 2: "a coinbase stands among its other transactions",
        raw[:80] + b"\xfd\x02\x00" + raw[81:]: "a number is written longer than it needs to be",
        raw[:141] + b"\xfd": "it ends in the middle of a transaction",
        raw[:80] + b"\xff" + b"\xff" * 8 + raw[81:]: "it ends in the middle|stands no coinbase",
        raw[: 81 + len(one.txs[0].raw())]
        + swept[:6]
        + b"\xfd\x02\x00"
        + swept[7:]: "a number is written longer than it",
        b"": "size: 0 bytes are no block",
        raw.hex().encode()[:-1]: "hex: is broken",
    }
    for content, message in cases.items():
        (tmp_path / "x.bin").write_bytes(content)
        with pytest.raises(DataError, match=message) as error:
            read_blocks(tmp_path / "x.bin", missing="ignore")
        assert str(tmp_path / "x.bin") in str(error.value)
        assert "\n" not in str(error.value)
    (tmp_path / f"202-{'0' * 64}.bin").write_bytes(raw)
    with pytest.raises(DataError, match=f"block hash: is {one.name}, not the one in its name; fetch it again"):
        read_blocks(tmp_path / f"202-{'0' * 64}.bin")


def test_node_files_that_are_broken(tmp_path):
    content = node_file(story())
    cases = {
        content[:-1]: r"byte \d+: a record is cut short; copy the file again",
        content[:-1] + b"\x00" + b"\x05" * 9: r"byte \d+: 05050505 is not the magic of regtest",
        b"\x01" + content: "magic: is 01fabfb5; expected one of",
        content + content[:6]: "is cut short|is not the magic",
        content + node_file(story(), "main"): "f9beb4d9 is not the magic of regtest",
    }
    for data, message in cases.items():
        (tmp_path / "blk00000.dat").write_bytes(data)
        with pytest.raises(DataError, match=message):
            read_blocks(tmp_path, missing="ignore")
    (tmp_path / "blk00000.dat").write_bytes(bytes(1000))
    with pytest.raises(DataError, match="there are none to read"):
        read_blocks(tmp_path)
    (tmp_path / "blk00000.dat").unlink()
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "more.txt").write_text("nothing")
    with pytest.raises(DataError, match="no raw block is there; give blk"):
        read_blocks(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        read_blocks(tmp_path / "none")


def test_a_folder_of_blocks_is_a_source(tmp_path, quiet):
    blocks = [block(200, OUTSIDE)]
    for height in range(201, 215):
        parent = blocks[-1].txs[0]
        spend = Tx((In(parent.id, 0, push(SIGNATURE, key(1))),), ((10, p2pkh(key(height))), (20, p2pkh(key(1)))))
        blocks.append(block(height, blocks[-1].id, spend))
    source = Source.of(str(saved(tmp_path / "b", blocks)))
    assert source.kind == "blocks"
    graph = load_graph(source, "test")
    assert graph.num_nodes > 1
    assert isinstance(graph.nodes, pd.DataFrame)


# Whatever bytes come in: a result, or an error of ours --------------------------------------------------------------

noisy = pytest.mark.filterwarnings("ignore::UserWarning")
often = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
PREVIOUS, MASK = OUTSIDE, bytes(range(1, 9))
ONE = block(100, PREVIOUS)
PAY = Tx(
    (In(ONE.txs[0].id, 0, push(SIGNATURE, key(1))), In(PREVIOUS, 3, witness=(SIGNATURE, key(2)))),
    ((COIN, p2tr(key(3))), (2 * COIN, p2wpkh(key(4))), (0, b"\x6a\x01x")),
)
TWO = block(101, ONE.id, PAY)
COINS = [[(50 * COIN, p2pkh(key(1))), (3 * COIN, p2wpkh(key(2)))]]
GOOD = {
    "x.bin": TWO.raw(),
    "x.hex": TWO.raw().hex().encode(),
    "blk00000.dat": node_file([ONE, TWO]) + bytes(64),
    "rev00000.dat": undo_record(ONE.previous, []) + undo_record(TWO.previous, COINS) + bytes(64),
}


def harmless(path) -> Transactions | None:
    for call in (sniff, read_blocks):
        try:
            found = call(path)
        except BtcnbError as error:
            assert "\n" not in str(error)
            found = None
    return found


def flipped(content: bytes, changes: list[tuple[float, int]], cut: float) -> bytes:
    data = bytearray(content)
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    return bytes(data[: int(len(data) * cut)])


changes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6)


@pytest.mark.parametrize("name", GOOD)
@often
@given(changes=changes, cut=st.just(1.0) | st.floats(0, 1), mask=st.sampled_from([bytes(8), MASK]))
@example(changes=[], cut=1.0, mask=MASK)
@noisy
def test_flipped_and_missing_bytes(tmp_path, name, changes, cut, mask):
    files = {"blk00000.dat": GOOD["blk00000.dat"]} if name == "rev00000.dat" else {}
    files[name] = flipped(GOOD[name], changes, cut)
    in_node = name.endswith(".dat")
    for file, content in files.items():
        (tmp_path / file).write_bytes(masked(content, mask) if in_node else content)
    (tmp_path / "xor.dat").write_bytes(mask) if in_node else None
    found = harmless(tmp_path)
    if in_node and name == "blk00000.dat" and not changes and cut == 1:
        assert len(found) == 3
    (tmp_path / "rev00000.dat").unlink(missing_ok=True)


@often
@given(st.sampled_from(list(GOOD)), st.binary(max_size=400))
@example("blk00000.dat", b"")
@example("x.bin", TWO.raw()[:80] + b"\xfe\xff\xff\xff\xff" + TWO.raw()[81:])
@example("x.hex", b"zz")
@noisy
def test_any_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    harmless(tmp_path / name)
    harmless(tmp_path)
    (tmp_path / name).unlink()


@often
@given(st.data())
@noisy
def test_numbers_that_promise_too_much(tmp_path, data):
    """A count or length in the middle of a block, replaced by a larger one, allocates nothing and is refused."""
    raw = TWO.raw()
    place = data.draw(st.integers(80, len(raw) - 1))
    wide = data.draw(
        st.sampled_from([b"\xfd\xff\xff", b"\xfe\xff\xff\xff\xff", b"\xff" * 9, b"\xff" + b"\xff" * 7 + b"\x7f"])
    )
    (tmp_path / "x.bin").write_bytes(raw[:place] + wide + raw[place + 1 :])
    assert harmless(tmp_path / "x.bin") is None
    (tmp_path / "x.bin").unlink()
