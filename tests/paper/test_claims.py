"""The list of claims is complete, and everything that it refers to exists."""

from __future__ import annotations

import copy
import datetime
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from btcnb import paper
from btcnb.errors import DataError, ParameterError
from btcnb.paper.claims import Change, _table, lookup, read
from btcnb.paper.kinds import AllOf, Chapter, Compare, Definition, Later, Pair, Place, Reference, Rule, Value, places

ROOT = Path(__file__).parents[2]
CLAIMS = paper.claims()
JUDGED = {f"C{i:03d}" for i in (*range(24, 38), *range(53, 122))}
"""Claims that chapters 11 to 14 are about."""

ONE: dict[str, Any] = {
    "id": "C001",
    "where": "Table 1",
    "claim": "A beats B.",
    "data": "simulated",
    "importance": "high",
    "chapter": "11",
    "rule": {"kind": "compare", "grid": "g", "row": "a", "against": "b", "metrics": ["NMI"], "sign": "+"},
}


def file(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"decided": datetime.date(2026, 11, 17), "claims": list(entries)}


def with_rule(**rule: Any) -> dict[str, Any]:
    return file({**ONE, "rule": rule})


def simple(rule: Rule) -> tuple[Rule, ...]:
    return rule.parts if isinstance(rule, AllOf) else (rule,)


def test_all_157_claims_are_there_once_and_in_order() -> None:
    assert [each.id for each in CLAIMS] == [f"C{i:03d}" for i in range(1, 158)]
    assert paper.claim("C024").where == "Section 3.4"
    with pytest.raises(ParameterError, match="no claim 'C999'; ids run from C001 to C157"):
        paper.claim("C999")


def test_references_into_the_tables_resolve() -> None:
    for each in CLAIMS:
        for reference in () if isinstance(each.paper, str) else each.paper:
            assert len(lookup(reference)) >= 1, each.id
        for rule in simple(each.rule):
            if isinstance(rule, Value):
                for column in rule.printed.columns:
                    most = 100 if rule.printed.table in ("entity_labels", "coinjoin") else 1  # shares in %
                    assert 0 <= paper.value(rule.printed.table, column, **dict(rule.printed.row)) < most, each.id


def test_a_value_rule_looks_at_the_row_that_the_claim_quotes() -> None:
    for each in CLAIMS:
        rules = [rule for rule in simple(each.rule) if isinstance(rule, Value)]
        quoted = () if isinstance(each.paper, str) else each.paper
        if rules and all(reference.row for reference in quoted):
            read = list(dict.fromkeys(rule.printed for rule in rules))  # one row may be judged in two readings
            assert read == list(quoted), each.id


def test_words_exist_for_every_rule_and_every_quoted_number() -> None:
    for each in CLAIMS:
        assert re.fullmatch(r"[^\n]{10,2000}\.", paper.rule_words(each.rule)), each.id
        assert "nan" not in paper.paper_words(each)
    assert paper.paper_words(paper.claim("C053")) == "NMI 0.642, ARI 0.289"
    assert paper.paper_words(paper.claim("C058")) == "DP 0.771, NMI 0.760, ARI 0.637"
    assert paper.paper_words(paper.claim("C135")) == "TN, repelled 58.0; TN, repelled 57.9; TN, repelled 63.4"
    assert paper.paper_words(paper.claim("C096")) == "0.45"
    assert paper.paper_words(paper.claim("C040")).startswith("M = 4√(2k)")


def test_claims_of_the_chapters_on_scores_are_judged_on_records_or_say_why_not() -> None:
    elsewhere = {each.id for each in CLAIMS if each.id in JUDGED and not list(places(each.rule))}
    assert elsewhere == {"C027", "C029", "C030", "C034", "C037", "C079", "C086", "C087", "C099"} | {
        "C101",
        "C119",
        "C121",
    }
    for each in CLAIMS:
        if list(places(each.rule)):
            assert each.chapter in ("11", "12", "13", "14", "15", "16"), each.id
            assert each.data in ("simulated", "both"), each.id


def test_places_in_the_paper_exist() -> None:
    from test_paper import HEADINGS

    for each in CLAIMS:
        for kind, number in re.findall(r"\b(Section|Appendix|Table) ([0-9A-H][.0-9]*)", each.where):
            assert number in HEADINGS[kind].split(), each.id
        assert re.match("Section|Appendix|Table|Equation|Conclusion", each.where), each.id
        assert not re.search(r"\bl\.\d", each.where + each.claim), each.id


def test_chapters_that_judge_by_their_own_code_have_that_verdict() -> None:
    for each in CLAIMS:
        if isinstance(each.rule, Chapter):
            (path,) = ROOT.glob(f"notebooks/{each.rule.chapter}_*.md")
            text = re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))  # a string over several lines is one
            assert each.rule.words in text, each.id
            assert each.chapter == each.rule.chapter, each.id


def test_grids_have_the_rows_that_rules_look_at() -> None:
    wanted: dict[str, set[str]] = {}
    for each in CLAIMS:
        for place in places(each.rule):
            wanted.setdefault(place.grid, set()).add(place.row)
    grids = {"ablation", "controls", "dimension", "alpha", "negatives", "refinement", "moser", "entity", "coinjoin"}
    assert set(wanted) == grids | {"paper_size", "moser_real"}  # the last: records of real blocks, no grid
    known = {grid: ROOT / "experiments" / f"{grid}.yaml" for grid in wanted}
    if not any(path.exists() for path in known.values()):
        pytest.skip("there are no grids in experiments/ yet")
    for grid, path in known.items():
        if path.exists():
            rows = {str(row) for row in yaml.safe_load(path.read_text("utf-8"))["rows"]}
            assert wanted[grid] - {""} <= rows, grid


def test_a_claim_is_read_into_types() -> None:
    (found,) = read(file({**ONE, "paper": {"table": "alpha", "columns": ["DP"]}, "by_construction": True})).values()
    assert found.rule == Compare(Pair(Place("g", "a"), ("NMI",), Place("g", "b"), ("NMI",)), 1)
    assert found.paper == (Reference("alpha", (), ("DP",)),)
    assert found.by_construction and found.decided == datetime.date(2026, 11, 17) and found.changes == ()


def test_a_rule_that_was_changed_says_when_and_why() -> None:
    day = datetime.date(2026, 12, 1)
    (found,) = read(file({**ONE, "decided": day, "changes": [{"date": day, "why": "a bound was wrong"}]})).values()
    assert found.decided == day and found.changes == (Change(day, "a bound was wrong"),)


def test_against_may_be_another_grid_or_another_metric() -> None:
    across = {**ONE["rule"], "against": {"grid": "h", "row": "b"}, "where": {"measure": "scores"}}
    (found,) = read(with_rule(**across)).values()
    assert isinstance(found.rule, Compare) and found.rule.pair.other == Place("h", "b")
    assert found.rule.pair.where == (("measure", "scores"),)
    within = {**ONE["rule"], "against": {"metrics": ["AMI"]}}
    (found,) = read(with_rule(**within)).values()
    assert isinstance(found.rule, Compare) and found.rule.pair.other == Place("g", "a")
    assert found.rule.pair.other_metrics == ("AMI",)


COMPARE = ONE["rule"]
LINE = {"grid": "g", "metric": "DP"}


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({**COMPARE, "kind": "guess"}, "C001.rule.kind: is 'guess'; give one of compare, "),
        ({**COMPARE, "sing": "+"}, "C001.rule: unknown field 'sing'"),
        ({key: COMPARE[key] for key in COMPARE if key != "sign"}, "C001.rule: has no field 'sign'"),
        ({**COMPARE, "sign": "up"}, r"sign: is 'up'; give one of \+, -"),
        ({**COMPARE, "against": "a"}, "against: is 'a'; name another row"),
        ({**COMPARE, "against": {"metrics": ["DP", "NMI"]}}, "as many other metrics"),
        ({**COMPARE, "against": {"seed": 1}}, "unknown field 'seed'"),
        ({**COMPARE, "against": 3}, "against: is 3; name a row"),
        ({**COMPARE, "metrics": "NMI"}, "metrics: is 'NMI'; give a list"),
        ({**COMPARE, "metrics": ["NMI", "NMI"]}, "none of them twice"),
        ({**COMPARE, "row": 64}, "row: is 64; give text"),
        ({**COMPARE, "where": {"seed": [1]}}, "where: is .*give columns and the value of each"),
        ({**COMPARE, "average": -1}, "average: is -1.0; give a number above 0"),
        ({**COMPARE, "kind": "equivalent", "sign": "+"}, "has no field 'within'"),
        ({"kind": "above", **LINE, "row": "a", "value": True}, "value: is True; give a number"),
        ({"kind": "ordered", **LINE, "rows": ["a"], "direction": "rising"}, "give two rows or more"),
        ({"kind": "ordered", **LINE, "rows": ["a", "b"], "direction": "up"}, "give one of rising, falling"),
        ({"kind": "slope", **LINE, "rows": ["a", "b"], "x": [1], "sign": "+"}, "one number for each row"),
        ({"kind": "slope", **LINE, "rows": ["a", "b"], "x": [1, 1], "sign": "+"}, "not all the same"),
        ({"kind": "best", **LINE, "row": "a", "among": ["a"], "direction": "max"}, "name rows besides the one"),
        ({"kind": "every", "grid": "g", "pairs": [["a"]], "metrics": ["DP"], "sign": "+"}, "lists of two rows"),
        ({"kind": "every", "grid": "g", "pairs": [["a", "a"]], "metrics": ["DP"], "sign": "+"}, "with itself"),
        (
            {"kind": "share", "grid": "g", "row": "a", "start": "a", "end": "b", "metrics": ["DP"], "at_least": 0.5},
            "three",
        ),
        (
            {
                "kind": "value",
                "grid": "g",
                "row": "a",
                "metrics": ["DP"],
                "within": 1,
                "printed": {"table": "x", "columns": ["A", "B"]},
            },
            "one column for each metric",
        ),
        ({"kind": "all_of", "parts": []}, "parts: is .*give a list with something in it"),
        ({"kind": "all_of", "parts": [{"kind": "later", "plan": "p"}]}, "parts.0.: is of kind 'later'"),
        ({"kind": "all_of", "parts": [{"kind": "all_of", "parts": [COMPARE]}]}, "is of kind 'all_of'"),
    ],
)
def test_a_rule_that_says_nothing_definite_is_refused(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=f"^claims.yml: .*{problem}"):
        read(with_rule(**rule))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "7"}, "7.id: is '7'; write C and three digits"),
        ({"data": "guessed"}, "C001.data: is 'guessed'; give one of simulated"),
        ({"importance": "huge"}, "C001.importance"),
        ({"chapter": 11}, "C001.chapter: is 11; give text"),
        ({"by_construction": "no"}, "C001.by_construction: is 'no'; give true or false"),
        ({"decided": "yesterday"}, "C001.decided: is 'yesterday'; give a date"),
        ({"changes": [{"date": datetime.date(2026, 1, 1)}]}, r"C001.changes\[0\]: has no field 'why'"),
        ({"paper": {"table": "alpha"}}, "C001.paper: has no field 'columns'"),
        ({"paper": {"table": "tableau", "columns": ["DP"]}}, "C001.paper: is 'tableau'; name one of"),
        ({"rule": "compare"}, "C001.rule: is 'compare'; give a mapping"),
        ({"verdict": "reproduced"}, "C001: unknown field 'verdict'"),
    ],
)
def test_a_claim_with_a_broken_field_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=f"^claims.yml: {problem}"):
        read(file({**copy.deepcopy(ONE), **change}))


def test_an_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(DataError, match="C001: stands there twice"):
        read(file(ONE, ONE))
    with pytest.raises(DataError, match="unknown field 'verdicts'"):
        read({**file(ONE), "verdicts": []})


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.yml"
    path.write_text("claims: [")
    with pytest.raises(DataError, match=r"claims\.yml: file: cannot be read"):
        _table(path)


def test_a_reference_to_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="no column 'colour'"):
        lookup(Reference("alpha", (), ("colour",)))
    with pytest.raises(ParameterError, match="no row of table 'alpha' matches"):
        lookup(Reference("alpha", (("alpha", 0.3),), ("DP",)))


def test_words_of_rules_that_no_records_judge() -> None:
    assert paper.rule_words(Chapter("09", "x")) == "Chapter 09 judges it by its own code."
    assert paper.rule_words(Later("slopes")) == "To be judged in a later chapter: slopes."
    assert paper.rule_words(Definition("a setting")) == "Not judged: a setting."
