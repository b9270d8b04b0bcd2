"""The link checker finds what is broken, and nothing in the built book is."""

import http.server
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "quick" / "html"
TOOL = runpy.run_path(str(ROOT / "tools" / "check_links.py"))


def test_links_within_a_book(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "index.html").write_text(
        '<p id="top"><a href="part/page.html#here">a</a><a href="part/page.html#gone">b</a><a href="#top">c</a>'
        '<a href="missing.html">d</a><a href="part/">e</a><img src="data:image/png;base64,AA"><a href="mailto:x">f</a>'
        '<a href="https://example.org/x#y">g</a><a href="http://127.0.0.1:8332">h</a></p>'
    )
    (tmp_path / "part" / "page.html").write_text('<h1 id="here"><a href="../index.html">back</a></h1>')
    (tmp_path / "part" / "index.html").write_text("<p>part</p>")
    broken, elsewhere = TOOL["broken_inside"](tmp_path)
    assert broken == [
        "index.html: missing.html does not exist",
        "index.html: part/page.html#gone names an anchor that is not there",
    ]
    assert elsewhere == {"https://example.org/x": ["index.html"]}


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path[1:]))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("status", "wrong"), [(200, None), (403, None), (429, None), (404, "status 404"), (500, "status 500")]
)
def test_addresses_elsewhere(site: str, status: int, wrong: str | None) -> None:
    assert TOOL["problem"](f"{site}/{status}") == wrong


@pytest.mark.book
@pytest.mark.skipif(not (HTML / "index.html").exists(), reason="the book is not built: run `make book` first")
def test_every_link_within_the_book_leads_somewhere() -> None:
    assert TOOL["broken_inside"](HTML)[0] == []
