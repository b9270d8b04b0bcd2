"""Whatever bytes come in for blocks and undo data: a result, or an error of ours."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from raw_blocks import COIN, SIGNATURE, In, Tx, block, key, masked, node_file, p2pkh, p2tr, p2wpkh, push, undo_record

from btcnb.data import Transactions, read_blocks
from btcnb.data.readers import sniff
from btcnb.errors import BtcnbError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
often = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
PREVIOUS, KEY = b"\x77" * 32, bytes(range(1, 9))
ONE = block(100, PREVIOUS)
PAY = Tx(
    (In(ONE.txs[0].id, 0, push(SIGNATURE, key(1))), In(PREVIOUS, 3, witness=(SIGNATURE, key(2)))),
    ((COIN, p2tr(key(3))), (2 * COIN, p2wpkh(key(4))), (0, b"\x6a\x01x")),
)
TWO = block(101, ONE.id, PAY)
SPENT = [[(50 * COIN, p2pkh(key(1))), (3 * COIN, p2wpkh(key(2)))]]
GOOD = {
    "x.bin": TWO.raw(),
    "x.hex": TWO.raw().hex().encode(),
    "blk00000.dat": node_file([ONE, TWO]) + bytes(64),
    "rev00000.dat": undo_record(ONE.previous, []) + undo_record(TWO.previous, SPENT) + bytes(64),
}


def harmless(path) -> Transactions | None:
    for call in (sniff, read_blocks):
        try:
            found = call(path)
        except BtcnbError as error:
            assert "\n" not in str(error)
            found = None
    return found


def damaged(content: bytes, changes: list[tuple[float, int]], cut: float) -> bytes:
    data = bytearray(content)
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    return bytes(data[: int(len(data) * cut)])


changes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6)


@pytest.mark.parametrize("name", GOOD)
@often
@given(changes=changes, cut=st.just(1.0) | st.floats(0, 1), key=st.sampled_from([bytes(8), KEY]))
@example(changes=[], cut=1.0, key=KEY)
def test_flipped_and_missing_bytes(tmp_path, name, changes, cut, key):
    files = {"blk00000.dat": GOOD["blk00000.dat"]} if name == "rev00000.dat" else {}
    files[name] = damaged(GOOD[name], changes, cut)
    node = name.endswith(".dat")
    for file, content in files.items():
        (tmp_path / file).write_bytes(masked(content, key) if node else content)
    (tmp_path / "xor.dat").write_bytes(key) if node else None
    found = harmless(tmp_path)
    if node and name == "blk00000.dat" and not changes and cut == 1:
        assert len(found) == 3
    (tmp_path / "rev00000.dat").unlink(missing_ok=True)


@often
@given(st.sampled_from(list(GOOD)), st.binary(max_size=400))
@example("blk00000.dat", b"")
@example("x.bin", TWO.raw()[:80] + b"\xfe\xff\xff\xff\xff" + TWO.raw()[81:])
@example("x.hex", b"zz")
def test_any_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    harmless(tmp_path / name)
    harmless(tmp_path)
    (tmp_path / name).unlink()


@often
@given(st.data())
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
