from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.turn.support import Ext, World, always, once, payload

from cru.core.base.values.messages import RESOLVED
from cru.core.conversations.inbox import InboxMessage, read_inbox
from cru.core.events.answers import Answer, Change, Inject, add_context, cancel, halt, inject, transform
from cru.core.events.payloads import AgentResponded, Attachment, MessageBeforeSend, StreamingDelta, TurnComplete
from cru.core.events.stamp import Event
from cru.core.tools.arguments import decode_object
from cru.core.tools.protocol import ArgumentError
from cru.core.turn.attachments import BadAttachment, read_attachment
from cru.core.turn.round import ModelReply, ReplyCall

ONE = "loop: yes\ntext: ok\n"
TOOLS = "call: ls {}\n---\ntext: ok\n---\ntext: ok again\n"


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (transform(content="better"), "better"),
        (inject("before"), "before\n\ngo"),
        (inject("after", "user_suffix"), "go\n\nafter"),
        (add_context("one", "two"), "go\n\none\n\ntwo"),
        (Answer(context=("one",), context_files=("hint.md",)), "go\n\none\n\n## Referenced files\n- hint.md"),
        (transform(attachments=[Attachment("x.txt", "X")]), "go\n\n--- FILE x.txt ---\nX\n--- END OF x.txt ---"),
    ],
)
def test_what_handlers_make_of_a_prompt_is_sent_and_replayed_for_ever(
    tmp_path: Path, answer: Answer, sent: str
) -> None:
    world = World(tmp_path, ONE, Ext([("message:received", always(answer), {"once": True})]))
    (tmp_path / "project" / "hint.md").write_text("from a file")
    world.run("go", "next")
    expected = ("user", sent.format(root=tmp_path / "project"))
    assert world.said(0) == [expected]
    assert world.said(1)[0] == expected
    assert world.log("message")[0].content == "go"
    again = World(tmp_path, "")
    again.run("third")
    assert again.said()[0] == expected


@pytest.mark.parametrize(("answer", "cause"), [(cancel("rude"), "cancelled"), (halt("rude"), "halted")])
def test_a_blocked_prompt_is_never_sent(tmp_path: Path, answer: Answer, cause: str) -> None:
    world = World(tmp_path, ONE, Ext([("message:received", always(answer), {"once": True})]))
    assert world.run("bad").cause == cause
    assert world.sent == []
    [resolved] = world.log(RESOLVED)
    assert resolved.metadata["blocked"] and resolved.metadata["reason"] == "rude"
    world.run("good")
    assert world.said() == [("user", "good")]


def test_a_prompt_that_nobody_changed_is_not_stored_twice(tmp_path: Path) -> None:
    world = World(tmp_path, ONE)
    world.run("go")
    assert [(e.content, "rewritten" in e.metadata) for e in world.log(RESOLVED)] == [("", False)]


def test_the_inbox_goes_before_the_next_prompt_and_stays_if_that_is_blocked(tmp_path: Path) -> None:
    call, fields = once(cancel("no"))
    world = World(tmp_path, ONE, Ext([("message:received", call, fields)]))
    world.built.home.send(InboxMessage("alice", "main", "the build is red"))
    world.run("blocked")
    assert len(read_inbox(world.built.store.folder)[0]) == 1
    world.run("go")
    text = world.said()[-1][1]
    assert "[From: alice] the build is red" in text and text.endswith("\n\ngo")
    assert read_inbox(world.built.store.folder)[0] == []


def test_context_of_session_started_stands_beside_the_first_prompt(tmp_path: Path) -> None:
    world = World(tmp_path, ONE, Ext({"session:started": always(add_context("today is Monday"))}))
    world.run("go", "on")
    assert world.said()[0] == ("user", "go\n\ntoday is Monday")
    assert world.said()[-1] == ("user", "on")


@pytest.mark.parametrize(("answer", "cause"), [(cancel("no"), "cancelled"), (halt("no"), "halted")])
def test_a_cancelled_request_is_not_made_and_ends_the_leg(tmp_path: Path, answer: Answer, cause: str) -> None:
    world = World(tmp_path, ONE, Ext({"message:before_send": always(answer)}))
    assert world.run("go").cause == cause
    assert world.sent == []
    assert [c.cause for c in world.of(TurnComplete)] == [cause]


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (transform(prompt="other"), "other"),
        (inject("before"), "before\n\ngo"),
        (add_context("beside"), "go\n\nbeside"),
        (Answer(changes=(Change("prompt", "append", "!"),), context=("beside",)), "go!\n\nbeside"),
    ],
)
def test_a_prompt_changed_before_sending_is_replayed_byte_for_byte(tmp_path: Path, answer: Answer, sent: str) -> None:
    call, fields = once(answer)
    world = World(tmp_path, TOOLS, Ext([("message:before_send", call, fields)]))
    world.run("go", "next")
    assert [world.said(n)[0] for n in range(3)] == [("user", sent)] * 3
    assert len(world.log(RESOLVED)) == 3


def test_context_in_a_later_round_is_one_logged_user_message(tmp_path: Path) -> None:
    def later(event: Event) -> Answer | None:
        return Answer(context=("a", "b"), inject=Inject("c")) if payload(event).round == 2 else None

    world = World(tmp_path, TOOLS, Ext({"message:before_send": later}))
    world.run("go", "next")
    assert world.said(1)[-1] == ("user", "a\n\nb\n\nc")
    assert world.said(2)[3] == ("user", "a\n\nb\n\nc")


def test_the_prompt_is_offered_for_change_in_the_first_round_only(tmp_path: Path) -> None:
    world = World(tmp_path, TOOLS, Ext({"message:before_send": always(transform(prompt="other"))}))
    world.run("go")
    assert [p.round for p in world.of(MessageBeforeSend)] == [1, 2]
    assert any("first round" in text for text in world.notices())


def test_replaced_messages_last_one_request_and_are_reported_as_a_cache_break(tmp_path: Path) -> None:
    call, fields = once(transform(messages=[{"role": "user", "content": "only this"}]))
    world = World(tmp_path, "by: order\n" + TOOLS, Ext([("message:before_send", call, fields)], "squeezer"))
    world.run("go")
    assert world.said(0) == [("user", "only this")]
    assert world.said(1)[0] == ("user", "go")
    assert [t for t in world.notices() if "cache" in t] == [
        "squeezer replaced the messages: the prompt cache breaks here"
    ]


def test_context_beside_replaced_messages_is_not_lost(tmp_path: Path) -> None:
    def replace(event: Event) -> Answer:
        return transform(messages=[msgspec.to_builtins(m) for m in payload(event).messages[:1]])

    one, two = (
        Ext({"message:before_send": replace}, "a"),
        Ext({"message:before_send": always(add_context("news"))}, "b"),
    )
    world = World(tmp_path, "by: order\n" + TOOLS, one, two)
    world.run("go")
    assert world.said(0) == [("user", "go\n\nnews")]
    assert world.said(1) == [("user", "go\n\nnews"), ("user", "news")]


def test_another_model_may_be_chosen_for_one_request(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("loop: yes\ntext: from the other\n")
    call, fields = once(transform(model=f"scripted:{other}"))
    settings = {"models": {f"scripted:{other}": {"api": {"temperature": 0.5}}}}
    world = World(tmp_path, ONE, Ext([("message:before_send", call, fields)]), settings=settings)
    world.run("go", "on")
    assert [r.model == str(other) for r in world.requests] == [True, False]
    agents = [e.metadata["model"] for e in world.log("message") if e.role == "agent"]
    assert agents[0] == f"scripted:{other}" and agents[1] != agents[0]


def test_parameters_may_be_changed_for_a_request(tmp_path: Path) -> None:
    call, fields = once(Answer(changes=(Change("parameters", "merge", {"temperature": 0.1}),)))
    world = World(tmp_path, ONE, Ext([("message:before_send", call, fields)]))
    world.run("go", "on")
    assert [r.parameters for r in world.requests] == [{"temperature": 0.1}, {}]


def test_sections_may_be_changed_and_context_becomes_a_section(tmp_path: Path) -> None:
    extra = Answer(
        changes=(Change("sections", "append", {"name": "mine", "origin": "ext", "text": "MINE"}),), context=("added",)
    )
    world = World(tmp_path, TOOLS, Ext({"system_prompt:build": always(extra)}))
    world.run("go")
    assert [(s.name, s.text) for s in world.requests[1].system[-2:]] == [("mine", "MINE"), ("added", "added")]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (Change("tools", "keep", ["ls", "read"]), ["read", "ls"]),
        (Change("tools", "set", []), []),
        (Change("tools", "set", ["invented", "ls"]), ["ls"]),
    ],
)
def test_tools_may_only_be_narrowed_and_keep_their_order(tmp_path: Path, change: Change, names: list[str]) -> None:
    world = World(tmp_path, ONE, Ext({"tools:select": always(Answer(changes=(change,)))}))
    world.run("go")
    assert [t.name for t in world.requests[0].tools] == names
    assert any("may only narrow: invented" in t for t in world.notices()) is ("invented" in change.value)


def test_a_handler_that_holds_decides_what_is_shown(tmp_path: Path) -> None:
    ext = Ext([("agent:responded", always(transform(display="[hidden]")), {"hold": True})])
    world = World(tmp_path, ONE, ext)
    world.run("go")
    assert world.of(StreamingDelta) == []
    [said] = world.of(AgentResponded)
    assert (said.content, said.display, said.final) == ("ok", "[hidden]", True)
    assert world.log("message")[-1].content == "ok"


def test_agent_responded_fires_for_every_reply_and_its_context_goes_to_the_next_request(tmp_path: Path) -> None:
    ext = Ext({"agent:responded": always(add_context("noted"))})
    world = World(tmp_path, TOOLS, ext)
    world.run("go", "next")
    assert [(r.final, len(r.tool_calls)) for r in world.of(AgentResponded)] == [(False, 1), (True, 0), (True, 0)]
    assert world.said(1)[-1] == ("user", "noted")
    assert world.said(2)[-1] == ("user", "next\n\nnoted")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("gone.txt", None, "No such file"),
        ("bin", b"\xff\xfe\x00", "neither UTF-8"),
        ("big", b"x" * (1024 * 1024 + 1), "more than"),
        (".", None, "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_attached_says_why(tmp_path: Path, name: str, data: bytes | None, words: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(BadAttachment, match=words):
        read_attachment(name, tmp_path)


def test_a_list_of_handlers_sees_what_earlier_ones_changed(tmp_path: Path) -> None:
    seen: list[Any] = []
    first = Ext({"message:received": always(Answer(changes=(Change("content", "append", " now"),)))}, "a")
    second = Ext({"message:received": lambda e: seen.append(payload(e).content)}, "b")
    World(tmp_path, ONE, first, second).run("go")
    assert seen == ["go now"]


@pytest.mark.parametrize(("api", "words"), [({"max_tokens": 5}, "max_tokens = 5"), ({}, "the limit of its length")])
def test_a_reply_that_is_cut_by_its_length_says_so(tmp_path: Path, api: dict[str, Any], words: str) -> None:
    world = World(tmp_path, "text: half of\nend: length\n---\ntext: whole\n", settings={"api": api})
    assert world.run("go").response == "half of"
    [told] = [text for text in world.notices() if "cut off" in text]
    assert words in told and "[api]" in told
    world.run("more")
    assert len([text for text in world.notices() if "cut off" in text]) == 1


@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "stop", "tool_calls"])
def test_a_call_that_is_cut_before_its_arguments_does_not_run(reason: str) -> None:
    parts = {0: ReplyCall("a", "ls"), 1: ReplyCall("b", "reset", ["{}"]), 2: ReplyCall("c", "reset")}
    *whole, last = ModelReply(parts=parts, reason=reason).calls("x")
    assert [decode_object(call.arguments) for call in whole] == [{}, {}]
    if reason in ("stop", "tool_calls"):
        assert decode_object(last.arguments) == {}
    else:
        with pytest.raises(ArgumentError, match="not valid JSON"):
            decode_object(last.arguments)


def test_a_file_without_an_end_is_not_read_to_its_end() -> None:
    with pytest.raises(BadAttachment, match="more than 1048576 bytes"):
        read_attachment("/dev/zero", Path("/"))
