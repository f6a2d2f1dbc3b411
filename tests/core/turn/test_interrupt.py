"""Ctrl-C in every state: the log is complete, the lock is free, no child is left, and the next prompt works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, MadeTool, World, always
from tests.kit.waiting import PATIENCE

from cru.core.base.values.messages import LEG_ENDED
from cru.core.events.answers import inject
from cru.core.events.payloads import SessionIdle, StreamingDelta, TurnComplete
from cru.core.events.stamp import Event
from cru.core.events.stream import ToolOutput
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject
from cru.core.tools.protocol import ToolResult
from cru.core.turn import Interrupted
from cru.core.turn.turn import LegResult, LegState

SCRIPT = "loop: yes\ncall: ls {}\n---\ntext: done\n"


def hang(world_of: Callable[[], World]) -> Callable[[Event], Any]:
    """A handler that never answers; it interrupts the session once it hangs."""

    async def wait(_event: Event) -> None:
        asyncio.get_running_loop().call_later(0.01, world_of().session.interrupt)
        await asyncio.sleep(30)

    return wait


def stop(world: World) -> None:
    world.session.interrupt()


def check(world: World, result: LegResult, cause: str = "interrupted", hung: str = "") -> None:
    assert result.cause == cause
    assert not world.built.store.is_held
    assert world.session.machine.state is LegState.IDLE
    calls = sorted(e.tool_call_id for e in world.log("tool_call"))
    assert calls == sorted(e.tool_call_id for e in world.log("tool_result"))
    # an event whose handlers were interrupted is not published
    assert [c.cause for c in world.of(TurnComplete)] == ([cause] if cause == "interrupted" or "idle" in hung else [])
    [ended] = world.log(LEG_ENDED)
    assert ended.metadata == {"ref": world.log("message")[0].id, "cause": cause}


STATES = {
    "message:received": "receiving",
    "leg:started": "preparing",
    "system_prompt:build": "preparing",
    "tools:select": "preparing",
    "message:before_send": "calling",
    "agent:responded": "responding",
    "tool:before_call": "tooling",
    "permission:resolved": "tooling",
    "tool:called": "tooling",
    "tool:completed": "tooling",
    "tool:batch_completed": "tooling",
}


@pytest.mark.parametrize("event", STATES)
def test_an_interrupt_while_a_handler_hangs_ends_the_leg_in_order(tmp_path: Path, event: str) -> None:
    world = World(tmp_path, SCRIPT, Ext([(event, hang(lambda: world), {"once": True})]))
    world.session.submit("one")
    world.session.submit("waiting")
    result = asyncio.run(world.session.run())
    assert result is not None
    check(world, result)
    assert any("1 queued prompt is dropped: interrupted" in text for text in world.notices())
    assert world.run("two").cause == "done"
    assert [e.content for e in world.log("message") if e.role == "user"] == ["one", "two"]


def test_an_interrupt_in_settling_ends_the_turn_but_the_leg_was_done(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT, Ext([("turn:complete", hang(lambda: world), {"once": True})]))
    check(world, world.run("one"), "done")
    assert world.run("two").cause == "done"


def test_an_interrupt_of_session_idle_ends_that_too(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT, Ext([("session:idle", hang(lambda: world), {"once": True})]))
    check(world, world.run("one"), "done", "idle")
    assert world.run("two").cause == "done"


def test_an_interrupt_of_session_started_logs_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT, Ext([("session:started", hang(lambda: world), {"once": True})]))
    assert world.run("one").cause == "interrupted"
    assert world.log() == [] and not world.built.store.is_held
    assert world.run("two").cause == "done"


def test_an_interrupt_before_the_first_step_of_a_leg_is_kept_in_the_log(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT)

    async def run() -> LegResult:
        world.session.submit("one")
        task = asyncio.ensure_future(world.session.run())
        while not world.session.busy:
            await asyncio.sleep(0)
        world.session.interrupt()
        result = await task
        assert result is not None
        return result

    check(world, asyncio.run(run()))
    assert world.resume().cause == "done"


def test_an_interrupted_reply_is_logged_as_partial_and_replayed(tmp_path: Path) -> None:
    world = World(tmp_path, "text: half a\ndelay: 30s\ntext: word\n---\ntext: again\n")
    world.session.parts.bus.stream.subscribe(lambda _i: stop(world), StreamingDelta)
    result = world.run("one")
    check(world, result)
    assert result.response == "half a"
    assert world.log("message")[-1].metadata["partial"] == "interrupted"
    world.run("two")
    assert world.said() == [("user", "one"), ("assistant", "half a"), ("user", "two")]


def test_two_interrupts_in_a_row_are_no_worse_than_one(tmp_path: Path) -> None:
    world = World(tmp_path, "call: ls {}\n---\ntext: half\ndelay: 30s\n")

    def twice(_item: Any) -> None:
        world.session.interrupt()
        asyncio.get_running_loop().call_soon(world.session.interrupt)

    world.session.parts.bus.stream.subscribe(twice, StreamingDelta)
    result = world.run("one")
    assert result.cause == "interrupted" and not world.built.store.is_held
    assert len(world.log(LEG_ENDED)) == 1


def children() -> set[str]:
    """Processes whose parent is this one, zombies included."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(os.getpid()):
            found.add(pid)
    return found


def test_an_interrupt_ends_the_processes_of_a_running_tool(tmp_path: Path) -> None:
    script = 'call: bash {"command":"echo begun; sleep 30 & sleep 30"}\n---\ntext: done\n'
    before = children()
    world = World(tmp_path, script, settings={"mode": "trust"})
    world.session.parts.bus.stream.subscribe(lambda _i: stop(world), ToolOutput)
    check(world, world.run("one"))
    assert [result.partition("\n")[0] for result in world.results()] == ["begun"]
    assert children() <= before
    assert world.run("two").cause == "done"


def test_an_interrupt_ends_all_tools_that_run_at_the_same_time(tmp_path: Path) -> None:
    ended: list[str] = []

    def tool(name: str) -> MadeTool:
        async def work(_args: dict[str, Any]) -> str:
            try:
                asyncio.get_running_loop().call_later(0.01, world.session.interrupt)
                await asyncio.sleep(30)
            finally:
                ended.append(name)
            return name

        return MadeTool(name, work, parallel=True)

    world = World(tmp_path, "call: a {}\ncall: b {}\n---\ntext: done\n").tools(tool("a"), tool("b"))
    check(world, world.run("one"))
    assert sorted(ended) == ["a", "b"]


def test_an_interrupt_while_a_person_is_asked(tmp_path: Path) -> None:
    class Slow:
        async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
            asyncio.get_running_loop().call_later(0.01, world.session.interrupt)
            await asyncio.sleep(30)
            return None

    world = World(tmp_path, 'call: bash {"command":"true"}\n---\ntext: done\n', asker=Slow())
    check(world, world.run("one"))


def test_an_interrupt_while_a_person_is_asked_whether_an_idle_session_goes_on(tmp_path: Path) -> None:
    class Slow:
        async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
            assert subject.is_limit
            asyncio.get_running_loop().call_later(0.01, world.session.interrupt)
            async with asyncio.timeout(PATIENCE):
                await asyncio.Event().wait()
            return None

    again = Ext({"session:idle": always(inject("go on"))})
    world = World(tmp_path, "loop: yes\ntext: done\n", again, asker=Slow(), settings={"max_continuations": 1})
    result = world.run("one")
    assert (result.cause, result.reason) == ("done", "") and not world.session.busy
    assert not world.built.store.is_held and not any("asked" in text for text in world.notices())


def test_an_interrupted_compaction_changes_nothing(tmp_path: Path) -> None:
    script = "by: order\ntext: a\n---\ntext: b\n"
    world = World(tmp_path, script, Ext({"context:overflow": hang(lambda: world)}))
    world.run("one", "two")
    before = world.log()
    with pytest.raises(Interrupted):
        asyncio.run(world.session.compact())
    assert world.log() == before and not world.built.store.is_held


def test_an_interrupt_in_an_automatic_compaction_ends_the_leg(tmp_path: Path) -> None:
    settings = {"context_window_limit": 100, "auto_compact": True}
    world = World(tmp_path, "by: order\nloop: yes\ntext: a\n", settings=settings)
    world.run("one", "two", "three")
    before = world.log("anchor")
    world.session.parts.bus.registry.on("context:overflow", hang(lambda: world), owner="late")
    assert world.run("four " + "x" * 400).cause == "interrupted"
    assert world.log("anchor") == before and world.log(LEG_ENDED)[-1].metadata["cause"] == "interrupted"


def test_what_was_to_be_said_next_is_gone_with_an_interrupted_settling(tmp_path: Path) -> None:
    """The tool ends the turn, so no request takes the inject along, and the turn's end is interrupted."""
    spoken = Ext([("tool:completed", always(inject("said too late")), {"once": True})])
    waits = Ext([("turn:complete", hang(lambda: world), {"once": True})])
    world = World(tmp_path, "by: order\ncall: over {}\n---\ntext: b\n", spoken, waits)
    world.tools(MadeTool("over", lambda _args: ToolResult("over to you", ends_turn=True)))
    world.run("one")
    world.run("two")
    assert world.said()[-1] == ("user", "two") and "said too late" not in [text for _, text in world.said()]


def test_interrupting_nothing_is_false(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT)
    assert world.session.interrupt() is False
    world.run("one")
    assert world.session.interrupt() is False


def test_ending_a_session_drops_the_queue_and_starts_no_continuation(tmp_path: Path) -> None:
    world = World(tmp_path, "loop: yes\ntext: said\n", Ext({"session:idle": always(inject("more"))}))
    world.session.parts.bus.registry.on("agent:responded", lambda _e: world.session.end(), owner="face")
    world.session.submit("one")
    world.session.submit("two")
    asyncio.run(world.session.run())
    assert [e.content for e in world.log("message") if e.role == "user"] == ["one"]
    assert any("1 queued prompt is dropped" in text for text in world.notices())
    assert len(world.of(SessionIdle)) == 1


def test_after_an_interrupt_the_prompt_can_be_resumed(tmp_path: Path) -> None:
    world = World(tmp_path, SCRIPT, Ext([("tool:called", hang(lambda: world), {"once": True})]))
    assert world.run("one").cause == "interrupted"
    assert world.resume().response == "done"
    assert [m[0] for m in world.said()] == ["user", "assistant", "tool"]


def test_a_log_that_cannot_be_written_ends_the_run_with_its_error_and_frees_the_lock(tmp_path: Path) -> None:
    from cru.core.base.values.errors import CruError

    world = World(tmp_path, SCRIPT)
    store, real = world.built.store, world.built.store.append

    def full(*entries: Any) -> None:
        if any(e.entry_type == "tool_result" for e in entries):
            raise CruError("the disk is full", "make room")
        real(*entries)

    store.append = full  # type: ignore[method-assign]
    result = world.run("one")
    assert (result.cause, result.error, result.hint) == ("error", "the disk is full", "make room")
    store.append = real  # type: ignore[method-assign]
    assert not store.is_held
    assert world.run("two").cause == "done"
