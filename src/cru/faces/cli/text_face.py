"""Text for people and pipes: the model's words on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, UnsetType

from cru.core.base.values.messages import ALWAYS_TOLD
from cru.core.events.bus import Bus
from cru.core.events.payloads import (
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
from cru.core.events.stream import (
    AgentCallFailed,
    CommandSaid,
    FactPublished,
    Notice,
    Published,
    ReplyDropped,
    StateChanged,
    StatusChanged,
    ToolDrew,
)
from cru.core.turn.turn import DONE, LegResult
from cru.faces.cli.answer_writer import AnswerWriter
from cru.faces.cli.console import one_line, print_above_prompt, say, show, write_error

if TYPE_CHECKING:
    from cru.core.compose import FaceSettings
    from cru.core.turn.parts import Parts
    from cru.faces.cli.terminal.live import LiveRegion
    from cru.faces.cli.terminal.progress import PluginStatuses, ProgressLine

P = TypeVar("P", bound=Struct)
LONGEST_NAME = 100


class TextFace:
    """Streams text as it comes. On a terminal stderr shows what is going on; while a question stands there, everything else waits.

    `dress` it when the settings are known. live: of the chat's screen, in place of a progress line.
    """

    def __init__(self, verbose: bool, live: LiveRegion | None = None) -> None:
        self.tells_failures = True  # of calls; else whoever made the call does
        self.tells_cost = False
        self._verbose, self._hides_tools = verbose, False
        self._progress = live or (_open_progress() if sys.stderr.isatty() else None)
        self._answer = AnswerWriter(self._clear_progress, self._set_activity, live)
        self._is_streamed, self._thought = False, ""
        self._questions: set[str] = set()
        self._deferred: list[Callable[[], None]] = []
        self._statuses: PluginStatuses | None = None
        self._activity, self._is_busy = "", False
        self._last_notice, self._repeats = "", 0
        self._running_calls: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why standard output could not be written, "" if it could."""
        return self._answer.output.problem

    def watch(self, bus: Bus) -> None:
        self._bus, self._stream = bus, bus.stream
        self._on(StreamingDelta, self._show_delta)
        self._on(AgentResponded, self._end_answer)
        self._on(ReplyDropped, lambda _dropped: self._end_reply())
        self._on(Notice, self._show_notice)
        self._on(CommandSaid, self._show_command_text)
        self._on(ToolFailed, self._show_failure)
        self._on(AgentCallFailed, self._show_agent_failure)
        self._on(SessionCompacted, self._show_compaction)
        self._on(StatusChanged, self._show_status)
        if self._progress is not None:
            from cru.faces.cli.terminal.progress import watch_requests

            self._stream.subscribe(self._begin_question, InteractionRequested)
            self._stream.subscribe(self._end_question, InteractionCompleted)
            self._on(StateChanged, self._show_state)
            watch_requests(self._on, self._set_activity, lambda: self._hides_tools)

    def dress(self, look: FaceSettings, parts: Parts) -> None:
        """What is shown, and how; once, after `watch`. `parts`: of the session that is shown."""
        self._verbose, self._hides_tools = look.verbose, look.hide_tool_calls
        if not look.render_markdown:
            self._answer.show_raw()
        if self._verbose or self._progress is not None:
            self._on(ToolCalled, self._show_call)
            self._on(ToolCompleted, self._end_call)
            self._watch_tasks()
            self._watch_verdicts(parts)
            self._watch_tool_views()
        if self._verbose:
            self._tell_of_handlers()
            self._on(ToolCompleted, self._show_completion)
            self._on(ContextSwitched, lambda event: self.say(f"[context {event.new}]"))
            self._on(ModelSelected, lambda event: self.say(f"[model {event.provider}:{event.model}, {event.why}]"))
            self._on(FactPublished, self._show_fact)
        if look.show_thinking:
            self._on(AgentThinking, self._show_thinking)

    def _tell_of_handlers(self) -> None:
        from cru.faces.cli.verdicts import TellingJournal

        self._bus.sink = TellingJournal(self._bus.sink, self.say)

    def show_results(self, payloads: Sequence[type[Struct]], render: Callable[[Any], str]) -> None:
        """Show what `render` makes of each of these payloads about a finished call, ready for the terminal, below it."""

        def show(call: Struct) -> None:
            if not self._hides_tools and (text := render(call)):
                print_above_prompt(lambda: write_error(text))

        for payload in payloads:
            self._on(payload, show)

    def close(self) -> None:
        """The progress line goes away; what waited for a question to end is shown."""
        self._forget_questions()
        self._count_repeats()
        self._clear_progress()

    def status_text(self) -> str:
        """What plugins say about themselves now, on one line; "" if they say nothing."""
        return "" if self._statuses is None else self._statuses.text()

    def result(self, result: LegResult, code: int, resume: str = "") -> None:
        """Print the last lines: how the turn ended, if there is something to say, and how to resume an unfinished turn."""
        if result.cause == "interrupted":
            self._forget_questions()  # whatever became of them
        if self._defer(lambda: self.result(result, code, resume)):
            return
        self._end_reply()
        self._count_repeats()
        if result.cause == "error":
            self.say("\n  ".join([f"cru: {result.error}", *result.hint.splitlines()]))
        elif result.outcome is not DONE:
            from cru.core.turn.outcomes import describe_end

            if line := describe_end(result):
                self.say(f"cru: {line}")
        if resume:
            self.say(f"resume with: {resume}")

    def output(self, text: str) -> None:
        """What a flag such as -L prints."""
        show(text)

    def show_block(self, text: str) -> None:
        """What a person asked for, on lines of its own."""
        self._answer.print_block(text)

    def say(self, text: str) -> None:
        """A line on standard error."""
        self._write_line(partial(say, text))

    def _say_drawn(self, text: str) -> None:
        """Lines that are ready for the terminal."""
        from cru.faces.cli.oil.drawing import say_drawn

        self._write_line(partial(say_drawn, text))

    def _write_line(self, write: Callable[[], None]) -> None:
        if not self._defer(lambda: self._write_line(write)):
            self._clear_progress()
            self._answer.leave_line()
            print_above_prompt(write)

    # questions: while one stands on the terminal, everything else waits ---------------------------------------------------------------

    def _on(self, payload: type[P], reader: Callable[[P], None]) -> None:
        """Let `reader` have the payloads of a type, when no question stands on the terminal."""

        def read(item: Published[P]) -> None:
            if not self._defer(lambda: reader(item.payload)):
                reader(item.payload)

        self._stream.subscribe(read, payload)

    def _defer(self, work: Callable[[], None]) -> bool:
        """Whether a question stands on the terminal: the work is done when it is gone."""
        if self._questions:
            self._deferred.append(work)
        return bool(self._questions)

    def _begin_question(self, item: Published[InteractionRequested]) -> None:
        if self._progress is not None and item.payload.kind == "terminal":  # a program has begun to ask there
            self._progress.leave()
        self._clear_progress()
        self._questions.add(item.payload.id)

    def _end_question(self, item: Published[InteractionCompleted]) -> None:
        self._questions.discard(item.payload.id)
        if not self._questions:
            self._do_deferred()
            self._show_progress()

    def _forget_questions(self) -> None:
        self._questions.clear()
        self._do_deferred()

    def _do_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for work in deferred:
            work()

    # progress -------------------------------------------------------------------------------------------------------------------------

    def _set_activity(self, activity: str) -> None:
        self._activity = activity
        self._show_progress()

    def _show_progress(self) -> None:
        """On the progress line: what is going on, and what plugins say about themselves; not where a question stands."""
        if self._progress is not None and not self._questions and not self._answer.is_within_line():
            parts = (self._activity, self.status_text() if self._is_busy else "")
            self._progress.show(" · ".join(part for part in parts if part))

    def _clear_progress(self) -> None:
        if self._progress is not None:
            self._progress.clear()

    def _show_state(self, state: StateChanged) -> None:
        self._is_busy = state.new != "idle"
        self._set_activity("waiting for the model" if state.new == "calling" else "")

    def _show_running(self) -> None:
        """Name the tools that run now."""
        names = one_line(", ".join(dict.fromkeys(self._running_calls.values())), 40)
        self._set_activity(names and ("working" if self._hides_tools else f"running {names}"))

    def _show_status(self, status: StatusChanged) -> None:
        if self._statuses is None:
            from cru.faces.cli.terminal.progress import PluginStatuses

            self._statuses = PluginStatuses()
        text = self._statuses.take(status)
        if self._verbose:
            self.say(f"[status {one_line(status.owner)} {one_line(status.key)}: {text or 'none'}]")
        if self._is_busy:
            self._show_progress()

    # the answer -----------------------------------------------------------------------------------------------------------------------

    def _show_delta(self, delta: StreamingDelta) -> None:
        self._end_thought()
        self._is_streamed = True
        self._answer.write(delta.delta)

    def _end_answer(self, answer: AgentResponded) -> None:
        """Shows `display` if deltas were held back."""
        if not self._is_streamed and answer.display:
            self._answer.write(answer.display)
        self._end_reply()

    def _end_reply(self) -> None:
        """What comes next begins on a line of its own."""
        self._end_thought()
        self._is_streamed = False
        self._answer.end()

    def _show_thinking(self, thinking: AgentThinking) -> None:
        """Visible reasoning, line by line."""
        *lines, self._thought = (self._thought + thinking.thought).split("\n")
        for line in filter(str.strip, lines):
            self.say(f"[thinking] {line}")

    def _end_thought(self) -> None:
        line, self._thought = self._thought, ""
        if line.strip():
            self.say(f"[thinking] {line}")

    def _show_command_text(self, text: CommandSaid) -> None:
        """What a command shows is a result, as an answer is."""
        if not isinstance(text.view, UnsetType):
            from cru.faces.cli.oil.drawing import draw

            if text.is_error:
                self._say_drawn(draw(text.view, 2, "cru: "))
            else:
                self._answer.print_block(draw(text.view, 1), is_drawn=True)
        elif text.is_error:
            self.say(f"cru: {text.text}")
        else:
            self._answer.print_command(text.command, text.text)

    # everything else ------------------------------------------------------------------------------------------------------------------

    def _show_notice(self, notice: Notice) -> None:
        if notice.level == "info" and not self._verbose:
            return
        if notice.text == self._last_notice:
            self._repeats += 1
            return
        self._count_repeats()
        self._last_notice = notice.text
        if isinstance(notice.view, UnsetType) or self._progress is None:
            self.say(f"cru: {notice.text}")
        else:
            from cru.faces.cli.oil.drawing import draw

            self._say_drawn(draw(notice.view, 2, "cru: "))

    def _count_repeats(self) -> None:
        """How often the last notice came again, which was not shown each time."""
        repeats, self._repeats, self._last_notice = self._repeats, 0, ""
        if repeats:
            self.say(f"cru: last warning repeated {'once' if repeats == 1 else f'{repeats:,} times'}")

    def _show_call(self, call: ToolCalled) -> None:
        self._running_calls[call.call_id] = call.name
        if not self._hides_tools:
            self._say_call(call)
        self._show_running()

    def _say_call(self, call: ToolCalled | ToolCompleted | ToolFailed) -> None:
        from cru.faces.cli.call_summary import summarize_arguments

        self.say(f"[tool {one_line(call.name, LONGEST_NAME)} {summarize_arguments(call.args)}".rstrip() + "]")

    def _end_call(self, call: ToolCompleted) -> None:
        if call.call_id not in self._running_calls and not self._hides_tools:  # a handler answered in its place
            self._say_call(call)
        self._running_calls.pop(call.call_id, None)
        self._show_running()

    def _watch_tool_views(self) -> None:
        from cru.faces.cli.call_summary import ToolViews

        if not self._hides_tools:
            views = ToolViews(self._say_drawn)
            self._on(ToolDrew, views.take)
            self._on(ToolCompleted, views.show)

    def _watch_tasks(self) -> None:
        from cru.faces.cli.task_lines import TaskLines

        TaskLines(self.say, self._set_activity, self._verbose).watch(self._stream)

    def _watch_verdicts(self, parts: Parts) -> None:
        from cru.faces.cli.verdicts import Verdicts

        Verdicts(parts, self.say).watch(self._bus)

    def _show_completion(self, call: ToolCompleted) -> None:
        if not self._hides_tools:
            self.say(f"[tool {call.name} done in {call.duration:.0f} ms]")

    def _show_failure(self, call: ToolFailed) -> None:
        """What a person did not decide is always told: else nobody would know why nothing was done. A command that merely failed
        is told only with -v and on a terminal."""
        has_run = self._running_calls.pop(call.call_id, None) is not None
        self._show_running()
        if self.tells_failures and self._tells(call.which):
            if not has_run and self._tells(""):
                self._say_call(call)
            from cru.faces.cli.call_summary import describe_failure

            self.say(f"[tool {describe_failure(call)}]")

    def _show_agent_failure(self, call: AgentCallFailed) -> None:
        """The same of a sub-agent's call: whoever made the call of `task` does not tell it."""
        if self._tells(call.which):
            from cru.faces.cli.call_summary import describe_failure

            self.say(f"[{call.agent} {call.task}: tool {describe_failure(call)}]")

    def _tells(self, which: str) -> bool:
        is_shown = (self._verbose or self._progress is not None) and not self._hides_tools
        return is_shown or which in ALWAYS_TOLD

    def _show_fact(self, fact: FactPublished) -> None:
        from cru.faces.cli.call_summary import summarize_value

        self.say(f"[{one_line(fact.owner)} publishes {fact.key}: {summarize_value(fact.value)}]")

    def _show_compaction(self, compaction: SessionCompacted) -> None:
        """What nobody asked for is always told."""
        if self._verbose or compaction.trigger == "auto":
            self.say(f"[compacted: {compaction.dropped} entries summarised, {compaction.kept} kept]")


def _open_progress() -> ProgressLine:
    from cru.faces.cli.terminal.progress import ProgressLine

    return ProgressLine()
