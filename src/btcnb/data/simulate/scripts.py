"""Ways to lock a coin, and what spending it costs in bytes.

Finer than `SCRIPT_TYPES`: a pay-to-script-hash address may hide a multisig script or a wrapped SegWit key, which no
output shows but every spending transaction does.
"""

from __future__ import annotations

import numpy as np

from btcnb.data.transactions import SCRIPT_TYPES

P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG = range(5)
ANY = -1
"""Of a wallet: addresses of every type, as customers wish; each new one is drawn from the year's shares."""

SCRIPT_TYPE = np.array(
    [
        SCRIPT_TYPES.index(name)
        for name in (
            "pubkeyhash",
            "scripthash",
            "scripthash",
            "witness_v0_keyhash",
            "witness_v0_scripthash",
        )
    ],
    dtype=np.int8,
)
"""Position in `SCRIPT_TYPES` of each way above."""

NULLDATA = SCRIPT_TYPES.index("nulldata")

# Bytes, from the serialisation rules (BIP 141): multisig is 2-of-3, signatures are taken at 72 bytes.
INPUT_BYTES = np.array([148, 297, 64, 41, 41], dtype=np.int64)
"""Bytes of an input outside the witness."""
WITNESS_BYTES = np.array([0, 0, 107, 107, 254], dtype=np.int64)
"""Bytes of an input's witness; 0 marks the ways that are not SegWit."""
OUTPUT_BYTES = np.array([34, 32, 32, 31, 43], dtype=np.int64)
"""Bytes of an output."""
NULLDATA_BYTES = 75
"""Bytes of an OP_RETURN output with a 64-byte payload."""
FIXED_BYTES = 10
"""Version, lock time and the two counts."""
SEGWIT_BYTES = 2
"""Marker and flag, counted as witness."""
