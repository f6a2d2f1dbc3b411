"""A prompt whose turn failed before an answer is not sent together with the next one; nothing that came with it is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, World, always

from cru.core.conversations.inbox import InboxMessage
from cru.core.events.answers import Answer
from cru.core.events.payloads import MessageReceived
from cru.faces.cli.operations.listing import render_log

ERROR = "error: 400 no\n"
TOLD = "had no answer; it is not sent with your next prompt"


def told(world: World) -> list[str]:
    return [text for text in world.notices() if TOLD in text]


@pytest.mark.parametrize("failures", [1, 2, 3])
@pytest.mark.parametrize("in_one_run", [True, False])
def test_only_the_next_prompt_is_sent(tmp_path: Path, failures: int, in_one_run: bool) -> None:
    world = World(tmp_path, f"{ERROR}---\n" * failures + "text: yes\n---\ntext: again\n")
    prompts = [f"failing {number}" for number in range(failures)]
    if in_one_run:
        for prompt in (*prompts, "works"):
            world.session.submit(prompt)
        world.run("last")
    else:
        world.run(*prompts, "works", "last")
    assert world.said() == [("user", "works"), ("assistant", "yes"), ("user", "last")]
    assert [text.split("”")[0] for text in told(world)] == [f"“{prompt}" for prompt in prompts]
    assert [event.content for event in world.of(MessageReceived)] == [*prompts, "works", "last"], "hooks hear of all"


def test_the_same_prompt_again_is_sent_once_without_a_word(tmp_path: Path) -> None:
    world = World(tmp_path, f"{ERROR}---\ntext: yes\n")
    world.run("go", "go")
    assert world.said() == [("user", "go")] and told(world) == []


def test_it_can_be_resumed_until_another_prompt_follows(tmp_path: Path) -> None:
    world = World(tmp_path, f"{ERROR}---\ntext: yes\n---\ntext: more\n")
    world.run("go")
    assert world.resume().response == "yes" and world.said() == [("user", "go")]
    world.run("next")
    assert world.said() == [("user", "go"), ("assistant", "yes"), ("user", "next")] and told(world) == []


@pytest.mark.parametrize("begun", ["text: half\n", "call: ls {}\n---\n"])
def test_a_prompt_of_which_an_answer_had_begun_stays(tmp_path: Path, begun: str) -> None:
    world = World(tmp_path, f"{begun}{ERROR}---\ntext: yes\n")
    assert world.run("go").cause == "error"
    world.run("next")
    users = [text for role, text in world.said() if role == "user"]
    assert users == ["go", "next"] and told(world) == []


def test_context_of_hooks_goes_with_the_next_prompt(tmp_path: Path) -> None:
    hook = Ext(
        [
            ("message:received", always(Answer(context=("the date",)))),
            ("session:started", always(Answer(context=("once",)))),
        ]
    )
    world = World(tmp_path, f"{ERROR}---\ntext: yes\n", hook)
    world.run("go", "next")
    ((_, text),) = world.said()
    assert text.startswith("next\n\n") and text.count("once") == 1 and "go" not in text


def test_messages_of_other_contexts_are_not_lost(tmp_path: Path) -> None:
    world = World(tmp_path, f"{ERROR}---\ntext: yes\n")
    world.built.home.send(InboxMessage("alice", "main", "the build is red"))
    world.run("go", "next")
    ((_, text),) = world.said()
    assert (
        text.startswith("next\n\n") and "[From: alice] the build is red\n[end of messages]" in text and "go" not in text
    )


@pytest.mark.parametrize("report_fails", [True, False])
@pytest.mark.parametrize("prompt_fails", [True, False])
def test_reports_of_background_work_are_not_lost_and_replace_no_prompt(
    tmp_path: Path, prompt_fails: bool, report_fails: bool
) -> None:
    replies = [ERROR if prompt_fails else "text: yes\n", ERROR if report_fails else "text: seen\n", "text: last\n"]
    world = World(tmp_path, "by: order\n" + "---\n".join(replies))
    world.run("go")
    world.session.submit("task 1 found the defect", source="task")
    asyncio.run(world.session.run())
    world.run("next")
    assert [text for role, text in world.said() if role == "user"] == ["go", "task 1 found the defect", "next"]
    assert told(world) == []


def test_another_process_sees_the_same_conversation(tmp_path: Path) -> None:
    World(tmp_path, f"{ERROR}---\ntext: yes\n---\ntext: more\n").run("go", "next")
    later = World(tmp_path, "")
    later.run("last")
    assert [text for role, text in later.said() if role == "user"] == ["next", "last"]


def test_the_log_shows_that_it_was_not_answered(tmp_path: Path) -> None:
    world = World(tmp_path, f"{ERROR}---\ntext: yes\n")
    world.run("go", "next")
    lines = list(render_log(world.log(), 0, verbose=False))
    assert [line.partition("]")[2] for line in lines] == [" (not answered): go", ": next", ": yes"]
