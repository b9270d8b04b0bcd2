"""Downloading the released dataset by its DOI, through pooch: hashes checked, interrupted downloads resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import pooch
import requests
from pooch.downloaders import ZenodoRepository, doi_to_repository
from urllib3.exceptions import HTTPError

from btcnb.data.readers.guard import guarded
from btcnb.errors import DataError, ParameterError

DOI = "10.5281/zenodo.22239038"
"""The five graphs of the paper."""
_ZENODO = "10.5281/zenodo."
_CHUNK = 2**20  # bytes
_ATTEMPTS = 4


@guarded("doi")
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
    if base is not None and "@" in base:
        raise ParameterError(
            "base: an address with a user name or password is not taken, because addresses are logged."
        )
    target = Path(folder) if folder is not None else Path(pooch.os_cache("btcnb")) / doi.rpartition("/")[2]
    repository = _repository(doi, base, timeout)
    cupboard = pooch.create(path=target, base_url="", retry_if_failed=0)
    listed = _listed(repository, cupboard, doi)
    for name in _chosen(listed, files, doi):
        cupboard.registry[name] = (registry or {}).get(name, listed[name])
        cupboard.urls[name] = repository.download_url(name)
        try:
            cupboard.fetch(name, downloader=Resuming(target / ".partial" / name, f"doi:{doi}", timeout))
        except ValueError as error:  # pooch's word for a wrong hash; what it downloaded is gone
            raise DataError(
                f"doi:{doi}", name, "its hash is not the one the record states", "fetch it again; if it stays, ask why"
            ) from error
    tidy(target / ".partial")
    return target


def _repository(doi: str, base: str | None, timeout: float) -> Any:
    """How to ask the archive behind a DOI; a Zenodo DOI holds the record's number, which spares a request."""
    if not doi.startswith(_ZENODO):
        try:
            return doi_to_repository(doi, timeout=timeout)
        except (requests.RequestException, ValueError) as error:
            raise DataError(f"doi:{doi}", "DOI", f"leads nowhere ({type(error).__name__})", "check it") from error
    record = doi.removeprefix(_ZENODO)
    repository = ZenodoRepository(doi, f"https://zenodo.org/records/{record}", timeout=timeout)
    if base is not None:
        repository.base_api_url = base.rstrip("/")
    return repository


def _listed(repository: Any, cupboard: Any, doi: str) -> dict[str, str]:
    """File name -> hash, as the record states them."""
    try:
        repository.populate_registry(cupboard)
    except requests.JSONDecodeError as error:
        raise DataError(f"doi:{doi}", "record", "the archive's answer is not readable", "try again later") from error
    except requests.RequestException as error:
        raise DataError(f"doi:{doi}", "record", f"no answer ({type(error).__name__})", "check the network") from error
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"doi:{doi}", "record", "is not there or lists no files", "check the DOI") from error
    return dict(cupboard.registry)


def _chosen(listed: Mapping[str, str], files: str | Sequence[str] | None, doi: str) -> list[str]:
    patterns = ["*"] if files is None else [files] if isinstance(files, str) else list(files)
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in listed):
            raise DataError(f"doi:{doi}", "files", f"{pattern!r} matches none", f"it has {', '.join(listed) or 'none'}")
    names = [name for name in listed if any(fnmatch(name, pattern) for pattern in patterns)]
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise DataError(f"doi:{doi}", "files", f"{name!r} points outside the folder", "do not trust this record")
    return names


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
        with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as reply:
            if reply.status_code == requests.codes.requested_range_not_satisfiable:
                return True  # all of it was there already; the hash has the last word
            if reply.status_code in (404, 410):
                raise GoneError(
                    self.source, self.part.name, f"is gone (status {reply.status_code})", "check the record"
                )
            reply.raise_for_status()
            goes_on = reply.status_code == requests.codes.partial_content
            size = int(reply.headers.get("Content-Length", -1))
            got = 0
            with self.part.open("ab" if goes_on else "wb") as file:
                while chunk := reply.raw.read1(_CHUNK):  # what has arrived, so that a break loses nothing
                    file.write(chunk)
                    got += len(chunk)
                    if got > self.most:
                        return True  # too much: refused when it is checked
        return size < 0 or got >= size


def tidy(folder: Path) -> None:
    """Remove the folder of partial downloads, if it is empty."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
