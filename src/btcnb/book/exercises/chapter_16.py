"""Chapter 16: CoinJoins."""

from __future__ import annotations

from btcnb.book.exercises import seals
from btcnb.book.exercises.rule import Check

CHECKS = {
    "ex-16-best": Check(
        'two words out of "alone", "together", "heuristics": perfect and useless, nearly perfect and useful',
        seals.Words("ex-16-best", ("91ee42195bd4", "45968943ff58"), ordered=True),
    ),
    "ex-16-sizes": Check(
        "two numbers between 0 and 1: as split, and dealt at random",
        seals.Numbers("ex-16-sizes", ("34cd198cafb4/89f7b7dbb67f", "34cd198cafb4/89f7b7dbb67f")),
    ),
}
