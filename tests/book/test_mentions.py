"""Mentions of chapters, claims and words of the glossary: what is found in a sentence, and what a page makes of it."""

from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes
from docutils.utils import new_document

from btcnb.book.sphinx_links import LinkMentions, Targets, Terms, mentions, spellings

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
