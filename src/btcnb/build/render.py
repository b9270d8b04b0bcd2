"""Jupyter Book turns the assembled source into pages, warnings as errors; they are published once complete."""

from __future__ import annotations

import errno
import json
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
from btcnb.build.inputs import digest_path
from btcnb.build.project import Edition, Output, Project, write_atomically

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"\b(WARNING|ERROR|CRITICAL|SEVERE): |^(Extension|Configuration|Theme|Application) error")
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

    Skipped when source, page decoration and locked versions are those of the last rendering. `strict`: any warning is
    an error. `tick` is called while Sphinx works.
    """
    started = time.monotonic()
    html, state = output.html(edition), output.rendering(edition) / "rendered.json"
    inputs = _inputs(project, output, edition, strict)
    last = _read(state)
    if last.get("inputs") == inputs and (html / "index.html").exists():
        return Rendered(html / "index.html", False, time.monotonic() - started, tuple(last.get("warnings", [])))
    state.unlink(missing_ok=True)
    if last.get("layout") != _layout(output, edition):
        shutil.rmtree(output.rendering(edition), ignore_errors=True)
    warnings = _render_twice(output, edition, strict, tick)
    _publish(output.rendering(edition) / "_build" / "html", html)
    record = {"inputs": inputs, "layout": _layout(output, edition), "warnings": warnings}
    write_atomically(state, json.dumps(record, indent=1))
    return Rendered(html / "index.html", True, time.monotonic() - started, tuple(warnings))


def _render_twice(output: Output, edition: Edition, strict: bool, tick: Callable[[], None]) -> list[str]:
    """An incremental rendering that fails is tried once more from nothing: references across pages go stale."""
    incremental = (output.rendering(edition) / "_build").exists()
    failed, complaints = _run(output, edition, strict, tick)
    if failed and incremental:
        shutil.rmtree(output.rendering(edition), ignore_errors=True)
        failed, complaints = _run(output, edition, strict, tick)
    if failed:
        # Sphinx would not repeat the warnings of pages it has already read: the next rendering starts from nothing.
        shutil.rmtree(output.rendering(edition), ignore_errors=True)
        more = [f"… and {len(complaints) - _SHOWN} more in {output.log}"] if len(complaints) > _SHOWN else []
        number = sum("WARNING: " in line for line in complaints)
        what = f"{number} {'warning' if number == 1 else 'warnings'}" if number else "an error"
        sentence = (
            f"The book was executed but not rendered: Jupyter Book reports {what}; the full story is in {output.log}."
        )
        raise BuildError("\n".join([*complaints[:_SHOWN], *more, sentence]))
    return complaints


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
    if process.exitcode and "No space left on device" in text:
        raise OSError(errno.ENOSPC, "No space left on device", str(rendering))
    lines = [line.replace(f"{source}{os.sep}", "").strip() for line in text.splitlines()]
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    if process.exitcode and not complaints:  # not a warning: the last words are what there is
        complaints = [line for line in lines if line.strip("=")][-5:]
    return bool(process.exitcode), list(dict.fromkeys(complaints))


def _jupyter_book(arguments: list[str]) -> None:
    os.environ["NO_COLOR"] = "1"
    from jupyter_book.cli.main import main  # type: ignore[import-untyped]

    sys.argv = ["jupyter-book", *arguments]
    main(arguments, standalone_mode=True)


def _inputs(project: Project, output: Output, edition: Edition, strict: bool) -> dict[str, str | bool]:
    """What the pages depend on beside this program."""
    decoration = project.source / "btcnb" / "book"
    return {
        "source": digest_path(output.source(edition)),
        "decoration": digest_path(decoration) if decoration.is_dir() else "",
        "versions": digest_path(project.lock) if project.lock.exists() else "",
        "strict": strict,
    }


def _layout(output: Output, edition: Edition) -> dict[str, str]:
    """What makes an incremental rendering unsafe when it changes: configuration, contents, the set of files, and what
    is not a page (style sheets, pictures, the bibliography): Sphinx does not look at those when no page has changed.
    """
    source = output.source(edition)
    others = [path for path in sorted((source / "book").rglob("*")) if path.is_file() and path.suffix != ".md"]
    names = "\n".join(sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()))
    return {
        "files": names,
        "others": " ".join(digest_path(path) for path in others),
        "config": digest_path(source / "_config.yml"),
        "toc": digest_path(source / "_toc.yml"),
    }


def _publish(made: Path, html: Path) -> None:
    """Replace the published pages by the new ones in two renames, so that a reader never meets half a book."""
    fresh, old = html.with_name(f".{html.name}.new"), html.with_name(f".{html.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.copytree(made, fresh)
    if html.exists():
        html.rename(old)
    fresh.rename(html)
    shutil.rmtree(old, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return {}
