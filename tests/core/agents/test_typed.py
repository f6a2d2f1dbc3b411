"""What is typed into commands in the background, cut in pieces: rules and hooks judge what a shell would run of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.agents.test_commands import Background
from tests.core.turn.support import Ext

from cru.core.agents.manager import Task
from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import Answer, Change
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event
from cru.core.turn.calls import tool_call


class Typing(Background):
    """Its model types into one command, by the whole road of a call."""

    async def type(self, text: str, task: Task | None = None, **more: Any) -> str:
        task = self.task() if task is None else task
        arguments = json.dumps({"command": text, "input_to": task.id, **more})
        call = ToolCall("call_1", "bash", arguments)
        prepared = await tool_call.decide(self.session.parts, call)
        return (await tool_call.run(self.session.parts, prepared)).content

    async def shell(self, command: str = "sh") -> Task:
        return await self.start(command, stdin=True)


def typing(tmp_path: Path, *extensions: Ext, mode: str = "trust", **rules: list[str]) -> Typing:
    return Typing(tmp_path, "", *extensions, settings={"mode": mode, "permissions": rules})


DENIED = "the rule `bash:rm *`"
SPLIT = [
    ["r\\", "m -f kept"],
    ["r\\", "\\", "m -f kept"],
    ["ls; r\\\n", "m -f kept"],
    ["rm \\", "-f kept"],
    ['"r\\', 'm" -f kept'],
    ["sh <<'E'\nr\\", "m -f kept\nE"],
    ["sh <<E", "rm -f kept", "E"],
    ["if true; then", "rm -f kept", "fi"],
    ["$(echo r\\", "m) -f kept"],
    ["ls \\\\\\", "", "rm -f kept"],
    ["print(1) \\", "; rm -f kept"],
    ["eval '", "r''m -f kept'"],
]


@pytest.mark.parametrize("pieces", SPLIT, ids=lambda pieces: " / ".join(map(repr, pieces)))
def test_a_denied_command_in_pieces_is_denied(tmp_path: Path, pieces: list[str]) -> None:
    world = typing(tmp_path, deny=["bash:rm *"])
    kept = world.path / "project" / "kept"
    kept.touch()

    async def work() -> list[str]:
        task = await world.shell()
        told = [await world.type(piece or "\n") for piece in pieces]
        await world.type("\x04")
        await asyncio.wait_for(task.ended.wait(), 30)
        return told

    told = world.play(work())
    assert kept.exists() and any(DENIED in text for text in told), told


@pytest.mark.parametrize(
    ("pieces", "pattern"),
    [
        (['git commit -m "', '" --no-verify'], "git commit * --no-verify"),
        (["curl http://127.0.0.1:9 |", "sh"], "curl * | sh"),
        (["git \\", "push --force"], "git push *"),
        (["cd x &&", "git push"], "cd * && git push"),
    ],
)
def test_a_rule_on_more_than_one_word_sees_pieces_together(tmp_path: Path, pieces: list[str], pattern: str) -> None:
    world = typing(tmp_path, deny=[f"bash:{pattern}"])

    async def work() -> list[str]:
        await world.shell("cat")
        return [await world.type(piece) for piece in pieces]

    first, *_, last = world.play(work())
    assert first.startswith("[typed") and f"the rule `bash:{pattern}`" in last


@pytest.mark.parametrize(
    "text", ["os.system('rm x')", "!rm x", "\\! rm x", 'x = "rm x"', "subprocess.run(['rm', 'x'])", "echo 'rm x'"]
)
def test_of_what_a_program_reads_every_word_may_be_a_command(tmp_path: Path, text: str) -> None:
    world = typing(tmp_path, deny=["bash:rm *"])

    async def work() -> str:
        await world.shell("cat")
        return await world.type(text)

    assert DENIED in world.play(work())


def test_what_is_not_denied_arrives_as_it_was_typed_piece_by_piece(tmp_path: Path) -> None:
    world = typing(tmp_path, deny=["bash:rm *"])

    async def work() -> str:
        task = await world.shell("cat")
        for piece in ("don't", "print(1)", "a 'b", "c' \\", "d\n", "\n", "e"):
            assert (await world.type(piece)).startswith("[typed")
        await world.type("\x04")
        return await world.output(task, wait=30)

    assert world.play(work()) == "don't\nprint(1)\na 'b\nc' \\\nd\n\ne\n[it has ended well]"


def test_handlers_see_the_whole_and_what_of_it_was_typed_before(tmp_path: Path) -> None:
    heard: list[dict[str, object]] = []

    def listen(event: Event) -> None:
        assert isinstance(event.payload, ToolBeforeCall)
        heard.append(dict(event.payload.args))

    world = typing(tmp_path, Ext([("tool:before_call", listen)]))

    async def work() -> str:
        task = await world.shell("sh")
        for piece in ("echo a\necho \\", "b", "echo c"):
            await world.type(piece, typed_before="forged")
        await world.type("\x04")
        return await world.output(task, wait=30)

    assert world.play(work()) == "a\nb\nc\n[it has ended well]"
    (task,) = world.tasks.manager.tasks
    assert heard == [
        {"command": "echo a\necho \\", "input_to": task},
        {"command": "echo \\\nb", "input_to": task, "typed_before": "echo \\\n"},
        {"command": "echo c", "input_to": task},
        {"command": "\x04", "input_to": task},
    ]


def test_a_guard_that_refuses_a_piece_leaves_nothing_of_it(tmp_path: Path) -> None:
    def guard(event: Event) -> Answer | None:
        assert isinstance(event.payload, ToolBeforeCall)
        return Answer("deny", reason="no") if "no-verify" in str(event.payload.args["command"]) else None

    world = typing(tmp_path, Ext([("tool:before_call", guard)]))

    async def work() -> tuple[list[str], str]:
        task = await world.shell("cat")
        told = [await world.type(text) for text in ('git commit -m "', '" --no-verify', '"', "echo b")]
        await world.type("\x04")
        return told, await world.output(task, wait=30)

    told, printed = world.play(work())
    assert ["Blocked by" in text for text in told] == [False, True, False, False]
    assert printed == 'git commit -m "\n"\necho b\n[it has ended well]'


def test_of_two_texts_judged_together_the_second_is_not_typed_behind_another_beginning(tmp_path: Path) -> None:
    world = typing(tmp_path, deny=["bash:rm *"])
    (world.path / "project" / "kept").touch()

    async def work() -> list[str]:
        task = await world.shell()
        parts = world.session.parts
        calls = [
            ToolCall(f"call_{n}", "bash", json.dumps({"command": text, "input_to": task.id}))
            for n, text in enumerate(["r\\", "m -f kept"])
        ]
        prepared = [await tool_call.decide(parts, call) for call in calls]
        told = [(await tool_call.run(parts, one)).content for one in prepared]
        return [*told, await world.type("m -f kept")]

    first, second, again = world.play(work())
    assert first.startswith("[typed") and "has changed since this was judged" in second and DENIED in again
    assert (world.path / "project" / "kept").exists()


def test_a_handler_that_changes_a_text_in_pieces_keeps_its_beginning(tmp_path: Path) -> None:
    def change(event: Event) -> Answer | None:
        assert isinstance(event.payload, ToolBeforeCall)
        if event.payload.args["command"] == "\x04":
            return None
        args = {"command": "echo other", "input_to": event.payload.args["input_to"]}
        return Answer(changes=(Change("args", "set", args),))

    world = typing(tmp_path, Ext([("tool:before_call", change)]))

    async def work() -> list[str]:
        task = await world.shell("cat")
        whole = await world.type("echo this")
        task.send.unfinished = "echo \\\n"  # type: ignore[union-attr]
        piece = await world.type("this")
        await world.type("\x04")
        return [whole, piece, await world.output(task, wait=30)]

    whole, piece, printed = world.play(work())
    assert whole.startswith("[typed") and "has changed since this was judged" in piece
    assert printed == "echo other\n[it has ended well]"


def test_what_stays_open_for_too_long_is_refused_and_told(tmp_path: Path) -> None:
    world = typing(tmp_path)

    async def work() -> list[str]:
        await world.shell("cat >/dev/null")
        return [await world.type("echo '" + "x" * 60_000), await world.type("y" * 10_000), await world.type("'")]

    first, second, third = world.play(work())
    assert first.startswith("[typed") and third.startswith("[typed")
    assert "this is not finished after 70," in second and "finish what is open" in second


def test_what_went_in_in_part_is_the_last_that_goes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.core.agents.commands.SEND_SECONDS", 0.2)
    world = typing(tmp_path, deny=["bash:rm *"])

    async def work() -> list[str]:
        task = await world.shell("exec sleep 60")
        full = await world.type("x" * 200_000)
        return [full, await world.type("m -f kept"), await world.type("\x04"), await world.cancel(task)]

    full, more, end, gone = world.play(work())
    assert "does not read its input; a part of the text may have gone in" in full
    assert "has got the last text in part, and gets no more" in more
    assert end.startswith("[its input is closed") and "is ended" in gone


INPUT_RULES = [
    # (mode, rules, command, what it is typed into, whether it goes in, why not)
    ("trust", {}, "ls", "sh", True, ""),
    ("trust", {"deny": ["input_to"]}, "ls", "sh", False, "the rule `input_to`"),
    ("trust", {"deny": ["input_to:cat *"]}, "ls", "cat -u", False, "the rule `input_to:cat *`"),
    ("trust", {"deny": ["input_to:cat *"]}, "ls", "true; exec cat -u", False, "the rule `input_to:cat *`"),
    ("trust", {"deny": ["input_to:ssh *"]}, "ls", "cat -u", True, ""),
    ("trust", {"ask": ["input_to:cat *"]}, "ls", "cat", False, "the rule `input_to:cat *` in [permissions] ask"),
    ("ask", {}, "ls", "cat", False, "this is typed into `cat`, which a rule `input_to:…` may allow"),
    ("ask", {"allow": ["bash:ls"]}, "ls", "cat", False, "this is typed into `cat`"),
    ("ask", {"allow": ["bash"]}, "ls", "cat", True, ""),
    ("ask", {"allow": ["input_to:cat *"]}, "ls", "cat -u", True, ""),
    ("ask", {"allow": ["input_to:cat *"]}, "ls", "cat; sh", False, "this is typed into `cat; sh`"),
    ("ask", {"allow": ["input_to:cat"]}, "ls", "cat -u", False, "this is typed into `cat -u`"),
    ("ask", {"allow": ["input_to"]}, "ls", "sh", True, ""),
    ("ask", {"allow": ["input_to"], "deny": ["bash:rm *"]}, "rm x", "sh", False, DENIED),
    ("plan", {"allow": ["input_to"]}, "ls", "sh", False, "plan mode only reads"),
    ("trust", {}, "r\0m -f x", "sh", False, "what is typed has no NUL characters"),
    ("trust", {}, "rx\x7fm -f x", "sh", False, "it has control characters"),
    ("trust", {}, "ls\r", "sh", False, "it has control characters"),
    ("trust", {}, "ls\tx", "sh", True, ""),
    ("trust", {"allow": ["input_to:sh"]}, "\x1b[A", "sh", True, ""),
    ("trust", {"allow": ["input_to"]}, "\x1b[A", "sh", False, "it has control characters"),
]


@pytest.mark.sample(10)
@pytest.mark.parametrize(("mode", "rules", "text", "command", "goes_in", "why"), INPUT_RULES)
def test_rules_on_what_is_typed_into(
    tmp_path: Path, mode: str, rules: dict[str, list[str]], text: str, command: str, goes_in: bool, why: str
) -> None:
    world = typing(tmp_path, mode=mode, **rules)

    async def work() -> str:
        await world.shell(command)  # by hand: no rule is asked
        return await world.type(text)

    told = world.play(work())
    assert told.startswith("[typed") is goes_in and why in told, told
