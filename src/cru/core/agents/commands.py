"""What an agent does with its tasks in the background through tools: starts commands, reads, feeds and ends what runs."""

from __future__ import annotations

import asyncio
import time

from cru.core.agents.command_run import CommandInput, CommandRun, CommandSettings
from cru.core.agents.completion import describe_end
from cru.core.agents.manager import Task, TaskManager, TaskRequest
from cru.core.agents.output import FIRST, output_end, read_output, read_tail
from cru.core.agents.record import MAIN, TaskKind, TaskStatus
from cru.core.base.config.closest import closest
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, Entry
from cru.core.conversations.entries import LOG
from cru.core.conversations.log_tail import read_tail as last_entries
from cru.core.guard.shell.unfinished import unfinished_part
from cru.core.tools.protocol import CommandRequest, ToolContext, ToolError, ToolResult, TypedInto
from cru.core.tools.shell import END_OF_INPUT
from cru.core.turn.parts import Parts
from cru.core.undo.call_outcomes import results_by_call, why_not_run

PAGE = 24_000
"""Bytes of an output that a call of task_output gives at most."""
ENTRIES = 10
"""What a sub-agent did last."""
SEND_SECONDS = 5.0
UNFINISHED = 65_536
"""Characters of what was typed and waits for more, as an open quote does."""


class CommandTasks:
    """Of one agent, by the id of its task (cru.core.tools.protocol.BackgroundTasks). It sees its own tasks and those below."""

    def __init__(self, manager: TaskManager, parts: Parts, agent_id: str = MAIN, depth: int = 0) -> None:
        self._manager = manager
        self._parts = parts
        self._agent_id = agent_id
        self._depth = depth
        self._offsets: dict[str, int] = {}

    async def start_command(self, request: CommandRequest, running: ToolContext) -> ToolResult:
        settings = self._manager.settings
        seconds = settings.command_timeout or None if request.timeout is None else request.timeout
        limits = CommandSettings(seconds, settings.output_limit)
        run = CommandRun(request, running.root, running.env, limits, self._manager.save)
        asked = TaskRequest(
            kind=TaskKind.COMMAND, prompt=request.command, call_id=running.call_id, agent_id=self._agent_id, depth=self._depth,
            background=True, detached=request.detached,
        )  # fmt: skip
        try:
            task = await self._manager.start(self._parts, asked, run)
        except CruError as error:
            raise ToolError(error.message, error.hint) from error
        await asyncio.sleep(0)  # its first step has been taken then: it runs, has failed, or waits for room
        if task.ended.is_set():
            self._manager.forget(task)
            assert task.outcome is not None
            raise ToolError(f"the command did not start: {task.outcome.error or 'it was cancelled'}")
        return ToolResult(self._describe_start(task))

    def _describe_start(self, task: Task) -> str:
        record = task.record
        if record.status is TaskStatus.WAITING:
            most = self._manager.settings.max_concurrent
            return f"[task {task.id} waits: {most} commands run in the background already; it begins when one of them ends]"
        end = "ends with the session" if self._agent_id == MAIN else "ends when you have ended"
        lasts = f"goes on when the session has ended (process {record.pid})" if record.detached else end
        return (
            f"[the command runs in the background as task {task.id}, and {lasts}; task_output gives what it prints, "
            f"and you are told when it ends; its output is in {task.folder / FIRST}]"
        )

    def typed_into(self, task_id: str) -> TypedInto:
        receiver = self._find_input(task_id)
        return TypedInto(receiver.command, receiver.unfinished)

    async def send_input(self, task_id: str, text: str, typed_before: str = "") -> ToolResult:
        """Raises ToolError, also if something else was typed since it was judged with what stood before it."""
        receiver = self._find_input(task_id)
        if text == END_OF_INPUT:
            await receiver(b"")
            return ToolResult("[its input is closed; task_output shows what comes of it]")
        if receiver.is_torn:
            raise ToolError(f"task {task_id} has got the last text in part, and gets no more", "start it again")
        if typed_before != receiver.unfinished or not text.startswith(typed_before):
            raise ToolError(
                f"what was typed into task {task_id} before has changed since this was judged with it", "type it again"
            )
        lines = text if text.endswith("\n") else f"{text}\n"
        unfinished = _unfinished_part(lines)
        data = lines[len(typed_before) :].encode("utf-8", "replace")
        receiver.unfinished = unfinished
        try:
            await asyncio.wait_for(receiver(data), SEND_SECONDS)
        except TimeoutError:
            raise ToolError(f"task {task_id} does not read its input; a part of the text may have gone in") from None
        except BrokenPipeError:
            raise ToolError(f"task {task_id} has closed its input") from None
        return ToolResult("[typed; task_output shows what comes of it]")

    def _find_input(self, task_id: str) -> CommandInput:
        """Raises ToolError."""
        task = self._find(task_id)
        if task.ended.is_set():
            raise ToolError(f"task {task.id} has ended: nobody reads its input", "start it again")
        if not isinstance(task.send, CommandInput):
            raise ToolError(f"task {task.id} takes no input", "start the command with `stdin`")
        return task.send

    async def read_output(self, task_id: str, wait: float, lines: int | None) -> ToolResult:
        task = self._find(task_id)
        if wait and not task.ended.is_set():
            await _wait(task, wait)
        has_ended = task.ended.is_set()
        if task.record.kind is TaskKind.COMMAND:
            text = self._read_command(task, lines)
            if has_ended and task.outcome is not None and task.outcome.note:
                text = f"{text}\n{task.outcome.note}"
        else:
            text = self._read_agent(task, lines)
        if has_ended:
            self._manager.forget(task)
        return ToolResult(f"{text}\n[{describe_status(task)}]", tasks=(task.id,) if has_ended else ())

    async def cancel(self, task_id: str) -> ToolResult:
        task = self._find(task_id)
        if not await self._manager.cancel(task):
            return ToolResult(f"[task {task.id} had ended before: {describe_status(task)}]")
        self._manager.forget(task)
        return ToolResult(f"[task {task.id} is ended, with everything that it started]", tasks=(task.id,))

    def _find(self, task_id: str) -> Task:
        """Raises ToolError with the ids there are."""
        own = {task.id: task for task in self._manager.tasks.values() if self._manager.is_below(task, self._agent_id)}
        if task_id in own:
            return own[task_id]
        near = closest(task_id, own)
        known = ", ".join(list(own)[-20:])
        hint = (
            f"did you mean `{near}`?"
            if near
            else f"your tasks: {known}"
            if own
            else "you have started none in this session"
        )
        raise ToolError(f"there is no task {task_id!r}", hint)

    def _read_command(self, task: Task, lines: int | None) -> str:
        """What is new, or the last lines. Bytes of a character that is not whole yet wait."""
        has_ended = task.ended.is_set()
        if lines is not None:
            page = read_tail(task.folder, lines, PAGE, whole=has_ended)
            before = f"[… {page.skipped:,} bytes before this are in {task.folder / FIRST}]\n" if page.skipped else ""
            text = before + page.text
        else:
            page = read_output(task.folder, self._offsets.get(task.id, 0), PAGE, whole=has_ended)
            text = page.text
        self._offsets[task.id] = page.offset
        more = output_end(task.folder) - page.offset
        text = text.removesuffix("\n") or "(no new output)"
        return f"{text}\n[{more:,} bytes more: call task_output again]" if more > PAGE // 8 else text

    def _read_agent(self, task: Task, lines: int | None) -> str:
        """What it said and did, without what was shown before."""
        outcome = task.outcome
        return self.list_work(task, lines) if outcome is None else outcome.result or outcome.error

    def list_work(self, task: Task, lines: int | None = None) -> str:
        """List what a sub-agent said and did, a line each, the last `lines` of it."""
        entries = last_entries(task.folder / LOG, lines or ENTRIES, (MESSAGE, TOOL_CALL)).entries
        results = results_by_call(entries)
        shown = [text for entry in entries if (text := describe_entry(entry, results))]
        return "\n".join(shown) or "(it has said nothing yet)"


def _unfinished_part(lines: str) -> str:
    """Raises ToolError if it is too long to be judged with each text that follows."""
    part = unfinished_part(lines)
    if len(part) > UNFINISHED:
        raise ToolError(
            f"as shell text this is not finished after {len(part):,} characters, and would be judged with all that follows",
            "finish what is open, or give the command its input in a file",
        )
    return part


async def _wait(task: Task, seconds: float) -> None:
    try:
        await asyncio.wait_for(task.ended.wait(), seconds)
    except TimeoutError:
        pass


def describe_entry(entry: Entry, results: dict[str, Entry]) -> str:
    """Describe what a sub-agent did in one line, "" for what is not its own; `results` by the ids of their calls."""
    text = " ".join(entry.content.split())[:300]
    if entry.entry_type == TOOL_CALL:
        why = why_not_run(results.get(entry.tool_call_id))
        return f"called {entry.to} {text}" + (f" (not run: {why[:300]})" if why else "")
    return f"said: {text}" if entry.entry_type == MESSAGE and entry.role in ("agent", "assistant") and text else ""


def describe_status(task: Task) -> str:
    """How it stands, in words."""
    record, outcome = task.record, task.outcome
    if record.status is TaskStatus.WAITING:
        return "it waits for room"
    if outcome is None or not task.ended.is_set():
        return f"it runs, for {max(0, time.time() - record.started):.0f} s now"
    if record.status is TaskStatus.CANCELLED:
        return f"it {describe_end(record)}"
    return f"it failed: {outcome.error}" if outcome.error else "it has ended well"
