"""How one exercise is judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """How an exercise is judged.

    form: what an answer looks like, such as "one number, in per cent"
    judge: (answer, the chapter's variables by name) -> "" if right, else what is wrong
    """

    form: str
    judge: Callable[..., str]

    def names(self) -> list[str]:
        """The chapter's variables that the judge asks for."""
        return list(inspect.signature(self.judge).parameters)[1:]
