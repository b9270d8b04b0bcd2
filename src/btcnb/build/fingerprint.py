"""What an executed chapter depends on; as long as none of it changes there is no reason to execute it again.

Text, parameters, reached code and library versions are known before a chapter runs; what it reads, it tells while it
runs (`btcnb.store.note_read`). All of it is compared by content, nothing by time.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from btcnb.book.reading import REAL_DATA
from btcnb.build.chapters import Chapter
from btcnb.build.pairs import content
from btcnb.build.project import Output, digest, read_sealed, write_sealed
from btcnb.store import entries
from btcnb.store.reach import Package
from btcnb.store.reads import digest as digest_path

_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)
_UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Fingerprint:
    """Digests of text, parameters and each reached symbol; versions of the libraries that the reached code imports."""

    text: str
    parameters: str
    code: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def changes(self, since: Fingerprint) -> list[str]:
        """What is different, in words: the reasons to execute the chapter again."""
        reasons = [name for name in ("text", "parameters") if getattr(self, name) != getattr(since, name)]
        if symbols := _different(self.code, since.code):
            more = f" and {len(symbols) - 3} more" if len(symbols) > 3 else ""
            reasons.append(f"code of {', '.join(symbols[:3])}{more}")
        return reasons + [f"version of {name}" for name in _different(self.versions, since.versions)]


@dataclass(frozen=True)
class Stamp:
    """Kept beside an executed chapter: how it was made. `notebook` and `records` are the digests of what it made."""

    chapter: str
    preset: str
    fingerprint: Fingerprint
    reads: dict[str, str]  # path from the root -> digest of what was there
    real_data: str  # the folder of real files at the time
    notebook: str
    records: str
    parameters: dict[str, Any]
    changed: list[str]  # parameters that differ from the chapter's defaults
    seconds: float
    cells: int
    finished: str  # UTC, ISO 8601
    commit: str
    versions: dict[str, str]
    machine: str


_TODAY: dict[Path, tuple[str, Package]] = {}


def package_today(root: Path) -> Package:
    """The package at `root` as its files are now; parsed again only when one of them has changed."""
    mark = entries.sources_digest(root)
    if root not in _TODAY or _TODAY[root][0] != mark:
        _TODAY[root] = (mark, Package(root))
    return _TODAY[root][1]


def fingerprint(package: Package, chapter: Chapter, values: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of `chapter` executed with the parameters `values`."""
    reach = package.of_source(_MAGIC.sub("pass", source) for source in chapter.code_cells)
    return Fingerprint(
        text=digest(content(chapter.notebook)),
        parameters=digest({name: repr(value) for name, value in values.items()}),
        code=dict(reach.symbols),
        versions=entries.library_versions(reach.libraries),
    )


def real_data_folder(root: Path) -> Path:
    """Where real files are looked for now."""
    chosen = os.environ.get(REAL_DATA)
    return Path(chosen).absolute() if chosen else root.parent / "shared" / "data"


def changed_reads(root: Path, stamp: Stamp, seen: dict[Path, str]) -> list[str]:
    """The paths whose content is no longer what it was; `seen` remembers digests from chapter to chapter.

    Real files are compared with those of today's folder, which may be another one than at the time.
    """
    changed = []
    for path, mark in sorted(stamp.reads.items()):
        place = root / path
        if place.is_relative_to(stamp.real_data):
            place = real_data_folder(root) / place.relative_to(stamp.real_data)
        if place not in seen:
            seen[place] = digest_path(place)
        if seen[place] != mark:
            changed.append(path)
    return changed


def read_log(path: Path) -> dict[str, str]:
    """What a kernel noted: path -> digest. Of a file noted twice the first counts: changed since, it is a change."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            found.setdefault(entry["path"], entry["digest"])
        except (ValueError, KeyError, TypeError):  # two kernels wrote at once: no digest is like this one
            found[str(path.name)] = _UNREADABLE
    return found


def _different(now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def stamp_path(output: Output, chapter: str) -> Path:
    return output.notebooks / f"{chapter}.json"


def write_stamp(output: Output, stamp: Stamp) -> None:
    write_sealed(stamp_path(output, stamp.chapter), asdict(stamp))


def read_stamp(output: Output, chapter: str) -> Stamp | None:
    """The stamp of an executed chapter; None if there is none that belongs to the notebook and records beside it."""
    fields = read_sealed(stamp_path(output, chapter))
    if fields is None:
        return None
    try:
        stamp = Stamp(**{**fields, "fingerprint": Fingerprint(**fields["fingerprint"])})
    except (TypeError, KeyError):  # sealed by another version of this program
        return None
    made = (digest_path(output.notebooks / f"{chapter}.ipynb"), digest_path(output.records / f"{chapter}.json"))
    return stamp if made == (stamp.notebook, stamp.records) else None
