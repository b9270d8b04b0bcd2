"""A first look: what one run says of claims that the records of several worlds settle.

A chapter that trains one network may say what it saw. The verdict is not its own to give: it is shown beside the look,
read from the records, so that no two pages judge one claim differently.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from btcnb import gates
from btcnb.book.judging import Frames, sweep
from btcnb.book.output import MARKS, show
from btcnb.book.text import html_table, pipe_table
from btcnb.errors import ParameterError
from btcnb.paper.claims import claim
from btcnb.paper.rules import judge

NOTHING = "nothing"
_HEADER = ["id", "claim", "this run says", "on these numbers", "over several worlds"]


@dataclass(frozen=True)
class Look:
    """What one run saw of the claim `id`: whether each of its parts holds (none: it could not look), and numbers."""

    id: str
    holds: Sequence[bool]
    evidence: str

    def __post_init__(self) -> None:
        claim(self.id)
        holds = gates.items("holds", self.holds)
        if not all(isinstance(each, bool | np.bool_) for each in holds):
            raise ParameterError("holds must say yes or no (True or False) of each part of the claim.")
        object.__setattr__(self, "holds", tuple(map(bool, holds)))
        gates.text("evidence", self.evidence)

    @property
    def says(self) -> str:
        if not self.holds:
            return NOTHING
        return "yes" if all(self.holds) else "in part" if any(self.holds) else "no"


def first_look(looks: Sequence[Look], frames: Frames | None = None) -> None:
    """Show looks beside the verdicts of the records; nothing goes to the scoreboard from here.

    frames: gives the records of a grid; `results/sweeps` if left out
    """
    read = functools.cache(sweep) if frames is None else frames
    rows = [_cells(gates.instance("a look", look, Look), read) for look in gates.items("looks", looks)]
    show(
        f":::{{div}} verdicts\n\n{pipe_table(_HEADER, rows)}\n:::\n",
        html_table(_HEADER, rows, [False] * len(_HEADER), ""),
    )


def _cells(look: Look, read: Frames) -> list[str]:
    asked = claim(look.id)
    verdict = judge(asked, read).verdict
    return [asked.id, asked.claim, look.says, look.evidence, f"{MARKS[verdict]} {verdict} (chapter {asked.chapter})"]
