"""The questions that a chapter asks beyond the paper, answered by rules written before the runs."""

from __future__ import annotations

import functools

from btcnb.book.judging import TITLE, Frames, sweep
from btcnb.book.output import show
from btcnb.book.text import html_table, pipe_table
from btcnb.paper.questions import Answer, answer, questions
from btcnb.paper.rules import UNTESTED

_MARKS = {"yes": "✔", "in part": "◐", "no": "✘", UNTESTED: "–"}
_HOW = (
    "Differences are paired by seed; intervals are 95 %, by Student's t. What holds in part is answered *in part*, "
    "everything else *no*."
)


def answered(chapter: str, frames: Frames | None = None) -> list[Answer]:
    """Answer the questions of a chapter on the records of the sweeps, and show them with their rules folded below.

    They are no claims of the paper, so they do not go to the scoreboard.

    frames: gives the records of a grid; `results/sweeps` if left out
    """
    read = functools.cache(sweep) if frames is None else frames
    found = [answer(each, read) for each in questions(chapter)]
    header = ["id", "question", "answer", "evidence"]
    rows = [[a.question.id, a.question.question, _word(a.answer, "**"), a.judgement.evidence] for a in found]
    plain = [[*row[:2], _word(a.answer, ""), row[3]] for row, a in zip(rows, found, strict=True)]
    show(
        f":::{{div}} verdicts\n\n{pipe_table(header, rows)}\n:::\n",
        html_table(header, plain, [False] * len(header), ""),
    )
    heads = ["id", "rule", "written"]
    rules = [[a.question.id, a.judgement.rule_text, a.question.decided.isoformat()] for a in found]
    show(
        f"::::{{admonition}} {TITLE}\n:class: dropdown\n\n{_HOW}\n\n{pipe_table(heads, rules)}\n::::\n",
        f"<details><summary>{TITLE}</summary><p>{_HOW}</p>{html_table(heads, rules, [False] * 3, '')}</details>",
    )
    return found


def _word(answer: str, strong: str) -> str:
    return f"{_MARKS[answer]} {strong}{answer}{strong}"
