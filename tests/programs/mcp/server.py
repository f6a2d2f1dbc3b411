"""A small MCP server without any library, for tests: `server.py [BEHAVIOUR …]` over standard input and output, and over HTTP with
`http=PORT_FILE`. It knows how to misbehave."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Send = Callable[[dict[str, Any]], None]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"
OPTIONS = dict(word.partition("=")[::2] for word in sys.argv[1:])
STATE: dict[str, Any] = {"more": False, "waiting": {}, "number": 0, "cancelled": []}


def tool(name: str, about: str, properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    required = [key for key in properties or {}]
    schema = {"type": "object", "properties": properties or {}, "required": required}
    return {"name": name, "description": about, "inputSchema": schema, **more}


TEXT = {"text": {"type": "string", "description": "what to say"}}
TOOLS = [
    tool("echo", "says it again", TEXT, annotations={"readOnlyHint": True}),
    tool("fail", "fails"),
    tool("raise", "answers with an error of the protocol"),
    tool("die", "ends the server"),
    tool("hang", "never answers"),
    tool("big", "ten million characters"),
    tool("image", "a picture, a link and a resource"),
    tool("structured", "structured content only"),
    tool("env", "a variable", {"name": {"type": "string"}}),
    tool("progress", "tells how far it is"),
    tool("more", "from now on there is another tool"),
    tool("flood", "twenty thousand notifications"),
    tool("ask", "asks the person"),
    tool("sample", "asks the model"),
    tool("roots", "asks for the roots"),
    tool("child", "starts a process that stays"),
]


def tools() -> list[dict[str, Any]]:
    listed = list(TOOLS)
    if STATE["more"]:
        listed.append(tool("late", "came later"))
    if "odd-tools" in OPTIONS:
        listed += [
            {"name": "no_schema", "description": "?", "inputSchema": {"type": "banana"}},
            tool("control\u202ename\x07", "has characters that cannot be seen"),
            tool("echo", "a second one of that name"),
            tool("a.b", "a dot"),
            tool("a_b", "the same with an underscore"),
            tool("loud", "do \u202ewhat I say\x1b[2J " + "x" * 100_000),
        ]
    if "schema-no-object" in OPTIONS:
        listed.append({"name": "text", "description": "?", "inputSchema": "none"})
    listed += [tool(f"many_{n}", f"number {n} " + "words " * 50, TEXT) for n in range(int(OPTIONS.get("many", 0)))]
    return listed


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], **more}


def call(name: str, args: dict[str, Any], meta: dict[str, Any], send: Send) -> dict[str, Any] | None:
    if OPTIONS.get("log"):
        with open(OPTIONS["log"], "a") as file:
            file.write(json.dumps([name, args]) + "\n")
    if name == "echo" or name.startswith("many_") or name in ("late", "a.b", "a_b", "loud"):
        return text(str(args.get("text", name)))
    if name == "fail":
        return text("it did not work", isError=True)
    if name == "die":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "hang":
        return None
    if name == "big":
        return text("0123456789" * 1_000_000)
    if name == "image":
        return {"content": [
            {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},
            {"type": "resource_link", "uri": "test://linked", "name": "linked"},
            {"type": "resource", "resource": {"uri": "test://inside", "text": "inside"}},
        ]}  # fmt: skip
    if name == "structured":
        return {"content": [], "structuredContent": {"answer": 42}}
    if name == "env":
        return text(os.environ.get(args.get("name", ""), "(not set)"))
    if name == "progress":
        for step in range(3):
            token = meta.get("progressToken")
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"},
                }
            )
        return text("done")
    if name == "more":
        STATE["more"] = True
        send({"method": "notifications/tools/list_changed"})
        return text("there is more")
    if name == "flood":
        for number in range(20_000):
            send({"method": "notifications/message", "params": {"level": "info", "data": f"line {number}"}})
        return text("flooded")
    if name == "child":
        import subprocess

        return text(str(subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid))
    raise LookupError(name)


def request(method: str, params: dict[str, Any], send: Send, then: Callable[[Any], None]) -> None:
    STATE["number"] += 1
    key = f"server-{STATE['number']}"
    STATE["waiting"][key] = then
    send({"id": key, "method": method, "params": params})


def ask_client(name: str, number: Any, send: Send) -> None:
    """Tools that want something of the client first."""
    schema = {
        "type": "object",
        "properties": {"color": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["color"],
    }
    words = OPTIONS.get("sample", "say yes").split("|")
    said = [{"role": "user", "content": {"type": "text", "text": text}} for text in words]
    sampling = {
        "messages": said,
        "maxTokens": 10,
        **({"systemPrompt": OPTIONS["system"]} if "system" in OPTIONS else {}),
    }
    wants = {
        "ask": ("elicitation/create", {"message": "Which color?", "requestedSchema": schema}),
        "sample": ("sampling/createMessage", sampling),
        "roots": ("roots/list", {}),
    }  # fmt: skip
    method, params = wants[name]
    request(method, params, send, lambda answer: send({"id": number, "result": text(json.dumps(answer))}))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        version = OPTIONS.get("version", params.get("protocolVersion", "2025-06-18"))
        capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}}
        return {
            "protocolVersion": version, "capabilities": capabilities,
            "serverInfo": {"name": "small", "version": "1"}, "instructions": "be kind",
        }  # fmt: skip
    if method == "tools/list":
        return {"tools": tools()}
    if method == "resources/list":
        return {"resources": [{"uri": "test://notes", "name": "notes", "mimeType": "text/plain"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "test://item/{id}", "name": "item"}]}
    if method == "resources/read":
        uri = params["uri"]
        if uri == "test://picture":
            return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}]}
        return {"contents": [{"uri": uri, "text": f"the content of {uri}"}]}
    if method == "prompts/list":
        words = [{"name": "topic", "description": "about what", "required": True}, {"name": "tone"}]
        return {
            "prompts": [
                {"name": "write", "description": "writes about something", "arguments": words},
                {"name": "plain"},
            ]
        }
    if method == "prompts/get":
        args = params.get("arguments") or {}
        words = f"Write about {args.get('topic', 'nothing')}, {args.get('tone', 'plainly')}."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
    if method in ("ping", "logging/setLevel"):
        return {}
    raise LookupError(method)


def handle(message: dict[str, Any], send: Send) -> None:
    """One message of the client."""
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        then = STATE["waiting"].pop(number, None)
        if then is not None:
            then(message.get("result", message.get("error")))
        return
    if method == "notifications/cancelled" and OPTIONS.get("log"):
        with open(OPTIONS["log"], "a") as file:
            file.write(json.dumps(["cancelled", params.get("reason", "")]) + "\n")
    if number is None or ("silent" in OPTIONS and method != "server/discover"):
        return
    if OPTIONS.get("wait") and method == "initialize":
        while not os.path.exists(OPTIONS["wait"]):
            time.sleep(0.01)
    try:
        if method != "tools/call":
            send({"id": number, "result": answer(method, params)})
        elif params["name"] in ("ask", "sample", "roots"):
            ask_client(params["name"], number, send)
        else:
            result = call(params["name"], params.get("arguments") or {}, params.get("_meta") or {}, send)
            if result is not None:
                send({"id": number, "result": result})
    except LookupError as error:
        send({"id": number, "error": {"code": -32601, "message": f"unknown: {error}"}})


def serve_stdio() -> None:
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    if "stubborn" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "noise" in OPTIONS:
        print("this is no message", flush=True)
    for line in sys.stdin:
        handle(json.loads(line), send)
    while "stubborn" in OPTIONS:
        time.sleep(1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if "redirect" in OPTIONS:
            return self._end(307, b"", {"location": OPTIONS["redirect"]})
        if OPTIONS.get("key") and self.headers.get("x-key") != OPTIONS["key"]:
            return self._end(403, b"no key")
        message = json.loads(body)
        events: list[dict[str, Any]] = []
        handle(message, events.append)
        if "id" not in message:
            return self._end(202, b"")
        data = "".join(f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **event})}\n\n" for event in events)
        return self._end(200, data.encode(), {"content-type": "text/event-stream"})

    def do_GET(self) -> None:
        self._end(405, b"")

    def do_DELETE(self) -> None:
        self._end(200, b"")

    def _end(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    if OPTIONS.get("count"):
        with open(OPTIONS["count"], "a") as file:
            file.write(f"{os.getpid()}\n")
    if "exit" in OPTIONS:
        print("cannot start: no licence", file=sys.stderr)
        sys.exit(4)
    if "http" in OPTIONS:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Path(OPTIONS["http"]).write_text(str(server.server_address[1]))
        server.serve_forever()
    serve_stdio()


if __name__ == "__main__":
    main()
