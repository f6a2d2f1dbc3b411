"""Text for people and pipes: the model's words on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from typing import Any

from cru.engine.turn import LegResult
from cru.events.bus import Bus
from cru.events.payloads import (
    AgentResponded,
    ContextSwitched,
    ModelSelected,
    SessionCompacted,
    StreamingDelta,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
)
from cru.events.stream import Notice, Published, StateChanged


class TextFace:
    """Streams text as it comes. On a terminal Markdown is rendered block by block, and stderr shows what is going on."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._at_line_start = True
        self._first = True
        self._streamed = False
        self._gone = False
        self._markdown: Any = _markdown() if sys.stdout.isatty() else None
        self._progress: Any = _progress() if sys.stderr.isatty() else None
        self._bus: Bus | None = None

    def watch(self, bus: Bus) -> None:
        self._bus = bus
        stream = bus.stream
        stream.subscribe(self._delta, StreamingDelta)
        stream.subscribe(self._responded, AgentResponded)
        stream.subscribe(self._notice, Notice)
        if self._progress is not None:
            stream.subscribe(self._state, StateChanged)
        if self._verbose or self._progress is not None:
            stream.subscribe(self._tool, ToolCalled, ToolFailed)
        if self._verbose:
            stream.subscribe(self._tell, ToolCompleted, ContextSwitched, ModelSelected, SessionCompacted)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.clear()

    def result(self, result: LegResult, code: int) -> None:
        """The last word: what went wrong, if anything did."""
        self._end_line()
        if result.cause == "error":
            from cru.faces.cli.start import complain

            complain(result.error, result.hint)
        elif result.cause in ("cancelled", "halted", "interrupted"):
            self.say(f"cru: {result.cause}: {result.reason}")

    def say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.clear()
        print(text, file=sys.stderr, flush=True)

    def _delta(self, item: Published) -> None:
        payload = item.payload
        assert isinstance(payload, StreamingDelta)
        self._streamed = True
        self._write(payload.delta)

    def _responded(self, item: Published) -> None:
        """Ends the line; shows `display` if deltas were held back."""
        payload = item.payload
        assert isinstance(payload, AgentResponded)
        if not self._streamed and payload.display:
            self._write(payload.display)
        self._streamed = False
        self._first = True
        self._end_line()

    def _notice(self, item: Published) -> None:
        notice = item.payload
        assert isinstance(notice, Notice)
        if notice.level != "info" or self._verbose:
            self.say(f"cru: {notice.text}")

    def _state(self, item: Published) -> None:
        state = item.payload
        assert isinstance(state, StateChanged)
        self._progress.show("thinking" if state.new == "calling" else "")

    def _tool(self, item: Published) -> None:
        payload = item.payload
        if isinstance(payload, ToolCalled):
            self.say(f"[tool {payload.name} {_short(payload.args)}]")
        elif isinstance(payload, ToolFailed):
            self.say(f"[tool {payload.name} {payload.which}: {payload.error.splitlines()[0] if payload.error else ''}]")

    def _tell(self, item: Published) -> None:
        payload = item.payload
        if isinstance(payload, ToolCompleted):
            self.say(f"[tool {payload.name} done in {payload.duration:.0f} ms]")
        elif isinstance(payload, ContextSwitched):
            self.say(f"[context {payload.new}]")
        elif isinstance(payload, ModelSelected):
            self.say(f"[model {payload.provider}:{payload.model}, {payload.why}]")
        elif isinstance(payload, SessionCompacted):
            self.say(f"[compacted: {payload.dropped} entries summarised, {payload.kept} kept]")

    def _write(self, text: str) -> None:
        if self._first and text.startswith("\n"):
            text = text[1:]
        if not text:
            return
        self._first = False
        if self._progress is not None:
            self._progress.clear()
        if self._markdown is not None:
            self._markdown.feed(text)
        else:
            self._out(text)
        self._at_line_start = text.endswith("\n")

    def _end_line(self) -> None:
        if self._markdown is not None:
            self._markdown.flush()
        elif not self._at_line_start:
            self._out("\n")
        self._at_line_start = True

    def _out(self, text: str) -> None:
        if self._gone:
            return
        data = text.encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(1, data) :]
        except BrokenPipeError:
            self._gone = True  # the reader has gone: the turn goes on, and is in the log


def _short(args: dict[str, Any]) -> str:
    text = " ".join(str(v) for v in args.values()).replace("\n", " ")
    return text if len(text) <= 60 else text[:59] + "…"


def _markdown() -> Any:
    from cru.faces.cli.render import Markdown

    return Markdown()


def _progress() -> Any:
    from cru.faces.cli.render import Progress

    return Progress()
