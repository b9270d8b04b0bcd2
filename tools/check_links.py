"""Follow every link of a rendered book: pages, anchors and files here, and addresses elsewhere.

    python tools/check_links.py _build/quick/html             # needs the network
    python tools/check_links.py _build/quick/html --offline   # links within the book only

Prints one line per broken link and fails if there is one. Addresses that answer "forbidden" or "too many requests" to a
program are counted as present: publishers do that, and a reader's browser gets through.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import requests

PRESENT = {401, 403, 405, 418, 429}
TRIES, SECONDS = 3, 30


class Reader(HTMLParser):
    """Listens to the tags of a page; a tree of it would take five times as long."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links.update(value for key, value in attrs if value is not None and key in ("href", "src"))
        self.anchors.update(value for key, value in attrs if value is not None and key in ("id", "name"))


def read(page: Path) -> tuple[set[str], set[str]]:
    """The links of a page, and the anchors that others may link to."""
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8", errors="replace"))
    reader.close()
    return reader.links, reader.anchors


def broken_inside(html: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Links within the book that lead nowhere; and every address elsewhere, with the pages that name it."""
    found = [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]  # templates of the theme
    pages = {page.resolve(): read(page) for page in found}
    broken: list[str] = []
    elsewhere: dict[str, list[str]] = defaultdict(list)
    for page, (links, _) in pages.items():
        name = page.relative_to(html.resolve()).as_posix()
        for link in sorted(links):
            parts = urlsplit(link)
            if parts.scheme in {"http", "https"}:
                if parts.hostname not in {"localhost", "127.0.0.1"}:
                    elsewhere[urldefrag(link)[0]].append(name)
                continue
            if parts.scheme or parts.netloc:
                continue
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                broken.append(f"{name}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target][1]:
                broken.append(f"{name}: {link} names an anchor that is not there")
    return broken, elsewhere


def problem(address: str) -> str | None:
    """What is wrong with an address elsewhere; None when it answers."""
    trouble = "no answer"
    for _ in range(TRIES):
        try:
            with requests.get(address, timeout=SECONDS, stream=True, headers={"User-Agent": "Mozilla/5.0"}) as answer:
                if answer.ok or answer.status_code in PRESENT:
                    return None
                trouble = f"status {answer.status_code}"
        except requests.RequestException as error:
            trouble = type(error).__name__
    return trouble


def main() -> int:
    parser = argparse.ArgumentParser(description="Follow every link of a rendered book.")
    parser.add_argument("html", type=Path, help="the folder of the rendered pages")
    parser.add_argument("--offline", action="store_true", help="links within the book only")
    options = parser.parse_args()
    if not (options.html / "index.html").exists():
        sys.exit(f"check_links: there is no book in {options.html}: run `make book` first.")
    broken, elsewhere = broken_inside(options.html)
    if not options.offline:
        with ThreadPoolExecutor(8) as pool:
            for address, trouble in zip(elsewhere, pool.map(problem, elsewhere), strict=True):
                if trouble:
                    broken.append(f"{', '.join(elsewhere[address][:3])}: {address}: {trouble}")
    print("\n".join([*broken, f"{len(broken)} broken links, {len(elsewhere)} addresses elsewhere"]))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
