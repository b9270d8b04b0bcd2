"""Which structural targets are met: the calibration table against values measured elsewhere, such as at full size."""

from __future__ import annotations

import pandas as pd

SLACK = 0.1
"""A single published value is met within a tenth of it; a published range is met inside it."""


def met(targets: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Per row of the calibration table (`paper_low`, `paper_high`): whether the value under the same index meets it."""
    low, high = targets["paper_low"], targets["paper_high"]
    slack = (SLACK * low.abs()).where(low == high, 0.0)
    measured = values.reindex(targets.index)
    return (measured >= low - slack) & (measured <= high + slack)


def target_words(targets: pd.DataFrame) -> list[str]:
    """The published value or range of each row, to three digits."""
    pairs = zip(targets["paper_low"], targets["paper_high"], strict=True)
    return [f"{low:.3g}" if low == high else f"{low:.3g} – {high:.3g}" for low, high in pairs]
