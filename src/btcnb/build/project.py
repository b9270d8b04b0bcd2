"""Where things are: the project's inputs, and what the build of a preset writes under `_build/<preset>/`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from btcnb.errors import BtcnbError
from btcnb.plain_yaml import read_yaml

Edition = Literal["full", "student"]


class UsageError(BtcnbError):
    """The request makes no sense (unknown chapter, unknown preset, …): nothing has been run; exit status 2."""


class BuildError(BtcnbError):
    """The build began and cannot end well; exit status 1."""


@dataclass(frozen=True)
class Repository:
    """`repository:` in `_config.yml`, the only place that names it. `url` has no slash at its end."""

    url: str
    branch: str = "main"

    @property
    def published(self) -> bool:
        """Whether the address exists: `your_account` stands in `_config.yml` until somebody publishes the book."""
        return "your_account" not in self.url

    @property
    def pip(self) -> str:
        """What pip installs from."""
        return f"git+{self.url}@{self.branch}"


@dataclass(frozen=True)
class Project:
    """The folder that holds `_toc.yml`, `notebooks/` and `src/btcnb/`."""

    root: Path

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def presets(self) -> Path:
        """The table of sizes, whose sections `chapters` are the presets."""
        return self.package / "sizes.yml"

    @property
    def toc(self) -> Path:
        return self.root / "_toc.yml"

    @property
    def config(self) -> Path:
        return self.root / "_config.yml"

    @property
    def package(self) -> Path:
        """The folder of the package that the chapters import."""
        return self.root / "src" / "btcnb"

    @property
    def benchmarks(self) -> Path:
        """The records of the benchmarks, one JSON file each."""
        return self.root / "results" / "benchmarks"

    def output(self, preset: str) -> Output:
        return Output(self.root / "_build" / preset)

    def relative(self, path: Path) -> str:
        """`path` as a reader would type it from the project's root."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True)
class Output:
    """The products of one preset."""

    folder: Path

    @property
    def notebooks(self) -> Path:
        """Executed notebooks, complete ones only, each with its stamp `NAME.json`."""
        return self.folder / "notebooks"

    @property
    def partial(self) -> Path:
        """Notebooks that are being executed, or that an error has stopped."""
        return self.folder / "partial"

    @property
    def records(self) -> Path:
        """What the chapters hand to the build: data sources, verdicts."""
        return self.folder / "records"

    @property
    def states(self) -> Path:
        """How all chapters stand, for the status page."""
        return self.folder / "states.json"

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    def source(self, edition: Edition) -> Path:
        """The book's source as Sphinx sees it."""
        return self.folder / ("source" if edition == "full" else "source-student")

    def rendering(self, edition: Edition) -> Path:
        """Where Sphinx works; the pages are published from here once they are complete."""
        return self.folder / ("rendering" if edition == "full" else "rendering-student")

    def html(self, edition: Edition) -> Path:
        return self.folder / ("html" if edition == "full" else "html-student")

    def sweep(self, names: Container[str]) -> None:
        """Remove what a killed build and notebooks that no longer exist left behind; restore pages caught in a rename.

        names: the notebooks that exist
        """
        for html in (self.html("full"), self.html("student")):
            if (old := html.with_name(f".{html.name}.old")).exists() and not html.exists():
                old.rename(html)
        leftovers = [path for path in self.folder.glob(".*") if path.name != ".lock"]
        for folder in (self.notebooks, self.records, self.partial):
            leftovers += folder.glob(".*")
        leftovers += [path for path in self.records.glob("*.json") if path.stem not in names]
        for path in leftovers:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def find_project(start: Path | None = None) -> Project:
    """The project around `start` (the working directory), or the one this package is installed from."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[3]):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return Project(folder)
    raise UsageError(f"No book found: neither {start} nor a folder above it has _toc.yml and notebooks/.")


def read_repository(config: Path) -> Repository | None:
    """The repository that `_config.yml` names; None where it names none, or where there is no such file."""
    if not config.is_file():
        return None
    section = read_config(config).get("repository") or {}
    if not isinstance(section, dict) or not all(isinstance(section.get(key, ""), str) for key in ("url", "branch")):
        raise UsageError(f"{config.name}: repository: expected `url` and `branch`, found {section!r:.80}.")
    url = section.get("url", "").rstrip("/")
    return Repository(url, section.get("branch") or "main") if url else None


def read_config(path: Path) -> dict[Any, Any]:
    """`_config.yml` as Jupyter Book reads it: YAML 1.1."""
    return read_mapping(path, path.name, yaml.safe_load)


def read_mapping(path: Path, name: str = "", reader: Callable[[str], Any] = read_yaml) -> dict[Any, Any]:
    """The content of a YAML file, which must be a mapping; `name` is what errors call the file."""
    name = name or str(path)
    try:
        content = reader(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is not valid YAML: {' '.join(str(error).split())[:300]}.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{name}: expected a mapping, found {type(content).__name__}.")
    return content


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write beside `path`, then rename: readers see the old file or the new one, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def digest(value: Any) -> str:
    """SHA-256 of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def write_sealed(path: Path, fields: dict[str, Any]) -> None:
    """Write `fields` as JSON with their own digest, so that a damaged file is recognised."""
    fields = json.loads(json.dumps(fields, default=str))
    write_atomically(path, json.dumps({**fields, "seal": digest(fields)}, indent=1) + "\n")


def read_sealed(path: Path) -> dict[str, Any] | None:
    """What `write_sealed` wrote; None if there is nothing, or something else."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return fields if fields.pop("seal") == digest(fields) else None
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
