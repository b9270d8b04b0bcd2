"""The commands `btcnb sweep` and `btcnb results`: run grids of experiments, and look at what was recorded."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from btcnb.errors import DataError, ParameterError

if TYPE_CHECKING:
    from btcnb.build.project import Project
    from btcnb.experiments.sweep.grids import Grid
    from btcnb.experiments.sweep.planning import Plan

FAILED, INTERRUPTED, TERMINATED = 1, 130, 143
RESULTS = Path("results/sweeps")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("sweep", help="run grids of experiments and record every run")
    command.add_argument("grids", nargs="+", type=Path, metavar="GRID.yaml", help="what to run (see experiments/)")
    command.add_argument("--seeds", type=_seeds, metavar="N", help="seeds 1 to N, or a list 1,4,9 (as the grid says)")
    command.add_argument("--jobs", "-j", type=int, default=1, metavar="N", help="runs at a time, one thread each (1)")
    command.add_argument("--scheduler", metavar="tcp://…", help="run on the workers of a Dask scheduler instead")
    command.add_argument("--only", nargs="+", action="extend", default=[], metavar="ROW", help="some rows (all)")
    command.add_argument(
        "--again", choices=("failed", "stale", "all"), default="failed",
        help="recorded runs that run again: failed ones; also those of other code or data; all (failed)",
    )  # fmt: skip
    _add_results(command)
    command.add_argument("--dry-run", action="store_true", help="only say what would run")
    command.set_defaults(run=_sweep)

    command = commands.add_parser("results", help="list, compare and export what sweeps recorded")
    command.add_argument("grids", nargs="*", metavar="GRID", help="grids by name or file (all that have records)")
    command.add_argument("--row", nargs="+", action="extend", default=[], metavar="ROW", help="some rows (all)")
    command.add_argument("--metric", nargs="+", action="extend", default=[], metavar="NAME", help="(DP NMI ARI)")
    command.add_argument("--against", metavar="ROW", help="also the differences from this row, paired by seed")
    command.add_argument("--format", choices=("text", "markdown", "latex", "csv"), default="text", help="(text)")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the table there")
    _add_results(command)
    command.set_defaults(run=_results)


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FOLDER", help=f"where the records lie ({RESULTS})"
    )


def _sweep(project: Project, options: argparse.Namespace) -> int:
    if options.jobs < 1:
        raise ParameterError(f"--jobs {options.jobs}: a whole number of at least 1.")
    try:
        plans = _plans(project, options)
        if options.dry_run:
            _list(plans)
            return 0
        return _run(plans, options)
    except KeyboardInterrupt as error:
        print("\nbtcnb: Interrupted; the recorded runs are kept, and the same command goes on.", file=sys.stderr)
        return INTERRUPTED if type(error) is KeyboardInterrupt else TERMINATED


def _list(plans: list[Plan]) -> None:
    for planned in plans:
        for job in planned.todo:
            print(f"{planned.grid.name} · {job.row} · seed {job.seed}")


def _plans(project: Project, options: argparse.Namespace) -> list[Plan]:
    from btcnb.experiments.sweep.planning import plan
    from btcnb.experiments.sweep.records import Records
    from btcnb.experiments.sweep.work import made_here

    folder = _folder(project, options.results)
    plans = []
    for grid in _read(options):
        planned = plan(grid, Records(folder / f"{grid.name}.jsonl"), made_here, options.again)
        plans.append(planned)
        for sentence in planned.sentences:
            print(sentence)
        print(f"{grid.name}: {len(grid.jobs)} runs, {planned.done} recorded, {len(planned.todo)} to do.", flush=True)
    return plans


def _run(plans: list[Plan], options: argparse.Namespace) -> int:
    from btcnb.experiments.measures import measure
    from btcnb.experiments.sweep.running import Workers, run

    workers: Workers
    if options.scheduler:
        from btcnb.experiments.sweep.remote import DaskWorkers

        workers = DaskWorkers(measure, options.scheduler)
    else:
        from btcnb.experiments.sweep.local import LocalWorkers

        # loky renews a worker that has grown too large between two runs, and warns as if that were a fault
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        workers = LocalWorkers(measure, options.jobs)
    told = run(plans, workers)
    if told.failed:
        print(f"btcnb: Runs that failed: {told.failed}; the same command tries them again.", file=sys.stderr)
    return FAILED if told.failed else 0


def _results(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.project import write_atomically
    from btcnb.experiments.sweep.reporting import Wanted, report, state_of_affairs

    grids = [_named(grid) for grid in options.grids]
    paths = _files(_folder(project, options.results), [name for name, _ in grids])
    order = [row for _, rows in grids for row in rows]
    wanted = Wanted(options.row, options.metric, options.against or "", options.format, order)
    text = report(paths, wanted)
    for path in paths:
        for sentence in state_of_affairs(path):
            print(sentence, file=sys.stdout if options.format == "text" else sys.stderr)
    if options.out is None:
        print(text, end="")
    else:
        write_atomically(options.out, text)
        print(f"written: {options.out}", file=sys.stderr)
    return 0


def _named(grid: str) -> tuple[str, tuple[str, ...]]:
    """The name of a grid, and its rows where it is given as a file."""
    from btcnb.experiments.sweep.grids import read_grid

    if not grid.endswith((".yaml", ".yml")):
        return Path(grid).stem, ()
    read = read_grid(grid)
    return read.name, read.rows


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


def _read(options: argparse.Namespace) -> list[Grid]:
    """The grids that were named, with the rows that were asked for."""
    from btcnb.experiments.sweep.grids import read_grid

    grids = [read_grid(path, options.seeds) for path in options.grids]
    names = [grid.name for grid in grids]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"two of the grids are called {name!r}; their records would lie in one file.")
    if not options.only:
        return grids
    rows = {row for grid in grids for row in grid.rows}
    for row in options.only:
        if row not in rows:
            grids[0].only([row])  # says so, with the nearest name
    return [grid.only([row for row in options.only if row in grid.rows]) for grid in grids]


def _folder(project: Project, results: Path) -> Path:
    return results if results.is_absolute() or results != RESULTS else project.root / results


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a list such as 1,4,9") from None
    return numbers if "," in text or not numbers else numbers[0]
