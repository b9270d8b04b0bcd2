"""The slides of chapter 13, made from the built book, in a browser without a network: all of them, by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pages
import pytest

from btcnb.build.project import Project
from btcnb.build.slides import make_slides

pytestmark = [*pages.needs_book, pages.needs_browser]


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slides(Project(pages.ROOT), "13", target=tmp_path_factory.mktemp("slides") / "13.html")


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 720, "light"), (390, 800, "dark")])
def test_through_all_slides_by_keyboard(browser: Any, slides: Path, width: int, height: int, scheme: str) -> None:
    faults: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
    tab = context.new_page()
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    tab.on(
        "request", lambda each: None if each.url.startswith(("file:", "data:", "blob:")) else faults.append(each.url)
    )
    tab.goto(slides.as_uri(), wait_until="load", timeout=pages.PATIENCE)
    tab.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise", timeout=pages.PATIENCE)
    number = tab.locator(".slide").count()
    assert number > 10
    assert tab.locator(".slide figure img").count() >= 4, "figures are slides"
    for place in range(1, number + 1):
        assert tab.locator(".slide.now").count() == 1
        assert tab.locator("#place").inner_text() == f"{place} / {number}"
        assert tab.locator(".slide.now").inner_text().strip()
        wide = tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"slide {place} is {wide} pixels too wide"
        tab.keyboard.press("ArrowRight")
    assert tab.locator("#place").inner_text() == f"{number} / {number}", "the last slide is the end"
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("#place").inner_text() == f"{number - 1} / {number}"
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert not tab.locator(".notes:visible").count()
    tab.keyboard.press("n")
    assert tab.locator(".slide.now .notes").is_visible()
    assert faults == []
    context.close()


def test_one_slide_a_printed_page(browser: Any, slides: Path) -> None:
    tab = browser.new_page()
    tab.goto(slides.as_uri(), wait_until="load", timeout=pages.PATIENCE)
    tab.emulate_media(media="print")
    shown = tab.evaluate("[...document.querySelectorAll('.slide')].map(s => getComputedStyle(s).display)")
    breaks = tab.evaluate("[...document.querySelectorAll('.slide')].map(s => getComputedStyle(s).breakAfter)")
    assert set(shown) == {"block"}
    assert set(breaks[:-1]) == {"page"}
    tab.close()
