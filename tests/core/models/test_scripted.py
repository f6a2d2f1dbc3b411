from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cru.core.base.values.messages import CallPart, Delta, End, Message, Request, Text, Thought, Usage
from cru.core.models.protocol import BrokenReply, ContextTooLong, ModelError, ModelRefused, ModelUnavailable, NoModel
from cru.core.models.scripted import ScriptedModel


def play(model: ScriptedModel, *roles: str) -> list[Delta]:
    messages = tuple(Message(role, "x") for role in roles)  # type: ignore[arg-type]

    async def main() -> list[Delta]:
        return [delta async for delta in model.stream(model.encode(Request("m", messages=messages)))]

    return asyncio.run(main())


def scripted(tmp_path: Path, text: str) -> ScriptedModel:
    path = tmp_path / "script.txt"
    path.write_text(text, encoding="utf-8")
    return ScriptedModel(path)


def test_a_reply_has_thoughts_text_calls_usage_and_an_end(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        "# a comment\nthink: pondering\ntext: Hello\ntext:  world\\n# not a comment \\\\n\n"
        'call: bash {"command": "true"}\ncall: ls\nusage: input=100 output=10 cache_read=5 cost=0.25\n',
    )
    assert play(model, "user") == [
        Thought("pondering"),
        Text("Hello"),
        Text(" world\n# not a comment \\n"),
        CallPart(0, "call_0_0", "bash", '{"command": "true"}'),
        CallPart(1, "call_0_1", "ls", "{}"),
        End("tool_calls", Usage(100, 10, 5, cost=0.25)),
    ]


def test_replies_follow_the_conversation_so_a_resumed_one_goes_on(tmp_path: Path) -> None:
    text = "text: one\n---\ntext: two\nend: length\n---\ntext: three\n"
    assert play(scripted(tmp_path, text), "user")[0] == Text("one")
    resumed = scripted(tmp_path, text)
    assert play(resumed, "user", "assistant", "tool") == [Text("two"), End("length")]
    assert play(resumed, "user", "assistant", "tool", "assistant", "user")[0] == Text("three")


def test_a_try_that_left_no_text_counts_and_one_that_left_text_is_counted_by_the_log(tmp_path: Path) -> None:
    model = scripted(tmp_path, "error: 429 retry_after=1 slow down\n---\ntext: half\ndrop:\n---\ntext: whole\n")
    with pytest.raises(ModelUnavailable, match="slow down"):
        play(model, "user")
    with pytest.raises(BrokenReply):
        play(model, "user")
    assert play(model, "user", "assistant", "user")[0] == Text("whole")


def test_repeat_loop_and_order(tmp_path: Path) -> None:
    repeated = scripted(tmp_path, "call: ls\nrepeat: 2\n---\ntext: end\n")
    calls = [play(repeated, *["assistant"] * turn)[0] for turn in (0, 1)]
    assert calls == [CallPart(0, f"call_{turn}_0", "ls", "{}") for turn in (0, 1)]
    assert play(repeated, "assistant", "assistant")[0] == Text("end")
    looped = scripted(tmp_path, "loop: yes\ntext: a\n---\ntext: b\n")
    assert [play(looped, *["assistant"] * turn)[0] for turn in range(4)] == [Text("a"), Text("b")] * 2
    ordered = scripted(tmp_path, "by: order\ntext: a\n---\ntext: b\n")
    assert [play(ordered, "user")[0] for _ in range(2)] == [Text("a"), Text("b")]


def test_after_the_last_reply_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenReply, match=r"script\.txt: the script has 1 replies and reply 2 was asked for") as caught:
        play(scripted(tmp_path, "text: a\n"), "user", "assistant", "user")
    assert not caught.value.retryable
    with pytest.raises(BrokenReply, match="has 0 replies"):
        play(scripted(tmp_path, "# nothing\n"), "user")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("error: 503 down", ModelUnavailable),
        ("error: 401 who are you", ModelRefused),
        ("error: 400 prompt is too long", ContextTooLong),
        ("drop:", ModelUnavailable),
    ],
)
def test_failures_are_those_of_a_server(tmp_path: Path, line: str, kind: type[ModelError]) -> None:
    with pytest.raises(kind) as caught:
        play(scripted(tmp_path, line + "\n"), "user")
    assert type(caught.value) is kind


def test_delays_are_slept(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    path = tmp_path / "s"
    path.write_text("delay: 50ms\ntext: a\ndelay: 1.5s\ndelay: 2\n")
    play(ScriptedModel(path, sleep=sleep), "user")
    assert slept == [0.05, 1.5, 2.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("txt: a\n", ":1: unknown item `txt`\n  did you mean `text:`?"),
        (" text: a\n", ":1: there is a blank before `text:`\n  an item begins its line"),
        ("text: a\nhello\n", ":2: unknown item `hello`"),
        ("usage: inputs=1\n", ":1: `usage:` takes input, output, cache_read, cache_write, cost"),
        ("delay: soon\n", ":1: `delay:` is like 50ms or 1.5s, not 'soon'"),
        ("error: slow\n", ":1: `error:` begins with a status"),
        ("text: a\nloop: yes\n", ":2: `loop:` belongs before the first reply"),
        ("loop: maybe\n", ":1: `loop:` is yes or no"),
        ("repeat: 0\n", ":1: `repeat:` needs a count"),
        ("call: \n", ":1: `call:` needs a tool's name"),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(NoModel) as caught:
        scripted(tmp_path, text)
    assert f"script.txt{says}" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match="cannot read the script"):
        ScriptedModel(tmp_path / "none")
