"""The command `btcnb`: build the book, list its chapters, pair the notebooks, print, fetch data, look after the store.

What a command needs is imported when it runs, so that simple commands answer at once and Ctrl-C is answered in one
sentence from the first moment on.
"""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.exceptions

from btcnb.build import cli_experiments
from btcnb.build.cli_experiments import say
from btcnb.errors import BtcnbError, ParameterError, without_credentials

if TYPE_CHECKING:
    from btcnb.build.project import Project

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
_KEPT = "the chapters that finished are kept"
_CHAPTERS_KEPT = f"{_KEPT}, and the same command goes on from there"
_INTERRUPTED = {
    "sweep": "the recorded runs are kept, and the same command goes on",
    "refine": "nothing was written",
    "encoder": "no encoder was written",
    "simulate": "nothing was written",
    "fetch": "what arrived is kept, and the same command goes on from there",
}
_SEVERAL = {"--only", "--row", "--metric"}
"""Options that take all words up to the next option: `--only 03 06` is `--only 03 --only 06`."""

Preset = Literal["quick", "standard", "paper"]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="CHAPTER …", help="chapters by number or name (all)")]
app = typer.Typer(
    name="btcnb", help="Execute and render the book.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
_store = typer.Typer(help="List what is kept from earlier runs, or remove it.", rich_markup_mode=None)
_fetch = typer.Typer(help="Download public data.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(_store, name="store")
app.add_typer(_fetch, name="fetch")
cli_experiments.add_commands(app)


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: kernels are ended first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0 done, 1 failed, 2 refused, 130 interrupted."""
    before = signal.signal(signal.SIGTERM, _on_terminate)
    words = _repeated(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
        with command.make_context("btcnb", words) as context:
            return int(command.invoke(context) or 0)
    except typer.exceptions.Exit as end:
        return int(end.exit_code)
    except typer.exceptions.TyperException as error:
        say(error.format_message())
        return USAGE
    except BtcnbError as error:
        from btcnb.build.project import UsageError

        say(without_credentials(str(error)))
        return USAGE if isinstance(error, UsageError | ParameterError) else FAILED
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("btcnb", "meanlink"):
            raise
        say(f"{error.name} is not installed; `pip install 'btcnb[book]'` brings what the book is built with.")
        return FAILED
    except OSError as error:
        say(_sentence(error))
        return FAILED
    except KeyboardInterrupt as error:
        print(file=sys.stderr)
        kept = next((_INTERRUPTED[word] for word in words if word in _INTERRUPTED), _CHAPTERS_KEPT)
        say(f"Interrupted; {kept}.")
        return TERMINATED if isinstance(error, _Terminated) else INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _on_terminate(number: int, frame: Any) -> None:
    raise _Terminated


def _repeated(words: Sequence[str]) -> list[str]:
    made: list[str] = []
    option, first = "", False
    for word in words:
        if word.startswith("-"):
            option, first = (word, True) if word in _SEVERAL else ("", False)
        elif option:
            made += [] if first else [option]
            first = False
        made.append(word)
    return made


def _sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"The disk is full{where}; free some space and run the same command again: {_KEPT}."
    what = error.strerror or str(error) or type(error).__name__
    return f"A file or folder cannot be used{where}: {what}; mend that and run the same command again: {_KEPT}."


@app.callback()
def _every_command(
    context: typer.Context,
    root: Annotated[Path | None, typer.Option(help="the project's folder (found from the working directory)")] = None,
) -> None:
    context.obj = root


def _project(context: typer.Context) -> Project:
    from btcnb.build.project import Project, find_project

    return find_project() if context.obj is None else Project(context.obj.resolve())


@app.command()
def build(
    context: typer.Context,
    preset: Annotated[Preset, typer.Option(help="sizes of all runs")] = "quick",
    only: Only = None,
    p: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            metavar="name=value",
            help="set a parameter in every chapter that has it; chapter.name=value sets it in one",
        ),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="a YAML file of parameters, laid out like `chapters` in sizes.yml"),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="chapters executed at a time")] = 1,
    edition: Annotated[
        Literal["full", "student", "both"], typer.Option(help="student: without the solutions")
    ] = "full",
    force: Annotated[bool, typer.Option("--force", help="execute chapters even if nothing changed")] = False,
    no_pages: Annotated[bool, typer.Option("--no-pages", help="execute only, render nothing")] = False,
    record_times: Annotated[
        bool, typer.Option("--record-times", help="write the chapters' running times to results/chapter_times.csv")
    ] = False,
) -> None:
    """Execute the chapters and render the book."""
    from btcnb.build.build import Request
    from btcnb.build.build import build as build_book

    chosen = (tuple(only or ()), tuple(p or ()))
    request = Request(preset, *chosen, params, jobs, edition, force, not no_pages, record_times)
    page = build_book(_project(context), request)
    if page is not None:
        print(f"The book's first page: {page}")


@app.command()
def pair(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="write nothing; fail if a pair is out of date")] = False,
) -> int:
    """Write notebooks/*.ipynb from notebooks/*.md."""
    from btcnb.build.notebooks import stale_pairs, text_notebooks, write_pairs

    project = _project(context)
    if check:
        stale = stale_pairs(project.notebooks)
        if stale:
            names = ", ".join(path.name for path in stale)
            say(f"out of date: the pairs of {names}; `btcnb pair` writes them.")
        return FAILED if stale else 0
    for path in write_pairs(text_notebooks(project.notebooks)):
        print(f"written: {project.relative(path)}")
    return 0


@app.command()
def chapters(context: typer.Context, only: Only = None) -> None:
    """List the chapters and their parameters."""
    from btcnb.build.notebooks import load_chapters, select

    header = ["parameter", "type", "default", "range", "meaning"]
    for chapter in select(load_chapters(_project(context)), only or ()):
        print(f"{chapter.name}  {chapter.title}")
        entries = chapter.parameters.values()
        if entries:
            rows = [[e.name, e.annotation, repr(e.default), str(e.range), e.meaning] for e in entries]
            print(_columns([header, *rows]))


@app.command()
def slides(
    context: typer.Context,
    chapter: Annotated[str, typer.Argument(help="its number or name")],
    preset: Annotated[Preset, typer.Option(help="which build")] = "quick",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="where to (_build/PRESET/slides/NN_name.html)")
    ] = None,
) -> None:
    """Make slides of a rendered chapter: one HTML file, offline."""
    from btcnb.build.slides import make_slides

    print(f"The slides: {make_slides(_project(context), chapter, preset, out)}")


@app.command("print")
def print_book(
    context: typer.Context,
    preset: Annotated[Preset, typer.Option(help="whose pages")] = "quick",
    edition: Annotated[Literal["full", "student"], typer.Option(help="student: without the solutions")] = "full",
    only: Only = None,
    code: Annotated[bool, typer.Option("--code", help="print the code that is folded on the pages, too")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="print a PDF beside the HTML file")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the HTML file (_build/PRESET/print/book.html)")
    ] = None,
) -> None:
    """Make one self-contained HTML file of the rendered book, and with --pdf a PDF of it.

    `btcnb build` comes first. The PDF is printed by the Chromium of this machine. Nothing is loaded from anywhere.
    """
    from btcnb.build.printing import print_edition, print_pdf

    project = _project(context)
    page = print_edition(project, preset, edition, only or (), code, out)
    print(f"One file: {project.relative(page.resolve())}")
    if pdf:
        target = page.with_suffix(".pdf")
        print_pdf(page, target)
        print(f"Printed: {project.relative(target.resolve())}")


@app.command()
def simulate(
    size: Annotated[Literal["tiny", "quick", "standard", "paper"], typer.Argument(help="of the economies")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="where to: a new or an empty folder")],
    seed: Annotated[int, typer.Option(metavar="N", help="another seed gives other economies of the same kind")] = 7,
) -> None:
    """Write simulated transactions with known owners: a benchmark, with a README that describes its files."""
    from btcnb.data.export import write_simulation

    print(f"Transactions, graphs and truth lie in {write_simulation(size, seed, out)}; README.md describes them.")


@_fetch.command()
def release(
    doi: Annotated[
        str | None, typer.Argument(metavar="DOI|URL", help="another record, or the address of one file")
    ] = None,
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="where to (a cache folder)")] = None,
    files: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="names of files, like 'test*' (all)")
    ] = None,
    hash: Annotated[str | None, typer.Option(metavar="SHA256:…", help="of the file, where an address is given")] = None,
    base: Annotated[str | None, typer.Option(metavar="URL", help="a mirror of Zenodo's API of records")] = None,
) -> None:
    """The released dataset: five address graphs, by DOI; or one file by its address and hash."""
    from btcnb.data.readers.fetch import DOI, fetch_release

    folder = fetch_release(doi or DOI, to, files, hash=hash, base=base)
    print(f"The files lie in {folder}; give that folder as `source`. What was there already was not fetched again.")


@_fetch.command()
def blocks(
    to: Annotated[Path | None, typer.Option(metavar="FOLDER", help="where to (a cache folder)")] = None,
    from_height: Annotated[int | None, typer.Option(metavar="HEIGHT", help="the first height wanted (all)")] = None,
    to_height: Annotated[int | None, typer.Option(metavar="HEIGHT", help="the last height wanted (all)")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="URL", help="a mirror's folder of stale-blocks.csv and blocks/")
    ] = None,
) -> None:
    """Real mainnet blocks that lost a fork (bitcoin-data/stale-blocks, CC0)."""
    from btcnb.data.readers.fetch import fetch_blocks

    folder = fetch_blocks(to, start=from_height, end=to_height, base=base)
    print(f"{len(list(folder.glob('*-*.bin')))} blocks lie in {folder}; what was there already was not fetched again.")


@_store.callback(invoke_without_command=True)
def _list_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_store(context)


@_store.command("list")
def list_store(context: typer.Context) -> None:
    """What is kept, largest first (the default)."""
    from btcnb.store import store_folder
    from btcnb.store.kept import entries

    found = list(entries())
    rows = [["state", "size", "seconds", "created", "function", "arguments"]]
    rows += [
        [e.state, _megabytes(e.size), f"{e.seconds:.0f}", e.created[:10], e.function, e.arguments]
        for e in sorted(found, key=lambda entry: -entry.size)
    ]
    if found:
        print(_columns(rows))
    total = _megabytes(sum(entry.size for entry in found))
    print(f"{len(found)} results, {total}, in {_project(context).relative(store_folder())}.")


@_store.command()
def prune(
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", help="also what is older than so many days")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="everything")] = False,
) -> None:
    """Remove what is stale or damaged."""
    from btcnb.store.kept import prune as prune_store

    if older_than is not None and not older_than >= 0:
        raise ParameterError(f"--older-than {older_than}: a number of days, zero or more.")
    gone = prune_store(older_than_days=older_than, everything=everything)
    print(f"{len(gone)} results removed, {_megabytes(sum(entry.size for entry in gone))} freed.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line.rstrip()}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
