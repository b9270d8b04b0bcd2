"""Which blocks there are, how high each stands, and which of them make the chain that is read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from embit.hashes import double_sha256

from btcnb.data.readers.blocks.files import HEADER, BlockFile, network_of, records, unmask
from btcnb.data.readers.scripts import Network
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

UNTOLD = -1
_LOOK = 160  # bytes from the start of a block that reach behind the height in its coinbase


class SideBranchWarning(UserWarning):
    """Blocks of two chains: some were left out for others of a longer chain, or one does not follow the one below."""


@dataclass(frozen=True)
class Head:
    """What the first bytes of a block say, and where the block lies."""

    file: BlockFile
    start: int  # first byte in the file
    size: int  # bytes
    header: bytes
    hash: bytes  # as computed, not as displayed
    transactions: int
    told: int  # height that the coinbase tells, -1 where it tells none
    named: int  # height in the file's name, -1 where there is none

    @property
    def display(self) -> str:
        """The block's hash as it is written."""
        return self.hash[::-1].hex()

    @property
    def previous(self) -> bytes:
        return self.header[4:36]

    @property
    def time(self) -> int:
        return int.from_bytes(self.header[68:72], "little")


@dataclass(frozen=True)
class Placed:
    """A block that is read: its height, and the number of the tree of blocks, linked by their hashes, it stands in."""

    head: Head
    height: int
    tree: int


def scan(files: Sequence[BlockFile], network: Network | None, default: Network) -> tuple[list[Head], Network]:
    """The blocks in all files, and the network they are of: the one wanted, or that of the magic, or the default."""
    heads = []
    for file in files:
        raw = file.content()
        if file.number is None:
            if len(raw) <= HEADER:
                problem = f"{len(raw)} bytes are no block: a header alone has {HEADER}"
                raise DataError(file.source, "size", problem, "fetch it again")
            places = [(0, len(raw))]
        else:
            found = network_of(raw, file.key, file.source)
            if found is None:
                continue
            if network is not None and found != network:
                problem = f"is that of {found.name}, not of {network.name}"
                raise DataError(file.source, "magic", problem, "read the files of one network at a time")
            network = found
            places = records(raw, file.key, network, "blk", file.source)
        for start, size in places:
            heads.append(_head(file, start, size, unmask(raw, file.key, start, min(size, _LOOK)).tobytes()))
    return heads, network or default


def _head(file: BlockFile, start: int, size: int, data: bytes) -> Head:
    header, hashed = data[:HEADER], double_sha256(data[:HEADER])
    transactions, behind = compact(data, HEADER)
    begin = behind + (6 if data[behind + 4 : behind + 5] == b"\0" else 4)  # version, and marker and flag
    if data[begin : begin + 37] != b"\x01" + bytes(32) + b"\xff" * 4:
        problem = "behind its header stands no coinbase, so it is no block, or cut short"
        raise DataError(file.source, f"byte {start}", problem, "fetch or copy it again")
    told, named = UNTOLD, UNTOLD
    if int.from_bytes(header[:4], "little") >= 2:  # version 1 tells no height
        length, at = compact(data, begin + 37)
        told = _pushed_number(data[at : at + length])
    if file.named is not None:
        named, name = file.named
        if hashed[::-1].hex() != name:
            problem = f"is {hashed[::-1].hex()}, not the one in its name"
            raise DataError(file.source, "block hash", problem, "fetch it again")
    return Head(file, start, size, header, hashed, transactions, told, named)


def compact(data: bytes, at: int) -> tuple[int, int]:
    """A compact size at `at`, and the byte behind it; 0 where the data end."""
    width = {253: 2, 254: 4, 255: 8}.get(data[at], 0) if at < len(data) else 0
    return int.from_bytes(data[at + 1 : at + 1 + width] if width else data[at : at + 1], "little"), at + 1 + width


def _pushed_number(script: bytes) -> int:
    """The number that a script begins with, -1 where it begins with none."""
    push = script[0] if script else 0xFF
    if push == 0 or 0x51 <= push <= 0x60:
        return max(push - 0x50, 0)
    if push > 4 or len(script) <= push or script[push] >= 0x80:
        return UNTOLD
    return int.from_bytes(script[1 : 1 + push], "little")


def choose(heads: Sequence[Head], network: Network) -> tuple[list[Placed], dict[bytes, int]]:
    """The blocks of one chain, or of the pieces of it that are there, by height; and the height of every block's hash.

    A tree of blocks stands as high as its genesis block, else a file's name, else most of its coinbases say. Of several
    blocks of one height, the one on the longest chain of the given blocks counts; of equally long chains, the one that
    is complete first.
    """
    rows: dict[bytes, Head] = {}
    for head in heads:
        rows.setdefault(head.hash, head)  # a block may lie there twice
    blocks = list(rows.values())
    position = {head.hash: row for row, head in enumerate(blocks)}
    parent = np.array([position.get(head.previous, UNTOLD) for head in blocks], dtype=np.int64)
    tree, depth = _rooted(parent)
    height = _heights(blocks, tree, depth, network)
    length, tip = _reach(parent, depth)
    order = np.lexsort((tip, -length, height))
    first = np.diff(height[order], prepend=UNTOLD) > 0
    if not first.all():
        problem = f"{np.sum(~first)} of {len(blocks)} blocks are left out"
        warnings.warn(f"{problem}: others of their height belong to a longer chain.", SideBranchWarning, 3)
    kept = order[first]
    torn = (np.diff(height[kept]) == 1) & (parent[kept[1:]] != kept[:-1])
    if torn.any():
        warnings.warn(
            f"{torn.sum()} of {len(kept)} blocks (first: height {height[kept[1:]][torn][0]}) do not follow the block"
            " that is there below them: that one is damaged, or its branch was left.",
            SideBranchWarning,
            3,
        )
    placed = [Placed(blocks[row], int(height[row]), int(tree[row])) for row in kept]
    return placed, {head.hash: int(height[row]) for row, head in enumerate(blocks)}


def _rooted(parent: IntArray) -> tuple[IntArray, IntArray]:
    """The lowest block that each block's parents lead to, and the number of steps."""
    root, depth = np.full(len(parent), UNTOLD, dtype=np.int64), np.zeros(len(parent), dtype=np.int64)
    for row in range(len(parent)):
        path = [row]
        while root[path[-1]] < 0 and parent[path[-1]] >= 0:
            path.append(int(parent[path[-1]]))
        last = path[-1]
        if root[last] < 0:
            root[last] = last
        for steps, at in enumerate(reversed(path)):
            root[at], depth[at] = root[last], depth[last] + steps
    return root, depth


def _reach(parent: IntArray, depth: IntArray) -> tuple[IntArray, IntArray]:
    """Per block: the length of the longest chain through it, and the block that ends it, the first of several."""
    far, tip = depth + 1, np.arange(len(parent))
    for row in np.argsort(-depth, kind="stable"):
        above = parent[row]
        if above >= 0 and (-far[row], tip[row]) < (-far[above], tip[above]):
            far[above], tip[above] = far[row], tip[row]
    return far, tip


def _heights(blocks: Sequence[Head], tree: IntArray, depth: IntArray, network: Network) -> IntArray:
    """Height of each block; `DataError` where nothing tells it, or where a name or a coinbase tells another one."""
    base = np.full(len(blocks), UNTOLD, dtype=np.int64)  # height of each tree's lowest block
    named, told = (np.array([getattr(head, name) for head in blocks], dtype=np.int64) for name in ("named", "told"))
    genesis = np.array([0 if not any(head.previous) else UNTOLD for head in blocks], dtype=np.int64)
    for heights in (genesis, named, told):
        rows = np.flatnonzero((heights >= depth) & (base[tree] < 0))
        said = np.stack([tree[rows], heights[rows] - depth[rows]], axis=1)
        said, votes = np.unique(said, axis=0, return_counts=True)
        for place in np.argsort(votes, kind="stable"):  # what most blocks of a tree say comes last
            base[said[place, 0]] = said[place, 1]
    if (base[tree] < 0).any():
        head = blocks[int(np.argmax(base[tree] < 0))]
        problem = f"neither block {head.display} nor a block linked to it tells one"
        remedy = "name the file HEIGHT-HASH.bin, or add the blocks before it"
        raise DataError(head.file.source, "height", problem, remedy)
    height = base[tree] + depth
    due = np.where(height >= network.bip34, told, UNTOLD)  # what a coinbase said before is not binding
    for known, by in ((named, "its name"), (due, "its coinbase")):
        wrong = (known >= 0) & (known != height)
        if wrong.any():
            row = int(wrong.argmax())
            problem = f"{known[row]} by {by}, but {height[row]} by other names or the blocks it is linked to"
            raise DataError(blocks[row].file.source, "height", problem, "check the file and its name")
    return height
