"""A prompt with a key: asked once, continued, or answered again from the log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, World, always

from cru.core.events.answers import cancel, inject
from cru.core.turn import KeyPassedBy
from cru.core.turn.idempotency import send_once
from cru.core.turn.turn import LegResult


def send(world: World, key: str = "k", text: str = "do it") -> tuple[LegResult, bool]:
    return asyncio.run(send_once(world.session, key, text))


def cut_log(world: World, count: int) -> None:
    path = world.built.store.folder / "context.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:count]))


def test_the_second_time_gives_the_answer_and_asks_no_model(tmp_path: Path) -> None:
    world = World(tmp_path, "call: ls {}\n---\ntext: the answer\n")
    assert (send(world)[0].response, send(world)[0].response) == ("the answer", "the answer")
    assert len(world.sent) == 2
    assert send(World(tmp_path, ""))[1] is False
    assert [e.metadata.get("key") for e in world.log("message") if e.role == "user"] == ["k"]


def test_another_key_asks_again(tmp_path: Path) -> None:
    world = World(tmp_path, "text: first\n---\ntext: second\n")
    assert (send(world, "a")[0].response, send(world, "b")[0].response) == ("first", "second")
    assert (send(world, "a")[0].response, send(world, "b")[0].response) == ("first", "second")


def test_a_run_cut_after_any_entry_goes_on_and_ends_once(tmp_path: Path) -> None:
    script = "call: ls {}\n---\ntext: the answer\n"
    whole = World(tmp_path, script)
    send(whole)
    lines = (whole.built.store.folder / "context.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 6
    for count in range(len(lines) + 1):
        world = World(tmp_path, script)
        (world.built.store.folder / "context.jsonl").write_bytes(b"".join(lines[:count]))
        result, is_new = send(world)
        assert (result.cause, result.response, is_new) == ("done", "the answer", count < len(lines)), count
        assert len([e for e in world.log("message") if e.metadata.get("key") == "k"]) == 1
        assert len(world.sent) == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1}.get(count, 0), count


def test_after_an_error_it_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, "error: 400 no\n---\ntext: fine\n")
    assert send(world)[0].cause == "error"
    assert send(world)[0].response == "fine"


def test_what_was_decided_stays_decided(tmp_path: Path) -> None:
    world = World(tmp_path, "text: x\n", Ext({"message:received": always(cancel("not that"))}))
    assert send(world)[0].cause == "cancelled"
    again, is_new = send(World(tmp_path, ""))
    assert (again.cause, again.reason, is_new) == ("cancelled", "not that", False)


def test_a_continuation_belongs_to_the_prompt(tmp_path: Path) -> None:
    hook = Ext([("turn:complete", always(inject("more")), {"once": True})])
    world = World(tmp_path, "text: one\n---\ntext: two\n", hook)
    assert send(world)[0].response == "two"
    again, is_new = send(World(tmp_path, ""))
    assert (again.response, is_new) == ("two", False)


def test_an_unfinished_prompt_that_another_one_followed_is_not_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path, "text: one\n---\ntext: two\n")
    send(world)
    cut_log(world, 2)
    world = World(tmp_path, "text: two\n")
    world.run("something else")
    with pytest.raises(KeyPassedBy, match="another one followed it"):
        send(world)
    assert len(world.sent) == 1
