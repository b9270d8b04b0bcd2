"""Jupyter Book turns the assembled source into pages, warnings as errors; they are published once complete.

Clocks are not asked. Pages whose text has changed since the last rendering are read again, which their digests tell;
then all pages are written, so that titles, numbers and references across pages are always those of today.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from btcnb.build.child import end_child, start_child
from btcnb.build.errors import BuildError
from btcnb.build.project import Edition, Output, Project, digest, read_sealed, write_sealed
from btcnb.build.slides import TEMPLATE, publish_slides
from btcnb.store.reads import digest as digest_path

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"\b(WARNING|ERROR|CRITICAL|SEVERE): |^(Extension|Configuration|Theme|Application) error")
_FULL = "No space left on device"
_SLIDES = ("deck", "slides")
_GARBAGE = (100_000, 20, 100)  # pages are trees of objects that stay: looking for garbage took a sixth of the time
_SHOWN = 30  # complaints shown on the terminal; all are in the log


@dataclass(frozen=True)
class Rendered:
    """`page` is the first page; `fresh` is False when the pages of an earlier build still hold."""

    page: Path
    fresh: bool
    seconds: float
    warnings: tuple[str, ...] = ()


def render(project: Project, output: Output, edition: Edition, strict: bool, tick: Callable[[], None]) -> Rendered:
    """Render the source of `edition` into `_build/<preset>/html` (`html-student`).

    Skipped when the last rendering was made of the same and its pages are all there, unharmed. `strict`: any warning
    is an error. `tick` is called while Sphinx works.
    """
    started = time.monotonic()
    html, work = output.html(edition), output.rendering(edition)
    state, made = work / "rendered.json", work / "_build"
    pages, rest = _pages(output.source(edition)), _rest(project, output.source(edition), strict)
    last = read_sealed(state) or {}
    if (last.get("pages"), last.get("rest"), last.get("html")) == (pages, rest, digest_path(html)):
        return Rendered(html / "index.html", False, time.monotonic() - started, tuple(last["warnings"]))
    state.unlink(missing_ok=True)
    if last.get("rest") == rest and last.get("made") == digest_path(made):
        _forget(made, [name for name in pages if pages[name] != last["pages"].get(name)])
    else:
        shutil.rmtree(work, ignore_errors=True)
    warnings = _sphinx(output, edition, strict, tick)
    publish_slides(project, output.source(edition), made / "html")
    _publish(made / "html", html)
    record = {"pages": pages, "rest": rest, "made": digest_path(made), "html": digest_path(html), "warnings": warnings}
    write_sealed(state, record)
    return Rendered(html / "index.html", True, time.monotonic() - started, tuple(warnings))


def _pages(source: Path) -> dict[str, str]:
    """Name -> digest of each page's source."""
    return {name: digest_path(source / name) for name in _files(source) if name.endswith((".md", ".ipynb"))}


def _rest(project: Project, source: Path, strict: bool) -> str:
    """Of everything else that pages are made of; when it changes, the rendering starts from nothing.

    Which pages there are, configuration, contents, style sheets, pictures and bibliography (Sphinx does not look at
    those when no page has changed), this book's Sphinx extensions, what makes slides, the locked versions, and how
    strict one is.
    """
    files = _files(source)
    others = [[name, digest_path(source / name)] for name in files if not name.endswith((".md", ".ipynb"))]
    package = project.source / "btcnb"
    pages = [*sorted((package / "book").glob("sphinx_*.py")), package / "book" / "inks.py"]
    links = [package / "paper" / "claims.yml"]  # a link says the claim's words
    slides = [TEMPLATE, *(package / "build" / f"{name}.py" for name in _SLIDES)]
    makers = [project.lock, *pages, *links, *slides]
    return digest([files, others, [digest_path(path) for path in makers], sys.version, strict])


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _forget(made: Path, pages: list[str]) -> None:
    """Make Sphinx read `pages` again and write all; a page without a doctree or without HTML counts as changed."""
    for name in pages:
        (made / ".doctrees" / name).with_suffix(".doctree").unlink(missing_ok=True)
    shutil.rmtree(made / "html", ignore_errors=True)


def _sphinx(output: Output, edition: Edition, strict: bool, tick: Callable[[], None]) -> list[str]:
    failed, complaints = _run(output, edition, strict, tick)
    if not failed:
        return complaints
    # Sphinx would not repeat the warnings of pages it has already read: the next rendering starts from nothing.
    shutil.rmtree(output.rendering(edition), ignore_errors=True)
    more = [f"… and {len(complaints) - _SHOWN} more in {output.log}"] if len(complaints) > _SHOWN else []
    number = sum("WARNING: " in line for line in complaints)
    what = f"{number} {'warning' if number == 1 else 'warnings'}" if number else "an error"
    sentence = (
        f"The book was executed but not rendered: Jupyter Book reports {what}; the full story is in {output.log}."
    )
    raise BuildError("\n".join([*complaints[:_SHOWN], *more, sentence]))


def _run(output: Output, edition: Edition, strict: bool, tick: Callable[[], None]) -> tuple[bool, list[str]]:
    source, rendering = output.source(edition), output.rendering(edition)
    rendering.mkdir(parents=True, exist_ok=True)
    log = rendering / "sphinx.log"
    log.unlink(missing_ok=True)
    arguments = ["build", str(source), "--path-output", str(rendering), *(["-W", "--keep-going"] if strict else [])]
    process: SpawnProcess = start_child(_jupyter_book, arguments, log=log)
    try:
        while process.is_alive():
            process.join(0.5)
            tick()
    finally:
        end_child(process)
    text = _COLOUR.sub("", log.read_text(encoding="utf-8", errors="replace")) if log.exists() else ""
    with output.log.open("a", encoding="utf-8") as whole:
        whole.write(text)
    if process.exitcode and _FULL in text:
        raise OSError(errno.ENOSPC, _FULL, str(rendering))
    lines = [line.replace(f"{source}{os.sep}", "").strip() for line in text.splitlines()]
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    failed = bool(process.exitcode) or not (rendering / "_build" / "html" / "index.html").exists()
    if failed and not complaints:  # not a warning: the last words are what there is
        complaints = [line for line in lines if line.strip("=")][-5:]
    return failed, list(dict.fromkeys(complaints))


def _jupyter_book(arguments: list[str]) -> None:
    os.environ["NO_COLOR"] = "1"
    gc.set_threshold(*_GARBAGE)
    from jupyter_book.cli.main import main  # type: ignore[import-untyped]

    sys.argv = ["jupyter-book", *arguments]
    main(arguments, standalone_mode=True)


def _publish(made: Path, html: Path) -> None:
    """Replace the published pages by the new ones in two renames, so that a reader never meets half a book.

    Whatever goes wrong, the last pages stay and the half-made copy goes: on a full disk it would keep it full.
    """
    fresh, old = html.with_name(f".{html.name}.new"), html.with_name(f".{html.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(made, fresh)
        if html.exists():
            html.rename(old)
        fresh.rename(html)
    except shutil.Error as error:  # copytree collects what went wrong, file by file, and forgets the numbers
        raise OSError(errno.ENOSPC if _FULL in str(error) else errno.EIO, _words(error), str(html)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists() and not html.exists():
            old.rename(html)
    shutil.rmtree(old, ignore_errors=True)


def _words(error: Any) -> str:
    first = error.args[0]
    return str(first[0][-1] if isinstance(first, list) and first else error)
