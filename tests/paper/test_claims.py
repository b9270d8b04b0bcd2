"""The list of claims is complete, and everything that it refers to exists."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from btcnb import paper
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.sweep.grid import grid_rows
from btcnb.paper.claims import (
    CLAIMS,
    QUESTIONS,
    Claim,
    Question,
    answer,
    by_id,
    lookup,
    made,
    questions,
    read,
)
from btcnb.paper.rules import Chapter, Contrast, Place, Reference, Value, parts, places

ROOT = Path(__file__).parents[2]
EVERY = paper.claims()
JUDGED = {f"C{i:03d}" for i in (*range(24, 38), *range(53, 122))}
"""Claims that chapters 11 to 14 are about."""

ONE: dict[str, Any] = {
    "id": "C001",
    "where": "Table 1",
    "claim": "A beats B.",
    "data": "simulated",
    "importance": "high",
    "chapter": "11",
    "decided": datetime.date(2026, 11, 17),
    "rule": {"kind": "contrast", "grid": "g", "row": "a", "against": "b", "metrics": ["NMI"], "above": 0},
}


def with_rule(**changes: Any) -> Claim:
    return made(CLAIMS, Claim, {**ONE, "rule": {**ONE["rule"], **changes}})


def test_all_157_claims_are_there_once_and_in_order() -> None:
    assert [each.id for each in EVERY] == [f"C{i:03d}" for i in range(1, 158)]
    assert paper.claim("C024").where == "Section 3.4"
    with pytest.raises(ParameterError, match="no claim 'C999'; ids run from C001 to C157"):
        paper.claim("C999")


def test_references_into_the_tables_resolve() -> None:
    for each in EVERY:
        for reference in () if isinstance(each.paper, str) else each.paper:
            assert len(lookup(reference)) >= 1, each.id
        for rule in parts(each.rule):
            if isinstance(rule, Value):
                for column in rule.printed.columns:
                    most = 100 if rule.printed.table in ("entity_labels", "coinjoin") else 1  # shares in %
                    assert 0 <= paper.value(rule.printed.table, column, **rule.printed.row) < most, each.id


def test_a_value_rule_looks_at_the_row_that_the_claim_quotes() -> None:
    for each in EVERY:
        rules = [rule for rule in parts(each.rule) if isinstance(rule, Value)]
        quoted = () if isinstance(each.paper, str) else each.paper
        if rules and all(reference.row for reference in quoted):
            assert all(rule.printed in quoted for rule in rules), each.id
            assert all(any(rule.printed == reference for rule in rules) for reference in quoted), each.id


def test_words_exist_for_every_rule_and_every_quoted_number() -> None:
    for each in EVERY:
        assert re.fullmatch(r"[^\n]{10,2000}\.", paper.rule_words(each.rule)), each.id
        assert "nan" not in paper.paper_words(each)
    assert paper.paper_words(paper.claim("C053")) == "NMI 0.642, ARI 0.289"
    assert paper.paper_words(paper.claim("C058")) == "DP 0.771, NMI 0.760, ARI 0.637"
    assert paper.paper_words(paper.claim("C135")) == "TN, repelled 58.0; TN, repelled 57.9; TN, repelled 63.4"
    assert paper.paper_words(paper.claim("C096")) == "0.45"
    assert paper.paper_words(paper.claim("C040")).startswith("M = 4√(2k)")


def test_claims_of_the_chapters_on_scores_are_judged_on_records_or_say_why_not() -> None:
    elsewhere = {each.id for each in EVERY if each.id in JUDGED and not list(places(each.rule))}
    assert elsewhere == {"C027", "C029", "C030", "C034", "C037", "C079", "C086", "C087", "C099"} | {
        "C101",
        "C119",
        "C121",
    }
    for each in EVERY:
        if list(places(each.rule)):
            assert each.chapter in ("11", "12", "13", "14", "15", "16"), each.id
            assert each.data in ("simulated", "both"), each.id


def test_places_in_the_paper_exist() -> None:
    from test_paper import HEADINGS

    for each in EVERY:
        for kind, number in re.findall(r"\b(Section|Appendix|Table) ([0-9A-H][.0-9]*)", each.where):
            assert number in HEADINGS[kind].split(), each.id
        assert re.match("Section|Appendix|Table|Equation|Conclusion", each.where), each.id
        assert not re.search(r"\bl\.\d", each.where + each.claim), each.id


def test_chapters_that_judge_by_their_own_code_have_that_verdict() -> None:
    for each in EVERY:
        if isinstance(each.rule, Chapter):
            (path,) = ROOT.glob(f"notebooks/{each.rule.chapter}_*.md")
            text = re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))  # a string over several lines is one
            assert each.rule.words in text, each.id
            assert each.chapter == each.rule.chapter, each.id


def test_grids_have_the_rows_that_rules_look_at() -> None:
    wanted: dict[str, set[str]] = {}
    for each in EVERY:
        for place in places(each.rule):
            wanted.setdefault(place.grid, set()).add(place.row)
    grids = {"ablation", "controls", "dimension", "alpha", "negatives", "refinement", "moser", "entity", "coinjoin"}
    assert set(wanted) == grids | {"paper_size", "moser_real"}  # the last: records of real blocks, no grid
    for grid in set(wanted) - {"moser_real"}:
        rows = grid_rows(ROOT / "experiments" / f"{grid}.yaml")[1]
        assert wanted[grid] - {"all"} <= set(rows), grid


def test_a_claim_is_read_into_types() -> None:
    paper_says = {"paper": {"table": "alpha", "columns": ["DP"]}, "by_construction": True}
    found = made(CLAIMS, Claim, {**ONE, **paper_says, "changes": [{"date": "2026-12-01", "why": "a bound was wrong"}]})
    assert isinstance(found.rule, Contrast) and found.rule.above == 0
    assert found.paper == (Reference("alpha", {}, ("DP",)),) and found.by_construction
    assert found.decided == datetime.date(2026, 11, 17)
    assert found.changes[0].date == datetime.date(2026, 12, 1)


def test_against_may_be_another_grid_or_another_metric() -> None:
    ((term,),) = with_rule(against={"grid": "h", "row": "b"}).rule.groups()
    assert (term.other, term.less) == (Place("h", "b"), "NMI")
    ((term,),) = with_rule(against={"metrics": ["AMI"]}).rule.groups()
    assert (term.other, term.less) == (Place("g", "a"), "AMI")


LINE = {"grid": "g", "metric": "DP"}
SHARE = {"kind": "share", "grid": "g", "row": "a", "start": "s", "end": "b", "metrics": ["DP"]}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "guess"}, "does not match any of the expected tags"),
        ({"sing": "+"}, "sing"),
        ({"above": None}, "give one of above, below and within"),
        ({"below": 1}, "give one of above, below and within"),
        ({"rows": ["b"]}, "give one of row, rows and pairs"),
        ({"against": "a"}, "compared with itself"),
        ({"against": ["b", "c"]}, "give rows for several"),
        ({"against": {"seed": 1}}, "rule"),
        ({"metrics": []}, "at least 1 item"),
        ({"above": True}, "input should be a number"),
        ({"above": None, "within": -1}, "greater than 0"),
        ({"row": "", "rows": ["a", "b"], "x": [1]}, "one x for each"),
        ({"row": "", "rows": ["a", "b"], "x": [1, 1]}, "not all the same"),
    ],
)
def test_a_contrast_that_says_nothing_definite_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=f"^claims.yml: C001: .*{problem}"):
        with_rule(**change)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "7"}, "pattern"),
        ({"data": "guessed"}, "'simulated', 'real'"),
        ({"by_construction": "no"}, "True or False"),
        ({"decided": "yesterday"}, "decided"),
        ({"changes": [{"date": datetime.date(2026, 1, 1)}]}, "why"),
        ({"paper": {"table": "tableau", "columns": ["DP"]}}, "no table 'tableau'"),
        ({"verdict": "reproduced"}, "verdict is no parameter"),
        ({"rule": {"kind": "ordered", **LINE, "rows": ["a"], "direction": "rising"}}, "at least 2"),
        ({"rule": {"kind": "best", **LINE, "row": "a", "among": ["a"], "direction": "max"}}, "rows besides the one"),
        ({"rule": {**SHARE, "at_least": 0}}, "greater than 0"),
        ({"rule": {"kind": "all_of", "parts": []}}, "at least 1"),
        ({"rule": {"kind": "all_of", "parts": [{"kind": "definition", "reason": "p"}]}}, "expected tags"),
    ],
)
def test_a_claim_with_a_broken_field_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=f"^claims.yml: .*{problem}"):
        made(CLAIMS, Claim, {**ONE, **change})


def test_an_id_that_stands_twice_and_a_file_that_is_no_list_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="stands there twice"):
        by_id(CLAIMS, [with_rule(), with_rule()])
    path = tmp_path / "claims.yml"
    for text, problem in (("claims: [", "cannot be read"), ("claims: 3", "are no list")):
        path = path.with_name(f"{len(text)}") / "claims.yml"
        path.parent.mkdir()
        path.write_text(text)
        with pytest.raises(DataError, match=problem):
            read(path, Claim)


def test_a_reference_to_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="no column 'colour'"):
        lookup(Reference("alpha", {}, ("colour",)))
    with pytest.raises(ParameterError, match="no row of table 'alpha' matches"):
        lookup(Reference("alpha", {"alpha": 0.3}, ("DP",)))


ASKED = {"id": "Q001", "chapter": "01", "question": "Is a better than b?", "rule": ONE["rule"], "decided": "2026-11-17"}


@pytest.mark.parametrize(("gain", "said"), [(0.1, "yes"), (-0.1, "no"), (None, "cannot be tested here")])
def test_an_answer_is_yes_or_no_or_nothing(gain: float | None, said: str) -> None:
    one = made(QUESTIONS, Question, ASKED)
    rows = [(row, seed, 0.5 + (gain or 0) * (row == "a") + 0.001 * seed) for row in "ab" for seed in range(5)]
    frame = None if gain is None else pd.DataFrame(rows, columns=["row", "seed", "NMI"])
    assert answer(one, lambda grid: frame)[0] == said


def test_an_answer_may_hold_in_part_and_needs_a_rule_on_records() -> None:
    one = made(QUESTIONS, Question, ASKED)
    rows = [(row, seed, (0.1 if row == "a" else 0.0) * (1 if seed else -3)) for row in "ab" for seed in range(5)]
    assert answer(one, lambda grid: pd.DataFrame(rows, columns=["row", "seed", "NMI"]))[0] == "in part"
    with pytest.raises(DataError, match="looks at no record"):
        made(QUESTIONS, Question, {**ASKED, "rule": {"kind": "definition", "reason": "some day"}})


def test_the_questions_of_chapter_17_are_there_and_other_chapters_say_so() -> None:
    found = questions("17")
    assert [each.id for each in found] == [f"Q{number}" for number in range(171, 179)]
    assert all(each.question.endswith("?") for each in found)
    with pytest.raises(ParameterError, match=r"asks no question; there are some in 11, 17"):
        questions("01")
