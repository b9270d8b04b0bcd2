"""The rendered book as text: nothing left over, every part in its place, every link and anchor with an end.

`make test` builds the book first. Without a built book these tests say so and skip.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pages
import pytest
import yaml
from bs4 import BeautifulSoup, NavigableString, Tag

CHAPTERS = pages.chapters()


pytestmark = pages.needs_book


@pytest.mark.parametrize("page", pages.pages())
def test_a_page_is_rendered_without_leftovers(page: str) -> None:
    article, prose = pages.article(page), pages.prose(page)
    assert "{glue:" not in prose
    assert "{numref}" not in prose
    assert ":::" not in prose
    assert "Traceback (most recent call last)" not in article
    assert not re.search(r'<img(?![^>]*alt="[^"]{4,}")[^>]*>', article), "every picture has a description"


@pytest.mark.parametrize("page", pages.chapters())
def test_a_chapter_has_its_parts(page: str) -> None:
    article = pages.article(page)
    for part in (
        "What you will learn",
        "Before you start",
        "Re-run me",
        "Verdicts",
        "Exercises",
        "Summary",
        "Provenance",
    ):
        assert part in article, f"{page} lacks {part!r}"
    assert f"papermill {page}.ipynb" in re.sub(r"<[^>]+>", "", article), (
        "the box names the command that runs this chapter"
    )
    if "load_graph" in (pages.ROOT / f"{page}.md").read_text():
        assert "simulated" in article, "simulated data is called that"
    assert 'class="exercise' in article
    assert "Solution to" in article


@pytest.mark.parametrize("page", pages.chapters())
def test_figures_are_captioned_and_drawn_for_both_schemes(page: str) -> None:
    figures = re.findall(r"<figure\b.*?</figure>", pages.article(page), flags=re.S)
    assert figures, f"{page} shows no figure"
    for figure in figures:
        caption = re.search(r"<figcaption>(.*?)</figcaption>", figure, flags=re.S)
        assert caption is not None
        assert len(re.sub(r"<[^>]+>", "", caption[1])) > 40, "a caption says what to see"
        drawn = re.findall(r'<img[^>]*\bsrc="([^"]+)"', figure)
        assert [source.rsplit("-", 1)[-1] for source in drawn] == ["light.svg", "dark.svg"] * (len(drawn) // 2), drawn
        for source in drawn:
            svg = (pages.HTML / page).parent / source
            assert svg.stat().st_size < 400_000, f"{source} is too heavy for a page"
            assert 'id="patch_1"' not in svg.read_text(), "a plate behind the figure"


@functools.cache
def _anchors(path: Path) -> frozenset[str]:
    found = re.findall(r'\s(?:id|name)="([^"]+)"', path.read_text(encoding="utf-8"))
    return frozenset(html.unescape(name) for name in found)


def test_no_link_inside_the_book_is_broken() -> None:
    broken = []
    for path in sorted(pages.HTML.rglob("*.html")):
        if path.relative_to(pages.HTML).parts[0] in {"_static", "_sources"}:
            continue
        for link in set(re.findall(r'href="([^"]+)"', path.read_text(encoding="utf-8"))):
            address, _, anchor = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:", address):
                continue
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            lost = not target.exists() or (
                anchor and target.suffix == ".html" and unquote(anchor) not in _anchors(target)
            )
            if lost:
                broken.append(f"{path.relative_to(pages.HTML)} -> {link}")
    assert broken == []


REPOSITORY = yaml.safe_load((pages.ROOT / "_config.yml").read_text())["repository"]


LEFT_ALONE = "a, pre, code, script, style, svg, h1, h2, h3, h4, h5, h6, .text_html, .math, dt, .admonition-title"


@functools.cache
def _soup(page: str) -> BeautifulSoup:
    """A page; listings without the colours of their words, which are most of its elements."""
    text = (pages.HTML / f"{page}.html").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("page", pages.pages())
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
