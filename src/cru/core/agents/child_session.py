"""A sub-agent: a session of its own, below the one whose agent asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from cru.core.agents.cards import AgentCard
from cru.core.agents.manager import Task, TaskOutcome
from cru.core.base.values.messages import Usage
from cru.core.events.payloads import InteractionCompleted, InteractionRequested, ToolCalled, ToolFailed
from cru.core.events.stream import AgentActivity, AgentCallFailed, Notice, Published, Stream
from cru.core.guard.rules.gate import Asker, NoAsker, PermissionReply, PermissionSubject
from cru.core.turn.background import run_to_end
from cru.core.turn.outcomes import describe_end
from cru.core.turn.parts import ModelChooser, Parts, ResolvedModel, acting
from cru.core.turn.session import Session
from cru.core.turn.turn import LegResult

GRACE = 3.0
"""Seconds that an interrupted sub-agent has to write down how it ended."""
EMPTY = "(the sub-agent ended without an answer)"


class ChildSpec(Struct, frozen=True, kw_only=True):
    """What makes a child's session another than its parent's.

    folder: of its context
    root: where it works, None: where its parent does
    inner: the place of `root` in the git worktree that it is in, "": all of it
    model: "": its parent's
    tools: which it may call, by name
    fuel_limit: where a person changes its fuel
    stream: its own; nobody reads it but who asks for it
    count: hears of each request that it makes
    """

    agent_id: str
    call_id: str
    depth: int
    card: AgentCard
    folder: Path
    tools: Callable[[str], bool]
    fuel: int
    fuel_limit: str
    stream: Stream
    count: Callable[[Usage], object]
    root: Path | None = None
    inner: str = ""
    model: str = ""


class HasClose(Protocol):
    def close(self) -> None: ...


class ChildSession(Struct, frozen=True):
    """files: to close after the session."""

    session: Session
    files: tuple[HasClose, ...]

    async def close(self) -> None:
        await self.session.close("exit")
        for file in self.files:
            file.close()


class SessionFactory(Protocol):
    """Builds sessions below others (cru.core.compose.children)."""

    def __call__(self, parent: Parts, spec: ChildSpec) -> ChildSession: ...


class AgentAsker:
    """Asks the person at the parent's face, in the name of the sub-agent; one question at a time."""

    def __init__(self, asker: Asker, agent: str, turn: asyncio.Lock) -> None:
        self._asker, self._agent, self._turn = asker, agent, turn
        self.caller_variable = getattr(asker, "caller_variable", None)

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        agent = f"{self._agent} > {subject.agent}" if subject.agent else self._agent
        named = replace(subject, agent=agent)
        if isinstance(self._asker, AgentAsker):  # it takes the turn
            return await self._asker.ask(named)
        async with self._turn:
            return await self._asker.ask(named)


def asker_for(asker: Asker, agent: str, turn: asyncio.Lock) -> Asker:
    """Return what a sub-agent asks the person with: the parent's asker if nobody can be asked there either."""
    return asker if isinstance(asker, NoAsker) else AgentAsker(asker, agent, turn)


def own_stream(parent: Stream, agent: str, task_id: str) -> Stream:
    """A stream for a child. Its warnings reach the parent's readers with its name, and so do its questions, and what it does."""
    stream = Stream()

    def warn(item: Published[Notice]) -> None:
        notice = item.payload
        parent.tell(Notice(notice.level, f"[{agent} {task_id}] {notice.text}", notice.owner))

    def show_call(item: Published[ToolCalled]) -> None:
        parent.tell(AgentActivity(task_id, agent, item.payload.name))

    def tell_failure(item: Published[ToolFailed]) -> None:
        failed = item.payload
        parent.tell(AgentCallFailed(task_id, agent, failed.name, failed.which, failed.error))

    stream.subscribe(warn, Notice)
    stream.subscribe(show_call, ToolCalled)
    stream.subscribe(tell_failure, ToolFailed)
    stream.subscribe(parent.publish, InteractionRequested, InteractionCompleted, AgentActivity, AgentCallFailed)
    return stream


async def run_session(child: ChildSession, task: Task, seconds: float, time_limit: str) -> TaskOutcome:
    """Ask the sub-agent, for at most so many seconds, and close its session. `time_limit`: where a person changes that."""
    with acting(child.session.parts):
        return await _run_session(child, task, seconds, time_limit)


async def _run_session(child: ChildSession, task: Task, seconds: float, time_limit: str) -> TaskOutcome:
    session = child.session
    job = asyncio.get_running_loop().create_task(_ask(session, task))
    task.cancel = session.end
    try:
        done, _ = await asyncio.wait([job], timeout=seconds)
        if not done:
            session.end()
            await asyncio.wait([job], timeout=GRACE)
        if not job.done():
            job.cancel()
        outcome = _outcome(await job)
        return outcome if done else _too_slow(outcome, seconds, time_limit)
    except asyncio.CancelledError:
        session.end()
        await asyncio.wait([job], timeout=GRACE)
        job.cancel()
        with suppress(asyncio.CancelledError):
            await job
        raise
    finally:
        await child.close()


async def _ask(session: Session, task: Task) -> LegResult:
    session.add_context(task.context)
    session.submit(task.request.prompt, source="task")
    return await run_to_end(session) or LegResult("interrupted", reason="interrupted")


def _outcome(result: LegResult) -> TaskOutcome:
    if result.is_done:
        return TaskOutcome(result.response or EMPTY, rounds=result.rounds)
    why = f"error: {result.error}" if result.error else describe_end(result)
    return TaskOutcome(result.response, why, rounds=result.rounds)


def _too_slow(outcome: TaskOutcome, seconds: float, time_limit: str) -> TaskOutcome:
    why = f"it took longer than {seconds:g} s and was ended ({time_limit} allows more)"
    return TaskOutcome(outcome.result, why, rounds=outcome.rounds)


def choose_for(choose_model: ModelChooser, spec: ChildSpec) -> ModelChooser:
    """A chooser of models, with the child's own model and parameters."""

    async def choose(name: str) -> ResolvedModel:
        resolved = await choose_model(name or spec.model)
        if spec.card.temperature is None:
            return resolved
        return replace(resolved, parameters={**resolved.parameters, "temperature": spec.card.temperature})

    return choose
