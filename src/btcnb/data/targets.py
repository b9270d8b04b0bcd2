"""Which targets are met: a table of targets against values measured here or elsewhere, such as at full size."""

from __future__ import annotations

import pandas as pd


def met(targets: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Per row of a table with `low`, `high` and `slack`: whether the value under the same index lies in that range,
    give or take the slack. What was not measured is not met."""
    measured = values.reindex(targets.index)
    return (measured >= targets["low"] - targets["slack"]) & (measured <= targets["high"] + targets["slack"])


def target_words(targets: pd.DataFrame) -> list[str]:
    """The published value or range of each row, to three digits."""
    pairs = zip(targets["low"], targets["high"], strict=True)
    return [f"{low:.3g}" if low == high else f"{low:.3g} – {high:.3g}" for low, high in pairs]
