"""Commands in the queue of a session: order, effects, errors, and what does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, World

from cru.core.base.values.errors import CruError
from cru.core.events.payloads import Attachment, ContextCleared, Custom, MessageReceived, ModelSelected
from cru.core.events.stream import CommandSaid
from cru.core.turn import Interrupted, UnknownCommand
from cru.core.turn.commands import Command, CommandResult, Commands, split_command
from cru.core.turn.session import Session

LOOP = "loop: yes\ntext: ok\n"
BUSY = "loop: yes\ntext: ok\ndelay: 300ms\n"
SLOW = "by: order\ntext: so far\ndelay: 30s\n---\ntext: next\n"
TWO = "text: one\n---\ntext: two\n---\ntext: three\n"


def made(name: str, said: CommandResult | CruError | None = None, *, owner: str = "plug", **fields: Any) -> Command:
    """A command that says its words, or what is given."""

    async def run(words: str) -> CommandResult:
        if isinstance(said, CruError):
            raise said
        return said if said is not None else CommandResult(f"{name} got {words!r}")

    return Command(name, f"about {name}", run, owner, **fields)


def with_commands(tmp_path: Path, script: str, *commands: Command) -> World:
    world = World(tmp_path, script)
    for command in commands:
        assert world.session.parts.services.commands.add(command) == ""
    return world


def said(world: World) -> list[str]:
    return [s.text for s in world.of(CommandSaid)]


def prompts(world: World) -> list[str]:
    return [e.content for e in world.log("message") if e.role == "user"]


async def queue(session: Session, *texts: str) -> Any:
    for text in texts:
        session.submit(text)
    return await session.run()


def during(world: World, act: Callable[[Session], object]) -> Coroutine[Any, Any, Any]:
    """A run of the prompt `one`, in whose middle something is done."""

    async def run() -> Any:
        task = asyncio.ensure_future(queue(world.session, "one"))
        while not world.sent and not task.done():
            await asyncio.sleep(0.001)
        act(world.session)
        return await task

    return run()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("/x", ("x", "")),
        ("/x ", ("x", "")),
        ("/x a  b", ("x", "a  b")),
        ("/x\n\npiped\ntext\n", ("x", "piped\ntext")),
        ("/a-b_1 c", ("a-b_1", "c")),
        ("/x /y", ("x", "/y")),
        ("/", None),
        ("/ x", None),
        ("//x", None),
        ("/1", None),
        ("/-x", None),
        ("/usr/bin is missing", None),
        ("/x/", None),
        ("/x.y", None),
        ("/x?", None),
        (" /x", None),
        ("\n/x", None),
        ("x /y", None),
        ("", None),
    ],
)
def test_what_is_a_command(text: str, parts: tuple[str, str] | None) -> None:
    assert split_command(text) == parts


def test_commands_and_prompts_are_taken_in_order(tmp_path: Path) -> None:
    world = with_commands(tmp_path, TWO, made("note"))
    result = asyncio.run(queue(world.session, "/note 1", "first", "/note 2", "second", "/note 3"))
    assert result.response == "two" and prompts(world) == ["first", "second"]
    shown = [i.payload for i in world.items if isinstance(i.payload, CommandSaid | MessageReceived)]
    assert [s.text if isinstance(s, CommandSaid) else s.content for s in shown] == [
        "note got '1'", "first", "note got '2'", "second", "note got '3'",
    ]  # fmt: skip


def test_only_commands_give_no_result_and_ask_no_model(tmp_path: Path) -> None:
    world = with_commands(tmp_path, "", made("note"))
    assert asyncio.run(queue(world.session, "/note", "/note")) is None
    assert world.log() == [] and world.sent == [] and not (tmp_path / "home/contexts/main/.lock").exists()


def test_a_command_queued_while_a_turn_runs_comes_after_it(tmp_path: Path) -> None:
    world = with_commands(tmp_path, BUSY, made("note"))

    def act(session: Session) -> None:
        session.submit("/note")
        session.submit("two")
        assert said(world) == []

    asyncio.run(during(world, act))
    assert said(world) == ["note got ''"] and prompts(world) == ["one", "two"]


def test_scripts_hear_of_every_command(tmp_path: Path) -> None:
    heard: list[Any] = []
    world = World(tmp_path, "", Ext([("custom", lambda e: heard.append(e.payload), {"pattern": "command:note"})]))
    world.session.parts.services.commands.add(made("note"))
    asyncio.run(queue(world.session, "/note a b"))
    assert heard == [Custom("command:note", {"args": "a b"})]


def test_a_command_that_gives_a_prompt(tmp_path: Path) -> None:
    world = with_commands(tmp_path, LOOP, made("ask", CommandResult("asking", "the whole question")))
    file = Attachment("x.txt", "X")

    async def run() -> Any:
        world.session.submit("/ask it", attachments=(file,))
        return await world.session.run()

    assert asyncio.run(run()).cause == "done"
    assert (
        said(world) == ["asking"]
        and "the whole question" in world.said()[0][1]
        and "--- FILE x.txt" in world.said()[0][1]
    )
    metadata = next(e for e in world.log("message") if e.role == "user").metadata
    assert metadata["source"] == "command" and metadata["command"] == "/ask it" and metadata["attachments"] == ["x.txt"]


def test_the_model_of_a_command_holds_for_its_prompt_only(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("loop: yes\ntext: other\n")
    world = with_commands(tmp_path, LOOP, made("ask", CommandResult("", "question", f"scripted:{other}")))
    asyncio.run(queue(world.session, "/ask", "next"))
    assert [e.content for e in world.log("message") if e.role != "user"] == ["other", "ok"]


def test_a_commands_prompt_that_was_cut_off_is_resumed_without_the_command(tmp_path: Path) -> None:
    ran: list[str] = []

    async def run(words: str) -> CommandResult:
        ran.append(words)
        return CommandResult("", "question")

    world = World(tmp_path, "by: order\nerror: 400 no\n---\ntext: answer\n")
    world.session.parts.services.commands.add(Command("ask", "", run))
    assert asyncio.run(queue(world.session, "/ask it")).cause == "error"
    assert world.resume().response == "answer"
    assert ran == ["it"] and prompts(world) == ["question"] and world.said() == [("user", "question")]


def test_an_unknown_command_names_the_nearest_and_leaves_the_rest_queued(tmp_path: Path) -> None:
    world = with_commands(tmp_path, LOOP, made("note"))
    with pytest.raises(UnknownCommand) as caught:
        asyncio.run(queue(world.session, "/noet", "two"))
    assert caught.value.code == 2 and "`/note`" in caught.value.hint and prompts(world) == []
    asyncio.run(world.session.run())
    assert prompts(world) == ["two"]


def test_an_error_of_a_command_leaves_the_rest_queued(tmp_path: Path) -> None:
    world = with_commands(tmp_path, LOOP, made("bad", CruError("no luck")))
    with pytest.raises(CruError, match="no luck"):
        asyncio.run(queue(world.session, "one", "/bad", "two"))
    assert prompts(world) == ["one"]
    assert asyncio.run(world.session.run()).cause == "done"  # type: ignore[union-attr]
    assert prompts(world) == ["one", "two"]


def test_an_interrupted_command_says_so_and_the_lock_is_given_back(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    begun = asyncio.Event()

    async def forever(_words: str) -> CommandResult:
        begun.set()
        await asyncio.sleep(60)
        return CommandResult("never")

    async def run() -> None:
        task = asyncio.ensure_future(queue(world.session, "/wait", "two"))
        await begun.wait()
        assert world.session.interrupt()
        await task

    world.session.parts.services.commands.add(Command("wait", "", forever))
    with pytest.raises(Interrupted, match="/wait was interrupted"):
        asyncio.run(run())
    assert said(world) == [] and not world.session.interrupt()
    asyncio.run(world.session.run())
    assert prompts(world) == ["two"]


def test_a_reading_command_takes_no_lock_and_another_one_does(tmp_path: Path) -> None:
    world = with_commands(tmp_path, LOOP, made("look", reads=True), made("write"))
    other = World(tmp_path, LOOP)
    with other.built.store.lock("another"):
        assert asyncio.run(queue(world.session, "/look")) is None
        with pytest.raises(CruError, match="in use by"):
            asyncio.run(queue(world.session, "/look", "/write"))
    assert said(world) == ["look got ''"] * 2


def test_stop_ends_what_runs_and_what_waits_and_plugins_hear_it(tmp_path: Path) -> None:
    heard: list[Any] = []
    world = World(tmp_path, SLOW, Ext([("custom", lambda e: heard.append(e.payload.name))]))

    def act(session: Session) -> None:
        for text in ("two", "three", "/stop"):
            session.submit(text)

    assert asyncio.run(during(world, act)).cause == "interrupted"
    assert said(world) == ["stopped; 2 that waited are dropped"] and heard == ["command:stop"]
    assert prompts(world) == ["one"] and not any("dropped" in n for n in world.notices())
    assert asyncio.run(queue(world.session, "next")).response == "next"


def test_stop_ends_a_command_too(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)

    async def forever(_words: str) -> CommandResult:
        world.session.submit("/stop")
        await asyncio.sleep(60)
        return CommandResult("never")

    world.session.parts.services.commands.add(Command("wait", "", forever))
    with pytest.raises(Interrupted):
        asyncio.run(queue(world.session, "/wait"))
    assert said(world) == ["stopped"]


def test_stop_with_words_is_an_error_and_stops_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, BUSY)
    asyncio.run(during(world, lambda session: session.submit("/stop now")))
    [error] = world.of(CommandSaid)
    assert error.is_error and "/stop takes no words" in error.text and prompts(world) == ["one"]


@pytest.mark.parametrize(
    ("texts", "answer"),
    [(("/stop",), "nothing runs"), (("/stop", "two"), "nothing runs; 1 that waited is dropped")],
)
def test_stop_at_idle(tmp_path: Path, texts: tuple[str, ...], answer: str) -> None:
    world = World(tmp_path, LOOP)
    assert asyncio.run(queue(world.session, *texts)) is None
    assert said(world) == [answer] and prompts(world) == []


def test_interrupting_a_compaction_by_command_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, "by: order\ntext: a\n---\ntext: b\n---\ntext: so far\ndelay: 30s\n")
    world.run("one", "two")
    before = world.log()

    async def run() -> None:
        task = asyncio.ensure_future(queue(world.session, "/compact"))
        while len(world.sent) < 3 and not task.done():
            await asyncio.sleep(0.001)
        world.session.interrupt()
        await task

    with pytest.raises(Interrupted):
        asyncio.run(run())
    assert world.log() == before and said(world) == []


def test_clear_in_the_middle_of_the_queue(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    asyncio.run(queue(world.session, "one", "/clear", "two"))
    assert world.said() == [("user", "two")] and len(world.of(ContextCleared)) == 1
    assert prompts(world) == ["one", "two"]


def test_a_model_chosen_by_command_answers_the_next_prompt_of_the_same_session(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("loop: yes\ntext: other\n")
    world = World(tmp_path, LOOP)
    asyncio.run(queue(world.session, "one", f"/model scripted:{other}", "two"))
    assert [e.content for e in world.log("message") if e.role != "user"] == ["ok", "other"]
    assert [m.model for m in world.of(ModelSelected)] == [str(tmp_path / "script.txt"), str(other)]
    assert f'model = "scripted:{other}"' in (tmp_path / "home/contexts/main/local.toml").read_text()


def test_a_name_belongs_to_the_first_and_goes_with_its_owner() -> None:
    commands = Commands(lambda: (made("help", owner="cru"),))
    assert "cru has a command of that name" in commands.add(made("help"))
    assert commands.add(made("mine")) == "" and commands.add(made("a-b")) == ""
    assert "letters, digits" in commands.add(made("a b")) and "letters, digits" in commands.add(made("a/b"))
    assert "letters, digits" in commands.add(made(""))
    assert commands.drop("plug") == 2 and [c.name for c in commands.all()] == ["help"]


def test_a_session_that_a_command_could_not_open_is_announced_when_it_opens(tmp_path: Path) -> None:
    heard: list[str] = []
    world = World(tmp_path, LOOP, Ext({"session:started": lambda _event: heard.append("started")}))
    world.session.parts.services.commands.add(made("look", reads=True))
    log = world.built.store.folder / "context.jsonl"
    log.mkdir()
    world.session.submit("/look")
    asyncio.run(world.session.run())
    assert said(world) == ["look got ''"] and heard == []
    log.rmdir()
    assert world.run("one").cause == "done" and heard == ["started"]
