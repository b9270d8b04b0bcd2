"""Chapter 14: entity labels."""

from __future__ import annotations

from btcnb.book.exercises import seals
from btcnb.book.exercises.rule import Check

CHECKS = {
    "ex-14-alone": Check(
        "four numbers, in per cent: bACC and macro-F1 of all alone, then of all in one",
        seals.Numbers(
            "ex-14-alone",
            (
                "fefa84fa4962/abf963ffd521",
                "7854e7cfcba6/abf963ffd521",
                "fefa84fa4962/abf963ffd521",
                "625cbdc440a8/abf963ffd521",
            ),
        ),
    ),
    "ex-14-random": Check("one number between 0 and 1", seals.Number("ex-14-random", "6a57a70d20f3/cedede53d27a")),
    "ex-14-draws": Check("yes or no, whether the spread shrinks", seals.Words("ex-14-draws", ("a198178daffb",))),
}
