"""The commands `btcnb refine` and `btcnb encoder`: refine anybody's clusters, and make the encoder that does it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btcnb.errors import DataError, ParameterError

if TYPE_CHECKING:
    from btcnb.build.project import Project

INTERRUPTED, TERMINATED = 130, 143
QUIET_SECONDS = 10.0
"""Off a terminal: at most one line of progress in this time."""


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "refine", help="find suspicious merges in address clusters of your own transactions",
        description="Cluster the addresses of your transactions, find merges that a trained encoder finds suspicious, "
        "and write flagged.csv, partition.csv, summary.json and report.html. A flag is a suspicion, not a proof.",
    )  # fmt: skip
    command.add_argument(
        "source", type=Path, metavar="SOURCE",
        help="raw blocks, bitcoin-etl files, getblock answers, lists of CoinJoins (file, folder or zip), or a release",
    )  # fmt: skip
    command.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the results go")
    command.add_argument("--force", action="store_true", help="replace earlier results in FOLDER")
    command.add_argument(
        "--clusters", type=Path, metavar="FILE",
        help="clusters of your own, CSV or Parquet with the columns address and cluster (heuristic ones)",
    )  # fmt: skip
    command.add_argument(
        "--missing", choices=("refuse", "alone"), default="refuse",
        help="addresses that FILE does not name: refuse them, or let each stand alone (refuse)",
    )  # fmt: skip
    command.add_argument("--encoder", type=Path, metavar="FILE", help="a trained encoder (the one of the package)")
    command.add_argument(
        "--threshold", type=_threshold, metavar="X",
        help="a distance above 0, or a rule: fixed, lambda, local (what comes with the encoder)",
    )  # fmt: skip
    command.add_argument(
        "--units", choices=("addresses", "inputs"),
        help="what trees are grown over: addresses, or groups that were inputs together (what comes with the encoder)",
    )  # fmt: skip
    command.add_argument(
        "--price-usd", type=float, metavar="X", help="dollars for one bitcoin in those days (known for the paper's)"
    )
    command.add_argument("--top", type=int, default=12, metavar="N", help="merges listed and clusters drawn (12)")
    command.add_argument("--quiet", action="store_true", help="say nothing but errors")
    command.set_defaults(run=_refine, bookless=True)

    command = commands.add_parser(
        "encoder", help="train an encoder for `btcnb refine` on simulated economies",
        description="Train an encoder and write encoder.pt and encoder.json. Without options it is the package's own.",
    )  # fmt: skip
    command.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where both files go")
    command.add_argument("--force", action="store_true", help="replace an encoder in FOLDER")
    command.add_argument("--size", metavar="NAME", help="size of economies and training, as in sizes.yml")
    command.add_argument("--seed", type=int, metavar="N", help="of economies, initialisation and tuples")
    command.add_argument(
        "--supervision", metavar="RULES", help="rules whose clusters are the labels of training, with commas between"
    )
    command.set_defaults(run=_encoder, bookless=True)


def _threshold(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _refine(project: Project | None, options: argparse.Namespace) -> int:
    return _whole("Interrupted; nothing was written.", options, _refined)


def _refined(options: argparse.Namespace) -> int:
    from btcnb.experiments.refine_tool import Request, refine_source
    from btcnb.experiments.refine_write import REPORT, require_place, write

    if not 0 <= options.top <= 1000:
        raise ParameterError(f"--top {options.top}: a whole number from 0 to 1000.")
    require_place(options.out, options.force)
    request = Request(
        source=options.source,
        clusters=options.clusters,
        missing=options.missing,
        encoder=options.encoder,
        threshold=options.threshold,
        units=options.units,
        price_usd=options.price_usd,
    )
    tell = _nobody if options.quiet else _say
    outcome = refine_source(request, tell, _progress(options.quiet))
    folder = write(outcome, options.out, options.top, options.force, tell)
    if not options.quiet:
        print(f"{len(outcome.found.flagged):,} suspicious merges; the report: {folder / REPORT}")
    return 0


def _encoder(project: Project | None, options: argparse.Namespace) -> int:
    return _whole("Interrupted; no encoder was written.", options, _made)


def _made(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from btcnb.experiments.encoder import SHIPPED, SHIPPED_BY, make_encoder, write_encoder

    there = options.out / SHIPPED.name
    if there.exists() and not options.force:
        raise DataError(there, "out", "exists already", "name another folder, or replace it by --force")
    given = {"size": options.size, "seed": options.seed}
    making = replace(SHIPPED_BY, **{name: value for name, value in given.items() if value is not None})
    if options.supervision is not None:
        rules = tuple(name.strip() for name in options.supervision.split(",") if name.strip())
        making = replace(making, changes={**making.changes, "supervision": rules})
    begin = time.monotonic()
    made = make_encoder(making)
    path = write_encoder(made, options.out)
    print(f"{path}: digest {made.digest[:16]}, threshold {made.threshold}, {time.monotonic() - begin:.0f} s.")
    return 0


def _whole(interrupted: str, options: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> int:
    """Run a command that writes all or nothing; interrupts are answered in one sentence."""
    try:
        return run(options)
    except KeyboardInterrupt as error:
        print(f"\nbtcnb: {interrupted}", file=sys.stderr)
        return INTERRUPTED if type(error) is KeyboardInterrupt else TERMINATED
    except MemoryError:
        raise DataError("memory", "size", "is not enough for this source", "refine fewer blocks at a time") from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _nobody(line: str) -> None:
    pass


def _progress(quiet: bool) -> Any:
    """A bar on a terminal, a line now and then elsewhere, nothing if quiet."""
    if quiet or sys.stderr.isatty():
        return False if quiet else None
    said = [time.monotonic()]

    def line(done: int, total: int) -> None:
        if time.monotonic() - said[0] > QUIET_SECONDS:
            said[0] = time.monotonic()
            _say(f"      {done:,} of {total:,}")

    return line
