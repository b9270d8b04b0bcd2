"""Raw blocks, from single files or from a node's own folder, to `Transactions`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from btcnb.data.intervals import subsidy
from btcnb.data.readers import scripts
from btcnb.data.readers.assemble import Missing, Raw, assemble, report_missing
from btcnb.data.readers.blocks.chain import Head, Placed, choose, scan
from btcnb.data.readers.blocks.files import BlockFile, find_files, unmask
from btcnb.data.readers.blocks.owners import P2SH_FROM, UndoFile, script_of_unlock, script_of_witness
from btcnb.data.readers.blocks.parse import Columns, parse
from btcnb.data.readers.files import Member, path_of
from btcnb.data.readers.scripts import NETWORKS, Network
from btcnb.data.tables import UNKNOWN
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.gates import choice, flag

IntArray = npt.NDArray[np.int64]

_AT_ONCE = 2**23  # bytes of blocks that are parsed together


class RewardWarning(UserWarning):
    """A block takes more coins than its subsidy and its fees."""


def read_blocks(
    path: str | Path,
    *,
    start: int | None = None,
    end: int | None = None,
    network: str | None = None,
    impute: bool = False,
    missing: Missing = "warn",
    progress: bool | None = None,
) -> Transactions:
    """Transactions of raw blocks `start` to `end` (both included; None: from the first, to the last).

    path:     one file, or a folder or zip of them: single blocks as the network sends them (binary, or hex as text),
              or a node's `blk*.dat`, with `xor.dat` and `rev*.dat` beside them where the node has written such; files
              may be packed with gzip or zstd
    network:  "main", "testnet3", "testnet4", "signet" or "regtest"; None: what a node's files say, else main
    impute:   fill unknown input values with what the outputs need beyond the known inputs, in equal shares: exact but
              for the fee where one input is unknown. `inputs` then has a column `imputed`, the source says how many,
              and fees of such transactions stay unknown
    missing:  what to do about inputs whose address or value stays unknown: "warn" and "ignore" keep them with -1,
              "error" raises
    progress: show a progress bar (None: on a terminal only)

    With `rev*.dat` every input's address and value is known. Without, they come from the outputs at hand; else the
    address is what the spender reveals (P2PKH, P2SH, SegWit; not P2PK, bare multisig or Taproot), the value unknown.
    Heights come from names like `HEIGHT-HASH.bin`, else from the coinbases (BIP 34), else from the links between
    blocks. Of blocks at one height, the one on the longest chain given is read, and a warning counts the others. Blocks
    need not be of one chain: a transaction that stands in two branches counts once, and an input that spends an output
    of a later block is not linked to it.
    Block hashes (against names), Merkle roots, witness commitments and, where all fees of a block are known, its reward
    are checked; work and signatures are not.
    """
    for name, height in (("start", start), ("end", end)):
        if height is not None and (type(height) is not int or height < 0):
            raise ParameterError(f"{name}: {height!r} is not a height.")
    flag("impute", impute)
    choice("missing", missing, get_args(Missing))
    wanted = None if network is None else NETWORKS[choice("network", network, NETWORKS)]
    path = path_of(path).expanduser() if str(path).startswith("~") else path
    heads, found = scan(find_files(path), wanted, NETWORKS["main"])
    placed, heights = choose(heads, found)
    chosen = _between(placed, start, end, path)
    bar = tqdm(
        desc="blocks", unit="B", unit_scale=True, leave=False, total=sum(block.head.size for block in chosen),
        disable=None if progress is None else not progress,
    )  # fmt: skip
    parts, branches = [], []
    with bar:
        for batch, undo in _batches(chosen, heads, heights, found):
            part, branch = _read_batch(batch, undo, found)
            parts.append(part)
            branches.append(branch)
            bar.update(sum(block.head.size for block in batch))
    txs = assemble(parts, str(path), "ignore", np.concatenate(branches))
    _compare_rewards(txs, found.halving)
    txs = _imputed(txs) if impute else txs
    unknown = (txs.inputs["value"] < 0) | (txs.inputs["address"] < 0)
    report_missing(unknown.to_numpy(), str(path), missing, "add the earlier blocks or the node's rev*.dat")
    return txs


def require_block(path: Path) -> None:
    """Raise `DataError` unless `HEIGHT-HASH.bin` holds a whole block with that hash, its Merkle root and witnesses."""
    heads, _ = scan([BlockFile(Member(path.name, path), None)], None, NETWORKS["main"])
    parse(_contents(heads), heads)


def _between(placed: list[Placed], start: int | None, end: int | None, path: str | Path) -> list[Placed]:
    low, high = start or 0, np.inf if end is None else end
    inside = [block for block in placed if low <= block.height <= high]
    if not inside:
        there = f"{placed[0].height} to {placed[-1].height}" if placed else "none"
        raise DataError(path, "blocks", "there are none to read", f"check the path and the heights: it holds {there}")
    return inside


def _batches(
    chosen: Sequence[Placed], heads: Sequence[Head], heights: dict[bytes, int], network: Network
) -> Iterator[tuple[list[Placed], UndoFile | None]]:
    """The chosen blocks, file by file, so many at a time that memory stays small beside the result."""
    of_file: dict[BlockFile | None, list[Placed]] = {}
    for block in sorted(chosen, key=lambda block: block.head.file.source):
        file = block.head.file
        of_file.setdefault(None if file.undo is None else file, []).append(block)
    for node_file, blocks in of_file.items():
        undo = None
        if node_file is not None and node_file.undo is not None:
            there = {head.hash: head for head in heads if head.file is node_file}.values()
            connected = sorted(there, key=lambda head: heights[head.hash])
            undo = UndoFile(node_file.undo, node_file.key, connected, network)
        batch: list[Placed] = []
        for block in blocks:
            if batch and sum(each.head.size for each in batch) + block.head.size > _AT_ONCE:
                yield batch, undo
                batch = []
            batch.append(block)
        yield batch, undo


def _contents(heads: Sequence[Head]) -> list[bytes]:
    """The blocks, taken out of their files, which may have changed since they were looked at."""
    blocks, file, raw = [], None, np.zeros(0, dtype=np.uint8)
    for head in heads:
        if head.file is not file:
            file, raw = head.file, head.file.content()
        if head.start + head.size > len(raw):
            raise DataError(head.file.source, "size", "it became shorter while it was read", "read it again")
        blocks.append(unmask(raw, head.file.key, head.start, head.size).tobytes())
    return blocks


def _read_batch(blocks: Sequence[Placed], undo: UndoFile | None, network: Network) -> tuple[Raw, IntArray]:
    """Parse and check some blocks: their transactions in columns, and the branch of each."""
    heads = [block.head for block in blocks]
    parsed = parse(_contents(heads), heads)
    outpoint = np.frombuffer(b"".join(parsed.outpoint), dtype=np.uint8).reshape(-1, 36)
    names, previous = _displayed(b"".join(parsed.id)), _displayed(outpoint[:, :32].tobytes())
    position = outpoint[:, 32:].copy().view("<u4")[:, 0].astype(np.int64)
    tx_in, tx_out = (np.repeat(np.arange(len(names)), number) for number in (parsed.inputs, parsed.outputs))
    place_in, place_out = (np.arange(len(tx)) - np.searchsorted(tx, tx) for tx in (tx_in, tx_out))
    block = np.array(parsed.block, dtype=np.int64)
    height, time, branch = np.array([(one.height, one.head.time, one.tree) for one in blocks], dtype=np.int64).T
    if undo is None:
        spent, value = _revealed(parsed, time[block[tx_in]] >= P2SH_FROM), np.full(len(tx_in), UNKNOWN, dtype=np.int64)
    else:
        spent, value = _undone(parsed, undo, heads)
    address, kind = scripts.addresses([*spent, *parsed.lock], network)
    into, out = slice(None, len(spent)), slice(len(spent), None)
    if undo is None:
        unknown = np.array([not script for script in spent], dtype=bool)
        address[into][unknown], kind[into][unknown] = None, scripts.UNKNOWN_TYPE
    else:
        _name_empty(address[into], spent, previous, position)
    _name_empty(address[out], parsed.lock, names[tx_out], place_out)
    size, place = (np.array(told, dtype=np.int64) for told in (parsed.size, parsed.place))
    transactions = {
        "hash": names,
        "block_number": height[block],
        "block_timestamp": time[block],
        "index": place,
        "is_coinbase": place == 0,
        "version": np.array(parsed.version, dtype=np.int64),
        "lock_time": np.array(parsed.lock_time, dtype=np.int64),
        "size": size,
        "virtual_size": (4 * size - 3 * np.array(parsed.witness_size, dtype=np.int64) + 3) // 4,
        "fee": np.full(len(names), UNKNOWN, dtype=np.int64),
    }
    inputs = {
        "tx": tx_in,
        "index": place_in,
        "spent_transaction_hash": previous,
        "spent_output_index": position,
        "address": address[into],
        "value": value,
        "script_type": kind[into],
        "sequence": np.frombuffer(b"".join(parsed.sequence), dtype="<u4").astype(np.int64),
    }
    made = {
        "tx": tx_out,
        "index": place_out,
        "address": address[out],
        "value": np.array(parsed.value, dtype=np.int64),
        "script_type": kind[out],
    }
    return Raw(transactions, inputs, made), branch[block]


def _displayed(digests: bytes) -> npt.NDArray[Any]:
    """Hashes of 32 bytes as they are written."""
    turned = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)[:, ::-1].tobytes()
    found = np.empty(len(digests) // 32, dtype=object)
    found[:] = turned.hex("\n", 32).split() if turned else []
    return found


def _revealed(parsed: Columns, p2sh: npt.NDArray[np.bool_]) -> list[bytes]:
    """The output scripts that inputs reveal, empty where they do not."""
    return [
        script_of_unlock(unlock, bool(witness), known) if unlock else script_of_witness(witness) if witness else b""
        for unlock, witness, known in zip(parsed.unlock, parsed.witness, p2sh.tolist(), strict=True)
    ]


def _undone(parsed: Columns, undo: UndoFile, heads: Sequence[Head]) -> tuple[list[bytes], IntArray]:
    """Scripts and values that the undo data say the inputs spend."""
    spending: list[list[int]] = [[] for _ in heads]
    for block, place, inputs in zip(parsed.block, parsed.place, parsed.inputs, strict=True):
        if place:
            spending[block].append(inputs)
    coins = [coin for head, inputs in zip(heads, spending, strict=True) if inputs for coin in undo.spent(head, inputs)]
    return [script for _, script in coins], np.array([value for value, _ in coins], dtype=np.int64)


def _name_empty(
    address: npt.NDArray[Any], script: Sequence[bytes], hashes: npt.NDArray[Any], position: IntArray
) -> None:
    """An output with an empty script is its own owner, named by transaction and position."""
    for row in np.flatnonzero([not one for one in script]):
        address[row] = f"{hashes[row]}:{position[row]}"


def _compare_rewards(txs: Transactions, halving: int) -> None:
    """Warn of blocks that take more than subsidy and fees, where all fees are known; a miner may take less.

    Such a block is what its header says, so the file is sound: its miner broke the rules, and the network refused it.
    """
    height, fee = (txs.transactions[name].to_numpy() for name in ("block_number", "fee"))
    first = np.flatnonzero(np.diff(height, prepend=-1))
    whole = txs.transactions["index"].to_numpy()[first] == 0  # a coinbase may stand in an earlier block too
    paid = np.concatenate([[0], np.cumsum(txs.outputs["value"].to_numpy())])
    claimed = np.diff(paid[txs.output_offsets()])[first]
    allowed = subsidy(height[first], halving) + np.add.reduceat(fee, first)
    wrong = np.flatnonzero(whole & (np.minimum.reduceat(fee, first) >= 0) & (claimed > allowed))
    if len(wrong):
        at = int(wrong[0])
        text = f"block {height[first[at]]} takes {claimed[at]} satoshi; subsidy and fees are {allowed[at]}"
        more = f", and so in {len(wrong) - 1} other blocks" if len(wrong) > 1 else ""
        warnings.warn(f"{txs.source}: {text}{more}: no valid block does.", RewardWarning, 3)


def _imputed(txs: Transactions) -> Transactions:
    """Unknown values filled with what the outputs need beyond the known inputs, in equal shares."""
    value = txs.inputs["value"].to_numpy().copy()
    missing = value < 0
    tx = txs.inputs["tx"].to_numpy()
    paid = np.zeros(len(txs), dtype=np.int64)
    np.add.at(paid, txs.outputs["tx"].to_numpy(), txs.outputs["value"].to_numpy())
    np.subtract.at(paid, tx, np.maximum(value, 0))
    need = np.maximum(paid, 0)
    number = np.bincount(tx[missing], minlength=len(txs))
    at = tx[missing]
    place = np.arange(len(at)) - np.searchsorted(at, at)  # 0, 1, … among the unknown inputs of a transaction
    value[missing] = need[at] // number[at] + (place < need[at] % number[at])
    source = f"{txs.source} (values of {missing.sum()} of {len(missing)} inputs imputed)"
    return replace(txs, inputs=txs.inputs.assign(value=value, imputed=missing), source=source)
