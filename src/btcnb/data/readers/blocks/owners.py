"""Whose a coin is: the address behind an output script, and behind the proof by which somebody spends.

An owner is a tag and 32 bytes. The tags of one address type are alike for outputs and spenders, so that equal owners
are equal addresses. A script without an address counts as its own owner, told by its SHA-256.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.contract import SCRIPT_TYPES
from btcnb.data.readers.blocks.hashes import ZERO, Bytes, IntArray, hash160, inner, outer, sha256
from btcnb.data.readers.blocks.parse import Parsed, compact

Tags = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.int8]

NOBODY, KEY_HASH, SCRIPT_HASH, WITNESS_KEY, WITNESS_SCRIPT, TAPROOT, SCRIPT, OUTPOINT = range(8)
"""Tags: unknown or unspendable; the five address types; a script without address; an output with an empty script."""
PAYLOAD = (0, 20, 20, 20, 32, 32, 32, 32)
"""Tag -> bytes of the owner that count; the others are 0."""

_P2PK = SCRIPT_TYPES.index("pubkey")
_P2PKH = SCRIPT_TYPES.index("pubkeyhash")
_P2SH = SCRIPT_TYPES.index("scripthash")
_P2WPKH = SCRIPT_TYPES.index("witness_v0_keyhash")
_P2WSH = SCRIPT_TYPES.index("witness_v0_scripthash")
_P2TR = SCRIPT_TYPES.index("witness_v1_taproot")
_MULTISIG = SCRIPT_TYPES.index("multisig")
_NULLDATA = SCRIPT_TYPES.index("nulldata")
_NONSTANDARD = SCRIPT_TYPES.index("nonstandard")
_UNKNOWN = SCRIPT_TYPES.index("unknown")
_TYPE_OF_TAG = np.array([_UNKNOWN, _P2PKH, _P2SH, _P2WPKH, _P2WSH, _P2TR, _NONSTANDARD, _NONSTANDARD], dtype=np.int8)

P2SH_FROM = 1_333_238_400
"""Block time (1 April 2012) from which a hash in a script can stand for a script, BIP 16."""
_NO_SCRIPT = 0xBA  # opcodes from here on end a script of version 0, so no such script begins with one
_ANNEX = 0x50  # neither does it begin with this


@inner
def _begins(data: Any, at: Any, codes: Any) -> Any:
    same = True
    for i in range(len(codes)):
        same = same and data[at + i] == codes[i]
    return same


@inner
def _is_key(data: Any, at: Any, size: Any) -> Any:
    """Whether these bytes are of the form of a public key."""
    if size == 33:
        return data[at] == 2 or data[at] == 3
    return size == 65 and (data[at] == 4 or data[at] == 6 or data[at] == 7)


@inner
def _is_signature(data: Any, at: Any, size: Any) -> Any:
    """Whether these bytes are of the form of an ECDSA signature with its hash type; early ones are not strict DER."""
    return 9 <= size <= 80 and data[at] == 0x30 and data[at + 2] == 0x02


@inner
def _is_multisig(data: Any, at: Any, size: Any) -> Any:
    """OP_m, n keys, OP_n, OP_CHECKMULTISIG, with 1 <= m <= n <= 16."""
    if size < 37 or data[at + size - 1] != 0xAE:
        return False
    needed, told = np.int64(data[at]) - 0x50, np.int64(data[at + size - 2]) - 0x50
    if not 1 <= needed <= told <= 16:
        return False
    place, keys = at + 1, 0
    while place < at + size - 2:
        length = np.int64(data[place])
        if place + 1 + length > at + size - 2 or not _is_key(data, place + 1, length):
            return False
        place, keys = place + 1 + length, keys + 1
    return keys == told


@inner
def _tag_of_script(data: Any, at: Any, size: Any) -> Any:
    """(tag, script type, first byte of the payload) of an output script."""
    if size == 25 and _begins(data, at, (0x76, 0xA9, 20)) and _begins(data, at + 23, (0x88, 0xAC)):
        return KEY_HASH, _P2PKH, at + 3
    if size == 23 and _begins(data, at, (0xA9, 20)) and data[at + 22] == 0x87:
        return SCRIPT_HASH, _P2SH, at + 2
    if size == 22 and _begins(data, at, (0, 20)):
        return WITNESS_KEY, _P2WPKH, at + 2
    if size == 34 and _begins(data, at, (0, 32)):
        return WITNESS_SCRIPT, _P2WSH, at + 2
    if size == 34 and _begins(data, at, (0x51, 32)):
        return TAPROOT, _P2TR, at + 2
    if size == 0:
        return OUTPOINT, _NONSTANDARD, at
    if data[at] == 0x6A:
        return NOBODY, _NULLDATA, at
    if size > 33 and data[at + size - 1] == 0xAC and data[at] == size - 2 and _is_key(data, at + 1, size - 2):
        return SCRIPT, _P2PK, at
    return SCRIPT, _MULTISIG if _is_multisig(data, at, size) else _NONSTANDARD, at


@outer
def _of_scripts(data: Bytes, start: IntArray, size: IntArray, tag: Tags, kind: Kinds, owner: Bytes) -> None:
    for row in range(len(start)):
        found, type_, at = _tag_of_script(data, start[row], size[row])
        tag[row], kind[row] = found, type_
        for i in range(PAYLOAD[found] if found < SCRIPT else 0):
            owner[row, i] = data[at + i]


def of_scripts(data: Bytes, start: IntArray, size: IntArray, tag: Tags, kind: Kinds, owner: Bytes) -> None:
    """Tag (n,), script type (n,) and owner (n, 32) of n output scripts; of an empty script the caller knows it."""
    _of_scripts(data, start, size, tag, kind, owner)
    rows = np.flatnonzero(tag == SCRIPT)
    owner[rows] = sha256(data, start[rows], size[rows])


@inner
def _pushed(data: Any, at: Any, end: Any) -> Any:
    """The next push of a script: (its first byte, its length, the byte behind it); length -1 where no push stands."""
    code = np.int64(data[at])
    if code == 0 or code == 0x4F or 0x51 <= code <= 0x60:
        return at, ZERO, at + 1  # a small number
    width, length = ZERO, code
    if 0x4C <= code <= 0x4E:
        width = np.int64(1) << (code - 0x4C)
        if at + 1 + width > end:
            return at, np.int64(-1), at
        length = ZERO
        for i in range(width):
            length |= np.int64(data[at + 1 + i]) << (8 * i)
    elif code > 0x60 or code == 0x50:
        return at, np.int64(-1), at
    first = at + 1 + width
    return (first, length, first + length) if length <= end - first else (at, np.int64(-1), at)


@inner
def _from_script(data: Any, at: Any, size: Any, p2sh: Any, witness: Any) -> Any:
    """(tag, first byte, length) of the key or script that an unlocking script reveals."""
    end, pushes = at + size, 0
    before, before_size, last, last_size = at, ZERO, at, ZERO
    while at < end:
        before, before_size = last, last_size
        last, last_size, at = _pushed(data, at, end)
        if last_size < 0:
            return NOBODY, last, ZERO
        pushes += 1
    key = _is_key(data, last, last_size)
    if pushes == 2 and key and not witness and _is_signature(data, before, before_size):
        return KEY_HASH, last, last_size
    if not p2sh or last_size == 0 or _is_signature(data, last, last_size):
        return NOBODY, last, ZERO  # a bare key or bare keys, which only their output tells
    return SCRIPT_HASH, last, last_size


@inner
def _from_witness(data: Any, at: Any) -> Any:
    """(tag, first byte, length) of the key or script that a witness without unlocking script reveals."""
    items, at = compact(data, at, len(data))
    first, first_size, last, last_size = at, np.int64(0), at, np.int64(0)
    for item in range(items):
        last_size, last = compact(data, at, len(data))
        at = last + last_size
        if item == 0:
            first, first_size = last, last_size
    if items == 1:
        if last_size == 64 or last_size == 65:
            return NOBODY, last, ZERO  # a Taproot key's signature
    elif items == 2 and last_size == 33 and _is_key(data, last, last_size) and _is_signature(data, first, first_size):
        return WITNESS_KEY, last, last_size
    if last_size > 0 and (data[last] >= _NO_SCRIPT or data[last] == _ANNEX):
        return NOBODY, last, ZERO  # a Taproot control block or annex
    return WITNESS_SCRIPT, last, last_size


@outer
def _of_spenders(data: Bytes, parsed: Parsed, p2sh: npt.NDArray[np.bool_], tag: Tags, places: IntArray) -> None:
    for tx in range(len(parsed.block)):
        for row in range(parsed.input_offset[tx], parsed.input_offset[tx + 1]):
            size, stack = parsed.script_size[row], parsed.stack[row]
            if size > 0:
                found = _from_script(data, parsed.script[row], size, p2sh[parsed.block[tx]], stack >= 0)
                tag[row], places[row, 0], places[row, 1] = found
            elif stack >= 0:
                tag[row], places[row, 0], places[row, 1] = _from_witness(data, stack)


def of_spenders(data: Bytes, parsed: Parsed, p2sh: npt.NDArray[np.bool_], tag: Tags, owner: Bytes) -> None:
    """Tag (n,) and owner (n, 32) of what n inputs spend, as far as they reveal it; `p2sh`: which blocks know BIP 16."""
    places = np.zeros((len(tag), 2), dtype=np.int64)  # first byte and length of what is revealed
    _of_spenders(data, parsed, p2sh, tag, places)
    rows = np.flatnonzero((tag == KEY_HASH) | (tag == SCRIPT_HASH) | (tag == WITNESS_KEY))
    owner[rows, :20] = hash160(data, places[rows, 0], places[rows, 1])
    rows = np.flatnonzero(tag == WITNESS_SCRIPT)
    owner[rows] = sha256(data, places[rows, 0], places[rows, 1])


def types_of(tag: Tags) -> Kinds:
    """Script types that tags alone tell."""
    return _TYPE_OF_TAG[tag]
