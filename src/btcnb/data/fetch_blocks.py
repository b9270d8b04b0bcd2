"""Downloading real mainnet blocks: those that lost a fork, collected in public and free of rights (CC0).

Their transactions are real (nearly all of them stand in the main chain as well), and the blocks are few and scattered
over all years. A block vouches for itself: its hash, which stands in the file's name, covers its Merkle root.
"""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

import pooch
from tqdm import tqdm

from btcnb.data.checks import whole
from btcnb.data.fetch import GoneError, Resuming, require_base, tidy
from btcnb.data.readers.blocks import require_block
from btcnb.data.readers.guard import guarded, reading
from btcnb.errors import DataError

BASE = "https://raw.githubusercontent.com/bitcoin-data/stale-blocks/HEAD"
LIST = "stale-blocks.csv"
_LARGEST_LIST = 2**26  # bytes
_LARGEST_BLOCK = 4_000_000
_ROW = re.compile(r"(\d{1,8}),([0-9a-f]{64})")


@guarded("folder")
def fetch_blocks(
    folder: str | Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    base: str | None = None,
    timeout: float = 60.0,
    progress: bool | None = None,
) -> Path:
    """Download the blocks of heights `start` to `end` and return the folder they lie in, ready for `read_blocks`.

    folder:   where to; None: pooch's cache folder for `btcnb`
    base:     address of a folder with `stale-blocks.csv` and `blocks/HEIGHT-HASH.bin`; None: the collection on GitHub
    progress: show a progress bar (None: on a terminal only)

    A file that is there and sound is not fetched again; one that is damaged is. A download goes to `<folder>/.partial`
    and is moved into place when hash, Merkle root and witnesses are right; one that broke off goes on where it stopped.
    Of some blocks the collection knows the header only: they are passed over.
    """
    address = BASE if base is None else require_base(base)
    low, high = whole("start", 0 if start is None else start), whole("end", 2**32 if end is None else end)
    target = Path(folder) if folder is not None else Path(pooch.os_cache("btcnb")) / "stale-blocks"
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    wanted = [f"{height}-{name}.bin" for height, name in _listed(address, timeout) if low <= height <= high]
    there = 0
    for name in tqdm(wanted, desc="blocks", leave=False, disable=None if progress is None else not progress):
        _drop_damaged(target / name)
        cupboard.registry[name] = None  # the block's own hash is checked instead
        cupboard.urls[name] = f"{address}/blocks/{name}"
        part = target / ".partial" / name
        try:
            cupboard.fetch(name, downloader=Resuming(part, address, timeout, require_block, _LARGEST_BLOCK))
            there += 1
        except GoneError:
            continue
    tidy(target / ".partial")
    if not there:
        raise DataError(address, "blocks", "there are none of these heights", "choose other heights")
    return target


def _listed(address: str, timeout: float) -> list[tuple[int, str]]:
    """Height and hash of the blocks in the collection's list, by height."""
    with tempfile.TemporaryDirectory() as place:
        part, file = Path(place) / LIST, Path(place) / "whole.csv"
        Resuming(part, address, timeout, most=_LARGEST_LIST)(f"{address}/{LIST}", str(file), None)
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    with reading(address, LIST):
        rows = list(csv.reader(lines))
    if not rows or rows[0][:2] != ["height", "hash"]:
        raise DataError(address, LIST, "does not begin with the columns height and hash", "check the address")
    found = set()
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        match = _ROW.fullmatch(",".join(row[:2]))
        if match is None:
            raise DataError(address, f"{LIST}, line {number}", "is no height and hash", "do not trust this list")
        found.add((int(match[1]), match[2]))
    return sorted(found)


def _drop_damaged(file: Path) -> None:
    if file.exists():
        try:
            require_block(file)
        except DataError:
            file.unlink()
