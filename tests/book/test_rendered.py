"""The rendered book, read as a reader's browser reads it: no request leaves, nothing errs, nothing is clipped.

`make test` builds the book first. Without a built book, or without a Chromium, these tests say so and skip.
"""

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "quick" / "html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120_000
"""Milliseconds that a page may take on a busy machine; a page that works takes one second."""
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.book,
    pytest.mark.skipif(not (HTML / "index.html").exists(), reason="the book is not built: run `make book` first"),
]


def _pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(item["file"] for entry in entries for item in [entry, *entry.get("sections", [])])]


def _chapters() -> list[str]:
    return [page for page in _pages() if page.startswith("notebooks/")]


def _text(page: str) -> str:
    return (HTML / f"{page}.html").read_text(encoding="utf-8")


def _article(page: str) -> str:
    return _text(page).split('<article class="bd-article"', 1)[1].split("</article>", 1)[0]


@pytest.mark.parametrize("page", _pages())
def test_a_page_is_rendered_without_leftovers(page: str) -> None:
    article = _article(page)
    prose = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", article, flags=re.S)
    assert "{glue:" not in prose
    assert "{numref}" not in prose
    assert ":::" not in prose
    assert "Traceback (most recent call last)" not in article
    assert not re.search(r'<img(?![^>]*alt="[^"]{4,}")[^>]*>', article), "every picture has a description"


@pytest.mark.parametrize("page", _chapters())
def test_a_chapter_has_its_parts(page: str) -> None:
    article = _article(page)
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
    if "load_split" in (ROOT / f"{page}.md").read_text():
        assert "simulated" in article, "simulated data is called that"
    assert 'class="exercise' in article
    assert "Solution to" in article


@pytest.mark.parametrize("page", _chapters())
def test_figures_and_tables_are_numbered_and_captioned(page: str) -> None:
    article = _article(page)
    figures = re.findall(r"<figure\b.*?</figure>", article, flags=re.S)
    assert figures, f"{page} shows no figure"
    for figure in figures:
        caption = re.search(r"<figcaption>(.*?)</figcaption>", figure, flags=re.S)
        assert caption is not None
        assert len(re.sub(r"<[^>]+>", "", caption[1])) > 40, "a caption says what to see"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(HTML)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no Chromium on this machine: install the package `chromium` to look at the rendered pages")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield chromium
        chromium.close()


@pytest.mark.parametrize("page", _pages())
def test_a_page_loads_nothing_from_elsewhere_and_errs_nowhere(page: str, site: str, browser: Any) -> None:
    elsewhere: list[str] = []
    errors: list[str] = []
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.on(
        "request",
        lambda request: None if request.url.startswith((site, "data:", "blob:")) else elsewhere.append(request.url),
    )
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on(
        "response",
        lambda response: errors.append(f"{response.status} {response.url}") if response.status >= 400 else None,
    )
    tab.goto(f"{site}/{page}.html", wait_until="load", timeout=PATIENCE)
    tab.wait_for_timeout(300)
    if tab.locator("span.math, div.math").count():
        tab.wait_for_selector("mjx-container", state="attached", timeout=PATIENCE)
        assert tab.locator("mjx-merror").count() == 0, "broken mathematics"
    clipped = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    tab.close()
    assert elsewhere == []
    assert errors == []
    assert clipped <= 1, "the page is wider than the window"


@pytest.mark.parametrize("page", _pages())
def test_a_page_fits_a_phone(page: str, site: str, browser: Any) -> None:
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    tab.goto(f"{site}/{page}.html", wait_until="load", timeout=PATIENCE)
    wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    tab.close()
    assert wide <= 1, "something is wider than a phone's screen"


def test_no_link_inside_the_book_is_broken() -> None:
    broken = []
    for path in HTML.rglob("*.html"):
        if "_static" in path.parts:
            continue
        for target in re.findall(r'href="([^"#?]+)', path.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            if not (path.parent / target).resolve().exists():
                broken.append(f"{path.relative_to(HTML)} -> {target}")
    assert broken == []
