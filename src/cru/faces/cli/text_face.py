"""Text for people and pipes: the model's words on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
from cru.faces.cli.terminal import Output, one_line, say, show

# Why a call came to nothing, as far as nobody else says so.
ALWAYS_TOLD = frozenset({"policy", "hook", "unknown", "invalid", "timeout"})


class TextFace:
    """Streams text as it comes. On a terminal Markdown is rendered block by block, and stderr shows what is going on."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._at_line_start = True
        self._first = True
        self._streamed = False
        self._output = Output()
        self._answered = 0
        self._progress: Any = _progress() if sys.stderr.isatty() else None
        self._markdown: Any = _markdown(self.close) if sys.stdout.isatty() else None

    @property
    def problem(self) -> str:
        """Why standard output could not be written, "" if it could."""
        return self._output.problem

    def watch(self, bus: Bus) -> None:
        stream = bus.stream
        stream.subscribe(self._delta, StreamingDelta)
        stream.subscribe(self._responded, AgentResponded)
        stream.subscribe(self._notice, Notice)
        if self._progress is not None:
            stream.subscribe(self._state, StateChanged)
            stream.subscribe(self._over, ToolCompleted)
        stream.subscribe(self._failed, ToolFailed)
        stream.subscribe(self._compacted, SessionCompacted)
        if self._verbose or self._progress is not None:
            stream.subscribe(self._called, ToolCalled)
        if self._verbose:
            stream.subscribe(self._tell, ToolCompleted, ContextSwitched, ModelSelected)

    def close(self) -> None:
        """The progress line goes away."""
        if self._progress is not None:
            self._progress.clear()

    def result(self, result: LegResult, code: int, resume: str = "") -> None:
        """The last word: what went wrong, if anything did, and how to go on with an unfinished turn."""
        self._end_line()
        self._streamed, self._first = False, True
        if result.cause == "error":
            self.say("\n  ".join([f"cru: {result.error}", *result.hint.splitlines()]))
        elif result.cause != "done":
            why = f": {result.reason}" if result.reason not in ("", result.cause) else ""
            self.say(f"cru: {result.cause}{why}")
        if resume:
            self.say(f"resume with: {resume}")

    def output(self, text: str) -> None:
        """What a flag such as -L prints."""
        show(text)

    def say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.clear()
        say(text)

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

    def _called(self, item: Published) -> None:
        called = item.payload
        assert isinstance(called, ToolCalled)
        self.say(f"[tool {one_line(called.name)} {_short(called.args)}]")
        if self._progress is not None:
            self._progress.show(f"running {one_line(called.name, 40)}")

    def _over(self, item: Published) -> None:
        self._progress.clear()

    def _failed(self, item: Published) -> None:
        """What a person did not decide is always told: else nobody would know why nothing was done. A command that merely failed
        is told only with -v and on a terminal."""
        failed = item.payload
        assert isinstance(failed, ToolFailed)
        if self._verbose or self._progress is not None or failed.which in ALWAYS_TOLD:
            first = failed.error.partition("\n")[0]
            self.say(f"[tool {one_line(failed.name)} {failed.which}: {one_line(first)}]")

    def _tell(self, item: Published) -> None:
        payload = item.payload
        if isinstance(payload, ToolCompleted):
            self.say(f"[tool {payload.name} done in {payload.duration:.0f} ms]")
        elif isinstance(payload, ContextSwitched):
            self.say(f"[context {payload.new}]")
        elif isinstance(payload, ModelSelected):
            self.say(f"[model {payload.provider}:{payload.model}, {payload.why}]")

    def _compacted(self, item: Published) -> None:
        """What nobody asked for is always told."""
        payload = item.payload
        assert isinstance(payload, SessionCompacted)
        if self._verbose or payload.trigger == "auto":
            self.say(f"[compacted: {payload.dropped} entries summarised, {payload.kept} kept]")

    def _write(self, text: str) -> None:
        if self._first and text.startswith("\n"):
            text = text[1:]
        self._first = False
        if not text:
            return
        if self._markdown is not None:
            self._render(text)
        else:
            self.close()
            self._output.write(text.encode("utf-8", "replace"))
        self._at_line_start = text.endswith("\n")

    def _render(self, text: str) -> None:
        """Whole blocks are printed; meanwhile the progress line says that something comes."""
        self._answered += len(text)
        self._markdown.feed(text)
        if self._progress is not None:
            self._progress.show(f"answering, {self._answered} characters" if self._markdown.waiting else "")

    def _end_line(self) -> None:
        self.close()
        self._answered = 0
        if self._markdown is not None:
            self._markdown.flush()
        elif not self._at_line_start:
            self._output.write(b"\n")
        self._at_line_start = True


def _short(args: dict[str, Any]) -> str:
    return one_line(" ".join(str(v) for v in args.values()), 60)


def _markdown(before: Callable[[], object]) -> Any:
    from cru.faces.cli.render import Markdown

    return Markdown(before)


def _progress() -> Any:
    from cru.faces.cli.render import Progress

    return Progress()
