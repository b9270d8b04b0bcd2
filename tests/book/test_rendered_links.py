"""The rendered pages: what they mention is linked, references lead somewhere, buttons name the right files."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup, NavigableString, Tag

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "quick" / "html"
CHAPTERS = [f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.md"))]
REPOSITORY = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
LEFT_ALONE = "a, pre, code, script, style, svg, h1, h2, h3, h4, h5, h6, .text_html, .math, dt, .admonition-title"

pytestmark = [
    pytest.mark.book,
    pytest.mark.skipif(not (HTML / "index.html").exists(), reason="the book is not built: run `make book` first"),
]


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(item["file"] for entry in entries for item in [entry, *entry.get("sections", [])])]


@functools.cache
def _soup(page: str) -> BeautifulSoup:
    """A page; listings without the colours of their words, which are most of its elements."""
    text = (HTML / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(re.sub(r"<pre\b.*?</pre>", _plain, text, flags=re.S), "html.parser")


def _plain(listing: re.Match[str]) -> str:
    return "<pre>" + re.sub(r"</?span\b[^>]*>|</?pre\b[^>]*>", "", listing[0]) + "</pre>"


def _article(page: str) -> Tag:
    found = _soup(page).find("article")
    assert isinstance(found, Tag)
    return found


def _left(tag: Tag, alone: set[int]) -> Iterator[str]:
    """The texts of an element but for those left alone, in whose place a dot stands; cells are not one sentence."""
    for child in tag.children:
        if isinstance(child, Tag):
            yield from ("·",) if id(child) in alone else _left(child, alone)
        elif type(child) is NavigableString:  # and no comment
            yield str(child)


@pytest.mark.parametrize("page", _pages())
def test_what_a_page_mentions_is_a_link(page: str) -> None:
    text = "¦".join(_left(_article(page), set(map(id, _article(page).select(LEFT_ALONE)))))
    own = re.search(r"notebooks/(\d\d)", page)
    numbers = {name[10:12] for name in CHAPTERS} - {own[1] if own else ""}
    assert [hit[0] for hit in re.finditer(r"[Cc]hapters?\s+(\d\d)\b", text) if hit[1] in numbers] == []
    assert re.findall(r"(?<![\w-])C\d{3}(?![\w-])", text) == []


@pytest.mark.parametrize("page", CHAPTERS)
def test_references_are_there_and_lead_somewhere(page: str) -> None:
    section = _article(page).find(id="references")
    assert isinstance(section, Tag)
    entries = section.select(".citation")
    assert entries
    known = {"schnoering2026refining", "ng2001spectral"}  # without an address that we know
    without = [entry.get_text() for entry in entries if not entry.select('a[href^="http"]')]
    assert len(without) <= len(known)


@pytest.mark.parametrize("page", CHAPTERS)
def test_buttons_open_the_notebook_and_edit_the_text(page: str) -> None:
    address, branch = REPOSITORY["url"], REPOSITORY["branch"]
    links = {str(link["href"]) for link in _soup(page).select(".article-header-buttons a[href]")}
    owner = address.removeprefix("https://github.com/")
    assert f"https://colab.research.google.com/github/{owner}/blob/{branch}/{page}.ipynb" in links
    assert f"https://mybinder.org/v2/gh/{owner}/{branch}?urlpath=lab/tree/{page}.ipynb" in links
    assert f"{address}/edit/{branch}/{page}.md" in links
    assert "find_spec" not in _article(page).get_text(), "the cell that finds the package is not for readers"


def test_words_on_hovering() -> None:
    terms = [link for page in CHAPTERS for link in _article(page).select("a.mention-term")]
    assert len(terms) > 100
    assert all(len(str(link.get("title", ""))) > 20 for link in terms)
    assert not any("eq-" in str(link["title"]) for link in terms)


def test_no_term_is_linked_twice_in_a_section() -> None:
    for page in CHAPTERS:
        for section in _article(page).select("article > section > section"):
            targets = [link["href"] for link in section.select("a.mention-term")]
            assert len(targets) == len(set(targets)), f"{page}: {section.get('id')}"
