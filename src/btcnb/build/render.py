"""Jupyter Book turns the assembled source into pages, warnings as errors; pages are published once complete.

Clocks are not asked. Pages whose text has changed since the last rendering are read again, which their digests tell;
then all pages are written, so that titles, numbers and references across pages are always those of today.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from btcnb.build import kernels
from btcnb.build.project import BuildError, Edition, Output, Project, digest, read_sealed, write_sealed
from btcnb.build.slides import TEMPLATE, publish_slides
from btcnb.store.reads import digest as digest_path

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"\b(WARNING|ERROR|CRITICAL|SEVERE): |^(Extension|Configuration|Theme|Application) error")
_FULL = "No space left on device"
_REFERENCE = "book/api"
"""How pages begin whose text autodoc takes from the package's code."""
_GARBAGE = (100_000, 20, 100)  # pages are trees of objects that stay: looking for garbage took a sixth of the time
_SHOWN = 30  # complaints shown on the terminal; all are in the log


@dataclass(frozen=True)
class Rendered:
    """`page` is the first page; `fresh` is False when the pages of an earlier build still hold."""

    page: Path
    fresh: bool
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass
class _Rendering:
    """An edition to render. `pages` are digests of the pages' sources, `rest` that of everything else."""

    output: Output
    edition: Edition
    strict: bool
    pages: dict[str, str]
    rest: str

    @property
    def source(self) -> Path:
        return self.output.source(self.edition)

    @property
    def work(self) -> Path:
        return self.output.rendering(self.edition)

    @property
    def made(self) -> Path:
        """Doctrees and pages, as Jupyter Book lays them out."""
        return self.work / "_build"

    @property
    def html(self) -> Path:
        return self.output.html(self.edition)

    @property
    def state(self) -> Path:
        return self.work / "rendered.json"


def render(project: Project, output: Output, editions: Sequence[Edition], strict: bool) -> list[Rendered]:
    """Render the sources of `editions`, side by side, into `_build/<preset>/html` and `html-student`.

    An edition is skipped when its last rendering was made of the same source and all its pages are there, unharmed.
    `strict`: any warning is an error. Whatever ends this function, Ctrl-C among them, also ends Sphinx.
    """
    started = time.monotonic()
    found = [_rendering(project, output, edition, strict) for edition in editions]
    lasts = [read_sealed(each.state) or {} for each in found]
    held = [_holds(each, last) for each, last in zip(found, lasts, strict=True)]
    processes = {}
    try:
        for position, each in enumerate(found):
            if not held[position]:
                _prepare(each, lasts[position])
                processes[position] = _start(each, "html")
        for process in processes.values():
            process.join()
    finally:
        for process in processes.values():
            if process.is_alive():
                kernels.end_tree(process.pid)
            process.join()
    rendered = []
    for position, each in enumerate(found):
        warnings = lasts[position].get("warnings", [])
        if position in processes:
            warnings = _complaints(each, processes[position].exitcode, each.made / "html" / "index.html")
            publish_slides(project, each.source, each.made / "html")
            _publish(each.made / "html", each.html)
            marks = {"made": digest_path(each.made), "html": digest_path(each.html)}
            write_sealed(each.state, {"pages": each.pages, "rest": each.rest, **marks, "warnings": warnings})
        seconds = time.monotonic() - started
        rendered.append(Rendered(each.html / "index.html", position in processes, seconds, tuple(warnings)))
    return rendered


def _rendering(project: Project, output: Output, edition: Edition, strict: bool) -> _Rendering:
    """What the pages are made of. When `rest` changes, the rendering starts from nothing.

    `rest` covers which pages there are, configuration, contents, style sheets, pictures and bibliography (Sphinx does
    not look at those when no page has changed), the book's Sphinx extensions, what makes slides, the locked versions,
    and `strict`.
    """
    source, package = output.source(edition), project.package
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    pages = {name: digest_path(source / name) for name in files if name.endswith((".md", ".ipynb"))}
    if any(name.startswith(_REFERENCE) for name in pages):
        code = digest([digest_path(path) for path in sorted(package.rglob("*.py"))])
        pages |= {name: mark + code for name, mark in pages.items() if name.startswith(_REFERENCE)}
    others = [[name, digest_path(source / name)] for name in files if name not in pages]
    makers = [project.root / "requirements.lock", *sorted((package / "book").glob("sphinx_*.py"))]
    makers += [package / "book" / "inks.py", package / "paper" / "claims.yml"]  # a link shows the claim's words
    makers += [TEMPLATE, package / "build" / "slides.py"]
    rest = digest([files, others, [digest_path(path) for path in makers], sys.version, strict])
    return _Rendering(output, edition, strict, pages, rest)


def _holds(each: _Rendering, last: dict[str, Any]) -> bool:
    return (last.get("pages"), last.get("rest"), last.get("html")) == (each.pages, each.rest, digest_path(each.html))


def _prepare(each: _Rendering, last: dict[str, Any]) -> None:
    """Make Sphinx read changed pages again and write all; a page without doctree or HTML counts as changed for it."""
    each.state.unlink(missing_ok=True)
    if last.get("rest") != each.rest or last.get("made") != digest_path(each.made):
        shutil.rmtree(each.work, ignore_errors=True)
        return
    for name in each.pages:
        if each.pages[name] != last["pages"].get(name):
            (each.made / ".doctrees" / name).with_suffix(".doctree").unlink(missing_ok=True)
    shutil.rmtree(each.made / "html", ignore_errors=True)


def _start(each: _Rendering, builder: str) -> Any:
    each.work.mkdir(parents=True, exist_ok=True)
    log = each.work / "sphinx.log"
    log.unlink(missing_ok=True)
    arguments = ["build", str(each.source), "--path-output", str(each.work), "--builder", builder]
    process = kernels.new_process(_jupyter_book, [*arguments, *(["-W", "--keep-going"] if each.strict else [])], log)
    process.start()
    return process


def _jupyter_book(arguments: list[str], log: Path) -> None:
    """The child process: it leaves Ctrl-C to the build and writes to the log alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    kernels.end_with_build()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["NO_COLOR"] = "1"
    gc.set_threshold(*_GARBAGE)
    from jupyter_book.cli.main import main  # type: ignore[import-untyped]

    sys.argv = ["jupyter-book", *arguments]
    main(arguments, standalone_mode=True)


def _complaints(each: _Rendering, code: int | None, product: Path) -> list[str]:
    """The warnings of a rendering that came to its end; `BuildError` with the first of them for one that failed."""
    log = each.work / "sphinx.log"
    text = _COLOUR.sub("", log.read_text(encoding="utf-8", errors="replace")) if log.exists() else ""
    with each.output.log.open("a", encoding="utf-8") as whole:
        whole.write(text)
    if code and _FULL in text:
        raise OSError(errno.ENOSPC, _FULL, str(each.work))
    lines = [line.replace(f"{each.source}{os.sep}", "").strip() for line in text.splitlines()]
    complaints = list(dict.fromkeys(line for line in lines if _COMPLAINT.search(line)))
    if not code and product.exists():
        return complaints
    # Sphinx would not repeat the warnings of pages it has already read: the next rendering starts from nothing.
    shutil.rmtree(each.work, ignore_errors=True)
    complaints = complaints or [line for line in lines if line.strip("=")][-5:]
    more = [f"… and {len(complaints) - _SHOWN} more in {each.output.log}"] if len(complaints) > _SHOWN else []
    number = sum("WARNING: " in line for line in complaints)
    what = f"{number} {'warning' if number == 1 else 'warnings'}" if number else "an error"
    sentence = f"The book was executed but not rendered: Jupyter Book reports {what}; see {each.output.log}."
    raise BuildError("\n".join([*complaints[:_SHOWN], *more, sentence]))


def _publish(made: Path, html: Path) -> None:
    """Replace the published pages by the new ones in two renames, so that a reader never meets half a book.

    Whatever goes wrong, the last pages stay and the incomplete copy is removed.
    """
    fresh, old = html.with_name(f".{html.name}.new"), html.with_name(f".{html.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(made, fresh)
        if html.exists():
            html.rename(old)
        fresh.rename(html)
    except shutil.Error as error:  # copytree collects messages, file by file, and loses the error numbers
        raise OSError(errno.ENOSPC if _FULL in str(error) else errno.EIO, str(error)[:300], str(html)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists() and not html.exists():
            old.rename(html)
    shutil.rmtree(old, ignore_errors=True)
