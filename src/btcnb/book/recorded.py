"""What the scripts in `benchmarks/` have recorded, as one tidy table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

COLUMNS = ["benchmark", "task", "shape", "stage", "n", "seconds", "extra MB"]


def recorded_stages(*benchmarks: Sequence[Mapping[str, Any]] | None) -> pd.DataFrame:
    """One row per timed stage: the fewest seconds and the most extra memory of its repeats, `COLUMNS` as columns.

    benchmarks: contents of files of `results/benchmarks/` (flat records with benchmark, stage, n, seconds, peak_mb
                and start_mb); None, a file that is not there, adds nothing. Whole runs ("total") and records of an
                error are left out.
    """
    rows = [
        (
            record["benchmark"],
            record.get("task", ""),
            record.get("shape", ""),
            record["stage"].rstrip(" 0123456789"),  # repeats of a stage are numbered
            record["n"],
            record["seconds"],
            record["peak_mb"] - record["start_mb"],
        )
        for records in benchmarks
        for record in records or ()
        if record["stage"] != "total" and "error" not in record
    ]
    by = COLUMNS[:-2]
    return pd.DataFrame(rows, columns=COLUMNS).groupby(by, as_index=False).agg({"seconds": "min", "extra MB": "max"})
