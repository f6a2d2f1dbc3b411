"""The built-in commands in a session: the table, what they show, what they change and what they refuse."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import MadeTool, World

from cru.core.base.values.errors import CruError
from cru.core.command_table import COMMANDS, GROUPS, SHELL_PACKAGE, CommandRow, load_target
from cru.core.commands.errors import BadCommand, NoSuchModel, NotHere
from cru.core.events.payloads import ConfigChanged, ModelSelected, SessionStarted
from cru.core.events.stream import CommandSaid
from cru.core.models.protocol import NoModel
from cru.core.turn import UnknownCommand
from cru.core.turn.commands import Command, CommandResult, split_command

LOOP = "loop: yes\ntext: ok\n"


def typed(world: World, *texts: str) -> list[str]:
    """What was shown after these were typed."""

    async def run() -> None:
        for text in texts:
            world.session.submit(text)
            await world.session.run()

    asyncio.run(run())
    return [said.text for said in world.of(CommandSaid)]


ROWS = list({row.name: row for row in COMMANDS.values()}.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_its_code_and_says_what_it_does(row: CommandRow) -> None:
    assert all(callable(load_target(f"{row.package}{target}")) for target in (row.chat, row.complete) if target)
    module, _, function = row.shell.partition(":")
    assert not row.shell or callable(load_target(f"{SHELL_PACKAGE}{module}:{function or 'command'}"))
    assert row.chat or row.shell
    assert split_command(f"/{row.name}") == (row.name, "") and row.about and bool(row.only) is bool(row.instead)
    assert row.group in GROUPS and not {*row.foreign} & COMMANDS.keys()


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.chat and not row.hint and row.only != "chat"])
def test_words_that_a_command_does_not_take_are_refused(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, LOOP)
    with pytest.raises(BadCommand, match=f"/{name} takes no words"):
        typed(world, f"/{name} more")
    assert world.log() == [] and world.sent == []


def test_help_opens_the_session_and_lists_every_command_with_its_owner(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)

    async def nothing(_words: str) -> CommandResult:
        return CommandResult()

    async def load(parts: Any) -> None:
        parts.services.commands.add(
            Command("deliver", "does it all", nothing, "flow", hint="[what, and how much of it]")
        )

    world.session.parts.services.lifecycle.opening.append(load)
    [text] = typed(world, "/help")
    assert len(world.of(SessionStarted)) == 1 and not (tmp_path / "home/contexts/main/.lock").exists()
    assert all(f"/{row.name} {row.hint}".strip() in text and row.about in text for row in ROWS if row.only != "shell")
    assert f"/deliver [what, and how much of it]\n{'':18}does it all (flow)\n" in text


def test_help_of_one_command(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    expected = "/trace [N]\n  show what happened in the last turn, or in turn N\n  built in"
    assert typed(world, "/help trace", "/help /trace") == [expected] * 2
    with pytest.raises(UnknownCommand) as caught:
        typed(world, "/help trcae")
    assert "`/trace`" in caught.value.hint


def test_tools_are_listed_with_source_and_first_sentence(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP).tools(MadeTool("roll", str), MadeTool("longer_name", str))
    assert typed(world, "/tools") == ["roll         test  the tool roll\nlonger_name  test  the tool longer_name"]
    assert typed(world.tools(), "/tools")[-1] == "the model is offered no tools"


def test_model_shows_what_answers_and_why(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP, settings={"context_window_limit": 5000})
    [text] = typed(world, "/model")
    assert [line.split(":", 1)[1].strip() for line in text.splitlines()] == [
        str(tmp_path / "script.txt"), "scripted", "the setting model", "5000 tokens",
    ]  # fmt: skip
    assert "not known" in typed(World(tmp_path, LOOP), "/model")[0]


def test_another_model_is_kept_beside_comments_and_announced_each_time(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(LOOP)
    world = World(tmp_path, LOOP)
    local = tmp_path / "home/contexts/main/local.toml"
    local.write_text('# mine\nusername = "ada"  # me\n')
    first, second = f"scripted:{tmp_path / 'script.txt'}", f"scripted:{other}"
    shown = typed(world, f"/model {second}", f"/model {first}", f"/model {second}", "/model")
    assert local.read_text() == f'# mine\nusername = "ada"  # me\nmodel = "{second}"\n'
    assert shown[0] == f"{second} answers from now on in main (kept in {local})" and str(other) in shown[-1]
    assert [m.model for m in world.of(ModelSelected)] == [str(other), str(tmp_path / "script.txt"), str(other)]
    assert [(m.requested, m.before) for m in world.of(ModelSelected)] == [
        (second, ""), (first, str(other)), (second, str(tmp_path / "script.txt")),
    ]  # fmt: skip
    assert [c.value for c in world.of(ConfigChanged)] == [second, first, second]


@pytest.mark.parametrize(
    ("name", "error", "hint"),
    [
        ("scirpted:x", NoModel, "scripted:"),
        ("scripted:/not/there", NoModel, "scripted:/path"),
        ("fsat", NoSuchModel, "did you mean `fast`?"),
        ("groq:x", NoModel, "base_url"),
        ("openai:", NoModel, "PROVIDER:MODEL"),
    ],
)
def test_a_model_that_cannot_be_chosen_leaves_the_old_one(
    tmp_path: Path, name: str, error: type[CruError], hint: str
) -> None:
    world = World(tmp_path, LOOP, settings={"models": {"fast": {"model": f"scripted:{tmp_path}/script.txt"}}})
    with pytest.raises(error) as caught:
        typed(world, f"/model {name}")
    assert hint in caught.value.hint and caught.value.code == 5
    assert not (tmp_path / "home/contexts/main/local.toml").exists()
    assert typed(world, "go", "/model")[0].startswith(f"model:          {tmp_path}/script.txt")


def test_a_model_that_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("loop: yes\ntext: other\n")
    world = World(tmp_path, LOOP)
    with World(tmp_path, "").built.store.lock("another"), pytest.raises(CruError, match="in use by"):
        typed(world, f"/model scripted:{other}")
    typed(world, "go")
    assert world.log("message")[-1].content == "ok"
    (tmp_path / "home/contexts/main/local.toml").write_text("{broken")
    with pytest.raises(CruError, match="not TOML"):
        typed(world, f"/model scripted:{other}")
    typed(world, "go")
    assert world.log("message")[-1].content == "ok"


@pytest.mark.parametrize("command", ["/pause", "/quit", "/exit"])
def test_what_only_a_chat_can_do_says_so(tmp_path: Path, command: str) -> None:
    with pytest.raises(NotHere) as caught:
        typed(World(tmp_path, LOOP), command)
    assert caught.value.code == 2 and caught.value.hint


def test_clear_says_where_the_old_entries_are(tmp_path: Path) -> None:
    assert typed(World(tmp_path, LOOP), "one", "/clear") == [
        "main starts from nothing; what was said before: cru -G main 0"
    ]


def test_compact_asks_the_model_for_a_summary(tmp_path: Path) -> None:
    world = World(tmp_path, "by: order\ntext: a\n---\ntext: b\n---\ntext: the summary\n")
    assert typed(world, "one", "two", "/compact")[0].startswith("main is compacted")
    assert world.built.store.summary() == "the summary"
