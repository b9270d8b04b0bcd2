"""Downloads through pooch: the released dataset by its DOI, and a public collection of real blocks.

Hashes are checked, and a download that broke off goes on where it stopped. The blocks are those that lost a fork, free
of rights (CC0): nearly all of their transactions stand in the main chain as well. A block vouches for itself, because
its hash, which stands in the file's name, covers its Merkle root.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pooch
import requests
from pooch.downloaders import doi_to_repository
from pooch.hashes import ALGORITHMS_AVAILABLE
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from btcnb import gates
from btcnb.data.readers.blocks import require_block
from btcnb.data.readers.files import is_address, path_of, reading
from btcnb.data.readers.node import in_time
from btcnb.errors import DataError, ParameterError

DOI = "10.5281/zenodo.22239038"
"""The five graphs of the paper."""
BLOCKS = "https://raw.githubusercontent.com/bitcoin-data/stale-blocks/HEAD"
"""The collection of blocks."""
_ZENODO = "10.5281/zenodo."
_RECORDS = "https://zenodo.org/api/records"
_RECORD_BYTES = 2**24  # a record of the archive is some kilobytes
_LIST = "stale-blocks.csv"
_LARGEST_LIST = 2**26  # bytes
_LARGEST_BLOCK = 4_000_000  # bytes
_ROW = re.compile(r"(\d{1,8}),([0-9a-f]{64})")
_CHUNK = 2**20  # bytes
_LEAST = 2**10  # bytes that must arrive within each `timeout`: a server that drips is given up
_ATTEMPTS = 4
_NAME_BYTES = 200  # file systems take 255; pooch adds some of its own while it writes


class Listed(NamedTuple):
    """What a record states of a file: its hash, as `algorithm:digits`, and its address."""

    hash: str
    url: str


def fetch_release(
    doi: str = DOI,
    folder: str | Path | None = None,
    files: str | Sequence[str] | None = None,
    *,
    base: str | None = None,
    registry: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Path:
    """Download the files of a record and return the folder they lie in, ready for `read_release`.

    folder:   where to; None: pooch's cache folder for `btcnb`
    files:    patterns of the names wanted; None: all
    base:     address of the Zenodo API's records, for a mirror or a test; None: zenodo.org
    registry: file name -> hash (`"sha256:…"`, `"md5:…"`) to trust instead of those the record states

    A file that is there with the right hash is not fetched again. A download goes to `<folder>/.partial` and is moved
    into place when its hash is right; one that broke off goes on where it stopped. Nothing fetched is ever unpickled.
    """
    doi, timeout = gates.text("doi", doi), gates.real("timeout", timeout, "(0, 86400]")
    base = _RECORDS if base is None else _require_base(base)
    if is_address(doi) or not re.fullmatch(r"10\.[0-9.]+/\S+", doi):
        shown = "this is an address" if is_address(doi) else f"{doi!r:.80} is none"
        raise ParameterError(f"doi: {shown}; pass the DOI alone, like {DOI}.")
    target = _cache(doi.rpartition("/")[2]) if folder is None else path_of(folder, "folder")
    listed = _zenodo_files(doi, base, timeout) if doi.startswith(_ZENODO) else _other_files(doi, timeout)
    trusted = {} if registry is None else dict(gates.instance("registry", registry, Mapping))
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    for name in _chosen(listed, files, doi):
        cupboard.registry[name] = _hash(trusted[name], "registry") if name in trusted else listed[name].hash
        cupboard.urls[name] = listed[name].url
        try:
            with _on_disk(target):
                cupboard.fetch(name, downloader=Resuming(target / ".partial" / name, f"doi:{doi}", timeout))
        except ValueError as error:  # how pooch tells a wrong hash; what it downloaded is gone
            raise DataError(
                f"doi:{doi}", name, "its hash is not the one the record states", "fetch it again; if it stays, ask why"
            ) from error
    _tidy(target / ".partial")
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
    address, timeout = BLOCKS if base is None else _require_base(base), gates.real("timeout", timeout, "(0, 86400]")
    low, high = (
        default if given is None else gates.whole(name, given, "[0, inf)")
        for name, given, default in (("start", start, 0), ("end", end, 2**32))
    )
    target = _cache("stale-blocks") if folder is None else path_of(folder, "folder")
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    wanted = [f"{height}-{name}.bin" for height, name in _listed_blocks(address, timeout) if low <= height <= high]
    there = 0
    for name in tqdm(wanted, desc="blocks", leave=False, disable=None if progress is None else not progress):
        _drop_damaged(target / name)
        cupboard.registry[name] = None  # the block's own hash is checked instead
        cupboard.urls[name] = f"{address}/blocks/{name}"
        part = target / ".partial" / name
        try:
            with _on_disk(target):
                cupboard.fetch(name, downloader=Resuming(part, address, timeout, require_block, _LARGEST_BLOCK))
            there += 1
        except GoneError:
            continue
    _tidy(target / ".partial")
    if not there:
        raise DataError(address, "blocks", "there are none of these heights", "choose other heights")
    return target


def _cache(name: str) -> Path:
    return Path(pooch.os_cache("btcnb")) / name


def _on_disk(folder: Path) -> Any:
    remedy = "check the folder, its permissions and the disk's space"
    return reading(folder, "folder", "cannot be written", remedy, (OSError,))


def _require_base(base: object) -> str:
    """An address of a folder of files: text, and without a user name, a password or a query."""
    address = gates.instance("base", base, str).rstrip("/")
    if re.search("[@?#]", address):
        raise ParameterError(
            "base: an address with a user name, a password or a query is not taken, because addresses are logged."
        )
    return address


def _zenodo_files(doi: str, base: str, timeout: float) -> dict[str, Listed]:
    """The files of a Zenodo record; its number stands in the DOI, which spares a request.

    The archive has told a file's name as `key` and as `filename`, its hash with and without `md5:`.
    """
    source, number = f"doi:{doi}", doi.removeprefix(_ZENODO)

    def ask() -> bytes:
        with requests.get(f"{base}/{number}", stream=True, timeout=timeout) as reply:
            return bytes(reply.raw.read(_RECORD_BYTES + 1, decode_content=True))

    try:
        record = json.loads(in_time(ask, timeout))
    except (requests.RequestException, HTTPError) as error:
        raise DataError(source, "record", f"no answer ({type(error).__name__})", "check the network") from error
    except (ValueError, RecursionError) as error:  # what was cut off at the limit is no JSON either
        raise DataError(source, "record", "the archive's answer is not readable", "try again later") from error
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, list) or not files:
        raise DataError(source, "record", "is not there or lists no files", "check the DOI")
    found = {}
    for entry in files:
        told = entry if isinstance(entry, dict) else {}
        name, checksum = told.get("key", told.get("filename")), told.get("checksum")
        links = told["links"] if isinstance(told.get("links"), dict) else {}
        url = links.get("self", f"{base}/{number}/files/{name}/content")
        if not isinstance(name, str) or not isinstance(url, str) or not re.match(r"https?://[^/@\s]+/\S*$", url):
            raise DataError(source, "record", "names a file without a name or an address", "do not trust this record")
        plain = isinstance(checksum, str) and ":" not in checksum
        found[name] = Listed(_hash(f"md5:{checksum}" if plain else checksum, source), url)
    return found


def _other_files(doi: str, timeout: float) -> dict[str, Listed]:
    """The files behind any other DOI, as pooch finds them."""
    source = f"doi:{doi}"
    try:
        repository, found = doi_to_repository(doi, timeout=timeout), pooch.create(path=Path(), base_url="")
        repository.populate_registry(found)
        return {
            name: Listed(_hash(told, source), repository.download_url(name)) for name, told in found.registry.items()
        }
    except (requests.RequestException, ValueError) as error:
        raise DataError(source, "DOI", f"leads nowhere ({type(error).__name__})", "check it") from error
    except (KeyError, TypeError, AttributeError) as error:  # pooch takes the answer's shape for granted
        raise DataError(source, "record", "is not there or lists no files", "check the DOI") from error


def _hash(told: Any, source: str) -> str:
    """A hash that can be checked; without one, nothing is fetched."""
    algorithm, _, digits = told.partition(":") if isinstance(told, str) else ("", "", "")
    if algorithm.lower() not in ALGORITHMS_AVAILABLE or not re.fullmatch(r"[0-9a-fA-F]{8,128}", digits):
        raise DataError(
            source, "checksum", "of a file is missing or of an unknown kind", "pass `registry` with hashes you trust"
        )
    return str(told)


def _chosen(listed: Mapping[str, Listed], files: str | Sequence[str] | None, doi: str) -> list[str]:
    patterns = ["*"] if files is None else [files] if isinstance(files, str) else gates.items("files", files)
    for pattern in patterns:
        gates.instance("files", pattern, str)
        if not any(fnmatch(name, pattern) for name in listed):
            raise DataError(f"doi:{doi}", "files", f"{pattern!r} matches none", f"it has {', '.join(listed) or 'none'}")
    names = [name for name in listed if any(fnmatch(name, pattern) for pattern in patterns)]
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        odd = (
            path.is_absolute() or not path.parts or {"..", ".partial"} & set(path.parts) or re.match("[A-Za-z]:", name)
        )
        if odd or not name.isprintable() or any(len(part.encode()) > _NAME_BYTES for part in path.parts):
            raise DataError(f"doi:{doi}", "files", f"{name!r} points outside the folder", "do not trust this record")
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


def _tidy(folder: Path) -> None:
    """Remove the folder of partial downloads, if it is empty."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
