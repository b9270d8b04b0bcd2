"""Strings that name things: 64 hexadecimal digits for a transaction, an openly simulated address for a script.

Nothing here is a valid Bitcoin address: each begins with "sim". The prefix tells the script type, the rest is a one-
to-one scrambling of the id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from btcnb.data.simulate.coins import mix
from btcnb.data.simulate.scripts import P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG

Words = npt.NDArray[np.uint64]

PREFIX = {
    P2PKH: "simP2PKH",
    P2SH_MULTISIG: "simP2SH",
    P2SH_P2WPKH: "simP2SH",
    P2WPKH: "sim1q",
    P2WSH_MULTISIG: "sim1wsh",
}
ALPHABET = np.frombuffer(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", dtype=np.uint8)
ADDRESS_DIGITS = 20
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def hash_strings(base: np.uint64, counter: Words, missing: npt.NDArray[np.bool_] | None = None) -> Any:
    """64 hexadecimal digits per counter (four scrambled words counter..counter+3), missing where told; a pandas
    string array."""
    number = len(counter)
    present = np.arange(number) if missing is None else np.flatnonzero(~missing)
    words = _scramble(base + counter[present][:, None] + np.arange(4, dtype=np.uint64)[None, :])  # (k, 4)
    data = words.astype(">u8").view(np.uint8).reshape(len(present), 32)
    digits = np.empty((len(present), 64), dtype=np.uint8)
    digits[:, 0::2] = _HEX[data >> 4]
    digits[:, 1::2] = _HEX[data & 15]
    length = np.zeros(number + 1, dtype=np.int64)
    length[present + 1] = 64
    valid = None
    if missing is not None:
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    array = pa.Array.from_buffers(
        pa.large_string(), number, [valid, pa.py_buffer(np.cumsum(length).tobytes()), pa.py_buffer(digits.tobytes())]
    )
    dtype: Any = pd.StringDtype("pyarrow", na_value=np.nan)
    return dtype.__from_arrow__(array)


def address_strings(base: np.uint64, ids: npt.NDArray[np.int64], scripts: npt.NDArray[np.int8]) -> npt.NDArray[Any]:
    """One distinct string per address id, shape (ids,), dtype object."""
    strings = np.empty(len(ids), dtype=object)
    for script, prefix in PREFIX.items():
        rows = np.flatnonzero(scripts == script)
        first = _scramble(base ^ ids[rows].astype(np.uint64))  # one-to-one, so 13 digits of 5 bits keep ids apart
        second = _scramble(first)
        digits = np.empty((len(rows), len(prefix) + ADDRESS_DIGITS), dtype=np.uint8)
        digits[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
        for place in range(ADDRESS_DIGITS):
            word, shift = (first, 5 * place) if place < 13 else (second, 5 * (place - 13))
            digits[:, len(prefix) + place] = ALPHABET[(word >> np.uint64(shift)).astype(np.uint8) & np.uint8(31)]
        strings[rows] = digits.view(f"S{digits.shape[1]}").ravel().astype(str).astype(object)
    return strings


def _scramble(words: Words) -> Words:
    """`coins.mix` on every word."""
    with np.errstate(over="ignore"):
        return mix.py_func(words)  # type: ignore[no-any-return]
