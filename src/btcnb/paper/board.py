"""All claims of the paper in one table, each with its verdict: by its rule on records, or by the chapter it belongs to.

A claim that a chapter judges by its own code gets the verdict which that chapter has recorded in the same build. Where
the chapter has not been executed, the claim cannot be tested here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from btcnb.paper.claims import DATA, IMPORTANCE, Claim, paper_words
from btcnb.paper.rules import Chapter, Definition, Value, parts
from btcnb.paper.verdicts import NOT, PARTLY, REPRODUCED, UNTESTED, Frames, Judgement, judge
from btcnb.paper.words import rule_words
from btcnb.store import note_read

ADVICE = Path(__file__).with_name("advice.yml")
Recorded = Mapping[str, Sequence[Mapping[str, Any]]]
"""Verdicts that executed chapters have recorded, by the chapter's number: `{"02": [{"claim": …, "verdict": …}]}`."""

CONSTRUCTED = "true by construction"
OUTCOMES = (REPRODUCED, CONSTRUCTED, PARTLY, NOT, UNTESTED)
"""Verdicts as they are counted: what could not fail is no evidence, so it is set apart."""

SECTIONS = {
    "1, 2 · Introduction and related work": ("Section 1", "Section 2"),
    "3 · Methodology": ("Section 3", "Equation 1"),
    "4 · Theory, with Appendices D.4 and F": ("Section 4", "Appendix D.4", "Appendix F"),
    "5 · Set-up, with Appendices A to C": ("Section 5", "Appendix A", "Appendix B", "Appendix C", "Table 4", "Table 6"),
    "6.1 · Ablation (Table 1)": ("Section 6.1", "Table 1"),
    "6.2 · Refinement": ("Section 6.2",),
    "6.3.1 · Entity labels (Table 2)": ("Section 6.3", "Table 2"),
    "6.3.2 · CoinJoins (Table 3)": ("Section 6.3.2", "Table 3"),
    "D.1 to D.3 · Dimension, α, negatives": ("Appendix D", "Table 8", "Table 9", "Table 10"),
    "E · Möser and Narayanan": ("Appendix E",),
    "G · Cost": ("Appendix G", "Table 11"),
    "Conclusion": ("Conclusion",),
}
"""Sections of the paper in its order, and the places that belong to each; the longest name that fits decides."""
ELSEWHERE = "Elsewhere"

NO_RESULT, NO_RUN, UNDECIDED, NO_RECORDS = (
    "no result that could be tested",
    "its chapter has not been executed in this build",
    "its chapter could not decide it",
    "records are missing, or from too few seeds",
)
REASONS = (NO_RESULT, NO_RUN, UNDECIDED, NO_RECORDS)
BY_GROUP = {"section": (*SECTIONS, ELSEWHERE), "importance": IMPORTANCE, "data": DATA}
"""What the claims are counted by, and in which order."""


def scoreboard(chosen: Iterable[Claim], frames: Frames, recorded: Recorded) -> pd.DataFrame:
    """One line a claim, in the order given; most columns are the claim's own fields.

    frames:   gives the records of a grid, or None
    recorded: what executed chapters have recorded; a chapter that is absent has not been executed
    paper:    the paper's number, as printed
    ours:     our numbers with their intervals, or why there is none
    level:    whether the rule asks for the paper's very number, which simulated data can only resemble
    seeds:    how many decided; missing for claims that a chapter judges, or nobody
    untested: why a claim cannot be tested here; empty for the others
    """
    return pd.DataFrame([_line(each, frames, recorded) for each in chosen]).astype({"seeds": "Int64"})


def _line(claim: Claim, frames: Frames, recorded: Recorded) -> dict[str, Any]:
    own = isinstance(claim.rule, Chapter)
    found = of_chapter(claim, recorded) if own else judge(claim, frames)
    constructed = claim.by_construction and found.verdict == REPRODUCED
    return {
        "id": claim.id,
        "section": section(claim.where),
        "where": claim.where,
        "claim": claim.claim,
        "paper": paper_words(claim),
        "ours": found.evidence,
        "verdict": found.verdict,
        "outcome": CONSTRUCTED if constructed else found.verdict,
        "rule": rule_words(claim.rule),
        "written": claim.decided.isoformat(),
        "changes": "; ".join(f"{change.date.isoformat()}: {change.why}" for change in claim.changes),
        "data": claim.data,
        "chapter": claim.chapter,
        "by_construction": claim.by_construction,
        "importance": claim.importance,
        "level": any(isinstance(part, Value) for part in parts(claim.rule)),
        "seeds": found.sample,
        "untested": _why(claim, recorded) if found.verdict == UNTESTED else "",
    }


def section(where: str) -> str:
    """The section of the paper that a place such as `Section 6.3.2, Table 3` lies in; the first place named decides."""
    place = where.split(",")[0].strip()
    names = {name: key for key, places in SECTIONS.items() for name in places}
    fits = [name for name in names if place == name or place.startswith(f"{name}.")]
    return names[max(fits, key=len)] if fits else ELSEWHERE


def of_chapter(claim: Claim, recorded: Recorded) -> Judgement:
    """The verdict that a chapter has recorded on a claim: by its id, or else by the words that its rule quotes.

    Several records of one claim count like the parts of a rule: what they do not all say, holds partly.
    """
    chapter, words = claim.rule.chapter, claim.rule.words  # type: ignore[union-attr]
    if chapter not in recorded:
        return Judgement(UNTESTED, f"chapter {chapter} has not been executed in this build")
    given = [entry for entry in recorded[chapter] if entry.get("kind", "verdict") == "verdict"]
    by_id = [entry for entry in given if entry.get("id") == claim.id]
    named = by_id or [entry for entry in given if not entry.get("id") and words in str(entry.get("claim", ""))]
    if not named:
        return Judgement(UNTESTED, f"chapter {chapter} has recorded no verdict on it in this build")
    verdicts = {str(entry["verdict"]) for entry in named}
    verdict = verdicts.pop() if len(verdicts) == 1 else PARTLY
    return Judgement(verdict, "; ".join(str(entry["evidence"]) for entry in named))


def _why(claim: Claim, recorded: Recorded) -> str:
    match claim.rule:
        case Definition():
            return NO_RESULT
        case Chapter():
            return UNDECIDED if claim.rule.chapter in recorded else NO_RUN
    return NO_RECORDS


def at_least(board: pd.DataFrame, importance: str) -> pd.DataFrame:
    """The claims of this importance or more."""
    most = IMPORTANCE.index(importance)
    return board[board["importance"].isin(IMPORTANCE[: most + 1])].reset_index(drop=True)


def counted(board: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many claims of each group have which outcome: groups that there are as index, `OUTCOMES` as columns."""
    order = BY_GROUP[by]
    found = pd.crosstab(board[by], board["outcome"]).reindex(columns=list(OUTCOMES), fill_value=0)
    found.columns.name = None
    return found.reindex([name for name in order if name in found.index])


def overall(board: pd.DataFrame, name: str = "all claims") -> pd.DataFrame:
    """The counts of all claims together, as one line of the form of `counted`."""
    found = board["outcome"].value_counts().reindex(list(OUTCOMES), fill_value=0)
    return pd.DataFrame([found.to_numpy()], index=[name], columns=list(OUTCOMES))


def advised(board: pd.DataFrame) -> pd.DataFrame:
    """What we would tell the authors: id, outcome and advice, which depends on the outcome (`advice.yml`).

    A claim without a verdict, or true by construction, decides nothing: its advice is missing.
    """
    outcomes = dict(zip(board["id"], board["outcome"], strict=True))
    lines = []
    for each in yaml.safe_load(note_read(ADVICE).read_text(encoding="utf-8")):
        outcome = outcomes.get(each["id"], UNTESTED)
        said = None if outcome in (UNTESTED, CONSTRUCTED) else each["holds" if outcome == REPRODUCED else "fails"]
        lines.append((each["id"], outcome, said))
    return pd.DataFrame(lines, columns=["id", "outcome", "advice"])
