"""The paper's five block intervals: where each starts, when, and what a bitcoin cost on that day; the block subsidy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

SATOSHI_PER_BITCOIN = 100_000_000
BLOCKS = 1_000
"""Length of each interval on the real chain; a simulation may take fewer blocks."""

FIRST_SUBSIDY = 50 * SATOSHI_PER_BITCOIN
"""Satoshi of a block's subsidy before the first halving."""
HALVING = 210_000
"""Blocks after which the subsidy halves, on the main chain."""


@dataclass(frozen=True)
class Split:
    """A block interval of the paper's dataset table, with its start date and the price of one bitcoin on that day."""

    start_block: int
    start_time: int  # unix seconds, midnight UTC of the first day
    price_usd: float  # interpolated between the two nearest days of the authors' price table
    fee_rate: float  # satoshi per virtual byte: median over real blocks at most 10,000 blocks away (`real_chain.csv`)


SPLITS: dict[str, Split] = {
    "train1": Split(599_000, 1_570_838_400, 8_435.84, 35.8),  # 2019-10-12
    "train2": Split(624_000, 1_585_785_600, 6_578.19, 27.0),  # 2020-04-02
    "train3": Split(674_000, 1_615_334_400, 53_537.82, 43.8),  # 2021-03-10
    "valid": Split(649_000, 1_600_473_600, 10_815.53, 101.2),  # 2020-09-19
    "test": Split(699_000, 1_630_713_600, 49_249.50, 8.3),  # 2021-09-04
}
"""The five graphs of the paper, by their role."""

FIRST = SPLITS["train1"]
"""The paper's first interval: where nothing else is said, this one is meant."""


class Interval(TypedDict, total=False):
    """First and last block (inclusive) as keyword arguments; None or left out: open on that side."""

    start_block: int | None
    end_block: int | None


def price_near(block: int) -> float | None:
    """USD for one bitcoin at the start of the paper's interval that holds the block, else None."""
    inside = (split.price_usd for split in SPLITS.values() if 0 <= block - split.start_block <= BLOCKS)
    return next(inside, None)


def subsidy(blocks: npt.ArrayLike, halving: int = HALVING) -> npt.NDArray[np.int64]:
    """New satoshi that a block of each height may pay to its miner; the reward halves every `halving` blocks."""
    halvings = np.asarray(blocks, dtype=np.int64) // halving
    return np.right_shift(np.int64(FIRST_SUBSIDY), np.minimum(halvings, 63))
