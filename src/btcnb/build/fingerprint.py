"""What an executed chapter depends on, as digests; equal fingerprints mean there is no reason to execute it again."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from btcnb.build.chapters import Chapter
from btcnb.build.imports import Package, scan_source
from btcnb.build.inputs import input_files
from btcnb.build.pairs import content
from btcnb.build.project import Output, Project, digest, digest_path, read_sealed, write_sealed


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a chapter's text, its parameters, the package code it reaches, its input files, the lock file."""

    text: str
    parameters: str
    code: str
    data: dict[str, str] = field(default_factory=dict)
    versions: str = ""

    def changes(self, since: Fingerprint) -> list[str]:
        """What is different, in words: the reasons to execute the chapter again."""
        named = [("text", "text"), ("parameters", "parameters"), ("code", "package code")]
        reasons = [words for name, words in named if getattr(self, name) != getattr(since, name)]
        reasons += [
            f"input {path}"
            for path in sorted(self.data.keys() | since.data.keys())
            if self.data.get(path) != since.data.get(path)
        ]
        return reasons + (["locked versions"] if self.versions != since.versions else [])


@dataclass(frozen=True)
class Stamp:
    """Kept beside an executed chapter: how it was made. `notebook` and `records` are the digests of what it made."""

    chapter: str
    preset: str
    fingerprint: Fingerprint
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


def fingerprint(
    project: Project, package: Package, chapter: Chapter, values: Mapping[str, Any], records: Path
) -> Fingerprint:
    """The fingerprint of `chapter` executed with the parameters `values`."""
    scans = [scan_source(source) for source in chapter.code_cells]
    modules, reached = package.closure(scans)
    own = frozenset[str]().union(*(scan.texts for scan in scans))
    data = input_files(project, chapter, values, own, reached)
    if chapter.options.get("reads_records"):
        data |= {f"record {path.stem}": digest_path(path) for path in _other_records(records, chapter)}
    return Fingerprint(
        text=digest(content(chapter.notebook)),
        parameters=digest({name: repr(value) for name, value in values.items()}),
        code=_code_digest(package, modules),
        data=data,
        versions=digest([platform.python_version(), digest_path(project.lock) if project.lock.exists() else ""]),
    )


def _other_records(records: Path, chapter: Chapter) -> list[Path]:
    return [path for path in sorted(records.glob("*.json")) if path.stem != chapter.name]


def _code_digest(package: Package, modules: frozenset[str]) -> str:
    """Over the reached modules, and the data files that lie in the folders of reached packages."""
    files = {package.modules[name] for name in modules}
    for folder in {path.parent for path in files if path.name == "__init__.py"}:
        files |= {path for path in folder.iterdir() if path.is_file() and path.suffix not in {".py", ".pyc"}}
    return digest([[path.relative_to(package.folder).as_posix(), digest_path(path)] for path in sorted(files)])


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
