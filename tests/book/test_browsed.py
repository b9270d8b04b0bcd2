"""Every page in a real browser, the network cut off: light and dark, on a laptop and on a phone.

A page is opened once; scheme and width then change under it, as they do for a reader.
Without a Chromium these tests say so and skip.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pages
import pytest

pytestmark = [*pages.needs_book, pages.needs_browser]

LOOKS = Path(__file__).with_name("looks.js").read_text()
WIDTHS = (1280, 390)
BY_WIDTH = [
    "scrollable-region-focusable",
    "target-size",
    "aria-hidden-focus",
    "button-name",
    "link-name",
    "label",
    "select-name",
]
"""Rules whose outcome may depend on the width."""
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"
SCHEME = "scheme => { document.documentElement.dataset.mode = document.documentElement.dataset.theme = scheme; }"
FAULTS = Path(__file__).with_name("faults.js").read_text()
THIN = Path(__file__).with_name("thin.js").read_text()
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Until what the page does after a change is done."""


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core, which checks a page for what keeps people from reading it."""
    import axe_playwright_python

    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages.pages())
def test_a_page_can_be_read_in_both_schemes_at_both_widths(page: str, site: str, browser: Any, axe: str) -> None:
    visit = pages.Visit(browser, site)
    tab = visit.open(f"{page}.html")
    tab.add_style_tag(content=STILL)  # a colour that is on its way is nobody's
    found: dict[str, Any] = {}
    for width in WIDTHS:
        show(tab, width, "light")
        found[f"looks, {width}"] = tab.evaluate(LOOKS)
    tab.evaluate(THIN)
    tab.evaluate(axe)
    for width, scheme, rules in ((1280, "light", []), (1280, "dark", ["color-contrast"]), (390, "dark", BY_WIDTH)):
        show(tab, width, scheme)
        found[f"faults, {width}, {scheme}"] = tab.evaluate(FAULTS, rules)
    visit.close()
    assert visit.elsewhere == [], "the page asks other hosts"
    assert visit.errors == []
    assert {name: faults for name, faults in found.items() if faults} == {}


def show(tab: Any, width: int, scheme: str) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    tab.evaluate(SCHEME, scheme)
    tab.evaluate(FRAMES)


@pytest.mark.parametrize(
    ("body", "rules", "fault"),
    [
        ("<p style='color: #999'>pale</p>", [], "color-contrast"),
        ("<p style='color: #999'>pale</p>", BY_WIDTH, "color-contrast"),
        ("<button></button>", [], "button-name"),
        ("<button></button>", BY_WIDTH, "button-name"),
        ("<img src='data:,'>", [], "image-alt"),
        ("<p>black on white</p><button>press</button>", [], ""),
    ],
)
def test_a_page_with_a_fault_is_found_out(body: str, rules: list[str], fault: str, browser: Any, axe: str) -> None:
    tab = browser.new_page()
    tab.set_content(f"<html lang='en'><head><title>t</title></head><body><main><h1>t</h1>{body}</main></body></html>")
    tab.evaluate(axe)
    found = [line.split(":")[0] for line in tab.evaluate(FAULTS, rules)]
    tab.close()
    assert found == [fault] * bool(fault)


def test_search_finds_a_term_by_keyboard(site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site)
    tab = visit.open("book/intro.html")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("dendrogram purity")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html?q=*")
    tab.wait_for_selector("#search-results li a")
    results = [link.get_attribute("href") for link in tab.query_selector_all("#search-results li a")]
    visit.close()
    assert any("09_dendrograms" in address for address in results), results
    assert visit.elsewhere == []


def test_the_scheme_button_changes_the_page_and_its_figures(site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site)
    tab = visit.open("notebooks/01_transactions.html")
    tab.evaluate(SCHEME, "light")
    shown = "[...document.querySelectorAll('article figure img')].filter((i) => i.offsetWidth).map((i) => i.src)"
    light, paper = tab.evaluate(shown), tab.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(3):  # light, dark, and whatever the system says
        tab.locator("button.theme-switch-button").first.click()
        if tab.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    dark = tab.evaluate(shown)
    assert paper != tab.evaluate("getComputedStyle(document.body).backgroundColor")
    visit.close()
    assert light and all(source.endswith("-light.svg") for source in light)
    assert [source.replace("-dark.svg", "-light.svg") for source in dark] == light != dark


def test_the_first_page_is_light(site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site)
    sizes: dict[str, int] = {}
    visit.tab.on("response", lambda answer: sizes.update({answer.url: int(answer.headers.get("content-length", 0))}))
    visit.open("book/intro.html")
    visit.tab.wait_for_load_state("networkidle")
    visit.close()
    own = {address: size for address, size in sizes.items() if "mathjax" not in address.lower()}
    assert sum(own.values()) < 1_000_000, sorted(own.items(), key=lambda entry: -entry[1])[:5]
    assert sum(own.values()) > 10_000
