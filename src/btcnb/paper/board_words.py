"""What the scoreboard says, in words that code chooses: no page types an outcome that other seeds could make false."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from btcnb import gates
from btcnb.paper.rules import NOT, PARTLY, REPRODUCED, UNTESTED
from btcnb.paper.scoreboard import CONSTRUCTED, OUTCOMES
from btcnb.paper.words import listed


def counted_words(board: pd.DataFrame) -> str:
    """`4 reproduced, 2 true by construction and 1 not reproduced`; outcomes without a claim are left out."""
    found = board["outcome"].value_counts()
    told = [f"{found[name]} {name}" for name in OUTCOMES if found.get(name, 0)]
    return listed(told) if told else "none"


def standing(board: pd.DataFrame, outcome: str, importance: str = "high") -> list[str]:
    """The claims of one importance with one outcome, each as `claim (C024)`."""
    gates.choice("outcome", outcome, OUTCOMES)
    chosen = board[(board["outcome"] == outcome) & (board["importance"] == importance)]
    return [f"{text} ({id})" for text, id in zip(chosen["claim"], chosen["id"], strict=True)]


def verdict_words(board: pd.DataFrame, id: str) -> str:
    """`C024 is reproduced: evidence`; of a claim that cannot be tested, why."""
    line = board[board["id"] == gates.text("id", id)]
    if line.empty:
        return f"{id} is not on this board"
    verdict, evidence = line["outcome"].iloc[0], line["ours"].iloc[0]
    held = {PARTLY: "holds partly", UNTESTED: UNTESTED}.get(verdict, f"is {verdict}")
    return f"{id} {held}: {evidence}"


def seeds_words(board: pd.DataFrame) -> str:
    """How many claims were decided on records, and from how many seeds: `46 claims, on 3 to 5 seeds`."""
    seeds = board["seeds"].dropna()
    if seeds.empty:
        return "no claim"
    low, high = int(seeds.min()), int(seeds.max())
    return f"{_claims(len(seeds))}, on {low if low == high else f'{low} to {high}'} seeds"


def deciding(board: pd.DataFrame) -> str:
    """What the released dataset could decide better than simulated data: which claims, and how many."""
    levels, real = board[board["level"]], board[board["data"].isin(("real", "both"))]
    failing = int((levels["verdict"] != REPRODUCED).sum())
    named = f" ({', '.join(real['id'])})" if len(real) else ""
    return (
        f"{_claims(len(levels))} {_verb(len(levels))} on a printed score itself, and {failing} of them "
        f"{_are(failing)} not fully reproduced or not tested: a simulated graph can be as well made as one likes and "
        f"still have another score. {_claims(len(real))}{named} {_are(len(real))} about real data."
    )


def _claims(count: int) -> str:
    return f"{count} claim{'s' * (count != 1)}"


def _verb(count: int) -> str:
    return "rests" if count == 1 else "rest"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


@dataclass(frozen=True)
class Advice:
    """What we would tell the authors, depending on the verdict on one claim."""

    id: str
    holds: str
    """said if the claim is reproduced"""
    fails: str
    """said if it is not, or only partly"""


ADVICE = (
    Advice(
        "C024",
        "Say how badly the heuristics must fail before refinement pays; that it pays, we see too.",
        "Judge refinement by owners wherever owners are known. Recovering the heuristics' clusters is not the goal.",
    ),
    Advice(
        "C022",
        "Report precision and recall of flagged merges; they are good enough to be shown.",
        "Report precision and recall of flagged merges, beside the share that accusing at random would find.",
    ),
    Advice(
        "C062",
        "Keep the argument that features carry much of the signal, and add the control that shows it without a graph.",
        "Add controls without a graph and without features: the untrained network alone does not tell the two apart.",
    ),
    Advice(
        "C036",
        "Say that purity inside communities is that of one tree; it is here.",
        "Print the purity of one tree over the whole graph beside that inside communities.",
    ),
    Advice(
        "C032",
        "NMI behaves on these graphs; a score that is corrected for chance would still be safer.",
        "Print a score that is corrected for chance, such as AMI, beside NMI.",
    ),
    Advice(
        "C066",
        "Symmetrisation carries the method: the abstract could say so.",
        "Show symmetrisation on several graphs, with an interval; on one graph its worth is hard to tell.",
    ),
    Advice(
        "C100",
        "The two readings of λ agree; one sentence could say so.",
        "Say which of the two readings of λ was used for which table.",
    ),
    Advice(
        "C042",
        "State the theorem with the constant that its proof gives.",
        "Correct the constant of the theorem: its proof gives a larger one, and four nodes tell them apart.",
    ),
    Advice(
        "C121",
        "The pairs behind all rows of Table 2 seem to be the same; a sentence could say so.",
        "Score all rows of Table 2 on the same pairs, or say which were left out.",
    ),
    Advice(
        "C110",
        "Print the false negatives of the hybrid beside its false positives: both belong to the gain.",
        "Report Table 2 with an interval over sets of labels: here its gain did not show, or not in full.",
    ),
)


def advised(board: pd.DataFrame) -> tuple[list[str], list[str]]:
    """What we would tell the authors, as the verdicts stand, each with its claim; and the ids that wait for a verdict.

    A claim that is true by construction decides nothing, so it waits as well.
    """
    outcomes = dict(zip(board["id"], board["outcome"], strict=True))
    said, waiting = [], []
    for each in ADVICE:
        outcome = outcomes.get(each.id, UNTESTED)
        if outcome in (UNTESTED, CONSTRUCTED):
            waiting.append(each.id)
        elif outcome in (REPRODUCED, PARTLY, NOT):
            said.append(f"{each.holds if outcome == REPRODUCED else each.fails} ({each.id}: {outcome})")
    return said, waiting
