"""What hostile servers of models send, as rows: the bytes of an answer, status line included.

Those that never end are in tests/core/models/test_bad_servers.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

Bytes = Callable[[], bytes]
"""Made when it is wanted: some are large."""
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
OTHER_TYPES: tuple[Any, ...] = (None, [], 7, "x", {"choices": None}, {"choices": {}})
OTHER_CHOICES: tuple[Any, ...] = (None, [], 7, "x", {"delta": 7})
OTHER_TEXTS: tuple[Any, ...] = (7, [], {}, [{"type": "text"}])
DONE = b"data: [DONE]\n\n"
BIG = 100_000_000


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(**fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields}]})


def call(index: Any = 0, name: Any = "ls", arguments: Any = "{}", id: Any = "c") -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


HELLO = delta(content="hello")
END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + DONE
CALLED = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}) + DONE

EVENTS: dict[str, Bytes] = {
    "no UTF-8": lambda: SSE + b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n' + END,
    "NUL characters": lambda: SSE + bytes(1_000_000) + HELLO + END,
    "half a character": lambda: SSE + b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n' + END,
    "100 MB in a line": lambda: SSE + b'data: {"a":"' + b"x" * BIG + b'"}\n\n' + END,
    "100 MB of small lines": lambda: SSE + b"data: 1\n" * (BIG // 8) + b"\n" + END,
    "100 MB of comments": lambda: SSE + b": x\n" * (BIG // 4) + HELLO + END,
    "100 MB of empty events": lambda: SSE + b"data: {}\n\n" * (BIG // 10) + HELLO + END,
    "a number without end": lambda: SSE + b'data: {"choices":[{"index":' + b"9" * 1_000_000 + b"}]}\n\n" + END,
    "a fraction without end": lambda: SSE + b'data: {"usage":{"cost":1e999},"choices":[]}\n\n' + HELLO + END,
    "keys that stand twice": lambda: SSE + b'data: {"choices":[{"delta":{"content":"a","content":"b"}}],"choices":[]}\n\n' + HELLO + END,
    "half a line": lambda: SSE + HELLO + b'data: {"choi',
    "carriage returns": lambda: SSE + (HELLO + END).replace(b"\n", b"\r"),
    "marks of bytes": lambda: SSE + b"\xef\xbb\xbf" * 1000 + HELLO + END,
    "another shape": lambda: SSE + b"".join(event(value) for value in OTHER_TYPES) + END,
    "choices of other types": lambda: SSE + b"".join(event({"choices": [value]}) for value in OTHER_CHOICES) + END,
    "deltas of other types": lambda: SSE + b"".join(delta(content=value) for value in OTHER_TEXTS) + END,
    "100,000 choices": lambda: SSE + event({"choices": [{"index": n, "delta": {"content": "x"}} for n in range(100_000)]}) + END,
    "100,000 calls": lambda: SSE + delta(tool_calls=[call(n, id=f"c{n}") for n in range(100_000)]) + CALLED,
    "calls of the same id": lambda: SSE + delta(tool_calls=[call(n) for n in range(100)]) + CALLED,
    "a call of a strange index": lambda: SSE + delta(tool_calls=[call(10**18), call(-1, id="d"), call("x", id="e")]) + CALLED,
    "a call without a name": lambda: SSE + delta(tool_calls=[call(name="")]) + CALLED,
    "a call of a long name": lambda: SSE + delta(tool_calls=[call(name="x" * 1_000_000)]) + CALLED,
    "a call of a strange name": lambda: SSE + delta(tool_calls=[call(name="ls\0\n\x1b[2J\u202e")]) + CALLED,
    "a call of a long id": lambda: SSE + delta(tool_calls=[call(id="../" * 100_000 + "\0")]) + CALLED,
    "arguments that are no text": lambda: SSE + delta(tool_calls=[call(arguments=[1])]) + CALLED,
    "arguments of NUL and surrogates": lambda: SSE + delta(tool_calls=[call(arguments='{"path": "a\\u0000\\ud800"}')]) + CALLED,
    "arguments with a number without end": lambda: SSE + delta(tool_calls=[call(arguments='{"path": ' + "9" * 100_000 + "}")]) + CALLED,
    "a reason of 1 MB": lambda: SSE + HELLO + event({"choices": [{"delta": {}, "finish_reason": "x" * 1_000_000}]}) + DONE,
    "an error of 1 MB": lambda: SSE + event({"error": {"message": "x" * 1_000_000, "code": []}}),
    "an error of other types": lambda: SSE + event({"error": [7, {"message": {}}]}),
    "an end and more": lambda: SSE + HELLO + END + HELLO * 100_000 + END,
    "many ends": lambda: SSE + HELLO + END * 10_000,
    "escape sequences": lambda: SSE + delta(content="\x1b[2J\x1b]0;x\x07\u202eabc") + END,
}  # fmt: skip

HTTP: dict[str, Bytes] = {
    "nothing": lambda: b"",
    "NUL": lambda: bytes(100_000),
    "half a status line": lambda: b"HTTP/1.1 2",
    "a strange status": lambda: b"HTTP/1.1 999 \xff\r\n\r\n",
    "another protocol": lambda: b"SSH-2.0-OpenSSH\r\n" * 100,
    "the beginning of TLS": lambda: b"\x15\x03\x01\x00\x02\x02\x28" * 100,
    "headers without end": lambda: b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200_000 + b"\r\n",
    "a header of 10 MB": lambda: b"HTTP/1.1 200 OK\r\nx: " + b"y" * 10_000_000 + b"\r\n\r\n",
    "a header with NUL": lambda: b"HTTP/1.1 200 OK\r\nx: \0\r\n\r\n" + HELLO,
    "a thousand provisional answers": lambda: b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + SSE + HELLO + END,
    "a length that is too long": lambda: SSE.replace(b"\r\n\r\n", b"\r\ncontent-length: 999999\r\n\r\n") + HELLO,
    "a length that is no number": lambda: SSE.replace(b"\r\n\r\n", b"\r\ncontent-length: -1\r\n\r\n") + HELLO,
    "two lengths": lambda: SSE.replace(b"\r\n\r\n", b"\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n") + HELLO,
    "a chunk of a strange size": lambda: SSE.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n") + b"fffffffffffffffffff\r\nx",
    "a bomb": lambda: SSE.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") + gzip.compress(b"data: {}\n\n" * 5_000_000),
    "a bomb in a line": lambda: SSE.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") + gzip.compress(b"x" * 300_000_000),
    "JSON of 100 MB": lambda: JSON + b'{"choices":"' + b"x" * BIG + b'"}',
    "JSON of small values": lambda: JSON + b'{"choices":[' + b"1," * 5_000_000 + b"1]}",
    "JSON of other types": lambda: JSON + b'{"choices":[{"message":{"content":{"a":[]}, "tool_calls": 7}}]}',
    "a page": lambda: b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + b"<p>" * 1_000_000,
}  # fmt: skip

STREAMS: dict[str, Bytes] = {**EVENTS, **HTTP}
SHORT_STREAMS = ("no UTF-8", "100,000 calls", "a call of a long id", "another shape", "headers without end")
