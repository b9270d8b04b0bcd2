"""Loading the transcribed tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.store import note_read

FOLDER = Path(__file__).parent


def tables() -> list[str]:
    """Names of the transcribed tables."""
    return sorted(path.stem for path in FOLDER.glob("*.csv"))


def table(name: str) -> pd.DataFrame:
    """One table of the paper, as printed; see `tables()` for the names."""
    if gates.text("name", name) not in tables():
        raise ParameterError(f"the paper has no table {name!r:.80}; there are {', '.join(tables())}.")
    return pd.read_csv(note_read(FOLDER / f"{name}.csv"), keep_default_na=True)


def value(name: str, column: str = "value", **row: object) -> float:
    """The one number of table `name` in `column`, in the row where every given column has the given value.

    >>> value("theory_checks", quantity="cut ratio overall")
    87.0
    """
    frame = table(name)
    gates.text("column", column)
    unknown = [key for key in (*row, column) if key not in frame.columns]
    if unknown:
        raise ParameterError(f"table {name!r} has no column {unknown[0]!r:.80}; it has {', '.join(frame.columns)}.")
    for key, wanted in row.items():
        if not isinstance(wanted, str | int | float | None) or (isinstance(wanted, int) and abs(wanted) >= 2**63):
            raise ParameterError(f"{key} is a {type(wanted).__name__}; give text, a number, or None for an empty cell.")
        if isinstance(wanted, str):
            gates.text(key, wanted)
        frame = frame[frame[key] == wanted] if wanted is not None else frame[frame[key].isna()]
    if len(frame) != 1:
        raise ParameterError(
            f"{len(frame)} rows of table {name!r} match {row!s:.200}; give the columns that single one out."
        )
    if not pd.api.types.is_numeric_dtype(frame[column]):
        raise ParameterError(f"column {column!r} of table {name!r} holds text, not numbers.")
    return float(frame[column].iloc[0])
