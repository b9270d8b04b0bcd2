"""Output scripts: their type, and the address they stand for on each of Bitcoin's networks.

A standard script holds one hash or key. Its address is that payload with a prefix and a checksum: Base58Check (P2PKH,
P2SH), Bech32 (SegWit version 0, BIP 173) or Bech32m (later versions, BIP 350). Other scripts have no address; their
hex stands for it. Many scripts are encoded together, column by column, and each distinct script once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from hashlib import sha256
from operator import xor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from embit import bech32
from embit.base58 import B58_DIGITS
from embit.networks import NETWORKS as PREFIXES

from btcnb.data.tables import SCRIPT_TYPES

Bytes = npt.NDArray[np.uint8]

TYPE_CODE = {name: code for code, name in enumerate(SCRIPT_TYPES)}
UNKNOWN_TYPE = TYPE_CODE["unknown"]
NULLDATA = TYPE_CODE["nulldata"]

_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)  # BIP 173
_FEEDBACK = np.array(  # top five bits of a checksum -> what they add to it
    [reduce(xor, (one for bit, one in enumerate(_GENERATOR) if top >> bit & 1), 0) for top in range(32)], dtype=np.int64
)
_BASE32 = np.frombuffer(bech32.CHARSET.encode(), dtype=np.uint8)
_BASE58 = np.frombuffer(B58_DIGITS.encode(), dtype=np.uint8)
_LIMBS = 7  # words of 32 bits that hold the 25 bytes of prefix, hash and checksum
_FIVE_DIGITS = np.uint64(58**5)
_PAYLOADS = (  # script type, first and last byte of the payload, SegWit version
    ("witness_v0_keyhash", 2, 22, 0),
    ("witness_v0_scripthash", 2, 34, 0),
    ("witness_v1_taproot", 2, 34, 1),
)


class Network(NamedTuple):
    """One of Bitcoin's networks: how its blocks are marked in files, how its addresses begin, when rewards halve."""

    name: str
    magic: bytes  # 4 bytes before each block and each undo record in a node's files
    key_hash: bytes  # Base58Check prefix of P2PKH
    script_hash: bytes  # Base58Check prefix of P2SH
    bech32: str  # human-readable part
    halving: int  # blocks between two halvings
    bip34: int  # height from which a coinbase must tell its height


def _network(name: str, magic: str, like: str, halving: int = 210_000, bip34: int = 1) -> Network:
    prefix = PREFIXES[like]
    return Network(name, bytes.fromhex(magic), prefix["p2pkh"], prefix["p2sh"], str(prefix["bech32"]), halving, bip34)


NETWORKS = {
    network.name: network
    for network in (
        _network("main", "f9beb4d9", "main", bip34=227_931),
        _network("testnet3", "0b110907", "test", bip34=21_111),
        _network("testnet4", "1c163f28", "test"),
        _network("signet", "0a03cf40", "signet"),
        _network("regtest", "fabfb5da", "regtest", halving=150, bip34=500),
    )
}


def script_type(script: bytes) -> int:
    """Position in `SCRIPT_TYPES` of an output script."""
    size = len(script)
    if size == 25 and script.startswith(b"\x76\xa9\x14") and script.endswith(b"\x88\xac"):
        return TYPE_CODE["pubkeyhash"]
    if size == 23 and script.startswith(b"\xa9\x14") and script.endswith(b"\x87"):
        return TYPE_CODE["scripthash"]
    if size == 22 and script.startswith(b"\x00\x14"):
        return TYPE_CODE["witness_v0_keyhash"]
    if size == 34 and script.startswith(b"\x00\x20"):
        return TYPE_CODE["witness_v0_scripthash"]
    if size == 34 and script.startswith(b"\x51\x20"):
        return TYPE_CODE["witness_v1_taproot"]
    if script.startswith(b"\x6a"):
        return NULLDATA
    if size > 34 and script[0] == size - 2 and script.endswith(b"\xac") and is_key(script[1:-1]):
        return TYPE_CODE["pubkey"]
    return TYPE_CODE["multisig" if _is_multisig(script) else "nonstandard"]


def type_of_hex(script: str) -> int:
    """Position in `SCRIPT_TYPES` of a script that a source writes in hex; of anything else, "nonstandard"."""
    try:
        return script_type(bytes.fromhex(script))
    except ValueError:
        return TYPE_CODE["nonstandard"]


def is_key(data: bytes) -> bool:
    """Whether bytes have the form of a public key."""
    return (len(data) == 33 and data[0] in (2, 3)) or (len(data) == 65 and data[0] in (4, 6, 7))


def _is_multisig(script: bytes) -> bool:
    """OP_m, n keys, OP_n, OP_CHECKMULTISIG, with 1 <= m <= n <= 16."""
    if len(script) < 37 or script[-1] != 0xAE or not 0x51 <= script[0] <= script[-2] <= 0x60:
        return False
    at, keys = 1, 0
    while at < len(script) - 2:
        behind = at + 1 + script[at]
        if behind > len(script) - 2 or not is_key(script[at + 1 : behind]):
            return False
        at, keys = behind, keys + 1
    return keys == script[-2] - 0x50


def addresses(
    scripts: Sequence[bytes], network: Network = NETWORKS["main"]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Address (or the script's hex; None for nulldata) and type of each script, both of shape (n,)."""
    codes, distinct = pd.factorize(np.fromiter(scripts, dtype=object, count=len(scripts)))
    types = np.fromiter(map(script_type, distinct), dtype=np.int8, count=len(distinct))  # (m,)
    found = np.full(len(distinct), None, dtype=object)
    for name, first, last, version in _PAYLOADS:
        rows = np.flatnonzero(types == TYPE_CODE[name])
        if len(rows):
            found[rows] = _segwit(_payload(distinct[rows], first, last), version, network.bech32)
    for name, first, prefix in (("pubkeyhash", 3, network.key_hash), ("scripthash", 2, network.script_hash)):
        rows = np.flatnonzero(types == TYPE_CODE[name])
        if len(rows):
            found[rows] = _base58check([prefix + script[first : first + 20] for script in distinct[rows]])
    for row in np.flatnonzero([text is None for text in found]):
        found[row] = None if types[row] == NULLDATA else _other(distinct[row], network)
    return found[codes], types[codes]


def _payload(scripts: npt.NDArray[Any], first: int, last: int) -> Bytes:
    """(n, last - first): the bytes first to last of n scripts."""
    joined = b"".join(script[first:last] for script in scripts)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(scripts), -1)


def _other(script: bytes, network: Network) -> str:
    """The address of a SegWit version that nobody uses yet, else the hex of the script."""
    size = len(script)
    if 4 <= size <= 42 and (script[0] == 0 or 0x51 <= script[0] <= 0x60) and script[1] == size - 2:
        return bech32.encode(network.bech32, max(0, script[0] - 0x50), script[2:]) or script.hex()
    return script.hex()


def _base58check(bodies: list[bytes]) -> list[str]:
    """Base58Check of n strings of 21 bytes: the 25 bytes with their checksum are divided by 58^5, seven times."""
    raw = b"".join(b"\0\0\0" + body + sha256(sha256(body).digest()).digest()[:4] for body in bodies)
    limbs = np.frombuffer(raw, dtype=">u4").reshape(len(bodies), _LIMBS).astype(np.uint64)  # (n, 7)
    digits = np.zeros((len(bodies), 5 * _LIMBS), dtype=np.uint8)  # 35 digits hold 25 bytes
    for place in range(_LIMBS - 1, -1, -1):
        rest = np.zeros(len(bodies), dtype=np.uint64)
        for limb in range(_LIMBS):
            value = rest << np.uint64(32) | limbs[:, limb]
            limbs[:, limb] = value // _FIVE_DIGITS
            rest = value - limbs[:, limb] * _FIVE_DIGITS
        for digit in range(4, -1, -1):
            digits[:, 5 * place + digit] = rest % np.uint64(58)
            rest //= np.uint64(58)
    zeros = (digits != 0).argmax(axis=1).tolist()
    text = _BASE58[digits].tobytes().decode()
    width = digits.shape[1]
    lead = [len(body) - len(body.lstrip(b"\0")) for body in bodies]  # a leading zero byte is a leading first digit
    return [
        "1" * zero_bytes + text[row * width + zero_digits : (row + 1) * width]
        for row, (zero_bytes, zero_digits) in enumerate(zip(lead, zeros, strict=True))
    ]


def _segwit(payload: Bytes, version: int, prefix: str) -> list[str]:
    """Bech32 or Bech32m addresses of n witness programs, (n, bytes)."""
    number = len(payload)
    bits = np.unpackbits(payload, axis=1)  # (n, 8 * bytes)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))
    groups = bits.reshape(number, -1, 5) @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)  # (n, symbols)
    data = np.column_stack([np.full(number, version, dtype=np.uint8), groups])
    constant = bech32.BECH32M_CONST if version else bech32.BECH32_CONST
    checksum = _polymod(np.pad(data, ((0, 0), (0, 6))), prefix) ^ constant  # (n,)
    tail = (checksum[:, None] >> (5 * np.arange(5, -1, -1))) & 31  # (n, 6)
    text = _BASE32[np.column_stack([data, tail.astype(np.uint8)])]  # (n, symbols + 7)
    width = text.shape[1]
    joined = text.tobytes().decode()
    return [f"{prefix}1{joined[start : start + width]}" for start in range(0, len(joined), width)]


def _polymod(values: Bytes, prefix: str) -> npt.NDArray[np.int64]:
    """The checksum polynomial of BIP 173 for n rows at once, the human-readable part put in front."""
    check = np.ones(len(values), dtype=np.int64)
    columns: list[Any] = [*bech32.bech32_hrp_expand(prefix), *values.T.astype(np.int64)]
    for column in columns:
        check = ((check & 0x1FFFFFF) << 5) ^ column ^ _FEEDBACK[check >> 25]
    return check
