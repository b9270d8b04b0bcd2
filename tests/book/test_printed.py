"""The print edition of the built book: all chapters in order, nothing loaded, every link with an end, and a PDF."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pages
import pytest
from bs4 import BeautifulSoup

from btcnb.build.printing import anchor, one_file, parts, print_pdf
from btcnb.build.project import Project

pytestmark = pages.needs_book


def made(folder: Path, only: list[str]) -> Path:
    path = folder / "book.html"
    path.write_text(one_file(pages.HTML, parts(Project(pages.ROOT), only), "The book"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("print"), [])


class Heard(HTMLParser):
    """What stands in a large file, without a tree of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.articles: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.images: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.names += [known["id"]] if "id" in known else []
        if tag == "article":
            self.articles.append(known["id"])
        elif tag == "a" and "href" in known:
            self.links.append(known["href"])
        elif tag == "img":
            self.images.append((known["src"], known["alt"]))


def test_all_pages_stand_in_order_and_every_link_has_an_end(whole: Path) -> None:
    page = Heard(whole.read_text(encoding="utf-8"))
    assert page.articles == [anchor(document) for document in pages.pages()]
    assert len(page.names) == len(set(page.names)) > 100
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert len(inside) > 100 and inside - set(page.names) == set()
    others = {link for link in page.links if not link.startswith("#")}
    assert all(re.match(r"(https?|mailto):", address) for address in others), others
    assert page.images and all(source.startswith("data:") and len(alt) >= 4 for source, alt in page.images)


@pages.needs_browser
def test_the_file_asks_for_nothing_and_sets_its_mathematics(tmp_path: Path, browser: Any) -> None:
    with pages.served(tmp_path) as site:
        visit = pages.Visit(browser, site)
        tab = visit.open(made(tmp_path, ["04"]).name)
        asked = tab.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
        unset = tab.evaluate("[...document.querySelectorAll('.math')].filter((m) => !m.querySelector('svg')).length")
        formulas, wide = tab.locator("mjx-container").count(), tab.evaluate("document.body.scrollWidth")
        visit.close()
    assert visit.elsewhere == [] and visit.errors == []
    assert all(address.startswith("data:") for address in asked), asked
    assert unset == 0 and formulas > 10 and wide <= 1280


@pages.needs_browser
def test_a_pdf_is_printed_from_the_first_and_the_last_chapter(tmp_path: Path) -> None:
    target = tmp_path / "book.pdf"
    print_pdf(made(tmp_path, ["01", "18"]), target)
    data = target.read_bytes()
    assert data.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) > 5
    titles = [re.sub(r"^\d+\.\s*", "", _title(page)) for page in (pages.chapters()[0], pages.chapters()[-1])]
    outline = data.decode("latin-1")
    assert all(anchor(page) in outline for page in (pages.chapters()[0], pages.chapters()[-1])), titles


def _title(page: str) -> str:
    heading = BeautifulSoup(pages.article(page), "html.parser").find("h1")
    assert heading is not None
    return heading.get_text()
