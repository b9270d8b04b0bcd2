"""The command `btcnb summary`: one command after new records, and README and first page say what they say."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btcnb.build.project import Project

STALE = 1


def add_commands(commands: Any) -> None:
    """Add `summary` to the commands of `btcnb`."""
    command = commands.add_parser("summary", help="write what README and first page say about the results")
    command.add_argument("--check", action="store_true", help="write nothing; fail if something is out of date")
    command.add_argument("--preset", default="quick", help="the build whose chapters have judged claims (quick)")
    command.add_argument("--without-pictures", action="store_true", help="leave the first page's pictures alone")
    command.set_defaults(run=_summary)


def _summary(project: Project, options: argparse.Namespace) -> int:
    from btcnb.build.project import write_atomically
    from btcnb.build.summarising import PICTURES, README, VERDICTS, readme_text, verdicts_text
    from btcnb.experiments.headlines import headlines

    output, stale = project.output(options.preset), []

    def settle(name: str, text: str) -> None:
        path = project.root / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        stale.append(name)
        if not options.check:
            write_atomically(path, text)
            print(f"written: {name}")

    if not options.check:  # whether a build agrees with the committed verdicts is a question for the built book
        settle(VERDICTS, verdicts_text(project, output))
    settle(README, readme_text(project, headlines))
    if not options.without_pictures:
        for name, make in PICTURES.items():
            settle(name, make())
    if options.check and stale:
        print(f"btcnb: out of date: {', '.join(stale)}; `btcnb summary` writes them.", file=sys.stderr)
        return STALE
    if not stale:
        print("README and first page are up to date.")
    return 0
