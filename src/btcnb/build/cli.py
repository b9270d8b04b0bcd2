"""The command `btcnb`: build the book, list its chapters, keep the notebook pairs in step."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from btcnb.build.builder import Request, build
from btcnb.build.chapters import load_chapters, select
from btcnb.build.errors import UsageError
from btcnb.build.pairs import stale_pairs, text_notebooks, write_pairs
from btcnb.build.parameters import known_parameters
from btcnb.build.presets import PRESETS
from btcnb.build.project import Project, find_project
from btcnb.build.worker import DISK_FULL
from btcnb.errors import BtcnbError, ParameterError

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: workers and kernels are ended first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0 done, 1 failed, 2 refused, 130 interrupted."""
    options = _parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _on_terminate)
    try:
        return int(options.run(_project(options.root), options))
    except (UsageError, ParameterError) as error:
        print(f"btcnb: {error}", file=sys.stderr)
        return USAGE
    except BtcnbError as error:
        print(f"btcnb: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        where = f" ({error.filename})" if error.filename else ""
        print(
            f"btcnb: The disk is full{where}; free some space and run the same command again: the chapters that "
            "finished are kept.",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt as error:
        print(
            "\nbtcnb: Interrupted; the chapters that finished are kept, and the same command goes on from there.",
            file=sys.stderr,
        )
        return TERMINATED if isinstance(error, _Terminated) else INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _project(root: Path | None) -> Project:
    return find_project(root) if root is None else Project(root.resolve())


def _build(project: Project, options: argparse.Namespace) -> int:
    request = Request(
        preset=options.preset,
        only=tuple(options.only),
        options=tuple(options.p),
        params=options.params,
        jobs=options.jobs,
        edition=options.edition,
        force=options.force,
        pages=not options.no_pages,
    )
    page = build(project, request)
    if page is not None:
        print(f"The book's first page: {page}")
    return 0


def _pair(project: Project, options: argparse.Namespace) -> int:
    if options.check:
        stale = stale_pairs(project.notebooks)
        if stale:
            names = ", ".join(path.name for path in stale)
            print(f"btcnb: out of date: the pairs of {names}; `btcnb pair` writes them.", file=sys.stderr)
        return FAILED if stale else 0
    for path in write_pairs(text_notebooks(project.notebooks)):
        print(f"written: {project.relative(path)}")
    return 0


def _chapters(project: Project, options: argparse.Namespace) -> int:
    for chapter in select(load_chapters(project), options.only):
        print(f"{chapter.name}  {chapter.title}")
        if chapter.parameters:
            print(known_parameters({chapter.name: chapter.parameters}))
    return 0


def _parser() -> argparse.ArgumentParser:
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
        "--params", type=Path, metavar="FILE", help="a YAML file of parameters, laid out like a preset"
    )
    command.add_argument("--jobs", "-j", type=int, default=1, metavar="N", help="chapters executed at a time (1)")
    command.add_argument(
        "--edition", choices=("full", "student"), default="full", help="student: without the solutions (full)"
    )
    command.add_argument("--force", action="store_true", help="execute chapters even if nothing changed")
    command.add_argument("--no-pages", action="store_true", help="execute only, render nothing")
    command.set_defaults(run=_build)

    command = commands.add_parser("pair", help="write notebooks/*.ipynb from notebooks/*.md")
    command.add_argument("--check", action="store_true", help="write nothing; fail if a pair is out of date")
    command.set_defaults(run=_pair)

    command = commands.add_parser("chapters", help="list the chapters and their parameters")
    _add_only(command)
    command.set_defaults(run=_chapters)
    return parser


def _add_only(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="CHAPTER", help="chapters by number or name (all)"
    )


if __name__ == "__main__":
    sys.exit(main())
