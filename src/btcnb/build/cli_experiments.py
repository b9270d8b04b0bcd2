"""Commands that run and report experiments: sweep, results, refine, encoder, summary."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from btcnb.errors import DataError, ParameterError

if TYPE_CHECKING:
    from btcnb.experiments.sweep.grid import Grid
    from btcnb.experiments.sweep.records import Plan

RESULTS = Path("results/sweeps")
_QUIET_SECONDS = 10.0  # off a terminal: at most one line of progress in this time
Results = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="where the records lie")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands to `btcnb`."""
    for command in (sweep, results, refine, encoder, summary):
        app.command()(command)


def say(sentence: str) -> None:
    """An error or a warning: one line on standard error."""
    print(f"btcnb: {sentence}", file=sys.stderr)


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor a list such as 1,4,9") from None
    return numbers if "," in text or not numbers else numbers[0]


def sweep(
    context: typer.Context,
    grids: Annotated[list[Path], typer.Argument(metavar="GRID.yaml …", help="what to run (see experiments/)")],
    seeds: Annotated[
        Any, typer.Option(parser=_seeds, metavar="N", help="seeds 1 to N, or a list 1,4,9 (as the grid says)")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="runs at a time, one thread each")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://…", help="run on the workers of a Dask scheduler instead")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="ROW …", help="some rows (all)")] = None,
    again: Annotated[
        Literal["failed", "other-data", "all"],
        typer.Option(help="recorded runs that run again: failed ones; also those made on other data; all"),
    ] = "failed",
    results: Results = RESULTS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would run")] = False,
) -> int:
    """Run grids of experiments and record every run."""
    if jobs < 1:
        raise ParameterError(f"--jobs {jobs}: a whole number of at least 1.")
    plans = _plans(_folder(context, results), _read_grids(grids, seeds, only or ()), again)
    if dry_run:
        for planned in plans:
            for job in planned.todo:
                print(f"{planned.grid.name} · {job.row} · seed {job.seed}")
        return 0
    return _run_sweep(plans, jobs, scheduler)


def _plans(folder: Path, grids: Sequence[Grid], again: str) -> list[Plan]:
    from btcnb.experiments.sweep.records import Records, plan

    plans = []
    for grid in grids:
        planned = plan(grid, Records(folder / f"{grid.name}.jsonl"), again)
        plans.append(planned)
        for sentence in planned.sentences:
            print(sentence)
        print(f"{grid.name}: {len(grid.jobs)} runs, {planned.done} recorded, {len(planned.todo)} to do.", flush=True)
    return plans


def _run_sweep(plans: list[Plan], jobs: int, scheduler: str | None) -> int:
    from btcnb.experiments.measures import measure
    from btcnb.experiments.sweep.run import DaskWorkers, LocalWorkers, Workers, run

    # loky renews a worker that has grown too large between two runs, and warns as if that were a fault
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    workers: Workers = DaskWorkers(measure, scheduler) if scheduler else LocalWorkers(measure, jobs)
    told = run(plans, workers)
    if told.failed:
        say(f"Runs that failed: {told.failed}; the same command tries them again.")
    return 1 if told.failed else 0


def _read_grids(paths: Sequence[Path], seeds: Any, only: Sequence[str]) -> list[Grid]:
    """The grids that were named, with the rows that were asked for."""
    from btcnb.experiments.sweep.grid import read_grid

    grids = [read_grid(path, seeds) for path in paths]
    names = [grid.name for grid in grids]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"two of the grids are called {name!r}; their records would lie in one file.")
    if not only:
        return grids
    rows = {row for grid in grids for row in grid.rows}
    for row in only:
        if row not in rows:
            grids[0].only([row])  # raises, with the nearest name
    return [grid.only([row for row in only if row in grid.rows]) for grid in grids]


def _folder(context: typer.Context, results: Path) -> Path:
    from btcnb.build.project import find_project

    return results if results != RESULTS else (context.obj or find_project().root) / results


def results(
    context: typer.Context,
    grids: Annotated[
        list[str] | None, typer.Argument(metavar="GRID …", help="grids by name or file (all that have records)")
    ] = None,
    row: Annotated[list[str] | None, typer.Option("--row", metavar="ROW …", help="some rows (all)")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", metavar="NAME …", help="(DP NMI ARI)")] = None,
    against: Annotated[
        str, typer.Option(metavar="ROW", help="also the differences from this row, paired by seed")
    ] = "",
    format: Annotated[Literal["text", "markdown", "latex", "csv"], typer.Option()] = "text",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="write the table there")] = None,
    results: Results = RESULTS,
) -> None:
    """List, compare and export what sweeps recorded."""
    from btcnb.build.project import write_atomically
    from btcnb.experiments.sweep.report import Wanted, report, state_of_affairs

    named = [_named(grid) for grid in grids or ()]
    paths = _files(_folder(context, results), [name for name, _ in named])
    order = [each for _, rows in named for each in rows]
    text = report(paths, Wanted(row or [], metric or [], against, format, order))
    for path in paths:
        for sentence in state_of_affairs(path):
            print(sentence, file=sys.stdout if format == "text" else sys.stderr)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text)
        print(f"written: {out}", file=sys.stderr)


def _named(grid: str) -> tuple[str, tuple[str, ...]]:
    """The name of a grid, and its rows where it is given as a file."""
    from btcnb.experiments.sweep.grid import grid_rows

    return grid_rows(grid) if grid.endswith((".yaml", ".yml")) else (Path(grid).stem, ())


def _files(folder: Path, names: list[str]) -> list[Path]:
    """The records of the grids that are named; of all grids where none is."""
    known = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    for name in names:
        if name not in known:
            has = f"there are those of {', '.join(known)}" if known else "make some with `btcnb sweep`"
            raise DataError(folder, "records", f"there are none of a grid {name!r:.80}", has)
    if not known:
        raise DataError(folder, "records", "there are none", "make some with `btcnb sweep`")
    return [known[name] for name in dict.fromkeys(names or known)]


def refine(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="raw blocks, bitcoin-etl files, getblock answers, CoinJoin lists (file, folder, zip), or a release",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="where the results go")],
    force: Annotated[bool, typer.Option("--force", help="replace earlier results in FOLDER")] = False,
    clusters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="clusters of your own, CSV or Parquet with the columns address and cluster"),
    ] = None,
    missing: Annotated[
        Literal["refuse", "alone"],
        typer.Option(help="addresses that FILE does not name: refuse them, or let each stand alone"),
    ] = "refuse",
    encoder: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a trained encoder (the one of the package)")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="a distance above 0, or a rule: fixed, lambda, local (what comes with the encoder)"
        ),
    ] = None,
    units: Annotated[
        Literal["addresses", "inputs"] | None,
        typer.Option(help="what trees are grown over: addresses, or groups that were inputs together"),
    ] = None,
    price_usd: Annotated[
        float | None, typer.Option(metavar="X", help="dollars for one bitcoin in those days (known for the paper's)")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="merges listed and clusters drawn")] = 12,
    quiet: Annotated[bool, typer.Option("--quiet", help="say nothing but errors")] = False,
) -> None:
    """Find suspicious merges in address clusters of your own transactions.

    Clusters the addresses, finds merges that a trained encoder finds suspicious, and writes flagged.csv,
    partition.csv, summary.json and report.html. A flag is a suspicion, not a proof.
    """
    from btcnb.experiments.tool.run import Request, refine_source
    from btcnb.experiments.tool.write import REPORT, require_place, write

    if not 0 <= top <= 1000:
        raise ParameterError(f"--top {top}: a whole number from 0 to 1000.")
    require_place(out, force)
    tell = _ignore if quiet else _tell
    request = Request(
        source=source,
        clusters=clusters,
        missing=missing,
        encoder=encoder,
        threshold=_threshold(threshold),
        units=units,
        price_usd=price_usd,
    )
    try:
        outcome = refine_source(request, tell, _progress(quiet))
        folder = write(outcome, out, top, force, tell)
    except MemoryError:
        raise DataError("memory", "size", "is not enough for this source", "refine fewer blocks at a time") from None
    if not quiet:
        print(f"{len(outcome.found.flagged):,} suspicious merges; the report: {folder / REPORT}")


def _threshold(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _ignore(line: str) -> None:
    pass


def _progress(quiet: bool) -> Callable[[int, int], None] | bool | None:
    """What `refine_source` takes: None draws a bar on a terminal; elsewhere a line now and then; False nothing."""
    if quiet or sys.stderr.isatty():
        return False if quiet else None
    said = [time.monotonic()]

    def line(done: int, total: int) -> None:
        if time.monotonic() - said[0] > _QUIET_SECONDS:
            said[0] = time.monotonic()
            _tell(f"      {done:,} of {total:,}")

    return line


def encoder(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="where both files go")],
    force: Annotated[bool, typer.Option("--force", help="replace an encoder in FOLDER")] = False,
    size: Annotated[
        str | None, typer.Option(metavar="NAME", help="size of economies and training, as in sizes.yml")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="of economies, initialisation and tuples")] = None,
    supervision: Annotated[
        str | None,
        typer.Option(metavar="RULES", help="rules whose clusters are the labels of training, with commas between"),
    ] = None,
) -> None:
    """Train an encoder for `btcnb refine` on simulated economies: encoder.pt and encoder.json.

    Without options it is the package's own.
    """
    from dataclasses import replace

    from btcnb.experiments.encoder import SHIPPED, SHIPPED_BY, make_encoder, write_encoder

    there = out / SHIPPED.name
    if there.exists() and not force:
        raise DataError(there, "out", "exists already", "name another folder, or replace it by --force")
    given: dict[str, Any] = {"size": size, "seed": seed}
    making = replace(SHIPPED_BY, **{name: value for name, value in given.items() if value is not None})
    if supervision is not None:
        rules = tuple(name.strip() for name in supervision.split(",") if name.strip())
        making = replace(making, changes={**making.changes, "supervision": rules})
    begin = time.monotonic()
    made = make_encoder(making)
    path = write_encoder(made, out)
    print(f"{path}: digest {made.digest[:16]}, threshold {made.threshold}, {time.monotonic() - begin:.0f} s.")


def summary(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="write nothing; fail if something is out of date")] = False,
    preset: Annotated[str, typer.Option(help="the build whose chapters have judged claims")] = "quick",
) -> int:
    """Write what README and first page say about the results."""
    from btcnb.build.project import Project, find_project, write_atomically
    from btcnb.build.summary import README, VERDICTS, readme_text, verdicts_text
    from btcnb.experiments.findings import findings

    project = find_project() if context.obj is None else Project(context.obj.resolve())
    made: dict[str, Callable[[], str]] = {}
    if not check:  # whether a build agrees with the committed verdicts is a question for the built book
        made[VERDICTS] = lambda: verdicts_text(project, project.output(preset))
    made[README] = lambda: readme_text(project, findings)
    stale = []
    for name, make in made.items():
        path, text = project.root / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            write_atomically(path, text)
            print(f"written: {name}")
    if check and stale:
        say(f"out of date: {', '.join(stale)}; `btcnb summary` writes them.")
        return 1
    if not stale:
        print("README and first page are up to date.")
    return 0
