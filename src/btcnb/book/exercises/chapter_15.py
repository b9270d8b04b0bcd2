"""Chapter 15: Möser and Narayanan's change heuristics."""

from __future__ import annotations

from btcnb.book.exercises import seals
from btcnb.book.exercises.rule import Check

CHECKS = {
    "ex-15-vote": Check(
        "a set of names out of the first nine of HEURISTICS",
        seals.Words("ex-15-vote", ("d02d4ba9ff2c", "f0375af3662c")),
    ),
    "ex-15-order": Check(
        "the groups for the merges in the other order, such as [{0, 1, 2}]",
        seals.Groups("ex-15-order", ("7c624b0b3e71", "a49b2c5fa715")),
    ),
}
