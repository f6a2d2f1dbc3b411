"""Whatever a handler does, it is its own failure: isolated, journalled, shown with owner and place."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.events.world import CALL, GATES, World, example
from tests.kit.waiting import PATIENCE

from cru.core.base.values.errors import CruError
from cru.core.events import answers as a
from cru.core.events.answers import PASS, Answer, Change, Inject
from cru.core.events.catalog import EventRow
from cru.core.events.payloads import Custom, MessageReceived, ToolBeforeCall, ToolCalled, ToolsSelect
from cru.core.events.stamp import FRAME, Event

CALLED = ToolCalled("bash", {}, "c")


class Odd(BaseException):
    pass


def raises(error: BaseException) -> Callable[[Event], None]:
    def call(event: Event) -> None:
        raise error

    return call


async def waits(event: Event) -> None:
    await asyncio.sleep(30)


async def times_out_itself(event: Event) -> None:
    raise TimeoutError("its own, too")


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (raises(ValueError("broken")), "ValueError: broken"),
        (raises(TimeoutError("its own")), "TimeoutError: its own"),
        (times_out_itself, "TimeoutError: its own, too"),
        (raises(StopIteration()), "StopIteration"),
        (raises(SystemExit(3)), "SystemExit: 3"),
        (raises(Odd("odd")), "Odd: odd"),
        (raises(CruError("")), "CruError without a message"),
        (raises(asyncio.CancelledError()), "CancelledError"),
        (lambda _event: "text", "answered with str"),
        (lambda _event: {"decision": "deny"}, "answered with dict"),
        (lambda _event: True, "answered with bool"),
        (lambda _event: Answer(decision="maybe"), "maybe"),  # type: ignore[arg-type]
        (lambda _event: Answer(decision=[]), "decision"),  # type: ignore[arg-type]
        (lambda _event: Answer(halt="yes"), "halt"),  # type: ignore[arg-type]
        (lambda _event: Answer(context="text"), "context"),  # type: ignore[arg-type]
        (lambda _event: Answer(context=(1,)), "context"),  # type: ignore[arg-type]
        (lambda _event: Answer(inject="text"), "inject"),  # type: ignore[arg-type]
        (lambda _event: Answer(inject=Inject("x", "middle")), "middle"),  # type: ignore[arg-type]
        (lambda _event: Answer(changes=(("args", "set", {}),)), "changes"),  # type: ignore[arg-type]
        (lambda _event: Answer(changes=(Change("args", "erase", {}),)), "erase"),  # type: ignore[arg-type]
        (lambda _event: Answer(result=object()), "object"),
        (lambda _event: Answer(result=LOOP), "recursion"),
        (lambda _event: a.cancel("\ud800"), "surrogates"),
        (lambda _event: a.handled(None), "without a result"),
        (lambda _event: a.transform(args="text"), "set `args`"),
    ],
)
def test_garbage_and_errors_are_the_handlers_failure(call: Callable[[Event], Any], told: str) -> None:
    world = World()
    world.on("tool:before_call", call, "bad", where="bad.py:3")
    outcome = world.send()
    assert outcome.answer.decision == "deny"
    assert outcome.answer.reason.startswith("the handler of bad failed: ")
    assert outcome.failed
    assert outcome.payload is CALL
    assert told in world.line.heard[0].error
    assert world.line.heard[0].failed
    assert world.warnings[0].startswith("bad (bad.py:3): failed on tool:before_call: ")


@pytest.mark.parametrize("lane", ["inline", "commands", "executables"])
@pytest.mark.parametrize("on_error", ["", "pass", "deny"])
@pytest.mark.parametrize("row", GATES, ids=lambda row: row.name)
def test_a_failure_denies_only_in_process_on_tool_and_permission_gates_unless_told(
    row: EventRow, on_error: str, lane: str
) -> None:
    world = World()
    world.on(row.name, raises(ValueError("x")), "bad", lane=lane, on_error=on_error)
    world.on(row.name, a.add_context("later"), "good", priority=200)
    outcome = world.send(example(row))
    strict = lane == "inline" and row.name in ("tool:before_call", "permission:requested", "task:spawned")
    denied = on_error == "deny" or (strict and on_error == "")
    if row.outcome:  # how the turn ends is what such a handler guards, and the others are heard
        ended = outcome.answer.outcome
        assert (ended is not None and ended.kind == "failed") == denied and outcome.answer.decision == "none"
        assert world.line.heard[1].skipped == ""
        return
    assert (outcome.answer.decision == "deny") == denied == outcome.failed
    assert world.line.heard[1].skipped == ("cancelled by bad" if denied else "")


def test_on_events_that_are_no_gates_a_failure_denies_nothing() -> None:
    world = World()
    world.on("tool:called", raises(ValueError("x")), "bad", on_error="deny")
    world.on("tool:called", a.add_context("later"), "good")
    assert world.send(CALLED).answer == a.add_context("later")


def test_a_refusal_beside_a_failure_is_a_refusal() -> None:
    world = World()
    world.on("tool:before_call", a.cancel("no"), "one", lane="commands")
    world.on("tool:before_call", raises(ValueError("x")), "two", lane="commands", on_error="deny")
    outcome = world.send()
    assert outcome.by == "one, two"
    assert not outcome.failed


def test_an_async_handler_is_cancelled_at_its_limit() -> None:
    world = World()
    ended: list[str] = []

    async def slow(event: Event) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("ended")

    world.on("tool:before_call", slow, "slow", limit=0.01)
    outcome = world.send()
    assert ended == ["ended"]
    assert outcome.answer.reason == "the handler of slow failed: no answer within 0.01 s"


@pytest.mark.parametrize("lane", ["inline", "commands"])
def test_one_handler_at_its_limit_does_not_end_the_others(lane: str) -> None:
    world = World()
    world.on("message:received", waits, "slow", limit=0.01, lane=lane)
    world.on("message:received", a.transform(content="new"), "good", lane=lane)
    assert world.send(MessageReceived("old")).payload.content == "new"


def test_plain_code_that_keeps_everything_waiting_is_named() -> None:
    world = World()
    world.on("tool:called", lambda _event: time.sleep(0.26), "slow")
    world.send(CALLED)
    (warning,) = world.warnings
    assert re.fullmatch(r"slow: took \d+ ms on tool:called, and everything else waited", warning)


def test_waiting_and_threads_are_not_named_for_it() -> None:
    world = World()

    async def waiting(event: Event) -> None:
        await asyncio.sleep(0.26)

    world.on("tool:called", waiting, "a", lane="commands")
    world.on("tool:called", lambda _event: time.sleep(0.26), "b", lane="commands", thread=True)
    world.send(CALLED)
    assert not world.warnings


def test_a_thread_answers_like_any_handler() -> None:
    world = World()
    world.on("tool:before_call", lambda event: a.ask(event.name), thread=True)
    world.on("tool:before_call", raises(SystemExit(1)), "bad", thread=True, on_error="pass")
    outcome = world.send()
    assert outcome.answer == a.ask("tool:before_call")
    assert world.line.heard[1].error == "SystemExit: 1"


def test_a_thread_is_abandoned_at_its_limit_and_keeps_no_exit_waiting() -> None:
    program = (
        "import asyncio, time\n"
        "from cru.core.events.bus import Bus\nfrom cru.core.events.stamp import Origin\n"
        "from cru.core.events.payloads import ToolBeforeCall\n"
        "bus = Bus(Origin('s', 'r'))\n"
        "bus.registry.on('tool:before_call', lambda e: time.sleep(60), owner='stuck', thread=True, limit=0.05)\n"
        "print(asyncio.run(bus.dispatch(ToolBeforeCall('bash', {}, 'c'))).answer.reason)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "the handler of stuck failed: no answer within 0.05 s\n"
    assert done.returncode == 0


def test_sys_exit_in_a_handler_does_not_end_the_program() -> None:
    world = World()
    world.on("message:received", lambda _event: sys.exit(0), "rude")
    world.on("message:received", a.transform(content="new"), "good")
    assert world.send(MessageReceived("old")).payload.content == "new"
    assert world.warnings == ["rude: failed on message:received: SystemExit: 0"]


def test_ctrl_c_that_may_raise_passes_through() -> None:
    world = World()

    def pressed(event: Event) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    world.on("tool:before_call", pressed, "bad")
    with pytest.raises(KeyboardInterrupt):
        world.send()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_would_end_the_program_is_a_failure_if_it_is_raised_by_hand(error: BaseException) -> None:
    world = World()
    world.on("message:received", raises(error), "bad")
    world.on("message:received", a.transform(content="new"), "good")
    assert world.send(MessageReceived("old")).payload.content == "new"
    assert world.warnings == [f"bad: failed on message:received: {type(error).__name__}"]


def test_a_dispatch_that_is_thrown_away_is_nobodys_failure() -> None:
    world = World()
    world.on("tool:before_call", waits, "slow")

    async def run() -> None:
        dispatch = world.bus.dispatch(CALL)
        dispatch.send(None)
        dispatch.close()

    asyncio.run(run())
    assert not world.warnings


@pytest.mark.parametrize("members", [1, 3])
def test_ctrl_c_passes_through_a_waiting_handler(members: int) -> None:
    world = World()
    for number in range(members):
        world.on("tool:before_call", waits, f"p{number}", lane="commands")

    async def run() -> bool:
        task = asyncio.ensure_future(world.bus.dispatch(CALL))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and len(asyncio.all_tasks()) == 1

    assert asyncio.run(run())
    assert not world.warnings, "nobody failed"


def test_awaiting_something_cancelled_is_a_failure_and_no_ctrl_c() -> None:
    world = World()

    async def careless(event: Event) -> None:
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        await task

    world.on("message:received", careless, "careless")
    world.on("message:received", a.transform(content="new"), "good")
    assert world.send(MessageReceived("old")).payload.content == "new"
    assert world.line.heard[0].error.startswith("CancelledError")


def test_a_bad_change_undoes_the_whole_answer() -> None:
    world = World()
    bad = Answer(
        changes=(Change("content", "set", "half"), Change("attachments", "set", "text")),
        context=("x",),
        inject=Inject("y"),
    )
    world.on("message:received", bad, "bad")
    outcome = world.send(MessageReceived("old"))
    assert outcome.payload.content == "old"
    assert outcome.answer is PASS
    assert outcome.changed_by("content") == ""
    assert world.line.changed == {}


def test_a_field_that_is_not_writable_is_dropped_with_a_warning_and_the_rest_applies() -> None:
    world = World()
    world.on("message:received", a.transform(ref="forged", content="new"), "curious", where="c.lua:9")
    outcome = world.send(MessageReceived("old", ref="msg_1"))
    assert (outcome.payload.content, outcome.payload.ref) == ("new", "msg_1")
    told = "`ref` cannot be changed (only content, attachments)"
    assert world.warnings == [f"curious (c.lua:9): message:received: {told}"]
    assert world.line.heard[0].rejected == (told,)


def test_what_has_no_place_on_an_event_is_dropped_with_a_warning() -> None:
    world = World()
    world.on("tools:select", Answer(context=("c",), context_files=("f",), inject=Inject("i"), result="r"), "p")
    outcome = world.send(ToolsSelect(("bash",)))
    assert outcome.answer == PASS
    assert [text.partition("select: ")[2] for text in world.warnings] == [
        "context has no place here", "an inject has no place here", "a result has no place here",
    ]  # fmt: skip


def test_an_answer_is_data_and_what_its_handler_does_to_it_later_changes_nothing() -> None:
    world = World()
    args = {"command": "true"}
    world.on("tool:before_call", lambda _event: a.transform(args=args))
    outcome = world.send()
    args["command"] = "rm"
    assert outcome.payload.args == {"command": "true"}


def test_a_payload_that_a_handler_changes_in_place_changes_nothing() -> None:
    """Only an answer changes an event: neither the next handler, nor the outcome, nor an earlier Allow sees side effects."""
    world = World()
    seen: list[Any] = []

    def meddle(event: Event) -> None:
        assert isinstance(event.payload, ToolBeforeCall)
        event.payload.args["command"] = "rm -rf /"
        event.payload.env["X"] = "1"

    def look(event: Event) -> None:
        assert isinstance(event.payload, ToolBeforeCall)
        seen.append(event.payload.args)

    world.on("tool:before_call", lambda event: a.allow("fine"), "good")
    world.on("tool:before_call", meddle, "bad")
    world.on("tool:before_call", look, "last")
    payload = ToolBeforeCall("bash", {"command": "true"}, "1")
    outcome = world.send(payload)
    assert (outcome.payload.args, outcome.payload.env, seen) == ({"command": "true"}, {}, [{"command": "true"}])
    assert payload.args == {"command": "true"}
    assert outcome.answer.decision == "allow"


BAD = (Change("args", "set", 5),)


@pytest.mark.parametrize("lane", ["inline", "commands"])
@pytest.mark.parametrize("on_error", ["", "pass", "deny", "ask"])
@pytest.mark.parametrize(
    "answer",
    [Answer(decision="deny", reason="no", changes=BAD), Answer(decision="deny", halt=True, reason="no", changes=BAD)],
)
def test_a_bad_change_does_not_void_the_no_beside_it(answer: Answer, on_error: str, lane: str) -> None:
    world = World()
    world.on("tool:before_call", answer, "guard", lane=lane, on_error=on_error)
    outcome = world.send()
    assert (outcome.answer.decision, outcome.answer.halt, outcome.answer.reason) == ("deny", answer.halt, "no")
    assert outcome.payload is CALL and not outcome.failed
    assert "failed on tool:before_call: set `args`" in world.warnings[0] and world.line.heard[0].error


@pytest.mark.parametrize(
    ("said", "on_error", "decision"),
    [
        ("allow", "", "none"), ("allow", "deny", "deny"), ("allow", "ask", "ask"), ("none", "ask", "ask"), ("ask", "", "ask"),
        ("ask", "pass", "ask"), ("ask", "deny", "deny"), ("none", "pass", "none"),
    ],
)  # fmt: skip
def test_what_a_bad_change_of_a_command_leaves(said: Any, on_error: str, decision: str) -> None:
    world = World()
    world.on("tool:before_call", Answer(decision=said, changes=BAD), "guard", lane="commands", on_error=on_error)
    outcome = world.send()
    assert outcome.answer.decision == decision and outcome.payload is CALL
    assert outcome.failed == (on_error in ("deny", "ask"))


@pytest.mark.slow
def test_handlers_that_raise_events_in_one_another_end_at_a_number() -> None:
    """Two events in each: 2 ** 16 dispatches, had nobody counted."""
    world, calls = World(), 0

    async def twice(_event: Event) -> None:
        nonlocal calls
        calls += 1
        token = FRAME.set(replace(FRAME.get(), owners=frozenset()))
        try:
            for _ in range(2):
                await world.bus.dispatch(Custom("again", None))
        finally:
            FRAME.reset(token)

    world.on("custom", twice)
    world.send(Custom("again", None))
    assert 5_000 < calls <= 10_001
    assert any("led to more than 10000 events" in text for text in world.warnings)
