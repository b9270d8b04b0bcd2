"""Running times for the chapters' cards: `results/chapter_times.csv`, written by `btcnb build --record-times`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from btcnb.book.chapter import recorded_times
from btcnb.build.fingerprint import Stamp
from btcnb.build.project import Project, write_atomically

_COLUMNS = ("chapter", "preset", "seconds")


def record_times(project: Project, stamps: Iterable[Stamp]) -> Path:
    """Put the times of the executed chapters in place of their earlier ones; those of others stay."""
    path = project.root / "results" / "chapter_times.csv"
    rows = recorded_times(path) | {(stamp.chapter, stamp.preset): stamp.seconds for stamp in stamps}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([*key, f"{seconds:.0f}"] for key, seconds in sorted(rows.items()))
    write_atomically(path, text.getvalue())
    return path
