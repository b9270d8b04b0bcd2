"""A small web server for tests that fetch: on this machine, on a port of its own, gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answers requests by `handler` while the context lasts; gives the server's address, without a slash at its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
