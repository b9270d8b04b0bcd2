"""Verdicts that code gives by rules, from the records of the sweeps: claims of the paper, and the book's own questions.

A chapter that trains one network may say what it saw of a claim, as a first look. The verdict is not its own to give:
it is shown beside the look, read from the records, so that no two pages judge one claim differently.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from btcnb.book.page import MARKS, Verdict, show_table, show_verdicts, verdicts
from btcnb.book.reading import sweep
from btcnb.errors import ParameterError
from btcnb.paper.claims import Claim, Question, answer, claim, questions
from btcnb.paper.rules import Chapter
from btcnb.paper.verdicts import UNTESTED, Frames, Judgement, judge

BY_CONSTRUCTION = "true by construction, so no evidence"
_ANSWERS = {"yes": "✔ **yes**", "in part": "◐ **in part**", "no": "✘ **no**", UNTESTED: f"– **{UNTESTED}**"}
_PAIRED = "Differences are paired by seed; intervals are 95 %, by Student's t."


def judged(ids: Iterable[str], frames: Frames | None = None) -> list[Verdict]:
    """Judge claims by their rules, show the verdicts, and the rules folded below them.

    ids: such as `["C060", "C061"]`; claims that a chapter judges by its own code are refused
    frames: gives the records of a grid; `results/sweeps` if left out
    """
    chosen, read = [claim(id) for id in ids], frames or functools.cache(sweep)
    for each in chosen:
        if isinstance(each.rule, Chapter):
            raise ParameterError(f"{each.id} is judged by chapter {each.rule.chapter} itself; leave it out.")
    found = [judge(each, read) for each in chosen]
    items = []
    for each, judgement in zip(chosen, found, strict=True):
        evidence = judgement.evidence + f" ({BY_CONSTRUCTION})" * each.by_construction
        item = Verdict(
            each.claim,
            judgement.verdict,
            evidence,
            each.where,
            numbers=judgement.numbers,
            sample=judgement.sample,
            id=each.id,
        )
        items.append(item)
    verdicts(items)
    _show_rules(
        ["id", "rule", "written", "changed since"],
        [
            [each.id, judgement.rule_text, each.decided.isoformat(), _changes(each)]
            for each, judgement in zip(chosen, found, strict=True)
        ],
        "A rule that holds in part makes *partly*, everything else *not reproduced*.",
    )
    return items


def answered(chapter: str, frames: Frames | None = None) -> list[tuple[Question, str, Judgement]]:
    """Answer the questions of a chapter on the records of the sweeps, and show them with their rules folded below.

    They are no claims of the paper, so they do not go to the scoreboard.

    frames: gives the records of a grid; `results/sweeps` if left out
    """
    read = frames or functools.cache(sweep)
    found = [(each, *answer(each, read)) for each in questions(chapter)]
    show_verdicts(
        ["id", "question", "answer", "evidence"],
        [[asked.id, asked.question, _ANSWERS[said], why.evidence] for asked, said, why in found],
    )
    _show_rules(
        ["id", "rule", "written"],
        [[asked.id, why.rule_text, asked.decided.isoformat()] for asked, _, why in found],
        "What holds in part is answered *in part*, everything else *no*.",
    )
    return found


@dataclass(frozen=True)
class Look:
    """What one run saw of the claim `id`: whether each of its parts holds (none: it could not look), and numbers."""

    id: str
    holds: Sequence[bool]
    evidence: str

    @property
    def says(self) -> str:
        if not len(self.holds):
            return "nothing"
        return "yes" if all(self.holds) else "in part" if any(self.holds) else "no"


def first_look(looks: Sequence[Look], frames: Frames | None = None) -> None:
    """Show looks beside the verdicts of the records; nothing goes to the scoreboard from here.

    frames: gives the records of a grid; `results/sweeps` if left out
    """
    read, rows = frames or functools.cache(sweep), []
    for look in looks:
        asked = claim(look.id)
        verdict = judge(asked, read).verdict
        told = f"{MARKS[verdict]} {verdict} (chapter {asked.chapter})"
        rows.append([asked.id, asked.claim, look.says, look.evidence, told])
    show_verdicts(["id", "claim", "this run says", "on these numbers", "over several worlds"], rows)


def _show_rules(header: Sequence[str], rows: Sequence[Sequence[str]], partly: str) -> None:
    """The rules in words, folded, with the day each was written."""
    title = "The rules, written before the runs"
    above = f"{_PAIRED} {partly}"
    show_table(header, rows, directive="{admonition}", title=title, options=":class: dropdown", above=above)


def _changes(claim: Claim) -> str:
    return "; ".join(f"{change.date.isoformat()}: {change.why}" for change in claim.changes) or "no"
