"""Output scripts: their type, and the mainnet address they stand for.

A standard script holds one hash or key, and its address is that payload with a prefix and a checksum: Base58Check
(P2PKH, P2SH), Bech32 (P2WPKH, P2WSH, BIP 173) or Bech32m (P2TR, BIP 350). Other scripts have no address and keep
their hex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from embit import base58
from embit.bech32 import BECH32_CONST, BECH32M_CONST, CHARSET, bech32_hrp_expand
from embit.networks import NETWORKS

from btcnb.data.transactions import SCRIPT_TYPES

TYPE_CODE = {name: code for code, name in enumerate(SCRIPT_TYPES)}
UNKNOWN_TYPE = TYPE_CODE["unknown"]

_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)  # BIP 173
_SYMBOLS = np.frombuffer(CHARSET.encode(), dtype=np.uint8)
_PREFIX = NETWORKS["main"]["bech32"]


def script_type(script: str) -> int:
    """Position in `SCRIPT_TYPES` of an output script given in hex."""
    size = len(script)
    if size == 50 and script.startswith("76a914") and script.endswith("88ac"):
        return TYPE_CODE["pubkeyhash"]
    if size == 46 and script.startswith("a914") and script.endswith("87"):
        return TYPE_CODE["scripthash"]
    if size == 44 and script.startswith("0014"):
        return TYPE_CODE["witness_v0_keyhash"]
    if size == 68 and script.startswith("0020"):
        return TYPE_CODE["witness_v0_scripthash"]
    if size == 68 and script.startswith("5120"):
        return TYPE_CODE["witness_v1_taproot"]
    if script.startswith("6a"):
        return TYPE_CODE["nulldata"]
    if (size, script[:2], script[-2:]) in ((70, "21", "ac"), (134, "41", "ac")):
        return TYPE_CODE["pubkey"]
    if size > 6 and script.endswith("ae") and "51" <= script[:2] <= "60":
        return TYPE_CODE["multisig"]
    return TYPE_CODE["nonstandard"]


def addresses(scripts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Mainnet address (or the hex itself; None for nulldata) and type of each script in hex, both of shape (n,).

    Each distinct script is encoded once; segwit scripts are encoded together, column by column.
    """
    codes, distinct = pd.factorize(scripts)
    types = np.array([script_type(script) for script in distinct], dtype=np.int8)  # (m,)
    found = np.array(distinct, dtype=object)
    found[types == TYPE_CODE["nulldata"]] = None
    for name, version, constant in (
        ("witness_v0_keyhash", 0, BECH32_CONST),
        ("witness_v0_scripthash", 0, BECH32_CONST),
        ("witness_v1_taproot", 1, BECH32M_CONST),
    ):
        chosen = types == TYPE_CODE[name]
        if chosen.any():
            found[chosen] = _segwit([script[4:] for script in distinct[chosen]], version, constant)
    for name, first, last in (("pubkeyhash", 6, 46), ("scripthash", 4, 44)):
        prefix = NETWORKS["main"]["p2pkh" if name == "pubkeyhash" else "p2sh"]
        for row in np.flatnonzero(types == TYPE_CODE[name]):
            found[row] = base58.encode_check(prefix + bytes.fromhex(distinct[row][first:last]))
    return found[codes], types[codes]


def _segwit(programs: list[str], version: int, constant: int) -> list[str]:
    """Bech32 or Bech32m addresses of n witness programs (hex, all of one length)."""
    payload = np.frombuffer(bytes.fromhex("".join(programs)), dtype=np.uint8).reshape(len(programs), -1)  # (n, bytes)
    bits = np.unpackbits(payload, axis=1)  # (n, 8 * bytes)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))
    groups = bits.reshape(len(programs), -1, 5) @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)  # (n, symbols)
    data = np.column_stack([np.full(len(programs), version, dtype=np.uint8), groups])
    checksum = _polymod(np.pad(data, ((0, 0), (0, 6)))) ^ constant  # (n,)
    tail = (checksum[:, None] >> (5 * np.arange(5, -1, -1))) & 31  # (n, 6)
    text = _SYMBOLS[np.column_stack([data, tail.astype(np.uint8)])]  # (n, symbols + 7)
    width = text.shape[1]
    joined = text.tobytes().decode()
    return [f"{_PREFIX}1{joined[start : start + width]}" for start in range(0, len(joined), width)]


def _polymod(values: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The checksum polynomial of BIP 173 for n rows at once, the human-readable part put in front."""
    check = np.ones(len(values), dtype=np.int64)
    columns: list[Any] = [*bech32_hrp_expand(_PREFIX), *values.T.astype(np.int64)]
    for column in columns:
        top = check >> 25
        check = ((check & 0x1FFFFFF) << 5) ^ column
        for bit, generator in enumerate(_GENERATOR):
            check ^= np.where((top >> bit) & 1, generator, 0)
    return check
