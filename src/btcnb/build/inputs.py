"""The files a chapter reads: declared in its front matter, named by a parameter, or named in the code it reaches."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from btcnb.build.chapters import Chapter
from btcnb.build.errors import UsageError
from btcnb.build.project import Project, digest_path

REAL_DATA = "BTCNB_REAL_DATA"
_REFERENCE = "results"  # records of long runs, from which chapters draw their reference columns
_DISPLAY_ONLY = {"chapter_times.csv"}  # running times on a chapter's card: newer ones are no reason to run it again


def input_files(
    project: Project, chapter: Chapter, values: Mapping[str, Any], own: Iterable[str], reached: Iterable[str]
) -> dict[str, str]:
    """Path -> digest of each input of `chapter`.

    `own` are the string literals of its cells, `reached` those of the package code it reaches.
    """
    own = set(own)
    texts = own.union(reached)
    paths = {
        *_declared(project, chapter),
        *_named_by_parameters(project, values),
        *_named_in_cells(project, own),
        *_references(project, own, texts),
    }
    digests = {project.relative(path): digest_path(path) for path in sorted(paths)}
    if any(REAL_DATA in text for text in texts):
        digests[REAL_DATA] = _listing(real_data_folder(project))
    return digests


def real_data_folder(project: Project) -> Path | None:
    """Real samples, where they are at hand: the folder in `BTCNB_REAL_DATA`, or `shared/data` beside the project."""
    chosen = os.environ.get(REAL_DATA)
    folder = Path(chosen) if chosen else project.root.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def _listing(folder: Path | None) -> str:
    """Names and sizes only: real samples are large, and never edited in place."""
    if folder is None:
        return "absent"
    lines = [
        f"{file.relative_to(folder).as_posix()} {file.stat().st_size}" for file in folder.rglob("*") if file.is_file()
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _declared(project: Project, chapter: Chapter) -> Iterator[Path]:
    for pattern in chapter.options.get("inputs", []):
        found = sorted(project.root.glob(str(pattern)))
        if not found:
            raise UsageError(f"{chapter.name} declares the input `{pattern}`, but there is no such file.")
        yield from found


def _named_by_parameters(project: Project, values: Mapping[str, Any]) -> Iterator[Path]:
    for value in values.values():
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, str):
                yield from _existing(project, entry)


def _named_in_cells(project: Project, own: Iterable[str]) -> Iterator[Path]:
    """Literals such as "results/ablation.csv": a path with a slash that exists below the root, build products apart."""
    for text in own:
        if "/" in text:
            for path in _existing(project, text):
                if path.is_file() and path.name not in _DISPLAY_ONLY and path.is_relative_to(project.root):
                    yield path


def _existing(project: Project, text: str) -> Iterator[Path]:
    if not text.strip() or "\n" in text or "\0" in text or len(text) > 500:
        return
    path = (project.root / text).expanduser()
    products = {"_build", ".cache", ".venv", ".git"}
    try:
        around = project.root.resolve().is_relative_to(path.resolve())  # a separator "/" is not an input
        if path.exists() and not around and not products & set(path.parts):
            yield path
    except OSError:  # a name that no file can have
        return


def _references(project: Project, own: set[str], texts: set[str]) -> Iterator[Path]:
    """Files under `results/` that a literal names: by file name, stem, folder or pattern.

    A pattern that would match anything, such as the `*.csv` with which a reader walks through a folder, counts in the
    chapter's own cells only.
    """
    folder = project.root / _REFERENCE
    patterns = [
        text
        for text in texts
        if "*" in text
        and "/" not in text
        and len(text) < 100
        and (any(map(str.isalnum, text.split(".")[0])) or (text in own and "." in text))
    ]
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        relative = path.relative_to(folder)
        if not path.is_file() or path.name in _DISPLAY_ONLY or path.name.startswith("."):
            continue
        names = {*relative.parts, path.stem, relative.as_posix()}
        if names & texts or any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns):
            yield path
