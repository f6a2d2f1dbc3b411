"""`--debug`: whole requests, and what is known of each reply, beside the trace. Written on this disk only, without keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cru.core.base.values.messages import Request
from cru.core.conversations import StoreUnwritable
from cru.core.conversations.line_file import LineFile, RecordLimits
from cru.core.models.protocol import RequestBody
from cru.core.turn.recorder import LineSink, Recorder

REQUESTS, REPLIES = "request-log", "response-meta"
FILES = {REQUESTS: "requests.jsonl", REPLIES: "response_meta.jsonl"}


class DebugRecorder(Recorder):
    """The trace's recorder, which also keeps the records named in `names` (keys of FILES) in the context's folder."""

    def __init__(
        self,
        lines: LineSink,
        folder: Path,
        redact: Callable[[bytes], bytes] | None,
        limits: RecordLimits,
        warn: Callable[[str], object],
        names: tuple[str, ...],
    ) -> None:
        super().__init__(lines, folder, redact, limits, warn)
        self._files = {name: LineFile(folder / FILES[name], limits, redact) for name in names}
        self._asked: dict[int, dict[str, Any]] = {}

    def request(self, request: Request, body: RequestBody, **facts: Any) -> int:
        """A line of requests.jsonl: `body` is the request as it is sent, as JSON."""
        number = super().request(request, body, **facts)
        kept = ("provider", "base_url", "purpose", "round")
        about = {
            "n": number,
            "turn": self._turn,
            "model": request.model,
            **{name: facts.get(name, "") for name in kept},
        }
        self._asked[number] = about
        self._keep_line(REQUESTS, {"time": time.time(), **about, "body": _json(body.join())})
        return number

    def reply(self, n: int, **facts: Any) -> None:
        """A line of response_meta.jsonl: milliseconds, tokens, why the reply ended, and the error if it failed."""
        super().reply(n, **facts)
        self._keep_line(REPLIES, {"time": time.time(), **self._asked.pop(n, {}), **facts})

    def _keep_line(self, name: str, line: dict[str, Any]) -> None:
        if name in self._files:
            try:
                self._files[name].write(msgspec.json.encode(line) + b"\n")
            except StoreUnwritable as error:
                self._report(error)
            self._files[name].close()


def _json(body: bytes) -> Any:
    """The body as it is, on one line; one that is no JSON as text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "replace")
    return value if b"\n" in body else msgspec.Raw(body)
