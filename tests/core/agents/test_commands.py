"""Commands in the background: started, read, fed and ended through the tools, with real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.core.turn.support import Ext, World
from tests.kit.processes import is_running

from cru.core.agents.manager import Task
from cru.core.agents.record import TaskStatus, read_record
from cru.core.agents.sub_agents import AgentTasks
from cru.core.events.answers import Answer, Change
from cru.core.events.payloads import TaskCompleted, TaskFailed, TaskSpawned
from cru.core.events.stamp import Event
from cru.core.tools.arguments import Bash, TaskCancel, TaskOutput
from cru.core.tools.conversation import task_cancel, task_output
from cru.core.tools.protocol import ToolContext, ToolError, ToolOptions
from cru.core.tools.shell import bash

T = TypeVar("T")


class Background(World):
    """A session whose tools for the background are called by hand."""

    @property
    def tasks(self) -> AgentTasks:
        spawner = self.session.parts.tool_services.spawner
        assert spawner is not None
        tasks = spawner()
        assert isinstance(tasks, AgentTasks)
        return tasks

    @property
    def context(self) -> ToolContext:
        parts = self.session.parts
        return ToolContext(
            "call_1", parts.place.root, parts.store.folder, parts.place.env, lambda text: None, parts.tool_services
        )

    def task(self, number: int = -1) -> Task:
        return list(self.tasks.manager.tasks.values())[number]

    async def bash(self, command: str, **more: Any) -> str:
        more.setdefault("background", "input_to" not in more)
        return (await bash(Bash(command, **more), self.context, ToolOptions())).content

    async def start(self, command: str, **more: Any) -> Task:
        await self.bash(command, **more)
        return self.task()

    async def output(self, task: Task, wait: float = 0, lines: int | None = None) -> str:
        return (await task_output(TaskOutput(task.id, wait, lines), self.context, ToolOptions())).content

    async def cancel(self, task: Task) -> str:
        return (await task_cancel(TaskCancel(task.id), self.context, ToolOptions())).content

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        async def all_of_it() -> T:
            try:
                return await work
            finally:
                assert self.tasks
                for close in self.session.parts.services.lifecycle.closing:
                    await close()

        return asyncio.run(all_of_it())


@pytest.fixture
def world(tmp_path: Path) -> Background:
    return Background(tmp_path, "")


async def printed(world: Background, task: Task, text: str) -> str:
    """What it prints, until this is in it."""
    seen = ""
    while text not in seen:
        has_ended = task.ended.is_set()
        seen += await world.output(task)
        assert text in seen or not has_ended, seen
        await asyncio.sleep(0.005)
    return seen


def test_a_command_runs_on_and_its_end_is_reported(world: Background) -> None:
    async def work() -> str:
        told = await world.bash("echo out; echo err >&2; exit 3")
        assert f"as task {world.task().id}, and ends with the session" in told
        await world.task().ended.wait()
        await asyncio.sleep(0)
        return world.tasks.take_report()

    report = world.play(work())
    task = world.task()
    assert report == (
        f"[background task {task.id} (command: echo out; echo err >&2; exit 3) failed: exit code 3]\nout\nerr"
    )
    (spawned,), (failed,) = world.of(TaskSpawned), world.of(TaskFailed)
    assert (spawned.id, spawned.kind, spawned.command) == (task.id, "bash", "echo out; echo err >&2; exit 3")
    assert (failed.id, failed.kind, failed.error, failed.exit_code, failed.output) == (
        task.id, "bash", "exit code 3", 3, "out\nerr",
    )  # fmt: skip
    record = read_record(task.folder)
    assert record is not None and (record.status, record.exit_status) == (TaskStatus.FAILED, 3)


def test_what_ended_well_says_so(world: Background) -> None:
    async def work() -> str:
        task = await world.start("echo done")
        return await world.output(task, wait=30)

    assert world.play(work()) == "done\n[it has ended well]"
    (completed,) = world.of(TaskCompleted)
    assert (completed.kind, completed.output, completed.exit_code) == ("bash", "done", 0)


def test_an_end_that_was_read_is_not_reported_again(world: Background) -> None:
    async def work() -> str:
        task = await world.start("echo done")
        await world.output(task, wait=30)
        await asyncio.sleep(0)
        return world.tasks.take_report()

    assert world.play(work()) == ""


def test_output_is_read_while_it_runs_and_only_what_is_new(world: Background) -> None:
    async def work() -> list[str]:
        task = await world.start("echo one; until [ -e go ]; do sleep 0.01; done; echo two; sleep 60")
        await printed(world, task, "one")
        nothing = await world.output(task)
        (world.path / "project" / "go").touch()
        second = await printed(world, task, "two")
        return [nothing, second, await world.output(task, lines=1)]

    nothing, second, last = world.play(work())
    assert nothing.startswith("(no new output)\n[it runs, for ")
    assert "one" not in second and "two" in second
    assert last.startswith("[… 4 bytes before this are in ") and "]\ntwo\n[it runs" in last


def test_input_is_typed_and_closed(world: Background) -> None:
    async def work() -> str:
        task = await world.start("cat; echo end", stdin=True)
        await world.bash("hello", input_to=task.id)
        await printed(world, task, "hello")
        await world.bash("\x04", input_to=task.id)
        return await world.output(task, wait=30)

    assert world.play(work()) == "end\n[it has ended well]"


@pytest.mark.parametrize(
    ("command", "more", "problem"),
    [
        ("sleep 60", {}, "takes no input"),
        ("exec 0<&-; echo ready; sleep 60", {"stdin": True}, "has closed its input"),
        ("true", {"stdin": True}, "has ended: nobody reads its input"),
    ],
)
def test_input_that_nobody_reads_is_an_error(
    world: Background, command: str, more: dict[str, Any], problem: str
) -> None:
    async def work() -> None:
        task = await world.start(command, **more)
        if "ready" in command:
            await printed(world, task, "ready")
        if command == "true":
            await task.ended.wait()
        await world.bash("x", input_to=task.id)

    with pytest.raises(ToolError, match=problem):
        world.play(work())


def test_a_cancelled_command_is_gone_with_all_that_it_started(world: Background) -> None:
    source = "sleep 60 & echo $! >pids; setsid sleep 61 & echo $! >>pids; echo $$ >>pids; echo ready; wait"

    async def work() -> list[str]:
        task = await world.start(source)
        await printed(world, task, "ready")
        return [await world.cancel(task), await world.cancel(task), world.tasks.take_report()]

    first, second, report = world.play(work())
    assert "is ended, with everything that it started" in first
    assert "had ended before: it was cancelled" in second
    assert report == ""
    pids = (world.path / "project" / "pids").read_text().split()
    assert len(pids) == 3 and not any(is_running(int(pid)) for pid in pids)


def test_at_its_time_limit_it_is_ended(world: Background) -> None:
    async def work() -> str:
        task = await world.start("echo begun; sleep 60", timeout=0.2)
        return await world.output(task, wait=30)

    assert world.play(work()) == (
        "begun\n[it failed: it ran longer than 0.2 s and was ended, with everything that it started]"
    )


def test_the_session_ends_what_runs_and_says_so(world: Background) -> None:
    async def work() -> Task:
        return await world.start("sleep 60")

    task = world.play(work())
    assert f"command (task {task.id}) ended with the session: sleep 60" in world.notices()
    assert not is_running(task.record.pid)


def test_what_closes_its_output_and_goes_on_is_still_there(world: Background) -> None:
    async def work() -> bool:
        task = await world.start("exec >/dev/null 2>&1; touch closed; sleep 60")
        while not (world.path / "project" / "closed").exists():
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        return task.ended.is_set() or not is_running(task.record.pid)

    assert world.play(work()) is False


def test_what_it_leaves_running_ends_with_it_and_that_is_told(world: Background) -> None:
    async def work() -> str:
        task = await world.start("setsid sleep 60 >/dev/null 2>&1 & echo $!")
        await world.output(task, wait=30)
        assert task.outcome is not None
        return task.outcome.result

    pid, told = world.play(work()).split("\n")
    assert told == "[what it had left running was ended, too]" and not is_running(int(pid))


def test_a_long_output_is_kept_at_both_ends_and_read_in_pages(tmp_path: Path) -> None:
    world = Background(tmp_path, "", settings={"tasks": {"output_limit": 100_000}})

    async def work() -> tuple[Task, str]:
        task = await world.start("seq 1 200000")
        await task.ended.wait()
        return task, await world.output(task)

    task, page = world.play(work())
    assert page.startswith("1\n2\n3\n") and "bytes more: call task_output again]" in page
    assert sum(file.stat().st_size for file in task.folder.glob("output*")) <= 100_000
    assert task.outcome is not None and task.outcome.result.endswith("199999\n200000")
    assert "bytes before this are in" in task.outcome.result and len(task.outcome.result) < 5000


def test_output_that_is_no_text_does_no_harm(world: Background) -> None:
    async def work() -> str:
        task = await world.start(r"printf 'a\377\000b'")
        return await world.output(task, wait=30)

    assert world.play(work()) == "a\ufffd\x00b\n[it has ended well]"


def test_an_unknown_id_is_answered_with_those_there_are(world: Background) -> None:
    async def work() -> list[str]:
        problems = []
        for known in (False, True):
            if known:
                await world.start("sleep 60")
            with pytest.raises(ToolError) as caught:
                await world.tasks.commands().cancel("nonsense")
            problems.append(str(caught.value))
        return problems

    none, some = world.play(work())
    assert "there is no task 'nonsense'" in none and "you have started none in this session" in none
    assert f"your tasks: {world.task().id}" in some


def test_of_many_commands_some_wait_and_all_end(tmp_path: Path) -> None:
    world = Background(tmp_path, "", settings={"tasks": {"max_concurrent": 3, "max_tasks": 12}})

    async def work() -> tuple[list[str], str]:
        told = [await world.bash(f"echo {n}") for n in range(12)]
        with pytest.raises(ToolError, match="has started 12 tasks, which is the limit") as caught:
            await world.bash("echo more")
        tasks = list(world.tasks.manager.tasks.values())
        await asyncio.gather(*(task.ended.wait() for task in tasks))
        return told, str(caught.value)

    told, problem = world.play(work())
    assert [("waits: 3 commands run" in text) for text in told] == [False] * 3 + [True] * 9
    assert "tasks.max_tasks allows more" in problem
    assert [completed.output for completed in world.of(TaskCompleted)] != []
    assert sorted(int(completed.output) for completed in world.of(TaskCompleted)) == list(range(12))


def test_a_command_that_cannot_start_is_an_error_at_once(world: Background) -> None:
    async def work() -> None:
        await world.bash("x" * (200 << 10))

    with pytest.raises(ToolError, match=r"the command did not start: .*too long"):
        world.play(work())
    assert len(world.of(TaskFailed)) == 1


def test_a_handler_may_refuse_it(tmp_path: Path) -> None:
    def refuse(event: Event) -> Answer | None:
        return Answer("deny", reason="not now") if isinstance(event.payload, TaskSpawned) else None

    world = Background(tmp_path, "", Ext([("task:spawned", refuse)]))

    async def work() -> None:
        await world.bash("touch ran")

    with pytest.raises(ToolError, match="refused by ext: not now"):
        world.play(work())
    assert not (tmp_path / "project" / "ran").exists()


def test_a_handler_cannot_put_another_command_in_its_place(tmp_path: Path) -> None:
    def change(event: Event) -> Answer:
        return Answer(changes=(Change("prompt", "set", "touch ran"),))

    world = Background(tmp_path, "", Ext([("task:spawned", change)]))

    async def work() -> None:
        await world.bash("echo permitted")

    with pytest.raises(ToolError, match="has changed the command, which was permitted as it was"):
        world.play(work())
    assert not (tmp_path / "project" / "ran").exists()


def test_what_is_detached_outlives_the_session(world: Background) -> None:
    async def work() -> Task:
        told = await world.bash("echo begun; exec sleep 60", detached=True)
        task = world.task()
        assert f"goes on when the session has ended (process {task.record.pid})" in told
        await printed(world, task, "begun")
        return task

    task = world.play(work())
    try:
        assert is_running(task.record.pid)
        assert any(f"goes on as process {task.record.pid}: echo begun" in text for text in world.notices())
        record = read_record(task.folder)
        assert record is not None and record.status is TaskStatus.RUNNING
    finally:
        os.kill(task.record.pid, 9)
    os.waitpid(task.record.pid, 0)
    gone = read_record(task.folder)
    assert gone is not None and gone.status is TaskStatus.LOST


def test_what_is_detached_can_be_cancelled_in_its_session(world: Background) -> None:
    async def work() -> Task:
        task = await world.start("exec sleep 60", detached=True)
        await world.cancel(task)
        return task

    assert not is_running(world.play(work()).record.pid)
