"""The command `btcnb`: build the book, list its chapters, pair the notebooks, fetch data, look after the store.

What the commands need is imported when they run: Ctrl-C is answered in one sentence from the first moment on.
"""

from __future__ import annotations

import argparse
import errno
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from btcnb.build import cli_print, cli_refine, cli_summary, cli_sweep
from btcnb.errors import BtcnbError, ParameterError

if TYPE_CHECKING:
    from btcnb.build.project import Project

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
_KEPT = "the chapters that finished are kept"


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: workers and kernels are ended first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0 done, 1 failed, 2 refused, 130 interrupted."""
    before = signal.signal(signal.SIGTERM, _on_terminate)
    try:
        options = _parser().parse_args(arguments)
        bookless = getattr(options, "bookless", False)  # a tool that needs no book, and works outside of one
        return int(options.run(None if bookless else _project(options.root), options))
    except BtcnbError as error:
        from btcnb.book.text import without_credentials
        from btcnb.build.errors import UsageError

        _say(without_credentials(str(error)))
        return USAGE if isinstance(error, UsageError | ParameterError) else FAILED
    except OSError as error:
        _say(_sentence(error))
        return FAILED
    except KeyboardInterrupt as error:
        print(file=sys.stderr)
        _say(f"Interrupted; {_KEPT}, and the same command goes on from there.")
        return TERMINATED if isinstance(error, _Terminated) else INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _say(sentence: str) -> None:
    print(f"btcnb: {sentence}", file=sys.stderr)


def _sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"The disk is full{where}; free some space and run the same command again: {_KEPT}."
    what = error.strerror or str(error) or type(error).__name__
    return f"A file or folder cannot be used{where}: {what}; mend that and run the same command again: {_KEPT}."


def _project(root: Path | None) -> Project:
    from btcnb.build.project import Project, find_project

    return find_project(root) if root is None else Project(root.resolve())


def _build(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.builder import Request, build

    request = Request(
        preset=options.preset,
        only=tuple(options.only),
        options=tuple(options.p),
        params=options.params,
        jobs=options.jobs,
        edition=options.edition,
        force=options.force,
        pages=not options.no_pages,
        record_times=options.record_times,
    )
    page = build(project, request)
    if page is not None:
        print(f"The book's first page: {page}")
    return 0


def _pair(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.pairs import stale_pairs, text_notebooks, write_pairs

    if options.check:
        stale = stale_pairs(project.notebooks)
        if stale:
            names = ", ".join(path.name for path in stale)
            _say(f"out of date: the pairs of {names}; `btcnb pair` writes them.")
        return FAILED if stale else 0
    for path in write_pairs(text_notebooks(project.notebooks)):
        print(f"written: {project.relative(path)}")
    return 0


def _slides(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.slides import make_slides

    print(f"The slides: {make_slides(project, options.chapter, options.preset, options.out)}")
    return 0


def _chapters(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.chapters import load_chapters, select

    header = ["parameter", "type", "default", "range", "meaning"]
    for chapter in select(load_chapters(project), options.only):
        print(f"{chapter.name}  {chapter.title}")
        entries = chapter.parameters.values()
        if entries:
            rows = [[e.name, e.annotation, repr(e.default), str(e.range), e.meaning] for e in entries]
            print(_columns([header, *rows]))
    return 0


def _fetch_blocks(project: Project, options: argparse.Namespace) -> int:
    from btcnb.data.fetch_blocks import fetch_blocks

    folder = fetch_blocks(options.to, start=options.from_height, end=options.to_height, base=options.base)
    print(f"{len(list(folder.glob('*-*.bin')))} blocks lie in {folder}; what was there already was not fetched again.")
    return 0


def _list_store(project: Project, options: argparse.Namespace) -> int:
    from btcnb.store.entries import store_folder
    from btcnb.store.manage import entries

    found = list(entries())
    rows = [["state", "size", "seconds", "created", "function", "arguments"]]
    rows += [
        [e.state, _megabytes(e.size), f"{e.seconds:.0f}", e.created[:10], e.function, e.arguments]
        for e in sorted(found, key=lambda entry: -entry.size)
    ]
    if found:
        print(_columns(rows))
    total = _megabytes(sum(entry.size for entry in found))
    print(f"{len(found)} results, {total}, in {project.relative(store_folder())}.")
    return 0


def _prune_store(project: Project, options: argparse.Namespace) -> int:
    from btcnb.store.manage import prune

    if options.older_than is not None and not options.older_than >= 0:
        raise ParameterError(f"--older-than {options.older_than}: a number of days, zero or more.")
    gone = prune(older_than_days=options.older_than, everything=options.all)
    print(f"{len(gone)} results removed, {_megabytes(sum(entry.size for entry in gone))} freed.")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line.rstrip()}" for line in lines)


def _parser() -> argparse.ArgumentParser:
    from btcnb.sizes import PRESETS

    parser = argparse.ArgumentParser(prog="btcnb", description="Execute and render the book.")
    parser.add_argument("--root", type=Path, help="the project's folder (found from the working directory)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    command = commands.add_parser("build", help="execute the chapters and render the book")
    command.add_argument("--preset", choices=PRESETS, default="quick", help="sizes of all runs (quick)")
    _add_only(command)
    command.add_argument(
        "-p", action="append", default=[], metavar="name=value",
        help="set a parameter in every chapter that has it; chapter.name=value sets it in one",
    )  # fmt: skip
    command.add_argument(
        "--params", type=Path, metavar="FILE", help="a YAML file of parameters, laid out like `chapters` in sizes.yml"
    )
    command.add_argument("--jobs", "-j", type=int, default=1, metavar="N", help="chapters executed at a time (1)")
    command.add_argument(
        "--edition", choices=("full", "student", "both"), default="full", help="student: without the solutions (full)"
    )
    command.add_argument("--force", action="store_true", help="execute chapters even if nothing changed")
    command.add_argument("--no-pages", action="store_true", help="execute only, render nothing")
    command.add_argument(
        "--record-times", action="store_true", help="write the chapters' running times to results/chapter_times.csv"
    )
    command.set_defaults(run=_build)

    command = commands.add_parser("pair", help="write notebooks/*.ipynb from notebooks/*.md")
    command.add_argument("--check", action="store_true", help="write nothing; fail if a pair is out of date")
    command.set_defaults(run=_pair)

    command = commands.add_parser("chapters", help="list the chapters and their parameters")
    _add_only(command)
    command.set_defaults(run=_chapters)

    command = commands.add_parser("slides", help="make slides of a rendered chapter: one HTML file, offline")
    command.add_argument("chapter", help="its number or name")
    command.add_argument("--preset", choices=PRESETS, default="quick", help="which build (quick)")
    command.add_argument("--out", type=Path, metavar="FILE", help="where to (_build/PRESET/slides/NN_name.html)")
    command.set_defaults(run=_slides)

    command = commands.add_parser("fetch", help="download public data")
    sources = command.add_subparsers(title="data", required=True, metavar="data")
    action = sources.add_parser("blocks", help="real mainnet blocks that lost a fork (bitcoin-data/stale-blocks, CC0)")
    action.add_argument("--to", type=Path, metavar="FOLDER", help="where to (a cache folder)")
    action.add_argument("--from-height", type=int, metavar="HEIGHT", help="the first height wanted (all)")
    action.add_argument("--to-height", type=int, metavar="HEIGHT", help="the last height wanted (all)")
    action.add_argument("--base", metavar="URL", help="a mirror's folder of stale-blocks.csv and blocks/")
    action.set_defaults(run=_fetch_blocks)

    command = commands.add_parser("store", help="list what is kept from earlier runs, or remove it")
    command.set_defaults(run=_list_store)
    actions = command.add_subparsers(title="actions", metavar="action")
    actions.add_parser("list", help="what is kept, largest first (the default)").set_defaults(run=_list_store)
    action = actions.add_parser("prune", help="remove what is stale or damaged")
    action.add_argument("--older-than", type=float, metavar="DAYS", help="also what is older than so many days")
    action.add_argument("--all", action="store_true", help="everything")
    action.set_defaults(run=_prune_store)
    cli_print.add_commands(commands)
    cli_sweep.add_commands(commands)
    cli_refine.add_commands(commands)
    cli_summary.add_commands(commands)
    return parser


def _add_only(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="CHAPTER", help="chapters by number or name (all)"
    )


if __name__ == "__main__":
    sys.exit(main())
