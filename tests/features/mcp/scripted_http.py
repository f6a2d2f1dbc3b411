"""An MCP server over HTTP in the test's process, whose answers a test writes: what no honest server does is one function here."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cru.features.mcp import McpServer
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.ports import NoRequests

Message = dict[str, Any]
TOOL = {"name": "work", "description": "works", "inputSchema": {"type": "object", "properties": {}}}


class Exchange(BaseHTTPRequestHandler):
    """One request of the client, and the ways to answer it."""

    protocol_version = "HTTP/1.1"
    server: ScriptedServer
    message: Message

    def do_POST(self) -> None:
        self.message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append(self.message.get("method", ""))
        try:
            if not self.server.rule(self):
                self.usual()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has had enough

    def do_GET(self) -> None:
        self.status(405)

    def do_DELETE(self) -> None:
        self.status(200)

    @property
    def is_call(self) -> bool:
        return self.message.get("method") == "tools/call"

    def usual(self) -> None:
        """What an honest server says."""
        method, params = self.message.get("method"), self.message.get("params") or {}
        if "id" not in self.message:
            return self.status(202)
        if method == "initialize":
            capabilities: Message = {"tools": {}}
            info = {"name": "scripted", "version": "1"}
            version = params["protocolVersion"]
            return self.result({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        if method == "tools/list":
            return self.result({"tools": [TOOL]})
        if method == "tools/call":
            return self.text("worked")
        return self.error(-32601, f"unknown: {method}")

    def text(self, text: str) -> None:
        self.result({"content": [{"type": "text", "text": text}]})

    def result(self, result: Message) -> None:
        self.json({"jsonrpc": "2.0", "id": self.message["id"], "result": result})

    def error(self, code: int, message: str, status: int = 200) -> None:
        self.json({"jsonrpc": "2.0", "id": self.message.get("id"), "error": {"code": code, "message": message}}, status)

    def json(self, value: Message, status: int = 200) -> None:
        self.status(status, json.dumps(value).encode(), {"content-type": "application/json"})

    def status(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.head(status, {"content-length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        if self.server.session and "content-length" in headers:
            headers = {"mcp-session-id": self.server.session, **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def stream(self, kind: str = "text/event-stream") -> None:
        """From now on the body goes to its end with the connection."""
        self.head(200, {"content-type": kind, "connection": "close"})
        self.close_connection = True

    def event(self, value: Message) -> None:
        self.wfile.write(f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **value})}\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


Rule = Callable[[Exchange], object]
"""Answers and says that it has; what it leaves gets the usual answer."""


class ScriptedServer(ThreadingHTTPServer):
    """seen: the methods that were asked for; session: the id that clients get, "" for none"""

    daemon_threads = False

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.seen: list[str] = []
        self.session = ""
        super().__init__(("127.0.0.1", 0), Exchange)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def calls(self) -> int:
        return self.seen.count("tools/call")


@contextmanager
def scripted(rule: Rule) -> Iterator[ScriptedServer]:
    server = ScriptedServer(rule)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def no_file(content: bytes, suffix: str) -> Path | None:
    return None


async def no_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


@asynccontextmanager
async def connected(server: McpServer, folder: Path) -> AsyncIterator[ServerConnection]:
    """cru's client of that server, which is ready or has failed."""
    place = ServerPlace(folder, folder, {}, {"PATH": "/usr/bin:/bin"})
    connection = ServerConnection(ServerDefinition("small", server), place, NoRequests(folder), lambda _: None)
    try:
        await connection.wait_settled()
        yield connection
    finally:
        await connection.close()


async def call(connection: ServerConnection, tool: str = "work") -> str:
    """The text of a result. Raises McpError."""
    return (await connection.call(tool, {}, no_file, no_progress)).text
