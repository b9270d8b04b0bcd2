"""The book in one file: two small pages, every link and anchor by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from btcnb.build.printing import Part, one_file
from btcnb.build.project import BuildError

PAGES = {
    "book/intro": """<h1 id="hi">Welcome<a class="headerlink" href="#hi">#</a></h1>
        <p><a href="../notebooks/01_a.html#sec">to a section</a> <a href="../notebooks/01_a.html">to a page</a>
        <a href="#hi">here</a> <a href="../_sources/x.md">a file</a> <a href="https://example.org/p">far</a></p>""",
    "notebooks/01_a": """<h1 id="hi">1. First</h1><h2 id="sec">Section</h2><p id="sec">twin</p>
        <img class="in-light" alt="a dot" src="../_images/dot.svg"><img class="in-dark" src="../_images/dot.svg">
        <details class="hide"><summary>Show</summary><div class="cell_input"><pre>secret = 1</pre></div></details>
        <details class="box"><summary>More</summary><p>inside</p></details>
        <div class="btcnb-slider"><div class="frame" hidden>second</div><div class="frame">first</div>
        <div class="controls"><input id="r"></div><script>let gone;</script></div>
        <label for="r">range</label><span class="math">\\(x\\)</span>""",
}
PARTS = [Part("", ("book/intro",)), Part("I · Data", ("notebooks/01_a",))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in PAGES.items():
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<html><body><nav>menu</nav><article class='bd-article'>{body}</article></body></html>")
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "dot.svg").write_text("<svg/>")
    script = tmp_path / "_static" / "mathjax" / "tex-svg-full.js"
    script.parent.mkdir(parents=True)
    script.write_text("setMathematics('</script>');")
    return tmp_path


def test_links_lead_inside_the_file_and_anchors_do_not_clash(folder: Path):
    page = BeautifulSoup(one_file(folder, PARTS, "A & B"), "html.parser")
    links = {link.get_text(): link["href"] for link in page.select("article a")}
    assert links == {
        "to a section": "#notebooks-01_a--sec",
        "to a page": "#notebooks-01_a",
        "here": "#book-intro--hi",
        "far": "https://example.org/p",
    }
    names = [part["id"] for part in page.select("[id]")]
    assert len(names) == len(set(names))
    assert {link["href"][1:] for link in page.select("a[href^='#']")} <= set(names)
    assert page.select_one("label")["for"] == "notebooks-01_a--r"
    assert "a file" in page.get_text(), "what is not printed is named, not linked"


def test_title_contents_parts_and_chapters_come_in_order(folder: Path):
    page = BeautifulSoup(one_file(folder, PARTS, "A & B"), "html.parser")
    assert [part.get_text() for part in page.select("h1")] == ["A & B", "Welcome", "I · Data", "1. First"]
    assert [entry.get_text() for entry in page.select("nav.contents li")] == ["Welcome", "1. First"]
    assert page.select_one("html")["lang"] == "en" and "menu" not in page.get_text()


def test_nothing_is_loaded_and_what_paper_cannot_do_is_gone(folder: Path):
    text = one_file(folder, PARTS, "book")
    page = BeautifulSoup(text, "html.parser")
    assert [image["src"][:26] for image in page.select("img")] == ["data:image/svg+xml;base64,"]
    assert not page.select("link:not([href^='data:']), [src^='http'], [src^='..'], article script, .controls")
    assert "second" not in page.get_text() and "first" in page.get_text()
    assert r"<\/script>');</script>" in text, "a script that names a tag does not end early"


def test_folded_code_is_printed_on_demand_and_other_boxes_stand_open(folder: Path):
    plain, full = (BeautifulSoup(one_file(folder, PARTS, "book", code), "html.parser") for code in (False, True))
    assert "secret" not in plain.get_text() and "secret = 1" in full.get_text()
    assert plain.select_one("details.box").has_attr("open") and "inside" in plain.get_text()


def test_a_missing_page_is_named(folder: Path):
    with pytest.raises(BuildError, match="no page notebooks/02_b"):
        one_file(folder, [Part("", ("notebooks/02_b",))], "book")
