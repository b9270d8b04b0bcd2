"""The scoreboard on a page: escaped, linked, filtered by keys, readable without scripts; bars; records of a build."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from btcnb.book import other_chapters, output
from btcnb.book.other_chapters import chapter_pages, recorded_verdicts
from btcnb.book.scoreboard_table import board_html, show_list
from btcnb.book.verdict_bars import draw_verdicts
from btcnb.errors import DataError
from btcnb.paper.scoreboard import OUTCOMES

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    assert len(Tags(page).of("script")) == 1 and "<script>alert" not in page
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


def test_lists_lead_to_the_lines_of_the_board(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(output, "display", lambda bundle, raw: shown.append(bundle))
    show_list(["A <b> holds (C024)."])
    assert shown[0]["text/markdown"] == '- A &lt;b&gt; holds (<a href="#claim-C024">C024</a>).'
    show_list([], "None so far.")
    assert shown[1]["text/markdown"] == "None so far." and shown[1]["text/html"] == "<p>None so far.</p>"


def test_bars_are_shares_with_their_counts() -> None:
    counts = pd.DataFrame([[1, 0, 2, 0, 1], [0, 0, 0, 99, 1]], index=["few", "many"], columns=list(OUTCOMES))
    _, ax = plt.subplots()
    draw_verdicts(ax, counts)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["few (4)", "many (100)"]
    assert [text.get_text() for text in ax.texts] == ["1", "2", "99", "1"], "the narrow one of 1 % goes without"
    widths = [[bar.get_width() for bar in bars] for bars in ax.containers]
    assert widths == [[25, 0], [0, 0], [50, 0], [0, 99], [25, 1]]
    assert len({(bars[0].get_hatch(), bars[0].get_facecolor()) for bars in ax.containers}) == len(OUTCOMES)
    plt.close()


def test_verdicts_of_a_build_are_found_by_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = {"kind": "verdict", "claim": "A", "verdict": "partly", "evidence": "3 of 5", "where": "Table 1"}
    (tmp_path / "05_theorem.json").write_text(json.dumps([{"kind": "data_source", "source": "x"}, verdict]))
    (tmp_path / "06_none.json").write_text("[]")
    monkeypatch.setenv(other_chapters.FOLDER, str(tmp_path))
    assert recorded_verdicts() == {"05": [verdict], "06": []}
    (tmp_path / "07_torn.json").write_text('[{"kind": "verdict"}]')
    with pytest.raises(DataError, match=r"07_torn\.json"):
        recorded_verdicts()
    monkeypatch.delenv(other_chapters.FOLDER)
    assert recorded_verdicts() == {}, "a chapter that runs alone has no records"


def test_pages_are_those_of_the_chapters() -> None:
    assert chapter_pages()["11"] == "11_ablation.html" and len(chapter_pages()) >= 18


@pytest.mark.book
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: install the package `chromium`")
def test_filters_work_by_keyboard(tmp_path: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    html = board_html(board({}, {"section": METHOD}, {"section": METHOD, "data": "real"}), {})
    (tmp_path / "board.html").write_text(f"<!doctype html><meta charset=utf-8>{html}")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)  # a busy machine
        page.goto((tmp_path / "board.html").as_uri())
        assert page.inner_text("output") == "3 of 3 claims"
        page.focus("select[name=section]")
        page.keyboard.type("3")
        page.wait_for_function("document.querySelector('output').textContent === '2 of 3 claims'")
        page.select_option("select[name=data]", "real")
        assert page.locator("tbody tr:visible").count() == 1 and page.inner_text("output") == "1 of 3 claims"
        page.focus("button")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('output').textContent === '3 of 3 claims'")
        browser.close()
