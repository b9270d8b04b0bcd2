"""A small web server for tests that fetch: on this machine, on a port of its own, gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


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


class Files:
    """What a server of files holds, by path, and how it misbehaves. HOST in a file is the server's address."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.cut_after: dict[str, list[int]] = {}  # path -> bytes after which the next answers break off
        self.odd: dict[str, tuple[int, dict[str, str]]] = {}  # path -> status and headers of its answer
        self.ranges = True
        self.drips = False  # a byte now and then
        self.requests: list[tuple[str, str | None]] = []  # path, and the range asked for

    def asked(self, folder: str = "/") -> list[str]:
        return [path for path, _ in self.requests if path.startswith(folder)]


@contextmanager
def serving(files: Files) -> Iterator[str]:
    """Serves the files while the context lasts; gives the server's address."""
    stopped = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            files.requests.append((self.path, wanted))
            content = files.content.get(self.path)
            if content is None:
                return self.reply(404, b'{"status": 404}')
            content = content.replace(b"HOST", f"http://127.0.0.1:{self.server.server_port}".encode())
            first = int(wanted[6:-1]) if wanted and files.ranges else 0
            if first >= len(content) > 0:
                return self.reply(416, b"")
            status, headers = files.odd.get(self.path, (206 if first else 200, {}))
            cuts = files.cut_after.get(self.path, [])
            return self.reply(status, content[first:], headers, cuts.pop(0) if cuts else None)

        def reply(self, status: int, content: bytes, headers: dict | None = None, cut: int | None = None) -> None:
            self.send_response_only(status)
            for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
                self.send_header(name, value)
            self.end_headers()
            for letter in content if files.drips else b"":
                if stopped.wait(0.02):
                    return
                self.wfile.write(bytes([letter]))
            self.wfile.write(b"" if files.drips else content[:cut])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with answering(Handler) as address:
        try:
            yield address
        finally:
            stopped.set()
