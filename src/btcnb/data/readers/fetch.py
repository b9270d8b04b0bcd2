"""Downloads through pooch: the released dataset by its DOI, and a public collection of real blocks.

Hashes are checked, and a download that broke off goes on where it stopped. The blocks are those that lost a fork, free
of rights (CC0): nearly all of their transactions stand in the main chain as well. A block vouches for itself, because
its hash, which stands in the file's name, covers its Merkle root.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import pooch
import requests
from pooch.downloaders import ZenodoRepository, doi_to_repository
from pooch.hashes import ALGORITHMS_AVAILABLE
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from btcnb import gates
from btcnb.data.readers.blocks import require_block
from btcnb.data.readers.files import MISSHAPEN, is_address, path_of, reading
from btcnb.data.readers.node import in_time
from btcnb.errors import DataError, ParameterError

DOI = "10.5281/zenodo.22239038"
"""The five graphs of the paper."""
BLOCKS = "https://raw.githubusercontent.com/bitcoin-data/stale-blocks/HEAD"
"""The collection of blocks."""
_ZENODO = "10.5281/zenodo."
_LIST = "stale-blocks.csv"
_LARGEST_LIST = 2**26  # bytes
_LARGEST_BLOCK = 4_000_000  # bytes
_ROW = re.compile(r"(\d{1,8}),([0-9a-f]{64})")
_CHUNK = 2**20  # bytes
_LEAST = 2**10  # bytes that must arrive within each `timeout`: a server that drips is given up
_ATTEMPTS = 4
_NAME_BYTES = 200  # file systems take 255; pooch adds some of its own while it writes


def fetch_release(
    doi: str = DOI,
    folder: str | Path | None = None,
    files: str | Sequence[str] | None = None,
    *,
    hash: str | None = None,
    base: str | None = None,
    timeout: float = 60.0,
) -> Path:
    """Download the files of a record and return the folder they lie in, ready for `read_release`.

    doi:    the record; or the address of one file, whose `hash` must then be given
    folder: where to; None: pooch's cache folder for `btcnb`
    files:  patterns of the names wanted; None: all
    hash:   `"sha256:…"` or `"md5:…"` of the file at an address; a record states those of its files
    base:   address of the Zenodo API's records, for a mirror or a test; None: zenodo.org

    A file that is there with the right hash is not fetched again. A download goes to `<folder>/.partial` and is moved
    into place when its hash is right; one that broke off goes on where it stopped. Nothing fetched is ever unpickled.
    """
    doi, timeout = gates.text("doi", doi), gates.real("timeout", timeout, "(0, 86400]")
    if is_address(doi):
        url = _require_plain("doi", doi)
        source = name = PurePosixPath(url).name
        listed = {name: (_checkable(hash, name), url)}
    elif not re.fullmatch(r"10\.[0-9.]+/\S+", doi):
        raise ParameterError(f"doi: {doi!r:.80} is none; pass the DOI alone, like {DOI}, or the address of a file.")
    else:
        source, name = f"doi:{doi}", doi.rpartition("/")[2]
        listed = _record(doi, None if base is None else _require_plain("base", base), timeout)
    target = _cache(name) if folder is None else path_of(folder, "folder")
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    for name in _chosen(listed, files, source):
        cupboard.registry[name], cupboard.urls[name] = listed[name]
        try:
            with _on_disk(target):
                cupboard.fetch(name, downloader=Resuming(target / ".partial" / name, source, timeout))
        except ValueError as error:  # how pooch tells a wrong hash; what it downloaded is gone
            problem, remedy = "its hash is not the one that is stated", "fetch it again; if it stays, ask why"
            raise DataError(source, name, problem, remedy) from error
    _remove_if_empty(target / ".partial")
    return target


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
    address, timeout = _require_plain("base", base or BLOCKS), gates.real("timeout", timeout, "(0, 86400]")
    low = 0 if start is None else gates.whole("start", start, "[0, inf)")
    high = 2**32 if end is None else gates.whole("end", end, "[0, inf)")
    target = _cache("stale-blocks") if folder is None else path_of(folder, "folder")
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    wanted = [f"{height}-{name}.bin" for height, name in _listed_blocks(address, timeout) if low <= height <= high]
    there = 0
    for name in tqdm(wanted, desc="blocks", leave=False, disable=None if progress is None else not progress):
        _drop_damaged(target / name)
        cupboard.registry[name] = None  # the block's own hash is checked instead
        cupboard.urls[name] = f"{address}/blocks/{name}"
        part = target / ".partial" / name
        with contextlib.suppress(GoneError), _on_disk(target):
            cupboard.fetch(name, downloader=Resuming(part, address, timeout, require_block, _LARGEST_BLOCK))
            there += 1
    _remove_if_empty(target / ".partial")
    if not there:
        raise DataError(address, "blocks", "there are none of these heights", "choose other heights")
    return target


def _cache(name: str) -> Path:
    return Path(pooch.os_cache("btcnb")) / name


def _on_disk(folder: Path) -> Any:
    remedy = "check the folder, its permissions and the disk's space"
    return reading(folder, "folder", "cannot be written", remedy, (OSError,))


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _require_plain(name: str, address: object) -> str:
    """A web address without a user name, a password or a query, because addresses are logged."""
    text = gates.instance(name, address, str).strip().rstrip("/")
    if not re.fullmatch(r"https?://[^/@?#\s]+(/[^@?#\s]*)?", text):
        raise ParameterError(f"{name}: takes an address https://host/path without user name, password and query.")
    return text


def _record(doi: str, base: str | None, timeout: float) -> dict[str, tuple[str, str]]:
    """Name -> hash and address of every file of a record, as pooch finds them."""
    source, found = f"doi:{doi}", pooch.create(path=Path(), base_url="")

    def ask() -> dict[Any, tuple[Any, Any]]:
        if doi.startswith(_ZENODO):  # the record's number stands in the DOI, which spares a request
            repository = ZenodoRepository(doi, f"/{doi.removeprefix(_ZENODO)}", timeout=timeout)
            repository.base_api_url = base or repository.base_api_url
        else:
            repository = doi_to_repository(doi, timeout=timeout)
        repository.populate_registry(found)
        return {name: (told, repository.download_url(name)) for name, told in found.registry.items()}

    try:
        listed = in_time(ask, timeout)
    except (requests.RequestException, HTTPError) as error:
        problem = f"no readable answer ({type(error).__name__})"
        raise DataError(source, "record", problem, "check the network and the DOI") from error
    except MISSHAPEN as error:  # pooch takes the answer's shape for granted
        raise DataError(source, "record", "is not there or lists no files", "check the DOI") from error
    if not listed:
        raise DataError(source, "record", "lists no files", "check the DOI")
    for name, (told, url) in listed.items():
        _checkable(told, source)
        if not isinstance(name, str) or not isinstance(url, str) or not re.match(r"https?://[^/@\s]+/\S*$", url):
            raise DataError(source, "record", "names a file without a name or an address", "do not trust this record")
    return listed


def _checkable(told: Any, source: str) -> str:
    """A hash that can be checked; without one, nothing is fetched."""
    algorithm, _, digits = told.partition(":") if isinstance(told, str) else ("", "", "")
    if algorithm.lower() not in ALGORITHMS_AVAILABLE or not re.fullmatch(r"[0-9a-fA-F]{8,128}", digits):
        problem = "of a file is missing or of an unknown kind"
        raise DataError(source, "hash", problem, "give one that you trust, like sha256:…, with the file's address")
    return str(told)


def _chosen(listed: Mapping[str, Any], files: str | Sequence[str] | None, source: str) -> list[str]:
    patterns = ["*"] if files is None else [files] if isinstance(files, str) else gates.items("files", files)
    for pattern in patterns:
        gates.instance("files", pattern, str)
        if not any(fnmatch(name, pattern) for name in listed):
            raise DataError(source, "files", f"{pattern!r} matches none", f"it has {', '.join(listed) or 'none'}")
    names = [name for name in listed if any(fnmatch(name, pattern) for pattern in patterns)]
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        leaves = path.is_absolute() or not path.parts or {"..", ".partial"} & set(path.parts)
        odd = leaves or re.match("[A-Za-z]:", name) or not name.isprintable()
        if odd or any(len(part.encode()) > _NAME_BYTES for part in path.parts):
            raise DataError(source, "files", f"{name!r} points outside the folder", "do not trust this record")
    return names


def _listed_blocks(address: str, timeout: float) -> list[tuple[int, str]]:
    """Height and hash of the blocks in the collection's list, by height."""
    with tempfile.TemporaryDirectory() as place:
        part, file = Path(place) / _LIST, Path(place) / "whole.csv"
        Resuming(part, address, timeout, most=_LARGEST_LIST)(f"{address}/{_LIST}", str(file), None)
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    with reading(address, _LIST):
        rows = list(csv.reader(lines))
    if not rows or rows[0][:2] != ["height", "hash"]:
        raise DataError(address, _LIST, "does not begin with the columns height and hash", "check the address")
    found = set()
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        match = _ROW.fullmatch(",".join(row[:2]))
        if match is None:
            raise DataError(address, f"{_LIST}, line {number}", "is no height and hash", "do not trust this list")
        found.add((int(match[1]), match[2]))
    return sorted(found)


def _drop_damaged(file: Path) -> None:
    if file.exists():
        try:
            require_block(file)
        except DataError:
            file.unlink()


class GoneError(DataError):
    """A file that is listed and not there."""


class Resuming:
    """A pooch downloader that keeps what it has got in `part`, and goes on from there.

    check: called with `part` when it is whole; where it raises, the part is removed
    most:  bytes that the file may have
    """

    def __init__(
        self, part: Path, source: str, timeout: float, check: Callable[[Path], None] | None = None, most: int = 2**62
    ) -> None:
        self.part, self.source, self.timeout, self.check, self.most = part, source, timeout, check, most

    def __call__(self, url: str, output_file: str, pooch: Any, check_only: bool = False) -> None:
        self.part.parent.mkdir(parents=True, exist_ok=True)
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                if self._advance(url):
                    self._require_sound()
                    self.part.replace(output_file)
                    return
                problem = "it broke off"
            except (requests.RequestException, HTTPError) as error:
                problem = type(error).__name__
        raise DataError(
            self.source,
            self.part.name,
            f"the download did not finish ({problem})",
            "run again: it goes on where it stopped",
        )

    def _require_sound(self) -> None:
        try:
            if self.part.stat().st_size > self.most:
                problem = f"has more than {self.most} bytes"
                raise DataError(self.source, self.part.name, problem, "do not trust this source")
            if self.check is not None:
                self.check(self.part)
        except DataError:
            self.part.unlink()
            raise

    def _advance(self, url: str) -> bool:
        """Fetch what is missing; whether the file is whole now."""
        have = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        ask = functools.partial(requests.get, url, headers=headers, stream=True, timeout=self.timeout)
        with in_time(ask, self.timeout) as reply:
            if reply.status_code == requests.codes.requested_range_not_satisfiable:
                return True  # all of it was there already; the hash has the last word
            if reply.status_code in (404, 410):
                raise GoneError(
                    self.source, self.part.name, f"is gone (status {reply.status_code})", "check the record"
                )
            reply.raise_for_status()
            goes_on = reply.status_code == requests.codes.partial_content
            length = reply.headers.get("Content-Length", "")
            size = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else -1
            got, seen, since = 0, 0, time.monotonic()
            with self.part.open("ab" if goes_on else "wb") as file:
                while chunk := reply.raw.read1(_CHUNK):  # what has arrived, so that a break loses nothing
                    file.write(chunk)
                    got += len(chunk)
                    if got > self.most:
                        return True  # too much: refused when it is checked
                    if time.monotonic() - since > self.timeout:
                        if got - seen < _LEAST:
                            raise requests.Timeout
                        seen, since = got, time.monotonic()
        return size < 0 or got >= size
