"""The scoreboard: every claim gets one line, its verdict from the right place, and words that follow the verdicts."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

from btcnb import paper
from btcnb.paper import board as boards
from btcnb.paper.board import (
    CONSTRUCTED,
    NO_RECORDS,
    NO_RESULT,
    NO_RUN,
    OUTCOMES,
    UNDECIDED,
    advised,
    at_least,
    counted,
    overall,
)
from btcnb.paper.claims import CLAIMS, Claim, made
from btcnb.paper.verdicts import NOT, PARTLY, REPRODUCED, UNTESTED

HIGHER = {"kind": "contrast", "grid": "g", "row": "a", "against": "b", "metrics": ["NMI"], "above": 0}
LOWER = {**{key: HIGHER[key] for key in HIGHER if key != "above"}, "below": 0}
OWN = {"kind": "chapter", "chapter": "05", "words": "cluster-separable"}
THEOREM = {"kind": "verdict", "claim": "Theorem: cluster-separable if small", "verdict": NOT, "evidence": "four nodes"}


def claims(*entries: dict[str, Any]) -> list[Claim]:
    """Claims C001, C002, …; what an entry does not say is taken from here."""
    usual = {"where": "Table 1", "claim": "A beats B.", "data": "simulated", "importance": "high", "chapter": "11"}
    given = [{"id": f"C{i:03d}", **usual, "rule": HIGHER, **entry} for i, entry in enumerate(entries, 1)]
    return [made(CLAIMS, Claim, {"decided": datetime.date(2026, 11, 17), **each}) for each in given]


def own(**fields: Any) -> dict[str, Any]:
    return {"chapter": "05", "rule": OWN, "data": "none", **fields}


def frames(grid: str) -> pd.DataFrame | None:
    """Row a is ahead of b by about 0.1 in each of three seeds."""
    if grid != "g":
        return None
    lines = [("a", 1, 0.61), ("a", 2, 0.70), ("a", 3, 0.80), ("b", 1, 0.50), ("b", 2, 0.60), ("b", 3, 0.71)]
    return pd.DataFrame(lines, columns=["row", "seed", "NMI"]).assign(state="done")


def board(*entries: dict[str, Any], recorded: dict[str, list[dict[str, Any]]] | None = None) -> pd.DataFrame:
    return boards.scoreboard(claims(*entries), frames, recorded or {})


def test_a_rule_on_records_is_judged_here_and_now() -> None:
    (line,) = board({"paper": "0.1"}).to_dict("records")
    assert (line["id"], line["verdict"], line["outcome"], line["seeds"]) == ("C001", REPRODUCED, REPRODUCED, 3)
    assert line["ours"].startswith("NMI +0.100 (") and line["paper"] == "0.1"
    assert line["rule"] == "“a” minus “b” in NMI: above 0 with the whole interval; partly: the mean is."
    assert (line["section"], line["written"], line["untested"]) == ("6.1 · Ablation (Table 1)", "2026-11-17", "")


def test_a_chapter_s_own_verdict_is_found_by_the_words_of_the_rule() -> None:
    found = board(own(), recorded={"05": [{**THEOREM, "claim": "another", "verdict": PARTLY}, THEOREM]})
    assert found[["verdict", "ours"]].to_numpy().tolist() == [[NOT, "four nodes"]]
    assert found["seeds"].isna().all()


def test_a_recorded_id_counts_before_words() -> None:
    by_id = {**THEOREM, "id": "C001", "claim": "in other words", "verdict": REPRODUCED, "evidence": "a proof"}
    foreign = {**THEOREM, "id": "C099", "verdict": PARTLY}
    assert board(own(), recorded={"05": [foreign, THEOREM, by_id]})["ours"].to_list() == ["a proof"]
    assert board(own(), recorded={"05": [foreign]})["untested"].to_list() == [UNDECIDED]


def test_records_of_one_claim_that_disagree_hold_partly() -> None:
    both = [THEOREM, {**THEOREM, "verdict": REPRODUCED, "evidence": "a proof"}]
    (line,) = board(own(), recorded={"05": both}).to_dict("records")
    assert (line["verdict"], line["ours"]) == (PARTLY, "four nodes; a proof")


def test_the_verdict_of_another_chapter_is_not_taken() -> None:
    (line,) = board(own(), recorded={"04": [THEOREM]}).to_dict("records")
    assert (line["verdict"], line["ours"]) == (UNTESTED, "chapter 05 has not been executed in this build")


def test_what_cannot_be_tested_says_why() -> None:
    found = board(
        {"rule": {"kind": "definition", "reason": "a setting"}},
        {"rule": {**HIGHER, "grid": "h"}},
        own(),
        own(rule={**OWN, "words": "something else"}),
        {},
        recorded={"05": [THEOREM]},
    )
    assert found["untested"].to_list() == [NO_RESULT, NO_RECORDS, "", UNDECIDED, ""]
    assert board(own())["untested"].to_list() == [NO_RUN]


def test_what_is_true_by_construction_is_counted_apart_unless_it_fails() -> None:
    found = board({"by_construction": True}, {"by_construction": True, "rule": LOWER}, {})
    assert found["outcome"].to_list() == [CONSTRUCTED, NOT, REPRODUCED]
    assert found["verdict"].to_list() == [REPRODUCED, NOT, REPRODUCED]
    assert overall(found).loc["all claims"].to_list() == [1, 1, 0, 1, 0]


def test_groups_are_counted_in_a_fixed_order_and_empty_ones_are_left_out() -> None:
    found = board(
        {"importance": "low"}, {"importance": "high"}, own(importance="low", where="Section 4"), {"where": "Title"}
    )
    by_importance = counted(found, "importance")
    assert list(by_importance.index) == ["high", "low"] and tuple(by_importance.columns) == OUTCOMES
    assert by_importance.loc["low"].to_list() == [1, 0, 0, 0, 1]
    assert list(counted(found, "section").index) == [
        "4 · Theory, with Appendices D.4 and F",
        "6.1 · Ablation (Table 1)",
        "Elsewhere",
    ]
    assert counted(found, "data").loc["none"].to_list() == [0, 0, 0, 0, 1]
    assert at_least(found, "medium")["id"].to_list() == ["C002", "C004"]


@pytest.mark.parametrize(
    ("where", "start"),
    [
        ("Table 1", "6.1"),
        ("Table 11", "G"),
        ("Section 6.3.2", "6.3.2"),
        ("Section 6.3.1, Table 3", "6.3.1"),
        ("Section 6.3", "6.3.1"),
        ("Appendix D.4", "4"),
        ("Appendix D.2, Table 9", "D.1"),
        ("Section 33", "Else"),
    ],
)
def test_the_first_place_that_a_claim_names_tells_its_section(where: str, start: str) -> None:
    assert boards.section(where).startswith(start)


def test_all_claims_have_a_line_and_a_section() -> None:
    found = boards.scoreboard(paper.claims(), lambda grid: None, {})
    assert len(found) == 157 and found["id"].is_unique
    assert set(found["section"]) == set(boards.SECTIONS)
    assert set(found["verdict"]) == {UNTESTED} and set(found["untested"]) == set(boards.REASONS) - {UNDECIDED}


def test_a_rule_on_a_printed_level_says_so() -> None:
    level = {
        **{"kind": "value", "grid": "g", "row": "a", "metrics": ["NMI"], "within": 0.05},
        "printed": {"table": "ablation", "row": {"model": "Louvain"}, "columns": ["NMI"]},
    }
    assert board({"rule": level}, {})["level"].to_list() == [True, False]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_advice_follows_the_verdict(outcome: str) -> None:
    every = [each.id for each in paper.claims()]
    said = advised(pd.DataFrame({"id": every, "outcome": outcome}))
    assert set(said["id"]) <= set(every) and set(said["outcome"]) == {outcome}
    assert said["advice"].isna().all() == (outcome in (UNTESTED, CONSTRUCTED))
    if outcome == REPRODUCED:
        other = advised(pd.DataFrame({"id": every, "outcome": NOT}))
        assert (said["advice"] != other["advice"]).all()
