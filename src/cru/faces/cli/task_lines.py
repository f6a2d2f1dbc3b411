"""What a person sees of work beside the conversation: that it begins, what it does, how it ends."""

from __future__ import annotations

from collections.abc import Callable

from cru.core.events.payloads import TaskCompleted, TaskFailed, TaskSpawned
from cru.core.events.stream import AgentActivity, Published, Stream
from cru.faces.cli.console import one_line

COLUMNS = 60


class TaskLines:
    """Lines and the activity of a text face. say: a line; report: on the progress line; is_verbose: each call of a sub-agent is a line."""

    def __init__(self, say: Callable[[str], None], report: Callable[[str], None], is_verbose: bool) -> None:
        self._say, self._report, self._is_verbose = say, report, is_verbose

    def watch(self, stream: Stream) -> None:
        stream.subscribe(self._show_start, TaskSpawned)
        stream.subscribe(lambda item: self._show_end(item.payload, "is done"), TaskCompleted)
        stream.subscribe(self._show_failure, TaskFailed)
        stream.subscribe(self._show_activity, AgentActivity)

    def _show_start(self, item: Published[TaskSpawned]) -> None:
        task = item.payload
        if not item.answer.stops:
            where = " in the background" if task.background else ""
            self._say(f"[{_name(task)} begins{where}: {one_line(task.description or task.prompt, COLUMNS)}]")

    def _show_end(self, task: TaskCompleted | TaskFailed, how: str) -> None:
        self._say(f"[{_name(task)} {one_line(how, 2 * COLUMNS)}]")
        self._report("")

    def _show_failure(self, item: Published[TaskFailed]) -> None:
        task = item.payload
        from cru.core.agents.record import CancelledBy

        is_agents_own = bool(task.agent) and not task.cancelled_by
        if (
            is_agents_own or task.cancelled_by == CancelledBy.SESSION.value
        ):  # a warning says so, with or without these lines
            self._report("")
        else:
            self._show_end(task, f"was {task.error}" if task.cancelled_by else f"failed: {task.error}")

    def _show_activity(self, item: Published[AgentActivity]) -> None:
        doing = item.payload
        if self._is_verbose:
            self._say(f"[{doing.agent} {doing.task}: {one_line(doing.text)}]")
        self._report(f"{doing.agent} {doing.task}: {one_line(doing.text, COLUMNS)}")


def _name(task: TaskSpawned | TaskCompleted | TaskFailed) -> str:
    return f"{task.agent or 'command'} {task.id}"
