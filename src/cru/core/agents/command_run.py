"""One command in the background: its process, its input, its output on disk, and what came of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.agents import TaskDenied
from cru.core.agents.manager import Task, TaskOutcome
from cru.core.agents.output import FIRST, OutputLog, read_tail
from cru.core.base.process.child import Child, Program
from cru.core.base.process.confined import tell_put_aside
from cru.core.base.process.marks import process_identity
from cru.core.base.process.pipes import PipeWriter
from cru.core.base.process.run import end
from cru.core.tools.protocol import CommandRequest
from cru.core.tools.shell import bracketed

LINES, BYTES = 20, 4000
"""What of an output goes into the message about its end."""


class CommandSettings(Struct, frozen=True):
    """Of one command.

    seconds: after which it is ended; None: never
    output_limit: bytes of its output on disk
    """

    seconds: float | None
    output_limit: int


class CommandInput:
    """What is typed into a running command.

    command: what runs
    unfinished: what a shell would have read of it, and not run yet
    is_torn: the last text has gone in in part; nobody can say what more would make with that
    """

    def __init__(self, command: str, writer: PipeWriter) -> None:
        self.command = command
        self.unfinished = ""
        self.is_torn = False
        self._writer = writer

    async def __call__(self, data: bytes) -> None:
        """Nothing closes it. Raises BrokenPipeError; cancelled, it may have written a part."""
        if not data:
            self._writer.close()
            return
        self.is_torn = True
        await self._writer.write(data)
        self.is_torn = False


class CommandRun:
    """The work of a task (cru.core.agents.manager.Work). `root` and `env`: where and with what it runs; `save` writes a task's record."""

    def __init__(
        self,
        request: CommandRequest,
        root: Path,
        env: Mapping[str, str],
        settings: CommandSettings,
        save: Callable[[Task], None],
    ) -> None:
        self._request = request
        self._root = root
        self._env = env
        self._settings = settings
        self._save = save

    async def __call__(self, task: Task) -> TaskOutcome:
        """Raises TaskDenied, StartError, OSError."""
        if task.request.prompt != self._request.command:
            raise TaskDenied(
                "a handler of task:spawned has changed the command, which was permitted as it was",
                "a handler of tool:before_call may change it",
            )
        return await (self._run_detached(task) if self._request.detached else self._run(task))

    async def _run(self, task: Task) -> TaskOutcome:
        log = OutputLog(task.folder, self._settings.output_limit)
        writer = PipeWriter() if self._request.stdin else None
        stdin: bytes | int = b"" if writer is None else writer.child_end
        confined = self._request.confined
        program = Program(self._request.argv, self._root, self._env, stdin, is_marked=True, linger=None)
        try:
            child = Child(self._confined(program), log.write)
            task.record.pid, task.record.mark = child.pid, child.mark
            self._save(task)
            if writer is not None:
                writer.started()
                task.send = CommandInput(task.request.prompt, writer)
            try:
                timed_out = await self._wait(child, task)
            finally:
                left_running = await _end_rest(child, is_confined=self._has_monitor)
        finally:
            task.send = None
            if writer is not None:
                writer.close()
            log.close()
            put_aside = confined.settle() if confined is not None else []
        return self._outcome(task, child.exit_status, timed_out, left_running, log, put_aside)

    def _confined(self, program: Program) -> Program:
        confined = self._request.confined
        return program if confined is None else confined.put_around(program)

    @property
    def _has_monitor(self) -> bool:
        confined = self._request.confined
        return confined is not None and confined.has_monitor

    async def _wait(self, child: Child, task: Task) -> bool:
        """Until it and its output are closed; True if its time was over first."""
        waiting = asyncio.ensure_future(child.wait(self._settings.seconds))
        task.cancel = waiting.cancel
        if self._request.detached:
            task.release = waiting.cancel
        if task.is_cancelled:
            waiting.cancel()
        try:
            await asyncio.wait([waiting])
        finally:
            waiting.cancel()
        return not waiting.cancelled() and waiting.result()

    async def _run_detached(self, task: Task) -> TaskOutcome:
        """It writes into the file itself, since nobody may be left to do that: its output has no limit."""
        confined = self._request.confined
        put_aside: list[str] = []
        try:
            child = self._start_detached(task)
            try:
                if confined is not None and confined.outlive is not None:
                    confined.outlive(child.pid)
                await self._wait(child, task)
            finally:
                if task.is_released:
                    child.release()
                else:
                    await _end_rest(child, is_confined=self._has_monitor)
        finally:
            if confined is not None and not task.is_released:
                put_aside = confined.settle()
        return self._outcome(task, child.exit_status, False, False, None, put_aside)

    def _start_detached(self, task: Task) -> Child:
        output = os.open(task.folder / FIRST, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            program = Program(self._request.argv, self._root, self._env, outlives_us=True)
            child = Child(self._confined(program), output)
        finally:
            os.close(output)
        task.record.pid, task.record.identity = child.pid, process_identity(child.pid)
        self._save(task)
        return child

    def _outcome(
        self,
        task: Task,
        exit_status: int | None,
        timed_out: bool,
        left_running: bool,
        log: OutputLog | None,
        put_aside: Sequence[str] = (),
    ) -> TaskOutcome:
        error = ""
        if timed_out:
            error = f"it ran longer than {self._settings.seconds:g} s and was ended, with everything that it started"
        elif exit_status:
            error = f"ended by signal {-exit_status}" if exit_status < 0 else f"exit code {exit_status}"
        output = describe_output(task.folder, left_running, log)
        notes = [bracketed(tell_put_aside(put_aside)), self._request.explain(output if error else None)]
        if self._request.confined is not None:
            notes.append(bracketed(self._request.confined.explain(output, exit_status)))
        note = "\n".join(filter(None, notes))
        return TaskOutcome(f"{output}\n{note}" if note else output, error, exit_status, note=note)


async def _end_rest(child: Child, *, is_confined: bool) -> bool:
    """End what still runs of it, and reap it; whether it had ended itself and left something running. What is confined leaves nothing: the
    kernel ends it, and may still be at it."""
    try:
        if not child.ended:
            await end(child)
            return False
        if not child.alive():
            return False
        await end(child)
        return not is_confined
    finally:
        child.close()


def describe_output(folder: Path, left_running: bool = False, log: OutputLog | None = None) -> str:
    """The last lines, and where the whole is."""
    page = read_tail(folder, LINES, BYTES)
    lines = [page.text.removesuffix("\n") or "(no output)"]
    if page.skipped:
        lines.insert(0, f"[… {page.skipped:,} bytes before this are in {folder / FIRST}]")
    if log is not None and log.lost:
        lines.append(f"[{log.lost:,} bytes of its output could not be saved: {log.problem}]")
    if left_running:
        lines.append("[what it had left running was ended, too]")
    return "\n".join(lines)
