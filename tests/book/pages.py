"""The rendered book for tests: where its pages are, a server for them, and the browser that looks at them."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "quick" / "html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120_000
"""Milliseconds that a page may take on a busy machine; a page that works takes one second."""
ALONE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""No name is resolved: a page that needs another host fails here as it would on a train."""
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules={ALONE}",
]

needs_book = [
    pytest.mark.book,
    pytest.mark.skipif(not (HTML / "index.html").exists(), reason="the book is not built: run `make book` first"),
]
needs_browser = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium on this machine: install the package `chromium` to look at the rendered pages",
)


def pages() -> list[str]:
    """Every page of the table of contents, in its order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(item["file"] for entry in entries for item in [entry, *entry.get("sections", [])])]


def chapters() -> list[str]:
    return [page for page in pages() if page.startswith("notebooks/")]


def text(page: str) -> str:
    return (HTML / f"{page}.html").read_text(encoding="utf-8")


def article(page: str) -> str:
    return text(page).split('<article class="bd-article"', 1)[1].split("</article>", 1)[0]


def prose(page: str) -> str:
    """The article without code and scripts."""
    return re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", article(page), flags=re.S)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which `folder` can be read."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window that reaches this machine only."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        try:
            yield found
        finally:
            found.close()


class Visit:
    """One tab: the page it shows, what left the machine, and what went wrong."""

    def __init__(self, browser: Any, site: str, width: int = 1280, mathematics: bool = True) -> None:
        """mathematics: whether formulas are set, which takes most of the time that a chapter needs to open"""
        self.site = site
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        self.tab = browser.new_page(viewport={"width": width, "height": 900})
        self.tab.set_default_timeout(PATIENCE)
        if not mathematics:
            self.tab.route("**/mathjax/**", lambda route: route.fulfill(content_type="text/javascript", body=""))
        self.tab.on("request", self._asked)
        self.tab.on("response", self._answered)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def open(self, address: str) -> Any:
        """Go to a page of the site and wait until its mathematics is set, if it is to be."""
        self.tab.goto(f"{self.site}/{address}", wait_until="load")
        self.tab.evaluate("window.MathJax?.startup?.promise?.then(() => null)")
        return self.tab

    def close(self) -> None:
        self.tab.close()

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.site, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def _answered(self, response: Any) -> None:
        if response.status >= 400:
            self.errors.append(f"{response.status} {response.url}")
