"""Verdicts that code gives by the rules of `claims.yml`, from the records of the sweeps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import pandas as pd

from btcnb import gates
from btcnb.book.output import Verdict, show, verdicts
from btcnb.book.reading import results
from btcnb.book.text import html_table, pipe_table
from btcnb.errors import DataError, ParameterError
from btcnb.paper.claims import Claim, claim
from btcnb.paper.kinds import Chapter
from btcnb.paper.rules import Judgement, judge

Frames = Callable[[str], "pd.DataFrame | None"]
BY_CONSTRUCTION = "true by construction, so no evidence"
TITLE = "The rules, written before the runs"
_HOW = (
    "Differences are paired by seed; intervals are 95 %, by Student's t. A rule that holds in part makes *partly*, "
    "everything else *not reproduced*."
)


def sweep(grid: str) -> pd.DataFrame | None:
    """The records of a grid, `results/sweeps/GRID.jsonl`; None where it has not been run."""
    found = results(f"sweeps/{gates.text('grid', grid, 200)}")
    if found is not None and not isinstance(found, pd.DataFrame):
        raise DataError(f"results/sweeps/{grid}", "record", "is no table", "write one JSON record a line (.jsonl)")
    return found


def judged(ids: Iterable[str], frames: Frames | None = None) -> list[Verdict]:
    """Judge claims by their rules, show the verdicts, and the rules folded below them.

    ids: such as `["C060", "C061"]`; claims that a chapter judges by its own code are refused
    frames: gives the records of a grid; `results/sweeps` if left out
    """
    chosen = [claim(id) for id in gates.items("ids", ids)]
    own = next((each for each in chosen if isinstance(each.rule, Chapter)), None)
    if own is not None and isinstance(own.rule, Chapter):
        raise ParameterError(f"{own.id} is judged by chapter {own.rule.chapter} itself; leave it out.")
    read = functools.cache(sweep) if frames is None else frames
    found = [(each, judge(each, read)) for each in chosen]
    items = [_verdict(each, judgement) for each, judgement in found]
    verdicts(items)
    _rules(found)
    return items


def _verdict(claim: Claim, judgement: Judgement) -> Verdict:
    evidence = judgement.evidence
    if claim.by_construction:
        evidence = f"{evidence} ({BY_CONSTRUCTION})"
    return Verdict(
        claim.claim,
        judgement.verdict,
        evidence,
        claim.where,
        numbers=judgement.numbers,
        sample=judgement.sample,
        id=claim.id,
    )


def _rules(found: list[tuple[Claim, Judgement]]) -> None:
    """The rules in words, with the day each was written and whatever was changed since."""
    header = ["id", "rule", "written", "changed since"]
    rows = [[each.id, judgement.rule_text, each.decided.isoformat(), _changes(each)] for each, judgement in found]
    body = f"{_HOW}\n\n{pipe_table(header, rows)}"
    show(
        f"::::{{admonition}} {TITLE}\n:class: dropdown\n\n{body}\n::::\n",
        f"<details><summary>{TITLE}</summary><p>{_HOW}</p>{html_table(header, rows, [False] * 4, '')}</details>",
    )


def _changes(claim: Claim) -> str:
    return "; ".join(f"{change.date.isoformat()}: {change.why}" for change in claim.changes) or "no"
