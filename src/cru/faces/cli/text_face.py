"""Text for people and pipes: the model's words on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from cru.engine.turn import LegResult
from cru.events.bus import Bus
from cru.events.payloads import (
    AgentResponded,
    AgentThinking,
    ContextSwitched,
    InteractionCompleted,
    InteractionRequested,
    ModelSelected,
    SessionCompacted,
    StreamingDelta,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
)
from cru.events.stream import (
    CommandSaid,
    FactPublished,
    Notice,
    Published,
    StateChanged,
    StatusChanged,
    Stream,
)
from cru.faces.cli.console import TerminalOutput, one_line, print_above_prompt, printable, say, show

if TYPE_CHECKING:
    from cru.app import FaceSettings

# Why a call came to nothing, as far as nobody else says so.
ALWAYS_TOLD = frozenset({"policy", "hook", "error", "unknown", "invalid", "timeout"})

P = TypeVar("P", bound=Struct)


class TextFace:
    """Streams text as it comes. On a terminal Markdown is rendered block by block, and stderr shows what is going on; while a
    question stands there, everything else waits. `dress` it when the settings are known."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._hides_tools = False
        self._thought = ""
        self._terminal = sys.stdout.isatty()
        self._at_line_start = True
        self._first = True
        self._streamed = False
        self._output = TerminalOutput()
        self._answered = 0
        self._progress: Any = _progress() if sys.stderr.isatty() else None
        self._markdown: Any = _markdown(self._put_away) if self._terminal else None
        self._questions: set[str] = set()
        self._waiting: list[Callable[[], None]] = []
        self._statuses: Any = None
        self._doing, self._busy = "", False
        self._told, self._again = "", 0
        self.tells_failures = True  # of calls; else whoever made the call does

    @property
    def problem(self) -> str:
        """Why standard output could not be written, "" if it could."""
        return self._output.problem

    def watch(self, bus: Bus) -> None:
        self._stream = stream = bus.stream
        self._read(stream, self._delta, StreamingDelta)
        self._read(stream, self._responded, AgentResponded)
        self._read(stream, self._notice, Notice)
        self._read(stream, self._said, CommandSaid)
        self._read(stream, self._failed, ToolFailed)
        self._read(stream, self._compacted, SessionCompacted)
        self._read(stream, self._status, StatusChanged)
        if self._progress is not None:
            stream.subscribe(self._question, InteractionRequested)
            stream.subscribe(self._question_over, InteractionCompleted)
            self._read(stream, self._state, StateChanged)
            self._read(stream, self._over, ToolCompleted)

    def dress(self, look: FaceSettings) -> None:
        """What is shown, and how; once, after `watch`."""
        self._verbose, self._hides_tools = look.verbose, look.hide_tool_calls
        if not look.render_markdown:
            self._markdown = None
        if self._verbose or self._progress is not None:
            self._read(self._stream, self._called, ToolCalled)
        if self._verbose:
            self._read(self._stream, self._tell, ToolCompleted, ContextSwitched, ModelSelected, FactPublished)
        if look.show_thinking:
            self._read(self._stream, self._think, AgentThinking)

    def close(self) -> None:
        """The progress line goes away; what waited for a question to end is shown."""
        self._questions.clear()
        self._go_on()
        self._count()
        self._put_away()

    def status_text(self) -> str:
        """What plugins say about themselves now, on one line; "" if they say nothing."""
        return "" if self._statuses is None else str(self._statuses.text())

    def result(self, result: LegResult, code: int, resume: str = "") -> None:
        """The last word: what went wrong, if anything did, and how to go on with an unfinished turn."""
        if result.cause == "interrupted":
            self._questions.clear()  # whatever became of them
            self._go_on()
        if self._waits(lambda: self.result(result, code, resume)):
            return
        self._thought_over()
        self._end_line()
        self._streamed, self._first = False, True
        self._count()
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
        if not self._waits(lambda: self.say(text)):
            self._put_away()
            self._leave_line()
            print_above_prompt(lambda: say(text))

    def _read(self, stream: Stream, reader: Callable[[Published[P]], None], *payloads: type[P]) -> None:
        def read(item: Published[P]) -> None:
            if not self._waits(lambda: reader(item)):
                reader(item)

        stream.subscribe(read, *payloads)

    def _waits(self, work: Callable[[], None]) -> bool:
        """Whether a question stands on the terminal: the work is done when it is gone."""
        if self._questions:
            self._waiting.append(work)
        return bool(self._questions)

    def _question(self, item: Published[InteractionRequested]) -> None:
        if self._progress is not None and item.payload.kind == "terminal":  # a program has begun to ask there
            self._progress.leave()
        self._put_away()
        self._questions.add(item.payload.id)

    def _question_over(self, item: Published[InteractionCompleted]) -> None:
        self._questions.discard(item.payload.id)
        if not self._questions:
            self._go_on()
            self._show()

    def _go_on(self) -> None:
        work, self._waiting = self._waiting, []
        for one in work:
            one()

    def _put_away(self) -> None:
        if self._progress is not None:
            self._progress.clear()

    def _does(self, doing: str) -> None:
        self._doing = doing
        self._show()

    def _show(self) -> None:
        """On the progress line: what is going on, and what plugins say about themselves."""
        if self._progress is not None and not self._within_line():
            parts = (self._doing, self.status_text() if self._busy else "")
            self._progress.show(" · ".join(part for part in parts if part))

    def _delta(self, item: Published[StreamingDelta]) -> None:
        payload = item.payload
        self._thought_over()
        self._streamed = True
        self._write(payload.delta)

    def _responded(self, item: Published[AgentResponded]) -> None:
        """Ends the line; shows `display` if deltas were held back."""
        payload = item.payload
        self._thought_over()
        if not self._streamed and payload.display:
            self._write(payload.display)
        self._streamed = False
        self._first = True
        self._end_line()

    def _notice(self, item: Published[Notice]) -> None:
        notice = item.payload
        if notice.level == "info" and not self._verbose:
            return
        if notice.text == self._told:
            self._again += 1
            return
        self._count()
        self._told = notice.text
        self.say(f"cru: {notice.text}")

    def _count(self) -> None:
        """How often the last notice came again, which was not told each time."""
        again, self._again, self._told = self._again, 0, ""
        if again:
            self.say(f"cru: the last warning came {'once' if again == 1 else f'{again:,} times'} more")

    def _state(self, item: Published[StateChanged]) -> None:
        state = item.payload
        self._busy = state.new != "idle"
        self._does("thinking" if state.new == "calling" else "")

    def _called(self, item: Published[ToolCalled]) -> None:
        called = item.payload
        if self._hides_tools:
            self._does("working")
            return
        self.say(f"[tool {one_line(called.name)} {_short(called.args)}]")
        self._does(f"running {one_line(called.name, 40)}")

    def _over(self, _item: Published[ToolCompleted]) -> None:
        self._does("")

    def _think(self, item: Published[AgentThinking]) -> None:
        """Visible reasoning, line by line."""
        thinking = item.payload
        *lines, self._thought = (self._thought + thinking.thought).split("\n")
        for line in filter(str.strip, lines):
            self.say(f"[thinking] {line}")

    def _thought_over(self) -> None:
        line, self._thought = self._thought, ""
        if line.strip():
            self.say(f"[thinking] {line}")

    def _said(self, item: Published[CommandSaid]) -> None:
        """What a command shows is a result, as an answer is."""
        said = item.payload
        if said.is_error:
            self.say(f"cru: {said.text}")
            return
        self._end_line()
        text = printable(said.text) if self._terminal else said.text
        print_above_prompt(lambda: self._output.write(f"{text.rstrip()}\n".encode("utf-8", "replace")))

    def _status(self, item: Published[StatusChanged]) -> None:
        status = item.payload
        if self._statuses is None:
            from cru.faces.cli.terminal.progress import PluginStatuses

            self._statuses = PluginStatuses()
        said = self._statuses.take(status)
        if self._verbose:
            self.say(f"[status {one_line(status.owner)} {one_line(status.key)}: {said or 'none'}]")
        if self._busy:
            self._show()

    def _failed(self, item: Published[ToolFailed]) -> None:
        """What a person did not decide is always told: else nobody would know why nothing was done. A command that merely failed
        is told only with -v and on a terminal."""
        failed = item.payload
        shown = (self._verbose or self._progress is not None) and not self._hides_tools
        if self.tells_failures and (shown or failed.which in ALWAYS_TOLD):
            first = failed.error.partition("\n")[0]
            self.say(f"[tool {one_line(failed.name)} {failed.which}: {one_line(first)}]")

    def _tell(self, item: Published) -> None:
        payload = item.payload
        if isinstance(payload, ToolCompleted):
            if self._hides_tools:
                return
            self.say(f"[tool {payload.name} done in {payload.duration:.0f} ms]")
        elif isinstance(payload, ContextSwitched):
            self.say(f"[context {payload.new}]")
        elif isinstance(payload, ModelSelected):
            self.say(f"[model {payload.provider}:{payload.model}, {payload.why}]")
        elif isinstance(payload, FactPublished):
            self.say(f"[{one_line(payload.owner)} publishes {payload.key}: {_short({'': payload.value})}]")

    def _compacted(self, item: Published[SessionCompacted]) -> None:
        """What nobody asked for is always told."""
        payload = item.payload
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
            self._put_away()
            shown = printable(text) if self._terminal else text
            self._output.write(shown.encode("utf-8", "replace"))
        self._at_line_start = text.endswith("\n")

    def _within_line(self) -> bool:
        """Whether an answer stands on the terminal whose last line is not whole."""
        return self._terminal and self._markdown is None and not self._at_line_start

    def _leave_line(self) -> None:
        if self._within_line():
            self._output.write(b"\n")
            self._at_line_start = True

    def _render(self, text: str) -> None:
        """Whole blocks are printed; meanwhile the progress line says that something comes."""
        self._answered += len(text)
        self._markdown.feed(text)
        self._does(f"answering, {self._answered} characters" if self._markdown.waiting else "")

    def _end_line(self) -> None:
        self._put_away()
        self._answered = 0
        if self._markdown is not None:
            self._markdown.flush()
        elif not self._at_line_start:
            self._output.write(b"\n")
        self._at_line_start = True


def _short(args: dict[str, Any]) -> str:
    return one_line(" ".join(str(v) for v in args.values()), 60)


def _markdown(before: Callable[[], object]) -> Any:
    from cru.faces.cli.terminal.markdown_stream import MarkdownStream

    return MarkdownStream(before)


def _progress() -> Any:
    from cru.faces.cli.terminal.progress import ProgressLine

    return ProgressLine()
