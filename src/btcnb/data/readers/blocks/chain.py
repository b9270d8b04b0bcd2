"""Which blocks there are, how high each stands, and which of them make the chain that is read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from btcnb.data.readers.blocks.files import BlockFile, array, network_of, records
from btcnb.data.readers.blocks.hashes import ZERO, Bytes, IntArray, copy, inner, outer, sha256d
from btcnb.data.readers.blocks.networks import Network
from btcnb.data.readers.blocks.parse import HEADER, compact
from btcnb.errors import DataError

_LOOK = 160  # bytes from the start of a block that reach behind the height in its coinbase
UNTOLD, _NO_COINBASE = -1, -2
_HEADER = np.int64(HEADER)


class SideBranchWarning(UserWarning):
    """Blocks of two chains: some were left out for others of a longer chain, or one does not follow the one below."""


class Heads(NamedTuple):
    """What the headers of n blocks say, in the order of the files."""

    file: IntArray  # number of its file
    start: IntArray  # first byte in the file
    size: IntArray  # bytes
    header: Bytes  # (n, 80)
    hash: Bytes  # (n, 32), as computed, not as displayed
    transactions: IntArray
    told: IntArray  # height that the coinbase tells, -1 where it tells none
    named: IntArray  # height in the file's name, -1 where there is none

    def display(self, row: int) -> str:
        """A block's hash as the world writes it."""
        return self.hash[row][::-1].tobytes().hex()


def field(header: Bytes, first: int, kind: str) -> IntArray:
    """A 32-bit field of n headers: version at 0, time at 68, work at 72."""
    return np.ascontiguousarray(header[:, first : first + 4]).view(kind)[:, 0].astype(np.int64)


@inner
def _pushed_number(data: Any, at: Any, size: Any) -> Any:
    """The number that a script of `size` bytes begins with, -1 where it begins with none."""
    push = np.int64(data[at])
    if push == 0 or 0x51 <= push <= 0x60:
        return max(push - 0x50, 0)
    if push > 4 or size <= push or data[at + push] >= 0x80:
        return UNTOLD
    value = np.int64(0)
    for i in range(push):
        value |= np.int64(data[at + 1 + i]) << 8 * i
    return value


@outer
def _heads(raw: Bytes, key: Bytes, found: IntArray, header: Bytes, told: IntArray) -> None:
    """Header (n, 80), number of transactions and told height (n, 2) of the blocks at found (n, 2)."""
    head = np.zeros(_LOOK, dtype=np.uint8)
    for row in range(len(found)):
        start, size = found[row]
        length = min(size, np.int64(_LOOK))
        for i in range(length):
            head[i] = raw[start + i] ^ key[(start + i) & 7]
        copy(head, ZERO, _HEADER, header[row], ZERO)
        told[row, 0], at = compact(head, _HEADER, length)
        told[row, 1] = UNTOLD
        at += 4
        if at + 1 < length and head[at] == 0:  # marker and flag
            at += 2
        null = at + 37 < length and head[at] == 1
        for i in range(36 if null else 0):  # one input, its outpoint
            null = null and head[at + 1 + i] == (0 if i < 32 else 255)
        if not null:
            told[row, 1] = _NO_COINBASE
            continue
        at += 1 + 36
        script, at = compact(head, at, length)
        old = head[0] < 2 and head[1] == 0 and head[2] == 0 and head[3] == 0  # version 1 tells no height
        if script >= 1 and at < length and not old:
            told[row, 1] = _pushed_number(head, at, min(script, length - at))


def scan(files: Sequence[BlockFile], network: Network | None, default: Network) -> tuple[Heads, Network]:
    """The blocks in all files, and the network they are of: the one wanted, or that of the magic, or the default."""
    columns: list[list[Any]] = [[] for _ in Heads._fields]
    for number, file in enumerate(files):
        raw = file.content()
        found, network = _records(file, raw, network)
        rows = len(found)
        header, told = np.zeros((rows, HEADER), dtype=np.uint8), np.zeros((rows, 2), dtype=np.int64)
        _heads(raw, array(file.key), found, header, told)
        _require_coinbases(file, found, told[:, 1])
        hashes = sha256d(header.reshape(-1), HEADER * np.arange(rows), np.full(rows, HEADER))
        named = np.full(rows, UNTOLD, dtype=np.int64)
        if file.number is None and file.named is not None:
            named[:] = file.named[0]
            _require_named(file, hashes[0][::-1].tobytes().hex())
        values = (np.full(rows, number), found[:, 0], found[:, 1], header, hashes, told[:, 0], told[:, 1], named)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    return Heads(*(np.concatenate(column) for column in columns)), network or default


def _records(file: BlockFile, raw: Bytes, network: Network | None) -> tuple[IntArray, Network | None]:
    if file.number is None:
        if len(raw) <= HEADER:
            problem = f"{len(raw)} bytes are no block: a header alone has {HEADER}"
            raise DataError(file.source, "size", problem, "fetch it again")
        return np.array([[0, len(raw)]], dtype=np.int64), network
    found = network_of(raw, file.key, file.source)
    if found is None:
        return np.zeros((0, 2), dtype=np.int64), network
    if network is not None and found != network:
        problem = f"is that of {found.name}, not of {network.name}"
        raise DataError(file.source, "magic", problem, "read the files of one network at a time")
    return records(raw, file.key, found, False, file.source), found


def _require_coinbases(file: BlockFile, found: IntArray, told: IntArray) -> None:
    wrong = told == _NO_COINBASE
    if wrong.any():
        at = int(found[int(wrong.argmax()), 0])
        problem = "behind its header stands no coinbase, so it is no block, or cut short"
        raise DataError(file.source, f"byte {at}", problem, "fetch or copy it again")


def _require_named(file: BlockFile, found: str) -> None:
    if file.named is not None and file.named[1] != found:
        raise DataError(file.source, "block hash", f"is {found}, not the one in its name", "fetch it again")


class Chain(NamedTuple):
    """The blocks that are read, by height. Blocks of one tree are linked by their hashes."""

    row: IntArray  # of `Heads`
    height: IntArray
    tree: IntArray  # a number
    heights: IntArray  # of all rows of `Heads`, -1 where a block lies there again


def choose(heads: Heads, network: Network, files: Sequence[BlockFile]) -> Chain:
    """Heights of all blocks, and those of one chain, or of the pieces of it that are there.

    A tree of blocks stands as high as its genesis block, else a file's name, else most of its coinbases say. Of several
    blocks of one height, that on the longest chain of the given blocks counts; of equally long chains, the one that is
    complete first.
    """
    rows = np.sort(np.unique(heads.hash.view("V32")[:, 0], return_index=True)[1])  # a block may lie there twice
    parent = _parents(heads, rows)
    tree, depth = _rooted(parent)
    base = np.full(len(rows), UNTOLD, dtype=np.int64)  # height of each tree's lowest block
    genesis = ~heads.header[rows, 4:36].any(axis=1)
    for told in (np.where(genesis, 0, UNTOLD), heads.named[rows], heads.told[rows]):
        _settle(base, tree, depth, told)
    height = base[tree] + depth
    _require_heights(heads, rows, base[tree] >= 0, height, network, files)
    length, tip = _reach(parent, depth, np.argsort(-depth, kind="stable"))
    order = np.lexsort((tip, -length, height))
    first = np.diff(height[order], prepend=UNTOLD) > 0
    if not first.all():
        warnings.warn(
            f"{np.sum(~first)} of {len(rows)} blocks are left out: others of their height belong to a longer chain.",
            SideBranchWarning,
            4,
        )
    kept = order[first]
    torn = (np.diff(height[kept]) == 1) & (parent[kept[1:]] != kept[:-1])
    if torn.any():
        warnings.warn(
            f"{torn.sum()} of {len(kept)} blocks (first: height {height[kept[1:]][torn][0]}) do not follow the block"
            " that is there below them: that one is damaged, or its branch was left.",
            SideBranchWarning,
            4,
        )
    heights = np.full(len(heads.file), UNTOLD, dtype=np.int64)
    heights[rows] = height
    return Chain(rows[kept], height[kept], tree[kept], heights)


def _parents(heads: Heads, rows: IntArray) -> IntArray:
    position = {bytes(heads.hash[row]): place for place, row in enumerate(rows)}
    previous = np.ascontiguousarray(heads.header[rows, 4:36])
    return np.array([position.get(bytes(value), UNTOLD) for value in previous], dtype=np.int64)


@outer
def _rooted(parent: IntArray) -> tuple[IntArray, IntArray]:
    """The lowest block that each block's parents lead to, and the number of steps."""
    root, depth = np.full(len(parent), UNTOLD), np.zeros(len(parent), dtype=np.int64)
    for row in range(len(parent)):
        at, steps = row, 0
        while root[at] < 0 and parent[at] >= 0:
            at, steps = parent[at], steps + 1
        if root[at] < 0:
            root[at] = at
        found, deep = root[at], depth[at] + steps
        at = row
        while root[at] < 0:
            root[at], depth[at] = found, deep
            at, deep = parent[at], deep - 1
    return root, depth


@outer
def _reach(parent: IntArray, depth: IntArray, deepest_first: IntArray) -> tuple[IntArray, IntArray]:
    """Per block: the length of the longest chain through it, and the block that ends it, the first of several."""
    far, tip = depth + 1, np.arange(len(parent))
    for row in deepest_first:
        above = parent[row]
        if above >= 0 and (far[row] > far[above] or (far[row] == far[above] and tip[row] < tip[above])):
            far[above], tip[above] = far[row], tip[row]
    return far, tip


def _settle(base: IntArray, tree: IntArray, depth: IntArray, told: IntArray) -> None:
    """Heights of trees that have none yet, as most of their blocks tell them."""
    rows = np.flatnonzero((told >= depth) & (base[tree] < 0))
    said, votes = np.unique(np.stack([tree[rows], told[rows] - depth[rows]], axis=1), axis=0, return_counts=True)
    for place in np.argsort(votes, kind="stable"):
        base[said[place, 0]] = said[place, 1]


def _require_heights(
    heads: Heads, rows: IntArray, known: Any, height: IntArray, network: Network, files: Sequence[BlockFile]
) -> None:
    if not known.all():
        row = rows[int(np.argmin(known))]
        problem = f"neither block {heads.display(row)} nor a block linked to it tells one"
        remedy = "name the file HEIGHT-HASH.bin, or add the blocks before it"
        raise DataError(files[heads.file[row]].source, "height", problem, remedy)
    due = np.where(height >= network.bip34, heads.told[rows], UNTOLD)  # what a coinbase said before is not binding
    for told, by in ((heads.named[rows], "its name"), (due, "its coinbase")):
        wrong = (told >= 0) & (told != height)
        if wrong.any():
            place = int(wrong.argmax())
            problem = f"{told[place]} by {by}, but {height[place]} by other names or the blocks it is linked to"
            raise DataError(files[heads.file[rows[place]]].source, "height", problem, "check the file and its name")
