"""Owners to the text of their addresses: Base58Check (P2PKH, P2SH), Bech32 (SegWit, BIP 173), Bech32m (BIP 350)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from embit import bech32
from embit.base58 import B58_DIGITS

from btcnb.data.readers.blocks.hashes import ZERO, Bytes, copy, inner, outer, sha256d
from btcnb.data.readers.blocks.networks import Network
from btcnb.data.readers.blocks.owners import (
    KEY_HASH,
    OUTPOINT,
    PAYLOAD,
    SCRIPT,
    SCRIPT_HASH,
    TAPROOT,
    WITNESS_KEY,
    WITNESS_SCRIPT,
    Tags,
)

_BODY = 21  # bytes of prefix and hash
_WIDTH = 80  # bytes of the longest address, rounded up
_NEW_LINE = 10
_BATCH = 2**16  # addresses written at a time
_BASE58 = np.frombuffer(B58_DIGITS.encode(), dtype=np.uint8).copy()
_BASE32 = np.frombuffer(bech32.CHARSET.encode(), dtype=np.uint8).copy()
_GENERATOR = np.array([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3], dtype=np.int64)  # BIP 173
_PLAIN, _MODIFIED = bech32.BECH32_CONST, bech32.BECH32M_CONST
_DIGITS, _FIVE_DIGITS = np.uint64(58), np.uint64(58**5)
_BYTE, _LIMB = np.uint64(8), np.uint64(32)  # bits
_LIMBS = 7  # of 32 bits: the 25 bytes of prefix, payload and checksum


@inner
def _base58(raw: Any, out: Any, limbs: Any) -> Any:
    """25 bytes in Base58, written to `out`; the length. They are divided in words of 32 bits, the first ones first."""
    limbs[0] = raw[0]
    for i in range(1, _LIMBS):
        limbs[i] = 0
        for j in range(4):
            limbs[i] = limbs[i] << _BYTE | np.uint64(raw[4 * i - 3 + j])
    place = _WIDTH
    for done in range(_LIMBS):  # 35 digits hold 25 bytes; each division empties one more word
        rest = np.uint64(0)
        for i in range(done, _LIMBS):
            value = rest << _LIMB | limbs[i]
            limbs[i] = value // _FIVE_DIGITS
            rest = value - limbs[i] * _FIVE_DIGITS
        for _ in range(5):
            place -= 1
            out[place] = rest % _DIGITS
            rest //= _DIGITS
    while out[place] == 0:
        place += 1
    for i in range(25):  # a leading zero byte is a leading first digit
        if raw[i] != 0:
            break
        place -= 1
        out[place] = 0
    length = _WIDTH - place
    for i in range(length):
        out[i] = _BASE58[out[place + i]]
    return length


@inner
def _step(check: Any, value: Any) -> Any:
    top = check >> 25
    check = (check & 0x1FFFFFF) << 5 ^ value
    for i in range(5):
        if top >> i & 1:
            check ^= _GENERATOR[i]
    return check


@inner
def _bech32(prefix: Any, version: Any, payload: Any, size: Any, out: Any) -> Any:
    """A SegWit address, written to `out`; its length."""
    check, at = np.int64(1), len(prefix)
    for letter in prefix:
        check = _step(check, np.int64(letter) >> 5)
    check = _step(check, ZERO)
    for i in range(len(prefix)):
        check = _step(check, np.int64(prefix[i]) & 31)
        out[i] = prefix[i]
    out[at] = 0x31  # "1"
    check = _step(check, version)
    out[at + 1] = _BASE32[version]
    at += 2
    held, bits = np.int64(0), 0
    for i in range(size):
        held, bits = held << 8 | np.int64(payload[i]), bits + 8
        while bits >= 5:
            bits -= 5
            check = _step(check, held >> bits & 31)
            out[at] = _BASE32[held >> bits & 31]
            at += 1
        held &= 31
    if bits:
        last = held << (5 - bits) & 31
        check = _step(check, last)
        out[at] = _BASE32[last]
        at += 1
    for _ in range(6):
        check = _step(check, ZERO)
    check ^= _PLAIN if version == 0 else _MODIFIED
    for i in range(6):
        out[at + i] = _BASE32[check >> (25 - 5 * i) & 31]
    return at + 6


@outer
def _encode(tag: Tags, owner: Bytes, checked: Bytes, prefix: Bytes, out: Bytes) -> int:
    """The addresses, a line each, to `out`; where the lines end."""
    limbs, work = np.zeros(_LIMBS, dtype=np.uint64), np.zeros(_WIDTH, dtype=np.uint8)
    end: Any = ZERO
    for row in range(len(tag)):
        kind = tag[row]
        length: Any = ZERO
        if kind in (KEY_HASH, SCRIPT_HASH):
            length = _base58(checked[row], work, limbs)
        elif kind in (WITNESS_KEY, WITNESS_SCRIPT, TAPROOT):
            version = np.int64(1) if kind == TAPROOT else ZERO
            length = _bech32(prefix, version, owner[row], PAYLOAD[kind], work)
        copy(work, ZERO, length, out, end)
        end += length + 1
        out[end - 1] = _NEW_LINE
    return end


def _checked(tag: Tags, owner: Bytes, network: Network) -> Bytes:
    """(n, 25): prefix, 20 bytes and checksum of Base58Check."""
    first = np.where(tag == KEY_HASH, network.key_hash[0], network.script_hash[0]).astype(np.uint8)
    body = np.concatenate([first[:, None], owner[:, :20]], axis=1)
    check = sha256d(body.reshape(-1), _BODY * np.arange(len(body)), np.full(len(body), _BODY))
    return np.concatenate([body, check[:, :4]], axis=1)


def addresses(tag: Tags, owner: Bytes, network: Network, others: dict[bytes, str]) -> npt.NDArray[Any]:
    """The texts of n distinct owners (n, 32), as an object array; `others` has those without an address."""
    found = np.empty(len(tag), dtype=object)
    prefix = np.frombuffer(network.bech32.encode(), dtype=np.uint8).copy()
    for start in range(0, len(tag), _BATCH):
        rows = slice(start, min(start + _BATCH, len(tag)))
        text = np.empty((rows.stop - start) * _WIDTH, dtype=np.uint8)
        end = _encode(tag[rows], owner[rows], _checked(tag[rows], owner[rows], network), prefix, text)
        found[rows] = text[:end].tobytes().decode().split("\n")[:-1]
    for row in np.flatnonzero((tag == SCRIPT) | (tag == OUTPOINT)):
        found[row] = others[owner[row].tobytes()]
    return found


def text_of_script(script: bytes, network: Network) -> str:
    """What stands for a script that none of the five address types fits: a later SegWit address, or its hex."""
    size = len(script)
    if 4 <= size <= 42 and (script[0] == 0 or 0x51 <= script[0] <= 0x60) and script[1] == size - 2:
        version = max(0, script[0] - 0x50)
        return bech32.encode(network.bech32, version, script[2:]) or script.hex()
    return script.hex()
