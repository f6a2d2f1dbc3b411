"""One run of a task: a process of its own, `cru --json-config`, so that hooks, rules and plugins hold as in `cru "prompt"`, and nothing
that it does, dying included, reaches the worker or another task."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.process.child import Child, Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import end
from cru.core.base.values.messages import ALWAYS_TOLD
from cru.core.turn.outcomes import LABELS
from cru.features.fleet.item_usage import count_usage, reported_usage
from cru.features.fleet.records import QueuedTask, Setting, WorkResult, WorkStatus

GRACE = 5.0
"""Seconds to end by itself for a run that is told to."""
DEAF_SECONDS = 15.0
"""Seconds after which a run is killed that was told to end, and settles nothing any more."""
HELD = 4
"""The exit status of a run that found its context held by another."""
MOST_NOTICES = 20
KEPT_ERRORS = 4096
"""Bytes of standard error, the last ones."""
RESULT, NOTICE = b'{"v":1,"type":"result"', b'{"v":1,"type":"notice"'
FAILURES = (b'{"v":1,"type":"tool:failed"', b'{"v":1,"type":"agent:call_failed"')
MARKS = (RESULT, NOTICE, *FAILURES)
LONGEST_MARK = max(map(len, MARKS))
STATUSES = {
    "done": WorkStatus.DONE,
    "cancelled": WorkStatus.DENIED,
    "halted": WorkStatus.DENIED,
    "error": WorkStatus.FAILED,
}


class RunSettings(Struct, frozen=True):
    """What all runs of a worker have in common.

    argv: the program, with --json-config
    home: of cru
    env: the environment of the runs
    """

    argv: tuple[str, ...]
    home: Path
    env: Mapping[str, str]


class RunEnd(Struct, frozen=True):
    """How a run of a task ended.

    result: what came of the task; None: nothing yet
    is_held: its context was held by another run
    is_ended: it was ended from outside, and can go on
    why: how it died, if it did
    """

    result: WorkResult | None = None
    is_held: bool = False
    is_ended: bool = False
    why: str = ""


class RunOutput:
    """Reads what a run prints, line by line; keeps the few lines that matter, and nothing of the others.

    notices: what `cru "prompt"` would say on standard error, the first few
    refused: calls that were not let run
    """

    def __init__(self) -> None:
        self.result: dict[str, Any] | None = None
        self.notices: list[str] = []
        self.refused = 0
        self._line: list[bytes] = []
        self._size = 0
        self._is_kept = True

    def feed(self, data: bytes) -> None:
        head, *rest = data.split(b"\n")
        self._add(head)
        for piece in rest:
            self._end_line()
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        if not self._is_kept or not piece:
            return
        self._line.append(piece)
        self._size += len(piece)
        if self._size >= LONGEST_MARK:
            start = b"".join(self._line) if len(self._line) > 1 else self._line[0]
            self._is_kept = start.startswith(MARKS)
            self._line = [start] if self._is_kept else []

    def _end_line(self) -> None:
        line = b"".join(self._line)
        self._line, self._size, self._is_kept = [], 0, True
        if line.startswith(RESULT):
            self.result = msgspec.json.decode(line)
        elif line.startswith(NOTICE):
            payload = msgspec.json.decode(line)["payload"]
            if payload.get("level") != "info":
                self._notice(str(payload.get("text", "")))
        elif line.startswith(FAILURES):
            self._add_failure(msgspec.json.decode(line)["payload"])

    def _add_failure(self, payload: Mapping[str, Any]) -> None:
        """Of a call; one of a sub-agent's begins with the agent's name."""
        if payload["which"] not in ALWAYS_TOLD:
            return
        self.refused += 1
        agent = f"{payload['agent']} {payload['task']}: " if "agent" in payload else ""
        self._notice(f"{agent}tool {payload['name']} {payload['which']}: {payload['error'].partition(chr(10))[0]}")

    def _notice(self, text: str) -> None:
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(text)


class ErrorTail:
    """The end of an output."""

    def __init__(self) -> None:
        self.data = b""

    def feed(self, data: bytes) -> None:
        self.data = (self.data + data)[-KEPT_ERRORS:]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace").strip()


class TaskRun:
    """A run of a task that can be ended."""

    def __init__(self, settings: RunSettings, task: QueuedTask) -> None:
        self._settings = settings
        self._task = task
        self._child: Child | None = None
        self._is_ended = False
        self._timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Tell it to end: its log is complete, and another run goes on. One that does not hear is killed."""
        self._is_ended = True
        if self._child is not None and self._timer is None:
            self._child.signal(signal.SIGTERM)
            self._timer = asyncio.get_running_loop().call_later(DEAF_SECONDS, self._child.kill)

    async def run(self, more: Mapping[str, str] | None = None) -> RunEnd:
        """Run it to its end, or to that of its time. `more`: of its environment."""
        if self._is_ended:
            return RunEnd(is_ended=True)
        item, output, errors = self._task.item, RunOutput(), ErrorTail()
        cwd = Path(item.cwd)
        env = {**self._settings.env, **(more or {}), "CRU_END_WITH": str(os.getpid())}
        program = Program(self._settings.argv, cwd, env, request_of(self._task, self._settings.home))
        try:
            child = self._child = Child(program, output.feed, errors.feed)
        except StartError as error:
            return RunEnd(WorkResult(WorkStatus.FAILED, code=1, error=f"{cwd}: {error.message}", hint=error.hint))
        timed_out = False
        try:
            timed_out = await child.wait(item.seconds or None)
        finally:
            try:
                if not child.ended:
                    await end(child, signal.SIGTERM, GRACE)
            finally:
                if self._timer is not None:
                    self._timer.cancel()
                child.close()
        assert child.exit_status is not None
        # a long log is read for its counts: not on the loop, whose beats say that this worker lives
        return await asyncio.to_thread(self._judge, output, errors.text(), child.exit_status, timed_out)

    def _judge(self, output: RunOutput, errors: str, status: int, timed_out: bool) -> RunEnd:
        line = output.result
        if timed_out and (line is None or line["payload"]["cause"] == "interrupted"):
            text = f"it took longer than {self._task.item.seconds:g} s"
            return RunEnd(self._result(output, WorkStatus.TIMED_OUT, status, text))
        if line is None:
            if self._is_ended:
                return RunEnd(is_ended=True)
            if status > 0:
                return RunEnd(self._result(output, WorkStatus.FAILED, status, errors or f"exit status {status}"))
            return RunEnd(why=_death(status, errors))
        payload, code = line["payload"], int(line["code"])
        if code == HELD:
            return RunEnd(is_held=True)
        if payload["cause"] == "interrupted":
            return RunEnd(is_ended=True) if self._is_ended else RunEnd(why="a signal ended it")
        outcome = payload.get("outcome", {}).get("kind", "")
        if code or payload["cause"] == "done":
            kind = STATUSES[payload["cause"]]
        else:
            kind = WorkStatus.DONE if outcome == "done" else WorkStatus.FAILED
        why = "" if kind is WorkStatus.DONE else str(payload.get("error") or payload.get("reason") or "")
        if why and outcome in LABELS:
            why = f"{LABELS[outcome]}: {why}"
        return RunEnd(self._result(output, kind, code, why))

    def _result(self, output: RunOutput, status: WorkStatus, code: int, error: str) -> WorkResult:
        payload: dict[str, Any] = output.result["payload"] if output.result is not None else {}
        is_done = status in (WorkStatus.DONE, WorkStatus.DENIED)
        context = self._task.item.context
        resume = (output.result or {}).get("resume") or f"cru -C {context} --resume"
        usage = count_usage(self._settings.home, context, self._task.key, reported_usage(payload))
        return WorkResult(
            status, str(payload.get("response") or ""), code, error, str(payload.get("hint") or ""),
            tuple(output.notices), output.refused, context, tokens=usage,
            resume="" if is_done else f"cd {shlex.quote(self._task.item.cwd)} && {resume}",
        )  # fmt: skip


def request_of(task: QueuedTask, home: Path) -> bytes:
    """The run's whole command, for --json-config."""
    item = task.item
    flags: dict[str, Any] = {"idempotency_key": task.key}
    for name in ("model", "mode", "agent"):
        if value := getattr(item, name):
            flags[name] = value
    if item.attach:
        flags["attach"] = list(item.attach)
    if item.strict_hooks:
        flags["strict_hooks"] = True
    overrides: dict[str, Any] = dict(item.set)
    if item.fuel:
        overrides["fuel"] = item.fuel
    if item.max_cost:
        overrides["budget.max_cost"] = item.max_cost
    if item.on_interrupted:
        overrides["on_interrupted"] = item.on_interrupted
    return msgspec.json.encode(
        {
            "command": {"send_prompt": {"prompt": item.prompt}},
            "context": {"transient": {"name": item.context}},
            "home": str(home),
            "flags": flags,
            "overrides": overrides,
        }
    )


def setting_text(value: Setting) -> str:
    """A setting of an item as `-s KEY=` takes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _death(status: int, errors: str) -> str:
    if status == 0:
        return "it ended without a result"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    last = errors.splitlines()[-1] if errors else ""
    return f"it was ended by {name}" + (f" ({last})" if last else "")


def environment_for_runs(env: Mapping[str, str]) -> dict[str, str]:
    """This process' environment without the way into the queue: what a model runs has no business there."""
    return {name: value for name, value in env.items() if name != "CRU_DATABASE_URL"}
