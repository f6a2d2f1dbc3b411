"""The tasks of one session: started within limits, announced, waited for, ended with the agent that started them.

A task is work that somebody else describes (`Work`): this module knows when it may begin, who hears of it, and what became of it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from contextvars import Context, ContextVar
from pathlib import Path

from msgspec.structs import replace

from cru.core.agents import FOLDER, NoSuchTask, TaskDenied, TaskError, TaskLimit, TaskSettings
from cru.core.agents.completion import SHORT, Completion, Completions, first_line, save_result
from cru.core.agents.record import MAIN, CancelledBy, TaskKind, TaskRecord, TaskStatus, read_record, write_record
from cru.core.agents.task import Task, TaskOutcome, TaskRequest, TaskRoom, Work
from cru.core.agents.untold import clear_untold, mark_untold
from cru.core.base.process.marks import process_identity
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Usage
from cru.core.conversations.entries import new_id
from cru.core.events.answers import Inject
from cru.core.events.payloads import TaskCompleted, TaskFailed, TaskSpawned
from cru.core.turn.parts import ACTING, Parts, SessionServices
from cru.core.turn.spending import UsageTotals

GRACE = 5.0
"""Seconds that a cancelled task has to end; then nobody waits for it any more."""


def _context_for(services: SessionServices) -> Context:
    """The variables of whoever starts a task are none of its own, but the one that the asker finds the person by."""
    context, variable = Context(), getattr(services.face.asker, "caller_variable", None)
    if isinstance(variable, ContextVar):
        context.run(variable.set, variable.get())
    return context


class TaskManager:
    """All tasks that the agents of one session started; everything belongs to the loop's thread.

    folder: of the main agent's context
    on_first: called when the first task begins
    completions: what agents have not heard of
    is_closing: the session ends, and nothing begins any more
    """

    def __init__(
        self,
        folder: Path,
        settings: TaskSettings,
        warn: Callable[[str], object],
        on_first: Callable[[TaskManager], object] = lambda manager: None,
    ) -> None:
        self.settings = settings
        self.is_closing = False
        self._on_first = on_first
        self.tasks: dict[str, Task] = {}
        self.completions = Completions()
        self._context = folder
        self._identity = process_identity(os.getpid())
        self._warn = warn
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._room = TaskRoom(settings)
        self._changed = asyncio.Event()
        self._ending: set[asyncio.Task[bool]] = set()

    async def start(self, parts: Parts, request: TaskRequest, work: Work, again: str = "") -> Task:
        """Announce a task with the asking agent's parts, and begin it as soon as there is room. `again`: the id of one that has ended, or
        was only prepared, and goes on. Raises TaskLimit, TaskDenied."""
        self._check_limits(request, again)
        task_id = again or new_id()[:8]
        payload = TaskSpawned(
            task_id, request.kind.value, request.prompt, request.model, request.tools, request.agent,
            request.prompt if request.kind is TaskKind.COMMAND else "", request.description, request.call_id, request.background,
        )  # fmt: skip
        announced = await parts.bus.dispatch(payload)
        answer, heard = announced.answer, announced.payload
        if answer.stops:
            raise TaskDenied(f"refused by {announced.by}: {answer.reason or 'no reason given'}")
        self._check_limits(request, again)  # others may have begun meanwhile
        request = replace(request, prompt=heard.prompt, model=heard.model, tools=heard.tools)
        if not self.tasks:
            self._on_first(self)
        task = self._add(task_id, request, answer.context, self._turn_of(parts, request))
        if answer.result is not None:
            text = answer.result if isinstance(answer.result, str) else str(answer.result)
            work = _already_done(TaskOutcome(text))
        job = asyncio.get_running_loop().create_task(self._run(parts, task, work), context=_context_for(parts.services))
        self._jobs[task.id] = job
        job.add_done_callback(lambda _: self._forget_job(task))
        return task

    def _forget_job(self, task: Task) -> None:
        self._jobs.pop(task.id, None)
        self._changed.set()

    def _is_coming(self, task: Task, agent_id: str, kind: TaskKind | None) -> bool:
        """Whether this agent may yet hear of it."""
        record = task.record
        is_asked_for = record.parent == agent_id and record.background and kind in (None, record.kind)
        return is_asked_for and task.id in self._jobs

    def _check_limits(self, request: TaskRequest, again: str) -> None:
        settings = self.settings
        if self.is_closing:
            raise TaskLimit("the session is ending: nothing begins any more")
        if len(self.tasks) >= settings.max_tasks and again not in self.tasks:
            raise TaskLimit(
                f"this session has started {settings.max_tasks} tasks, which is the limit",
                "the setting tasks.max_tasks allows more",
            )
        if request.kind is TaskKind.SUBAGENT and request.depth >= settings.max_depth:
            most = settings.max_depth
            why = f"no more than {most} below one another" if most else "no sub-agents at all"
            raise TaskLimit(
                f"the setting tasks.max_depth = {most} allows {why}: do it yourself", "a higher one allows more"
            )

    def _turn_of(self, parts: Parts, request: TaskRequest) -> str:
        """The main agent's turn in which it is asked for."""
        above = self.tasks.get(request.agent_id)
        return parts.recorder.turn if above is None else above.record.turn

    def _add(self, task_id: str, request: TaskRequest, context: tuple[str, ...], turn: str) -> Task:
        is_agent = request.kind is TaskKind.SUBAGENT
        earlier = read_record(self._context / FOLDER / task_id)  # of one that goes on
        record = TaskRecord(
            id=task_id, kind=request.kind, prompt=request.prompt, description=request.description, agent=request.agent,
            model=request.model, parent=request.agent_id, turn=turn, call_id=request.call_id, depth=request.depth + is_agent,
            background=request.background, detached=request.detached, created=time.time(), owner=os.getpid(),
            owner_identity=self._identity, usage=UsageTotals() if earlier is None else earlier.usage,
        )  # fmt: skip
        task = self.tasks[task_id] = Task(record, self._context / FOLDER / task_id, request, context)
        try:
            mark_untold(self._context, task_id)
        except OSError as error:
            self._warn(f"task {task_id}: if cru is killed nobody hears of its end ({error.filename}: {error.strerror})")
        self.save(task)
        return task

    async def _run(self, parts: Parts, task: Task, work: Work) -> None:
        """Do the task when there is room, and tell everybody what came of it."""
        record = task.record
        ACTING.set(parts)  # in a context of its own: what hears of its end works for the agent that asked
        try:
            async with self._room.entered(record, await self._model_of(parts, task)):
                if not task.is_cancelled:
                    record.status, record.started = TaskStatus.RUNNING, time.time()
                    self.save(task)
                    task.outcome = await work(task)
        except CruError as error:
            task.outcome = TaskOutcome(error=str(error))
        except OSError as error:
            task.outcome = TaskOutcome(error=f"{error.filename or task.folder}: {error.strerror}")
        except asyncio.CancelledError:
            task.is_cancelled = True
        except Exception as error:  # noqa: BLE001  the boundary around a task: its agent and the person hear of it
            task.outcome = TaskOutcome(error=f"{type(error).__name__}: {error}")
        finally:
            if not task.is_released:
                await self._finish(parts, task)

    async def _finish(self, parts: Parts, task: Task) -> None:
        record, outcome = task.record, task.outcome or TaskOutcome(error="cancelled")
        task.outcome = outcome
        if task.is_cancelled and record.cancelled_by is None:
            record.cancelled_by = CancelledBy.SESSION
        record.ended, record.rounds, record.exit_status = time.time(), outcome.rounds, outcome.exit_status
        record.result, record.error = outcome.result[:SHORT], outcome.error[:SHORT]
        if task.is_cancelled:
            record.status, record.error = TaskStatus.CANCELLED, ""
        else:
            record.status = TaskStatus.FAILED if outcome.error else TaskStatus.COMPLETED
        if len(outcome.result) > SHORT:
            self._save_result(task, outcome.result)
        self.save(task)
        if record.kind is TaskKind.SUBAGENT and record.status is TaskStatus.FAILED:
            parts.bus.stream.warn(f"sub-agent {record.agent} (task {record.id}) failed: {first_line(record.error)}")
        task.ended.set()
        injects: tuple[Inject, ...] = ()
        try:
            injects = await self._announce_end(parts, task)
        finally:  # cut short by a cancellation, too: its agent hears of the end all the same
            self._keep_completion(task, injects)
        if task.on_end is not None:
            await task.on_end(task)
        self._changed.set()

    def _keep_completion(self, task: Task, injects: tuple[Inject, ...]) -> None:
        record, outcome = task.record, task.outcome
        assert outcome is not None
        self.completions.keep(Completion(record, outcome.result if record.background else "", task.folder, injects))

    def _save_result(self, task: Task, text: str) -> None:
        try:
            save_result(text, task.folder)
        except OSError as error:
            self._warn(
                f"task {task.id}: its result is not kept whole ({error.filename or task.folder}: {error.strerror})"
            )

    async def _announce_end(self, parts: Parts, task: Task) -> tuple[Inject, ...]:
        """Let handlers hear what came of it; what they want said."""
        record, outcome = task.record, task.outcome
        assert outcome is not None
        output = outcome.result if record.kind is TaskKind.COMMAND else ""
        about = {
            "agent": record.agent, "output": output, "exit_code": outcome.exit_status, "description": record.description,
            "folder": str(task.folder), "background": record.background,
        }  # fmt: skip
        failed = record.status is not TaskStatus.COMPLETED
        text = outcome.error if failed else outcome.result
        if not failed:
            about |= {"prompt": task.request.prompt, "model": task.request.model}
        elif record.cancelled_by is not None:
            about["cancelled_by"] = record.cancelled_by.value
            text = f"cancelled {record.cancelled_by.describe()}"
        payload = (TaskFailed if failed else TaskCompleted)(record.id, record.kind.value, text, **about)  # type: ignore[arg-type]
        answer = (await parts.bus.dispatch(payload)).answer
        return () if answer.inject is None else (answer.inject,)

    async def _model_of(self, parts: Parts, task: Task) -> str:
        """provider:model that a sub-agent asks, if that has a limit; else "". Raises ModelError."""
        if task.record.kind is not TaskKind.SUBAGENT or not self.settings.per_model:
            return ""
        return (await parts.models.choose(task.request.model)).label

    def count(self, task: Task, usage: Usage) -> None:
        """A request of its agent; a kill loses none."""
        task.record.usage = task.record.usage.plus(usage)
        self.save(task)

    def save(self, task: Task) -> None:
        """Write its record."""
        try:
            write_record(task.folder, task.record)
        except OSError as error:
            self._warn(
                f"task {task.id}: {task.folder} cannot be written ({error.strerror}); `cru tasks` does not show it"
            )

    def find(self, text: str) -> Task:
        """The task whose id begins so. Raises NoSuchTask with those there are."""
        matches = [task for task_id, task in self.tasks.items() if task_id.startswith(text)]
        if len(matches) == 1 or text in self.tasks:
            return self.tasks.get(text) or matches[0]
        if matches and text:
            raise NoSuchTask(f"{text} is the beginning of several ids", ", ".join(task.id for task in matches))
        known = ", ".join(self.tasks) or "none was started in this session"
        raise NoSuchTask(f"there is no task {text!r}", f"tasks: {known}")

    async def wait(self, task: Task) -> TaskOutcome:
        """Wait for its end; cut short, it cancels the task."""
        try:
            await task.ended.wait()
            job = self._jobs.get(task.id)
            if job is not None:  # handlers hear of its end before anybody goes on
                await asyncio.wait([job])
        except asyncio.CancelledError:
            await self.cancel(task, CancelledBy.TURN)
            raise
        assert task.outcome is not None
        return task.outcome

    def when_over(self, task: Task, call: Callable[[], object]) -> None:
        """Call it once nothing of the task runs any more, and everybody has heard of its end."""
        job = self._jobs.get(task.id)
        if job is None:
            call()
        else:
            job.add_done_callback(lambda _: call())

    async def cancel(self, task: Task, by: CancelledBy = CancelledBy.AGENT) -> bool:
        """End it and the tasks of its agent; False if it had ended."""
        job = self._jobs.get(task.id)
        if job is None or task.ended.is_set():
            return False
        if not task.is_cancelled:
            task.is_cancelled, task.record.cancelled_by = True, by
        await self.end_all(task.id, CancelledBy.PARENT)
        if task.cancel is not None:
            task.cancel()
            await asyncio.wait([job], timeout=GRACE / 2)
        if not job.done():
            job.cancel()
            await asyncio.wait([job], timeout=GRACE / 2)
        if not job.done():
            self._warn(f"task {task.id} ({task.record.title}) does not end; nobody waits for it any more")
        return True

    def cancel_by_id(self, task_id: str) -> None:
        """End a task that a person outside names, if it runs; nobody waits for that."""
        task = self.tasks.get(task_id)
        if task is not None:
            ending = asyncio.get_running_loop().create_task(self.cancel(task, CancelledBy.PERSON), context=Context())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def end_all(self, agent_id: str, by: CancelledBy) -> list[TaskRecord]:
        """End what this agent started and what still runs of it, but for what is to outlive the session; the records of those that were
        ended."""
        running = [task for task in self.running(agent_id) if not task.is_cancelled and task.release is None]
        await asyncio.gather(*(self.cancel(task, by) for task in running))
        return [task.record for task in running]

    async def release_all(self) -> list[TaskRecord]:
        """Let go on what is to outlive the session; its records."""
        released = [task for task in self.tasks.values() if task.release is not None and not task.ended.is_set()]
        for task in released:
            task.is_released = True
            assert task.release is not None
            task.release()
        jobs = [self._jobs[task.id] for task in released if task.id in self._jobs]
        if jobs:
            await asyncio.wait(jobs, timeout=GRACE)
        return [task.record for task in released]

    def is_below(self, task: Task, agent_id: str) -> bool:
        """Whether this agent started it, or one below it did."""
        parent, steps = task.record.parent, 0
        while parent != agent_id and parent in self.tasks and steps <= len(self.tasks):
            parent, steps = self.tasks[parent].record.parent, steps + 1
        return parent == agent_id

    def forget(self, task: Task) -> None:
        """Its agent knows already how it ended."""
        self.completions.forget(task.record)

    def clear_untold(self, agent_id: str, is_told: Callable[[TaskRecord], bool]) -> None:
        """The session ends: what its log tells of tasks of this agent need not be told when the context is used again."""
        for task in self.tasks.values():
            record = task.record
            has_answered = not record.background and not record.is_cut_off
            is_known = has_answered or self.completions.is_heard(record.id) or is_told(record)
            if record.parent == agent_id and record.status.has_ended and is_known:
                try:
                    clear_untold(self._context, record.id)
                except OSError as error:
                    self._warn(f"the end of task {record.id} may be told again: {error.filename}: {error.strerror}")

    def running(self, agent_id: str = MAIN, kind: TaskKind | None = None) -> Iterable[Task]:
        """What this agent started and has not ended."""
        return [
            task
            for task in self.tasks.values()
            if task.record.parent == agent_id and not task.ended.is_set() and kind in (None, task.record.kind)
        ]

    async def wait_finished(self, agent_id: str, kind: TaskKind | None = None) -> bool:
        """Wait until there is something that this agent has not heard of; False if nothing that runs in the background could bring it."""
        while not self.completions.has_any(agent_id):
            if not any(self._is_coming(task, agent_id, kind) for task in self.tasks.values()):
                return False
            self._changed.clear()
            await self._changed.wait()
        return True


def _already_done(outcome: TaskOutcome) -> Work:
    async def work(task: Task) -> TaskOutcome:
        return outcome

    return work


__all__ = ["Task", "TaskDenied", "TaskError", "TaskManager", "TaskOutcome", "TaskRequest", "Work"]
