"""What is sent: requests that grow only at their end, and a trace from which each can be rebuilt."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.turn.support import Ext, MadeTool, World, always, payload

from cru.core.base.values.messages import Delta, Request, Text
from cru.core.events.answers import Answer, Change, Inject, add_context, transform
from cru.core.events.stamp import Event
from cru.core.models.protocol import RequestBody
from cru.core.models.scripted import ScriptedModel
from cru.core.records import requests as rebuild
from cru.core.records.requests import NotInTrace
from cru.core.records.trace import RecordedTrace
from cru.core.turn import recorder
from cru.core.turn.recorder import RequestLine

FOUR = "loop: yes\ncall: ls {}\n---\ntext: looking\ncall: ls {}\ncall: nothing {}\n---\ntext: done\n"
PROMPTS = ("one", "two", "three", "four")


def common(a: bytes, b: bytes) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def hooks() -> Ext:
    """Adds something on every road to the model."""
    return Ext({
        "message:received": lambda e: Answer(context=(f"beside {payload(e).content}",)),
        "tool:completed": always(Answer(context=("seen",), inject=Inject("after the tools"))),
        "agent:responded": always(add_context("responded")),
        "message:before_send": lambda e: Answer(inject=Inject("later")) if payload(e).round == 2 else None,
    })  # fmt: skip


@pytest.mark.parametrize("extensions", [(), (hooks(),)], ids=["plain", "with hooks"])
def test_consecutive_requests_share_every_byte_up_to_the_first_new_message(
    tmp_path: Path, extensions: tuple[Ext, ...]
) -> None:
    world = World(tmp_path, FOUR, *extensions)
    world.run(*PROMPTS)
    assert len(world.sent) == 12
    for before, after in zip(world.sent, world.sent[1:], strict=False):
        end = before.rindex(b'],"turn":')
        assert common(before, after) >= end, (before[end - 40 : end + 20], after[end - 40 : end + 20])


def test_the_log_is_forced_to_the_disk_once_a_round_after_the_next_request_went_out(tmp_path: Path) -> None:
    world, order = World(tmp_path, FOUR), list[str]()

    store = world.built.store
    real = store.sync

    def sync() -> None:
        order.append(f"sync, {len(world.sent)} sent")
        real()

    store.sync = sync  # type: ignore[method-assign]
    asyncio.run(world.asked("one"))
    assert order == ["sync, 2 sent", "sync, 3 sent", "sync, 3 sent"]  # the last one as it settles


def test_a_new_process_sends_the_same_prefix(tmp_path: Path) -> None:
    first = World(tmp_path, FOUR, hooks())
    first.run("one", "two")
    second = World(tmp_path, "", hooks())
    second.run("three")
    before, after = first.sent[-1], second.sent[0]
    assert common(before, after) >= before.rindex(b'],"turn":')


def test_the_system_prompt_holds_for_a_leg_and_only_changed_sections_differ_in_the_next(tmp_path: Path) -> None:
    script = 'call: update_todos {"content":"- [ ] sweep"}\n---\ntext: one\n---\ntext: two\n'
    world = World(tmp_path, script)
    world.run("one", "two")
    first, second, third = (request.system for request in world.requests)
    assert first == second
    assert [s.name for s in third if s not in first] == ["todos"]
    assert [s for s in third if s.name != "todos"] == list(first)


def rebuilt(world: World) -> list[tuple[RequestLine, bool]]:
    """Every recorded request, and whether it could be rebuilt to the byte."""
    folder = world.built.store.folder
    with RecordedTrace(folder) as trace:
        turns, problems = [trace.lines(place) for place in trace.turns], trace.problems
    assert problems == []
    found = []
    model = ScriptedModel(world.path / "script.txt")
    for turn in turns:
        for at in range(1, sum(line.kind == "request" for line in turn) + 1):
            line = rebuild.request_line(turn, at)
            made = rebuild.rebuild_request(line, world.built.store.everything(), folder)
            found.append((line, rebuild.encode_request(line, made, model)[1]))
    return found


def squeeze(event: Event) -> Answer | None:
    return transform(messages=[{"role": "user", "content": "short"}]) if payload(event).round == 2 else None


@pytest.mark.parametrize(
    "extension",
    [
        Ext({}),
        hooks(),
        Ext({"message:received": always(transform(content="rewritten"))}),
        Ext({"message:before_send": always(transform(prompt="rewritten late"))}),
        Ext({"message:before_send": squeeze}),
        Ext({"message:before_send": always(Answer(changes=(Change("parameters", "merge", {"seed": 1}),)))}),
        Ext({"tool:completed": always(transform(result="rewritten"))}),
    ],
    ids=["plain", "hooks", "prompt", "late prompt", "messages", "parameters", "result"],
)
def test_every_request_can_be_rebuilt_to_the_byte(tmp_path: Path, extension: Ext) -> None:
    world = World(tmp_path, "by: order\n" + FOUR, extension)
    world.run(*PROMPTS)
    found = rebuilt(world)
    assert [line.sha for line, _ in found] != []
    assert len(found) == len(world.sent) and all(same for _, same in found)


@pytest.mark.parametrize("strategy", ["rolling", "full"])
def test_requests_before_and_after_compactions_can_be_rebuilt(tmp_path: Path, strategy: str) -> None:
    settings = {"context_window_limit": 900, "auto_compact": True, "auto_compact_threshold": 50.0}
    script = "by: order\nloop: yes\n" + "call: ls {}\nrepeat: 7\n---\ntext: done\n"
    ext = Ext({
        "context:overflow": lambda e: Answer(
            result="the summary", changes=(Change("strategy", "set", strategy),)
        ) if payload(e).trigger == "auto" else None
    })  # fmt: skip
    world = World(tmp_path, script, ext, settings=settings)
    (tmp_path / "project" / ("a" * 200)).write_text("")
    world.run(*PROMPTS)
    assert len([e for e in world.log("anchor")]) >= 2
    found = rebuilt(world)
    assert len(found) == len(world.sent)
    assert [line.n for line, same in found if not same] == []


def test_the_trace_of_a_round_does_not_grow_with_the_history(tmp_path: Path) -> None:
    script = "call: say {}\nrepeat: 200\n---\ntext: done\n"
    counts = iter(range(999))
    world = World(tmp_path, script, settings={"fuel": 0, "max_idle_rounds": 0}).tools(
        MadeTool("say", lambda _a: f"number {next(counts)}")
    )
    world.run("go")
    assert len(world.sent) == 201
    lines = (world.built.store.folder / "trace.jsonl").read_bytes().splitlines()
    sizes = [len(line) for line in lines if b'"k":"request"' in line]
    assert len(sizes) == 201
    assert max(sizes[100:]) <= max(sizes[:10]) + 8


def test_a_trace_torn_by_a_kill_is_read_up_to_the_tear(tmp_path: Path) -> None:
    world = World(tmp_path, FOUR)
    world.run("one")
    file = world.built.store.folder / "trace.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    with RecordedTrace(file.parent) as trace:
        [problem], [turn] = trace.problems, trace.turns
        lines = trace.lines(turn)
    assert (problem.file, problem.line) == ("trace.jsonl", file.read_bytes().count(b"\n") + 1)
    assert sum(line.kind == "request" for line in lines) == 3


def test_a_request_that_is_not_in_the_trace_and_a_lost_span_are_explained(tmp_path: Path) -> None:
    world = World(tmp_path, FOUR)
    world.run("one")
    folder = world.built.store.folder
    with RecordedTrace(folder) as trace:
        turn = trace.lines(trace.turns[0])
    with pytest.raises(NotInTrace, match="no request 9"):
        rebuild.request_line(turn, 9)
    for span in (folder / "spans").iterdir():
        span.unlink()
    with pytest.raises(NotInTrace, match="is gone"):
        rebuild.rebuild_request(rebuild.request_line(turn, 1), world.log(), folder)


def test_the_request_is_in_the_trace_before_the_reply_comes(tmp_path: Path) -> None:
    seen: list[int] = []
    world = World(tmp_path, "delay: 1ms\ntext: hi\n")
    trace = world.built.store.folder / "trace.jsonl"

    def look(_item: Any) -> None:
        seen.append(trace.read_bytes().count(b'"k":"request"'))

    from cru.core.events.payloads import StreamingDelta

    world.session.parts.bus.stream.subscribe(look, StreamingDelta)
    world.run("go")
    assert seen == [1]
    kinds = [msgspec.json.decode(line)["k"] for line in trace.read_bytes().splitlines()]
    assert kinds.index("request") < kinds.index("reply") < kinds.index("end")


@pytest.mark.parametrize("where", ["encode", "stream"])
def test_a_reply_for_which_there_is_no_memory_ends_the_leg_in_words(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stream(self: ScriptedModel, body: RequestBody) -> AsyncIterator[Delta]:
        yield Text("so far")
        raise MemoryError

    def encode(self: ScriptedModel, request: Request) -> RequestBody:
        raise MemoryError

    monkeypatch.setattr(ScriptedModel, where, stream if where == "stream" else encode)
    world = World(tmp_path, "text: hi\n")
    result = world.run("one")
    assert (result.cause, result.code) == ("error", 1)
    assert "no memory is left" in result.error and "`reply_size_limit`" in result.hint
    assert [entry.metadata["cause"] for entry in world.log("leg_ended")] == ["error"]
    assert world.session.parts.history.messages()[-1].content == "one"


def test_the_system_prompt_and_the_tools_are_read_once_a_leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def sha256(data: bytes = b"") -> Any:
        read.append(data)
        return real(data)

    world = World(tmp_path, "call: ls {}\n---\n" * 5 + "text: done\n---\ntext: again\n")
    real = hashlib.sha256
    monkeypatch.setattr(recorder, "sha256", sha256)
    world.run("one")
    texts = [data for data in read if data]
    assert len(world.sent) == 6
    assert len(texts) == len(set(texts)) == len(world.requests[0].system) + 1
    world.run("two")
    assert len([data for data in read if data]) <= 2 * len(texts)
