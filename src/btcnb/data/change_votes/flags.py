"""Fingerprints: what a transaction shows of the software that wrote it, as one small number per flag.

The names are those of Möser and Narayanan's public notebooks; how some flags are computed there is not public, and the
data shows only what an input's script type and the transaction's sizes tell. Our readings:

- A transaction is SegWit when an input has a witness type, or when its bytes weigh less than they count.
- `segwit_compatible` (meaning not found): it could carry a witness, since some input is a script hash or SegWit.
- `multisig`: an input is bare multisig, or P2WSH, or P2SH in a transaction without any witness. A script hash does not
  say what it hides; in these two guises it is multisig nearly always.
- Presence of a type is looked for among the inputs, by what is written on the chain: a SegWit key wrapped in a script
  hash counts as P2SH.
- `sorted`: outputs by amount, inputs by spent transaction and position (BIP 69; equal amounts are not told apart).
- `zeroconf`: it spends an output made in its own block.

`UNTOLD` stands where the data does not tell; it takes part in no comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from btcnb.data.chain_measures import FINAL_SEQUENCES, any_input, has_witness
from btcnb.data.transactions import SCRIPT_TYPES, IntArray, Transactions

BoolArray = npt.NDArray[np.bool_]

UNTOLD = np.int64(-1)
LOCKTIME_IS_TIME = 500_000_000
"""Lock times below are block heights, from here on unix seconds (consensus rule)."""
MANY = 3
"""Numbers of inputs and outputs are compared as 1, 2, or at least so many."""

P2PKH, P2SH, P2WPKH, P2WSH, MULTISIG, HIDDEN = (
    SCRIPT_TYPES.index(name)
    for name in ("pubkeyhash", "scripthash", "witness_v0_keyhash", "witness_v0_scripthash", "multisig", "unknown")
)
PRESENCE = {"p2pkh": P2PKH, "p2sh": P2SH, "p2wpkh": P2WPKH, "p2wsh": P2WSH}


def transaction_flags(txs: Transactions) -> dict[str, IntArray]:
    """Every flag by name, int64 of shape (T,); `UNTOLD` where the data does not tell it."""
    table = txs.transactions
    lock, fee, size = (table[name].to_numpy() for name in ("lock_time", "fee", "virtual_size"))
    flags: dict[str, npt.NDArray[Any]] = {
        "inputs": np.minimum(np.diff(txs.input_offsets()), MANY),
        "outputs": np.minimum(np.diff(txs.output_offsets()), MANY),
        "version": table["version"].to_numpy() > 1,
        "locktime_height": (lock > 0) & (lock < LOCKTIME_IS_TIME),
        "locktime_time": lock >= LOCKTIME_IS_TIME,
        "rbf": any_input(txs, ~np.isin(txs.inputs["sequence"].to_numpy(), FINAL_SEQUENCES)),
        "sorted": _sorted(txs),
        "zeroconf": _spends_its_own_block(txs),
        "fee": np.where(fee >= 0, fee, UNTOLD),
        "fee_per_byte": np.where((fee >= 0) & (size > 0), fee // np.maximum(size, 1), UNTOLD),
        **_types(txs),
    }
    return {name: flag.astype(np.int64) for name, flag in flags.items()}


def _types(txs: Transactions) -> dict[str, npt.NDArray[Any]]:
    """Flags that come from the inputs' script types; untold where one of them is."""
    kind = txs.inputs["script_type"].to_numpy()
    present = {name: any_input(txs, kind == position) for name, position in PRESENCE.items()}
    segwit = has_witness(txs)
    bare = any_input(txs, kind == MULTISIG)
    found = {
        **present,
        "segwit": segwit,
        "segwit_compatible": segwit | present["p2sh"],
        "multisig": bare | present["p2wsh"] | (present["p2sh"] & ~segwit),
        "other": any_input(txs, ~np.isin(kind, [*PRESENCE.values(), MULTISIG])),
    }
    hidden = any_input(txs, kind == HIDDEN)
    return {name: np.where(hidden, UNTOLD, flag) for name, flag in found.items()}


def _spends_its_own_block(txs: Transactions) -> BoolArray:
    block, spent = txs.transactions["block_number"].to_numpy(), txs.inputs["spent_output"].to_numpy()
    made = txs.outputs["tx"].to_numpy()
    inside = np.flatnonzero(spent >= 0)
    same = np.zeros(len(spent), dtype=bool)
    same[inside] = block[made[spent[inside]]] == block[txs.inputs["tx"].to_numpy()[inside]]
    return any_input(txs, same)


def _sorted(txs: Transactions) -> BoolArray:
    """Outputs never fall in amount; inputs never fall by (hash of the spent transaction, position there)."""
    tx, value = txs.outputs["tx"].to_numpy(), txs.outputs["value"].to_numpy()
    ordered = np.ones(len(txs), dtype=bool)
    ordered[tx[1:][(np.diff(tx) == 0) & (np.diff(value) < 0)]] = False
    tx, position = txs.inputs["tx"].to_numpy(), txs.inputs["spent_output_index"].to_numpy()
    later = np.flatnonzero(np.diff(tx) == 0) + 1  # inputs that follow another of the same transaction
    before, after = (_spent_hashes(txs, rows) for rows in (later - 1, later))
    falls = np.asarray(pc.greater(before, after)) | (
        np.asarray(pc.equal(before, after)) & (position[later - 1] > position[later])
    )
    ordered[tx[later[falls.astype(bool)]]] = False
    return ordered


def _spent_hashes(txs: Transactions, rows: IntArray) -> Any:
    """Hash of the transaction that each of the given inputs spends from, as an Arrow array of texts."""
    spent = txs.inputs["spent_output"].to_numpy()[rows]
    inside = spent >= 0
    parent = txs.outputs["tx"].to_numpy()[np.maximum(spent, 0)] if len(txs.outputs) else np.zeros(len(rows), np.int64)
    made = pa.array(txs.transactions["hash"], type=pa.large_string()).take(pa.array(parent))
    told = pa.array(txs.inputs["spent_transaction_hash"].iloc[rows], type=pa.large_string(), from_pandas=True)
    return pc.fill_null(pc.if_else(pa.array(inside), made, told), "")
