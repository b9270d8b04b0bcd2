"""The scoreboard on a page: escaped, linked, filtered by keys, readable without scripts; the book in one screen."""

from __future__ import annotations

import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from btcnb import paper
from btcnb.book.board import (
    Summary,
    bar_html,
    board_html,
    findings_myst,
    read_summary,
    readme_block,
    show_list,
    summarise,
)
from btcnb.build.pages import COLLAPSE, PIPELINE, fill, front
from btcnb.build.project import Project, UsageError
from btcnb.build.summary import VERDICTS, read_verdicts, readme_text, verdicts_of
from btcnb.errors import DataError
from btcnb.experiments.findings import findings
from btcnb.paper.board import OUTCOMES
from btcnb.paper.rules import Chapter

THEORY, METHOD = "4 · Theory, with Appendices D.4 and F", "3 · Methodology"


LINE = {
    **{"section": THEORY, "where": "Section 4", "claim": "A <b> & C", "paper": "0.5", "ours": "", "rule": "Above 0."},
    **{"verdict": "partly", "outcome": "partly", "written": "2026-11-17", "changes": "", "data": "none"},
    **{"chapter": "05", "by_construction": False, "importance": "high"},
}


HOSTILE = '"><script>alert(1)</script>'


def board(*lines: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{"id": f"C{i:03d}", **LINE, **line} for i, line in enumerate(lines, 1)])


class Tags(HTMLParser):
    """Which tags a page opens, with their attributes; tags that are not closed fail."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]


def test_every_claim_is_a_line_with_its_rule_folded_and_its_chapter_linked() -> None:
    page = board_html(board({}, {"chapter": "77"}), {"05": "05_theorem.html"})
    tags = Tags(page)
    assert [line.get("id") for line in tags.of("tr")] == [None, "claim-C001", "claim-C002"]
    assert [link["href"] for link in tags.of("a")] == ["05_theorem.html"]
    assert len(tags.of("details")) == 2 and "Above 0. Written 2026-11-17." in page
    assert "A &lt;b&gt; &amp; C" in page and "◐ partly" in page
    assert not re.search(r"(src|href)=\"?(https?:)?//", page), "nothing comes from another host"


def test_text_of_a_claim_cannot_become_markup() -> None:
    texts = (
        "claim",
        "where",
        "paper",
        "ours",
        "rule",
        "changes",
        "written",
        "data",
        "importance",
        "chapter",
        "section",
    )
    page = board_html(board(dict.fromkeys(texts, HOSTILE)), {HOSTILE: HOSTILE})
    assert not Tags(page).of("script") and "<script" not in page
    assert Tags(page).of("tr")[1]["data-section"] == HOSTILE


def test_true_by_construction_and_changed_rules_are_marked() -> None:
    assert "true by construction" in board_html(board({"by_construction": True}), {}).split("<tbody")[1]
    assert "true by construction" not in board_html(board({}), {}).split("<tbody")[1]
    assert "Changed since: a reason." in board_html(board({"changes": "a reason"}), {})
    assert "of <code>x &lt; y</code>" in board_html(board({"ours": "of `x < y`"}), {})
    told = board_html(board({"ours": "is it *true*? 2 * 3 * 4, a*b*c, *<b>*"}), {})
    assert "is it <em>true</em>? 2 * 3 * 4, a*b*c, <em>&lt;b&gt;</em>" in told


def test_mathematics_is_typeset_wherever_it_stands() -> None:
    page = board_html(board({"claim": "M below 1/√(2 S_max)", "ours": r"$\lambda_{k+1} < 2$", "rule": "λ_{k+1}"}), {})
    assert "1/√(2 <i>S</i><sub>max</sub>)" in page and "<i>λ</i><sub>k+1</sub>" in page
    assert r'<span class="math notranslate nohighlight">\(\lambda_{k+1} &lt; 2\)</span>' in page


def test_filters_offer_what_there_is_in_order_and_are_labelled() -> None:
    page = board_html(board({"outcome": "not reproduced", "verdict": "not reproduced"}, {"data": "simulated"}), {})
    tags = Tags(page)
    assert [list_["name"] for list_ in tags.of("select")] == ["section", "outcome", "data", "importance"]
    assert [label["for"] for label in tags.of("label")] == [list_["id"] for list_ in tags.of("select")]
    offered = [option["value"] for option in tags.of("option")]
    assert offered == ["", THEORY, "", "partly", "not reproduced", "", "simulated", "none", "", "high"]
    assert "hidden" in tags.of("form")[0], "without scripts there is nothing to filter with"


def test_lists_lead_to_the_lines_of_the_board(shown: list[dict[str, Any]]) -> None:
    show_list(["A <b> holds (C024)."])
    assert shown[0]["text/markdown"] == '- A &lt;b&gt; holds (<a href="#claim-C024">C024</a>).'
    show_list([], "None so far.")
    assert shown[1]["text/markdown"] == "None so far." and shown[1]["text/html"] == "<p>None so far.</p>"


ROOT = Path(__file__).parents[2]
FRONT = runpy.run_path(str(ROOT / "tools" / "front_pictures.py"))


COUNTS = {"reproduced": 3, "true by construction": 1, "partly": 2, "not reproduced": 0, "cannot be tested here": 4}


SUMMARY = Summary(COUNTS, dict.fromkeys(COUNTS, 1), (("How pure?", "DP 0.500 (0.475 to 0.525), S_max <b>."),))


SVG = "<svg><title>t</title><desc>3 addresses of 2 owners, one *user*.</desc></svg>"


TIMED = "10"


def test_a_board_is_counted_by_outcome_and_importance() -> None:
    outcomes = ["partly", "reproduced", "reproduced", "not reproduced"]
    board = pd.DataFrame({"outcome": outcomes, "importance": ["high", "high", "low", "low"]})
    found = summarise(board, [("Why?", "Because.")])
    assert [found.counts[name] for name in OUTCOMES] == [2, 0, 1, 1, 0] and found.claims == 4
    assert [found.important[name] for name in OUTCOMES] == [1, 0, 1, 0, 0]
    assert found.findings == (("Why?", "Because."),)


def test_a_record_gives_the_same_summary_back() -> None:
    assert read_summary([{"kind": "verdict"}, {"kind": "summary", **SUMMARY.record()}]) == SUMMARY
    assert read_summary([{"kind": "verdict"}]) is None
    with pytest.raises(DataError, match="build the chapter again"):
        read_summary([{"kind": "summary", "counts": {}, "important": {}, "findings": []}])


def test_the_bar_says_in_words_what_it_shows() -> None:
    page = bar_html(SUMMARY)
    assert 'aria-label="Verdicts on 10 claims: 3 reproduced, 1 true by construction, 2 partly, 0 not' in page
    assert page.count("flex-grow:") == 4, "nothing is drawn for no claims"
    assert '<span class="partly" style="flex-grow:2"><i>2</i></span>' in page
    assert "✘ not reproduced: <b>0</b>" in page


def test_the_readme_has_a_bar_of_characters_a_verdict() -> None:
    lines = readme_block(SUMMARY).splitlines()
    assert f"| ✔ reproduced | 3 | 1 | {'█' * 30} |" in lines and "| ✘ not reproduced | 0 | 1 |  |" in lines
    assert lines[-1] == "1. **How pure?** DP 0.500 (0.475 to 0.525), S_max <b>."
    assert findings_myst(SUMMARY) == "1. **How pure?** DP 0.500 (0.475 to 0.525), <i>S</i><sub>max</sub> &lt;b&gt;."


def test_the_first_page_is_filled_in() -> None:
    files = {COLLAPSE: SVG.encode(), PIPELINE: b"<ol></ol>"}
    names = ("collapse", "pipeline", "verdicts", "findings")
    text = "A\n\n" + "".join(f'{{{{ front("{name}") }}}}\n\n' for name in names) + "Z\n"

    def filled(text: str, files: dict[str, bytes], records: list[dict[str, object]]) -> str:
        return fill(text, "book/intro.md", {"front": front(files, records)})

    page = filled(text, files, [{"kind": "summary", **SUMMARY.record()}])
    assert "front(" not in page and page.count("```{raw} html") == 3 and page.endswith("\n\nZ\n")
    assert "<figcaption>3 addresses of 2 owners, one <em>user</em>.</figcaption>" in page
    assert "1. **How pure?**" in page
    assert filled(text, files, []).count("has not been executed in this build") == 2
    with pytest.raises(UsageError, match=r"`python tools/front_pictures\.py` makes it"):
        filled(text, {}, [])
    with pytest.raises(UsageError, match=r"book/intro.md: front\('sculpture'\) is none of"):
        filled('{{ front("sculpture") }}', files, [])


def test_the_steps_of_the_method_are_drawn_from_one_example() -> None:
    pages = {number: f"{number}.html" for number in ("01", "02", "03", "08", "09", "13")}
    page = FRONT["pipeline_html"](pages)
    assert re.findall(r'href="(\d\d)', page) == ["01", "02", "03", "08", "09", "13"]
    steps = FRONT["steps"]()
    tree, cut = steps[4].picture, steps[5].picture
    assert tree.count("<path") == len(FRONT["OWNER"]) - 1, "eight leaves, seven merges"
    assert tree.count('stroke-dasharray="5 3"') == 1, "one of them lies above λ"
    assert cut.count('rx="12"') == 2, "and its cut makes two users"


def test_the_first_page_links_every_chapter_and_every_page_around_them() -> None:
    text = (ROOT / "book" / "intro.md").read_text("utf-8")
    contents = re.findall(r"- file: (\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
    assert len(contents) > 20
    for document in contents:
        name = f"/{document}" if document.startswith("notebooks/") else document.removeprefix("book/")
        assert re.search(rf"\{{doc\}}`([^`]*<)?{re.escape(name)}>?`", text), document
    assert set(re.findall(r'^{{ front\("(\w+)"\) }}$', text, re.MULTILINE)) >= {
        "collapse",
        "pipeline",
        "verdicts",
        "findings",
    }


def test_the_readme_says_what_the_records_say() -> None:
    """`btcnb summary` writes the README; whoever commits records runs it."""
    assert readme_text(Project(ROOT), findings) == (ROOT / "README.md").read_text("utf-8")


def test_every_claim_that_a_chapter_judges_has_a_recorded_verdict() -> None:
    own = [(each.id, each.chapter) for each in paper.claims() if isinstance(each.rule, Chapter)]
    assert [(id, chapter) for id, chapter, _ in read_verdicts(ROOT / VERDICTS)] == own


def test_a_damaged_list_of_verdicts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "verdicts.csv").write_text("id,chapter,verdict\nC001,03,perhaps\n")
    with pytest.raises(DataError, match="hold something else"):
        read_verdicts(tmp_path / "verdicts.csv")
    assert read_verdicts(tmp_path / "none.csv") == []


def test_the_pictures_of_the_first_page_are_those_that_code_draws() -> None:
    for path, text in FRONT["pictures"]().items():
        assert path.read_text("utf-8") == text, f"{path.name}: `python tools/front_pictures.py` draws it"


@pytest.mark.book
def test_recorded_verdicts_are_those_of_the_build() -> None:
    """Of the preset quick; a chapter that measures times may judge otherwise on another machine."""
    output = Project(ROOT).output("quick")
    built = [line for line in verdicts_of(output) if line[1] != TIMED]
    if not built:
        pytest.skip("the book has not been built: make book")
    recorded = [line for line in read_verdicts(ROOT / VERDICTS) if line[1] != TIMED]
    assert built == recorded, "`btcnb summary` records the verdicts of a build"


@pytest.mark.book
def test_the_rendered_first_page_shows_the_summary_and_is_light() -> None:
    folder = Project(ROOT).output("quick").html("full") / "book"
    if not folder.exists():
        pytest.skip("the book has not been built: make book")
    page = (folder / "intro.html").read_text("utf-8")
    assert 'class="verdict-bar"' in page and 'class="pipeline"' in page and "front(" not in page
    assert page.count('role="img"') >= 2 and "<title>" in page
    for link in re.findall(r'<li><a href="(\.\./notebooks/[^"]+)">', page):
        assert (folder / link).resolve().exists(), link
    assert len(page.encode()) < 200_000
