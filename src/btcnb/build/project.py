"""Where things are: the project's inputs, and what the build of a preset puts under `_build/<preset>/`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from btcnb.build.errors import UsageError

Edition = Literal["full", "student"]


@dataclass(frozen=True)
class Project:
    """The folder that holds `_toc.yml`, `notebooks/` and `src/btcnb/`."""

    root: Path

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def presets(self) -> Path:
        return self.notebooks / "presets.yml"

    @property
    def toc(self) -> Path:
        return self.root / "_toc.yml"

    @property
    def config(self) -> Path:
        return self.root / "_config.yml"

    @property
    def lock(self) -> Path:
        return self.root / "requirements.lock"

    @property
    def source(self) -> Path:
        """The folder put on the chapters' import path."""
        return self.root / "src"

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
        """Executed chapters, complete ones only, each with its stamp `NN_name.json`."""
        return self.folder / "notebooks"

    @property
    def partial(self) -> Path:
        """Chapters being executed, or stopped half-way by an error."""
        return self.folder / "partial"

    @property
    def records(self) -> Path:
        """What the chapters handed to the build: data sources, verdicts."""
        return self.folder / "records"

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


def find_project(start: Path | None = None) -> Project:
    """The project around `start` (the working directory), or the one this package is installed from."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[3]):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return Project(folder)
    raise UsageError(f"No book found: neither {start} nor a folder above it has _toc.yml and notebooks/.")


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
