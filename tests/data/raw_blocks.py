"""Blocks, node files and undo data written byte by byte, for tests of the reader that takes them in.

Keys and signatures have the right form and no meaning: the reader checks neither work nor signatures.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import cycle

from btcnb.data.readers.scripts import NETWORKS

COIN = 100_000_000
SIGNATURE = bytes.fromhex("30440220") + b"\x11" * 32 + bytes.fromhex("0220") + b"\x22" * 32 + b"\x01"
NOWHERE = bytes(32)
G_X = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
G_Y = bytes.fromhex("483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")
"""The generator of secp256k1, the one point that everybody knows."""


def sha256d(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def hash160(data: bytes) -> bytes:
    return hashlib.new("ripemd160", hashlib.sha256(data).digest()).digest()


def compact(number: int) -> bytes:
    if number < 253:
        return bytes([number])
    width, first = (2, 253) if number < 2**16 else (4, 254)
    return bytes([first]) + number.to_bytes(width, "little")


def push(*items: bytes) -> bytes:
    def one(item: bytes) -> bytes:
        size = len(item)
        return (bytes([size]) if size < 76 else b"\x4c" + bytes([size])) + item

    return b"".join(map(one, items))


def key(number: int) -> bytes:
    return b"\x02" + number.to_bytes(32, "big")


def p2pk(public: bytes) -> bytes:
    return push(public) + b"\xac"


def p2pkh(public: bytes) -> bytes:
    return b"\x76\xa9" + push(hash160(public)) + b"\x88\xac"


def p2sh(redeem: bytes) -> bytes:
    return b"\xa9" + push(hash160(redeem)) + b"\x87"


def p2wpkh(public: bytes) -> bytes:
    return b"\x00" + push(hash160(public))


def p2wsh(script: bytes) -> bytes:
    return b"\x00" + push(hashlib.sha256(script).digest())


def p2tr(point: bytes) -> bytes:
    return b"\x51" + push(point[-32:])


def multisig(needed: int, *keys: bytes) -> bytes:
    return bytes([0x50 + needed]) + push(*keys) + bytes([0x50 + len(keys), 0xAE])


@dataclass(frozen=True)
class In:
    """An input: what it spends, and by which proof."""

    tx: bytes = NOWHERE
    index: int = 0
    script: bytes = b""
    witness: tuple[bytes, ...] = ()
    sequence: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Tx:
    inputs: tuple[In, ...]
    outputs: tuple[tuple[int, bytes], ...]  # value, script
    version: int = 2
    lock_time: int = 0

    def body(self) -> bytes:
        told = compact(len(self.inputs))
        for one in self.inputs:
            told += one.tx + one.index.to_bytes(4, "little") + compact(len(one.script)) + one.script
            told += one.sequence.to_bytes(4, "little")
        told += compact(len(self.outputs))
        for value, script in self.outputs:
            told += value.to_bytes(8, "little") + compact(len(script)) + script
        return told

    def raw(self, witness: bool = True) -> bytes:
        version, lock = self.version.to_bytes(4, "little"), self.lock_time.to_bytes(4, "little")
        if not witness or not any(one.witness for one in self.inputs):
            return version + self.body() + lock
        stacks = b"".join(
            compact(len(one.witness)) + b"".join(compact(len(item)) + item for item in one.witness)
            for one in self.inputs
        )
        return version + b"\x00\x01" + self.body() + stacks + lock

    @property
    def id(self) -> bytes:
        return sha256d(self.raw(witness=False))

    @property
    def name(self) -> str:
        return self.id[::-1].hex()


def merkle(leaves: list[bytes]) -> bytes:
    while len(leaves) > 1:
        leaves = leaves + leaves[-1:] * (len(leaves) % 2)
        leaves = [sha256d(leaves[i] + leaves[i + 1]) for i in range(0, len(leaves), 2)]
    return leaves[0]


def height_push(height: int) -> bytes:
    if height <= 16:
        return bytes([0x50 + height]) if height else b"\x00"
    return push(height.to_bytes((height.bit_length() + 8) // 8, "little"))


def coinbase(height: int, pay: tuple[tuple[int, bytes], ...], witness: bool = False, told: bytes | None = None) -> Tx:
    script = (height_push(height) if told is None else told) + b"\x04mine"
    return Tx((In(index=0xFFFFFFFF, script=script, witness=(NOWHERE,) if witness else ()),), pay)


@dataclass(frozen=True)
class Block:
    height: int
    previous: bytes
    txs: tuple[Tx, ...]
    time: int = 1_600_000_000
    version: int = 0x20000000
    parents: dict[bytes, Tx] = field(default_factory=dict, compare=False)

    def header(self) -> bytes:
        root = merkle([tx.id for tx in self.txs])
        end = self.time.to_bytes(4, "little") + bytes.fromhex("ffff7f20") + bytes(4)
        return self.version.to_bytes(4, "little") + self.previous + root + end

    def raw(self) -> bytes:
        return self.header() + compact(len(self.txs)) + b"".join(tx.raw() for tx in self.txs)

    @property
    def id(self) -> bytes:
        return sha256d(self.header())

    @property
    def name(self) -> str:
        return self.id[::-1].hex()

    @property
    def file(self) -> str:
        return f"{self.height}-{self.name}.bin"


def block(height: int, previous: bytes, *txs: Tx, pay: int = 50 * COIN, to: bytes = p2pkh(key(1)), **options) -> Block:
    """A block with its coinbase, which commits to the witnesses where there are any."""
    told = options.pop("told", None)
    outputs = ((pay, to),)
    if any(one.witness for tx in txs for one in tx.inputs):
        root = merkle([NOWHERE, *(sha256d(tx.raw()) for tx in txs)])
        outputs += ((0, bytes.fromhex("6a24aa21a9ed") + sha256d(root + NOWHERE)),)
    first = coinbase(height, outputs, witness=len(outputs) > 1, told=told)
    return Block(height, previous, (first, *txs), **options)


def masked(data: bytes, key: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, cycle(key), strict=False))


def node_file(blocks: list[Block], network: str = "regtest") -> bytes:
    """What a node writes to a `blk*.dat`, before it is obfuscated."""
    magic = NETWORKS[network].magic
    return b"".join(magic + len(one.raw()).to_bytes(4, "little") + one.raw() for one in blocks)


def variable(number: int) -> bytes:
    """Bitcoin Core's numbers in base 128."""
    told = [number & 127]
    while number > 127:
        number = (number >> 7) - 1
        told.append(number & 127 | 128)
    return bytes(reversed(told))


def packed_amount(value: int) -> int:
    if value == 0:
        return 0
    zeros = 0
    while value % 10 == 0 and zeros < 9:
        value, zeros = value // 10, zeros + 1
    if zeros < 9:
        return 1 + ((value // 10 * 9 + value % 10 - 1) * 10 + zeros)
    return 1 + (value - 1) * 10 + 9


def packed_script(script: bytes) -> bytes:
    if len(script) == 25 and script[:3] == b"\x76\xa9\x14" and script[-2:] == b"\x88\xac":
        return b"\x00" + script[3:23]
    if len(script) == 23 and script[:2] == b"\xa9\x14" and script[-1:] == b"\x87":
        return b"\x01" + script[2:22]
    if len(script) == 35 and script[0] == 33 and script[-1] == 0xAC:
        return script[1:34]
    if len(script) == 67 and script[:2] == b"\x41\x04" and script[-1] == 0xAC:
        return bytes([4 + script[65] % 2]) + script[2:34]
    return variable(len(script) + 6) + script


def undo_record(
    previous: bytes, spent: list[list[tuple[int, bytes]]], network: str = "regtest", made: int = 100
) -> bytes:
    """What a node writes to a `rev*.dat` for a block: per transaction, (value, script) of each output it spends."""
    body = compact(len(spent))
    for coins in spent:
        body += compact(len(coins))
        for value, script in coins:
            body += (
                variable(2 * made) + (b"\x00" if made else b"") + variable(packed_amount(value)) + packed_script(script)
            )
    magic = NETWORKS[network].magic
    return magic + len(body).to_bytes(4, "little") + body + sha256d(previous + body)
