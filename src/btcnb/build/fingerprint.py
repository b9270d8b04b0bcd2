"""What an executed chapter depends on. As long as none of it changes, the chapter is not executed again.

Text, parameters, code and library versions are known before a chapter runs; the files that it reads are noted while it
runs (`btcnb.store.note_read`). All of it is compared by content, nothing by time.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from btcnb.book.reading import REAL_DATA, UNSET
from btcnb.build.notebooks import Chapter, content
from btcnb.build.project import Output, digest, read_sealed, write_sealed
from btcnb.store import keys
from btcnb.store.reads import digest as digest_path

_UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Fingerprint:
    """Digests of text, parameters and each imported sub-package; versions of the libraries that the code imports."""

    text: str
    parameters: str
    code: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def changes(self, since: Fingerprint) -> list[str]:
        """What is different, in words: the reasons to execute the chapter again."""
        reasons = [name for name in ("text", "parameters") if getattr(self, name) != getattr(since, name)]
        if names := _different(self.code, since.code):
            reasons.append(f"code of {', '.join(names)}")
        return reasons + [f"version of {name}" for name in _different(self.versions, since.versions)]


@dataclass(frozen=True)
class Stamp:
    """Kept beside an executed chapter: how it was made. `notebook` and `records` are digests of what it made."""

    chapter: str
    preset: str
    fingerprint: Fingerprint
    reads: dict[str, str]  # path from the root -> digest of its content
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


@dataclass(frozen=True)
class ChapterState:
    """A chapter, the stamp of its last complete execution (if any), and what has changed since."""

    chapter: Chapter
    stamp: Stamp | None
    changes: tuple[str, ...] = ()


def fingerprint(
    package: Path, chapter: Chapter, values: Mapping[str, Any], digests: dict[str, str] | None = None
) -> Fingerprint:
    """The fingerprint of `chapter` executed with the parameters `values`; `package` is the folder of the package.

    digests: of sub-packages, by name; filled here, so that chapters compared at one time share them
    """
    modules = _cell_modules(tuple(chapter.code_cells), package)
    digests = {} if digests is None else digests
    names = keys.imported_subpackages(modules, package)
    for name in names - digests.keys():
        digests[name] = keys.code_digest([name], package)
    return Fingerprint(
        text=digest(content(chapter.notebook)),
        parameters=digest({name: repr(value) for name, value in values.items()}),
        code={name: digests[name] for name in names},
        versions=keys.library_versions(modules, package),
    )


@functools.cache
def _cell_modules(cells: tuple[str, ...], package: Path) -> frozenset[str]:
    """The text of a chapter does not change during a build."""
    return keys.cell_modules(cells, package)


def real_data_folder(root: Path) -> Path:
    """Where real files are looked for now."""
    chosen = os.environ.get(REAL_DATA)
    return Path(chosen).absolute() if chosen else root / UNSET


def changed_reads(root: Path, stamp: Stamp, reads: Mapping[str, str]) -> list[str]:
    """The paths in `reads` whose content is another one now.

    Real files are compared with those of today's folder, which may be another one than at the time of the stamp.
    """
    changed = []
    for path, mark in sorted(reads.items()):
        place = root / path
        if place.is_relative_to(stamp.real_data):
            place = real_data_folder(root) / place.relative_to(stamp.real_data)
        if digest_path(place) != mark:
            changed.append(path)
    return changed


def read_log(path: Path) -> dict[str, str]:
    """What a kernel noted: path -> digest. Of a file noted twice the first counts: changed since, it is a change."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            found.setdefault(entry["path"], entry["digest"])
        except (ValueError, KeyError, TypeError):  # two kernels wrote at once: no content has this digest
            found[path.name] = _UNREADABLE
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
