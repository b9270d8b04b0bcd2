"""Raw blocks, from single files or from a node's own folder, to `Transactions`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from btcnb.data.readers.blocks.chain import Chain, Heads, choose, scan
from btcnb.data.readers.blocks.files import BlockFile, find_files
from btcnb.data.readers.blocks.hashes import IntArray
from btcnb.data.readers.blocks.join import impute as fill_values
from btcnb.data.readers.blocks.join import join, tables
from btcnb.data.readers.blocks.networks import NETWORKS, Network, network_named
from btcnb.data.readers.blocks.owners import NOBODY
from btcnb.data.readers.blocks.parts import Others, Part, gather, read_part
from btcnb.data.readers.blocks.undo import UndoFile
from btcnb.data.readers.builder import Missing, report_missing, require_missing
from btcnb.data.readers.guard import guarded
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.gates import flag

_AT_ONCE = 2**23  # bytes of blocks that are parsed together


@guarded("path")
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
    blocks. Of blocks at one height, that on the longest chain given is read, and a warning counts the others. Blocks
    need not be of one chain: a transaction that stands in two branches counts once.
    Block hashes (against names), Merkle roots, witness commitments and, where all fees of a block are known, its reward
    are checked; work and signatures are not.
    """
    for name, height in (("start", start), ("end", end)):
        if height is not None and (type(height) is not int or height < 0):
            raise ParameterError(f"{name}: {height!r} is not a height.")
    flag("impute", impute)
    require_missing(missing)
    wanted = None if network is None else network_named(network)
    path = Path(path).expanduser() if str(path).startswith("~") else path
    files = find_files(path)
    heads, found = scan(files, wanted, NETWORKS["main"])
    chain = _between(choose(heads, found, files), start, end, path)
    others = Others(found)
    bar = tqdm(
        desc="blocks", unit="B", unit_scale=True, leave=False, total=int(heads.size[chain.row].sum()),
        disable=None if progress is None else not progress,
    )  # fmt: skip
    with bar:
        parts = []
        for part, size in _parts(files, heads, chain, others):
            parts.append(part)
            bar.update(size)
    joined = join(parts, heads, chain, others, str(path))
    filled = fill_values(joined) if impute else None
    unknown = (joined.part.spent.value < 0) | (joined.part.spent.tag == NOBODY)
    report_missing(unknown, str(path), missing, "add the earlier blocks or the node's rev*.dat")
    txs = tables(joined, others)
    if filled is None:
        return txs
    source = f"{txs.source} (values of {filled.sum()} of {len(filled)} inputs imputed)"
    return replace(txs, inputs=txs.inputs.assign(imputed=filled), source=source)


def _between(chain: Chain, start: int | None, end: int | None, path: str | Path) -> Chain:
    inside = np.ones(len(chain.row), dtype=bool)
    if start is not None:
        inside &= chain.height >= start
    if end is not None:
        inside &= chain.height <= end
    if not inside.any():
        there = f"{chain.height[0]} to {chain.height[-1]}" if len(chain.height) else "none"
        raise DataError(path, "blocks", "there are none to read", f"check the path and the heights: it holds {there}")
    return chain._replace(row=chain.row[inside], height=chain.height[inside], tree=chain.tree[inside])


def _parts(files: Sequence[BlockFile], heads: Heads, chain: Chain, others: Others) -> Iterator[tuple[Part, int]]:
    """The blocks of the chain, file by file, so many at a time that memory stays small beside the result."""
    of_file = heads.file[chain.row]
    undoes = np.array([file.undo is not None for file in files])
    rows = chain.row[~undoes[of_file]]
    for some in _batches(rows[np.argsort(heads.file[rows], kind="stable")], heads):
        yield read_part(gather(heads, files, some), None, others), int(heads.size[some].sum())
    for number in np.unique(of_file[undoes[of_file]]):
        undo = _undo(files[number], int(number), heads, chain, others.network)
        for some in _batches(chain.row[of_file == number], heads):
            yield read_part(gather(heads, files, some), undo, others), int(heads.size[some].sum())


def _batches(rows: IntArray, heads: Heads) -> Iterator[IntArray]:
    behind = np.cumsum(heads.size[rows])
    first = 0
    while first < len(rows):
        taken = behind[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(behind, taken + _AT_ONCE, side="right")))
        yield rows[first:last]
        first = last


def _undo(file: BlockFile, number: int, heads: Heads, chain: Chain, network: Network) -> UndoFile | None:
    if file.undo is None:
        return None
    rows = np.flatnonzero((heads.file == number) & (chain.heights >= 0))
    rows = rows[np.argsort(chain.heights[rows], kind="stable")]
    return UndoFile(file.undo, file.key, heads, rows, network)
