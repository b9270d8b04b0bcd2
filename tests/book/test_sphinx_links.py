"""What a page makes of mentions of chapters, claims and words of the glossary, and of references by number."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes
from docutils.utils import new_document
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from btcnb.book.page import LEFT_OUT, RECORD_MIME
from btcnb.book.sphinx_links import LinkMentions, Targets, Terms, mentions, spellings
from btcnb.build.pages import leave_out

CHAPTERS, CLAIMS = {"02", "09", "13"}, {"C060", "C061"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see chapter 09.", {"chapter 09": "09"}),
        ("Chapter 02 shows", {"Chapter 02": "02"}),
        ("in chapter\n09, which", {"chapter\n09": "09"}),
        ("chapters 02 and 09", {"chapters 02": "02", "09": "09"}),
        ("Chapters 02, 09 and 13:", {"Chapters 02": "02", "09": "09", "13": "13"}),
        ("chapters 02 to 09", {"chapters 02": "02", "09": "09"}),
        ("chapter 09, 13 of them", {"chapter 09": "09"}),
        ("chapter 99 and chapter 021", {}),
        ("claim C060, (C061)", {"C060": "C060", "C061": "C061"}),
        ("C999, AC060, C0600, C060-x", {}),
        ("nothing here", {}),
    ],
)
def test_chapters_and_claims(text: str, found: dict[str, str]) -> None:
    assert {text[hit.start : hit.end]: hit.key for hit in mentions(text, CHAPTERS, CLAIMS)} == found


def test_spellings() -> None:
    assert spellings("cut ratio") == {"cut ratio", "Cut ratio", "cut ratios", "Cut ratios"}
    assert {"AMI", "adjusted mutual information"} <= spellings("adjusted mutual information (AMI)")
    assert spellings("false negative (of the loss)") == {
        "false negative", "False negative", "false negatives", "False negatives",
    }  # fmt: skip
    assert {"communities", "mixes", "histories"} <= spellings("community") | spellings("mix") | spellings("history")


def test_the_longest_term_wins_once_and_nothing_twice() -> None:
    terms = Terms({"cut ratio": "a", "cut": "b", "dendrogram": "c", "tree": "c"}, by_hand=["cut"])
    seen: set[str] = set()
    text = "A cut ratio is no cut; dendrograms and trees, a cut ratio"
    assert [(text[hit.start : hit.end], hit.key) for hit in terms.first(text, seen)] == [
        ("cut ratio", "cut ratio"),
        ("dendrograms", "dendrogram"),
    ]
    assert seen == {"a", "c"}
    assert terms.first("a tree", seen) == []
    assert terms.first("subtree, tree-like", set()) == []


def test_terms_leave_other_mentions_alone() -> None:
    terms, text = Terms({"chapter": "x"}), "chapter 09"
    assert terms.first(text, set(), mentions(text, CHAPTERS, CLAIMS)) == []


OFFERED = Targets(
    chapters={"02": ("notebooks/02_a", "", "Heuristics"), "09": ("notebooks/09_b", "", "Trees")},
    claims={"C060": ("notebooks/18_scoreboard", "claim-C060", "It is better.")},
    terms={"dendrogram": ("book/glossary", "term-d", "A tree."), "owner": ("book/glossary", "term-o", "Who.")},
    words=Terms({"dendrogram": "A tree.", "owner": "Who."}),
    everyday=frozenset({"Who."}),
)


def _page(*sections: list[nodes.Node]) -> nodes.document:
    """A page with a title and a section for each list of blocks."""
    page = new_document("page")
    top = nodes.section("", nodes.title("", "Of dendrograms, chapter 09"))
    page += top
    for blocks in sections:
        top += nodes.section("", nodes.title("", "C060"), *blocks)
    return page


def _links(page: nodes.document, docname: str = "notebooks/02_a") -> list[tuple[str, str, str]]:
    builder = SimpleNamespace(get_relative_uri=lambda here, there: f"../{there}.html")
    app = SimpleNamespace(btcnb_targets=OFFERED, builder=builder)
    page.settings.env = SimpleNamespace(docname=docname, app=app, config=None)
    transform: Any = LinkMentions(page)
    transform.run()
    return [(link.astext(), link["refuri"], link.get("reftitle", "")) for link in page.findall(nodes.reference)]


def _text(text: str) -> nodes.paragraph:
    return nodes.paragraph("", text)


def test_a_page_links_what_it_mentions_and_shows_what_it_leads_to() -> None:
    page = _page([_text("As chapter 09 says of dendrograms (C060).")])
    assert _links(page) == [
        ("chapter 09", "../notebooks/09_b.html", "Trees"),
        ("dendrograms", "../book/glossary.html#term-d", "A tree."),
        ("C060", "../notebooks/18_scoreboard.html#claim-C060", "It is better."),
    ]
    assert page.astext().count("As chapter 09 says of dendrograms (C060).") == 1


def test_a_term_is_linked_once_a_section_and_an_everyday_word_once_a_page() -> None:
    page = _page([_text("a dendrogram, an owner"), _text("a dendrogram, an owner")], [_text("a dendrogram, an owner")])
    assert [words for words, _, _ in _links(page)] == ["dendrogram", "owner", "dendrogram"]


def test_code_headings_links_and_mathematics_are_left_alone() -> None:
    html = nodes.paragraph("", "", nodes.raw("", '<a href="#x">', format="html"), nodes.Text("C060"))
    html += [nodes.raw("", "</a>", format="html"), nodes.Text(" and C060")]
    blocks = [
        nodes.literal_block("", "chapter 09"),
        nodes.paragraph("", "", nodes.literal("", "C060"), nodes.math("", "C060")),
        nodes.paragraph("", "", nodes.reference("", "chapter 09", refuri="elsewhere")),
        html,
    ]
    found = _links(_page(blocks))
    assert [(words, where) for words, where, _ in found] == [
        ("chapter 09", "elsewhere"),
        ("C060", "../notebooks/18_scoreboard.html#claim-C060"),
    ]


def test_tables_link_chapters_and_claims_but_no_terms() -> None:
    table = nodes.table("", nodes.tgroup("", nodes.tbody("", nodes.row("", nodes.entry("", _text("owner, C060"))))))
    table.insert(0, nodes.title("", "After chapter 09"))  # a table's title is its caption
    assert [words for words, _, _ in _links(_page([table]))] == ["chapter 09", "C060"]


def test_a_chapter_does_not_link_to_itself_and_the_board_stays_on_its_page() -> None:
    assert _links(_page([_text("chapter 09")]), "notebooks/09_b") == []
    assert _links(_page([_text("C060")]), "notebooks/18_scoreboard")[0][1] == "#claim-C060"


OURS = ["myst_parser", "btcnb.book.sphinx_links"]


FIRST = """# First

{numref}`Table {number} <one>`, {numref}`two`, {numref}`there` and {numref}`two` again.

```{table} A table
:name: one

| a |
|---|
| 1 |
```

```{table} Another
:name: two

| b |
|---|
| 2 |
```
"""


SECOND = """# Second

```{table} A third
:name: there

| c |
|---|
| 3 |
```

Back to {numref}`one`, {numref}`two` and {numref}`there`.
"""


def rendered(folder: Path, extensions: list[str], first: str = FIRST, **settings: Any) -> list[str]:
    """Both pages."""
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "index.md").write_text(first + "\n```{toctree}\nsecond\n```\n")
    (source / "second.md").write_text(SECOND)
    settings |= {"extensions": extensions, "numfig": True, "html_theme": "basic"}
    told = io.StringIO()
    app = Sphinx(source, None, folder / "html", folder / "doctrees", "html", settings, status=None, warning=told)
    app.build()
    assert "undefined label" not in told.getvalue()
    return [(folder / "html" / f"{name}.html").read_text() for name in ("index", "second")]


def links(pages: list[str]) -> list[str]:
    """The references of the pages, as links with their words."""
    return [link for page in pages for link in re.findall(r'<a class="reference internal" href=".*?</a>', page)]


def test_they_are_sphinxs_own_with_fewer_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = BuildEnvironment.get_doctree
    monkeypatch.setattr(BuildEnvironment, "get_doctree", lambda env, name: read.append(name) or load(env, name))
    plain = links(rendered(tmp_path / "plain", ["myst_parser"]))
    often = len(read)
    read.clear()
    ours = links(rendered(tmp_path / "ours", OURS))
    words = [re.sub(r"<.*?>", "", link) for link in ours]
    assert words[:4] == ["Table 1", "Table 2", "Table 3", "Table 2"] and words[-3:] == ["Table 1", "Table 2", "Table 3"]
    assert ours == plain
    assert len(read) == often - 5  # seven references to two pages


def test_what_is_left_out_is_cited_without_a_number(tmp_path: Path) -> None:
    """Nothing warns, and the other tables are counted on without it."""
    first = FIRST.replace(":name: one", ":name: other") + "See {numref}`fig-gone`.\n"
    page = rendered(tmp_path, OURS, first, btcnb_left_out=["one", "fig-gone"])[0]
    assert "See <span>a figure that this edition leaves out</span>." in page
    assert "Table 2" in page and ">one<" not in page


def test_a_notebook_names_what_it_leaves_out_and_its_figure_loses_the_caption() -> None:
    def cell(name: str, *left: list[str]) -> NotebookNode:
        data = [{RECORD_MIME: {"kind": LEFT_OUT, "names": names}} for names in left]
        outputs = [new_output("display_data", one) for one in [*data, {"text/plain": "x"}]]
        return new_code_cell(outputs=outputs, metadata={"mystnb": {"figure": {"name": name, "caption": "See."}}})

    notebook = new_notebook(cells=[new_markdown_cell("a"), cell("fig-a", []), cell("fig-b", ["tbl-b"]), cell("fig-c")])
    assert leave_out(notebook) == ["fig-a", "tbl-b"]
    assert ["figure" in cell.metadata["mystnb"] for cell in notebook.cells[1:]] == [False, True, True]
