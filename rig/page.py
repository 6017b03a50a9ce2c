"""Renders and serves the harness page, on loopback, secure and cross-origin isolated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import jinja2

from rig import __version__, assets

LOOPBACK = "127.0.0.1"

TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html"}

ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
"""Without these two the page's clock ticks in 100 µs instead of 5."""


def harness(entry: str = "executor.js") -> str:
    """The harness page that loads the module `entry`."""
    template = (assets.folder("pages") / "harness.html.j2").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True).from_string(template).render(version=__version__, entry=entry)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        body = self.server.files().get(urlsplit(self.path).path)
        self.send_response(200 if body is not None else 404)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Type", TYPES["." + self.path.rsplit(".", 1)[-1]] if "." in self.path else "text/html")
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: a request is no news."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers
        super().__init__((LOOPBACK, 0), _Handler)

    def files(self) -> dict[str, bytes]:
        """Everything that can be asked for: the page, and the modules of pages/."""
        found = (path for path in assets.folder("pages").iterdir() if path.suffix in (".js", ".wasm"))
        modules = {f"/pages/{path.name}": path.read_bytes() for path in found}
        return {"/": harness().encode(), **modules}


@contextmanager
def serve(*, isolated: bool = True, host: str = LOOPBACK) -> Iterator[str]:
    """Serves the harness on loopback until the block ends; yields its URL, under the name `host`."""
    server = _Server(ISOLATION if isolated else {})
    Thread(target=server.serve_forever, name="rig-page", daemon=True).start()
    try:
        yield f"http://{host}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
