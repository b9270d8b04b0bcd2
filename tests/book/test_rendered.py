"""The rendered book as text: nothing left over, every part in its place, every link and anchor with an end.

`make test` builds the book first. Without a built book these tests say so and skip.
"""

from __future__ import annotations

import functools
import html
import re
from pathlib import Path
from urllib.parse import unquote

import pages
import pytest

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
