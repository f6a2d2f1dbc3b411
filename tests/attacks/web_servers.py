"""Two servers on this machine: one that leads everybody away, and one that nobody should come to, or not with a key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct, field


class Seen(Struct):
    """What a server has seen: method, path, and everything of each request in one text."""

    url: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def holds(self, text: str) -> bool:
        return any(text in whole for _, _, whole in self.requests)


@contextmanager
def web_server(answer: Callable[[str], tuple[int, str]]) -> Iterator[Seen]:
    """Each path is answered with a status and, if it is not empty, an address that it leads to."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            whole = f"{self.requestline}\n{self.headers}\n{body.decode('utf-8', 'replace')}"
            seen.requests.append((self.command, self.path, whole))
            code, location = answer(self.path)
            self.send_response(code)
            if location:
                self.send_header("location", location.encode().decode("latin-1"))
            text = b'{"data": [], "text": "inside"}'
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text if self.command != "HEAD" else b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
