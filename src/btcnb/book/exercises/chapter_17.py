"""Chapter 17: the real chain."""

from __future__ import annotations

from btcnb.book.exercises import seals
from btcnb.book.exercises.rule import Check

CHECKS = {
    "ex-17-chance": Check(
        "two numbers: NMI and ARI of the example",
        seals.Numbers("ex-17-chance", ("138974db29b0/41911c83d4b5", "b5d76ed9acdd/2389a076223e")),
    ),
    "ex-17-price": Check("one number of columns", seals.Number("ex-17-price", "4f6a5e06974c/b61095d1c1ea")),
}
