"""Self-checks of the exercises: `book.check("ex-02-deposit", answer)` says right or wrong, and how wrong.

What judges an answer stands in `btcnb.book.exercises`, one module a chapter. A judge asks for the chapter's variables
by their names, so an answer is judged for the parameters that the chapter ran with.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from btcnb import gates
from btcnb.book.exercises.rule import Check
from btcnb.book.exercises.spoil import spoiled
from btcnb.book.exercises.ways import MisreadError
from btcnb.book.page import escape, record, show
from btcnb.errors import BtcnbError, ParameterError
from btcnb.store import note_read

_NAME = re.compile(r"ex-(\d\d)-[a-z0-9-]+")
_UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
_MARKS = {True: "✔", False: "✘", None: "○"}


class CheckError(BtcnbError):
    """A solution and its check do not agree: the build must not go on."""


@dataclass(frozen=True)
class Judgement:
    """`right` is None where nothing was judged: no answer yet, or something missing that the judge needs."""

    right: bool | None
    words: str


def check(name: str, answer: Any = ..., **state: Any) -> None:
    """Judge `answer` to the exercise `name` and say so on the page, without showing what is right.

    Variables that the judge needs are taken from the notebook; `state` sets some of them by hand.
    """
    _tell(name, judgement(name, answer, {**_caller(), **state}))


def solved(name: str, answer: Any, wrong: Any = ..., **state: Any) -> None:
    """Judge the answer of a solution: raises `CheckError` unless the check takes it and refuses a wrong one.

    wrong: an answer that must be refused; if left out, one is made from `answer`
    """
    names = {**_caller(), **state}
    found = judgement(name, answer, names)
    if found.right is False:
        raise CheckError(f"{name}: the check refuses the solution: {found.words}")
    refused = None
    if found.right:
        refused = judgement(name, spoiled(answer) if wrong is ... else wrong, names).right is False
        if not refused:
            raise CheckError(f"{name}: the check takes a wrong answer")
    record("solved", exercise=name, right=found.right, refused=refused)
    _tell(name, found)


def judgement(name: str, answer: Any, state: Mapping[str, Any]) -> Judgement:
    """Judge an answer with the chapter's variables given in `state`; nothing is shown."""
    rule = _rule(name)
    if answer is ...:
        return Judgement(None, f"Not answered yet. Wanted: {rule.form}.")
    missing = [key for key in rule.names() if key not in state]
    if missing:
        return Judgement(None, f"This cannot be judged here: the chapter has no `{missing[0]}`.")
    try:
        words = rule.judge(answer, **{key: state[key] for key in rule.names()})
    except MisreadError as error:
        words = f"{error} (wanted: {rule.form})"
    except _UNREADABLE as error:
        words = f"this cannot be read as an answer ({type(error).__name__}); wanted: {rule.form}"
    return Judgement(not words, f"Wrong: {words}." if words else "Right.")


def checks(chapter: str) -> dict[str, Check]:
    """The checks of a chapter, given by its number; an empty table where it has none."""
    module = f"btcnb.book.exercises.chapter_{gates.text('chapter', chapter, 2)}"
    path = Path(__file__).with_name("exercises") / f"chapter_{chapter}.py"
    if not path.exists():
        return {}
    note_read(path)  # imported by name, so that a chapter depends on its own judges only
    return dict(importlib.import_module(module).CHECKS)


def _rule(name: str) -> Check:
    found = _NAME.fullmatch(gates.text("name", name, 100))
    known = checks(found[1]) if found else {}
    if name not in known:
        raise ParameterError(f"{name!r} is no exercise with a self-check; this chapter's are {', '.join(known)}.")
    return known[name]


def _caller() -> Mapping[str, Any]:
    """The variables of the notebook (or script) that called `check` or `solved`."""
    return sys._getframe(2).f_globals


def _tell(name: str, found: Judgement) -> None:
    mark, words = _MARKS[found.right], escape(found.words)
    kind = {True: "right", False: "wrong", None: "open"}[found.right]
    show(f":::{{div}} self-check self-check-{kind}\n{mark} {words}\n:::\n", f"<p><b>{mark}</b> {words}</p>")
