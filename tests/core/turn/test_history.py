from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.closing import closed_later

from cru.core.base.values.messages import Entry, Message, ToolCall
from cru.core.conversations.store import FileContext
from cru.core.turn import history
from cru.core.turn.history import INTERRUPTED, History, visible_at, weight

SAMPLES = Path(__file__).parents[2] / "data" / "contexts"


def entry(kind: str, text: str = "", **fields: Any) -> Entry:
    return Entry(fields.pop("id", f"{kind}-{text}"), 1, content=text, entry_type=kind, **fields)


def user(text: str, source: str = "", **fields: Any) -> Entry:
    return entry("message", text, role="user", metadata={"source": source} if source else {}, **fields)


def agent(text: str, reply: str = "", **metadata: Any) -> Entry:
    return entry("message", text, role="agent", to="user", metadata={**metadata, **({"reply": reply} if reply else {})})


def call(name: str, call_id: str = "", reply: str = "") -> Entry:
    metadata = {"reply": reply} if reply else {}
    return entry("tool_call", "{}", id=f"c-{call_id}-{reply}", to=name, tool_call_id=call_id, metadata=metadata)


def result(text: str, call_id: str = "", **metadata: Any) -> Entry:
    return entry("tool_result", text, from_="tool", tool_call_id=call_id, metadata=metadata)


def resolved(ref: str, text: str = "", **metadata: Any) -> Entry:
    return entry("message_resolved", text, metadata={"ref": ref, **metadata})


def short(messages: tuple[Message, ...]) -> list[str]:
    """u:text, a:text+calls, t:id=text (! = error)"""
    kinds = {"user": "u", "assistant": "a", "tool": "t"}
    return [
        f"{kinds[m.role]}:{m.call_id + '=' if m.role == 'tool' else ''}{m.content}"
        + "".join(f"+{c.id}" for c in m.calls)
        + ("!" if m.is_error else "")
        for m in messages
    ]


CASES: dict[str, tuple[list[Entry], list[str]]] = {
    "an unresolved prompt is held back": ([user("hi", "user", id="p")], []),
    "a resolved prompt is sent": ([user("hi", "user", id="p"), resolved("p")], ["u:hi"]),
    "a blocked prompt is never sent": ([user("hi", "user", id="p"), resolved("p", blocked=True)], []),
    "a rewritten prompt": ([user("hi", "user", id="p"), resolved("p", "ho", rewritten=True)], ["u:ho"]),
    "a prompt rewritten to nothing": ([user("hi", "user", id="p"), resolved("p", "", rewritten=True)], ["u:"]),
    "context beside a prompt": ([user("hi", "user", id="p"), resolved("p", context=["c", "d"])], ["u:hi\n\nc\n\nd"]),
    "the last resolution wins": (
        [user("hi", "user", id="p"), resolved("p", context=["c"]), resolved("p", "ho", rewritten=True)], ["u:ho"],
    ),
    "a resolution of nothing": ([resolved("gone")], []),
    "an inject needs no resolution": ([user("hint", "inject")], ["u:hint"]),
    "text and calls of one reply": (
        [agent("let me", "r1"), call("ls", "1", "r1"), call("ls", "2", "r1"), result("x", "1"), result("y", "2")],
        ["a:let me+1+2", "t:1=x", "t:2=y"],
    ),
    "results out of order": (
        [call("ls", "1", "r1"), call("ls", "2", "r1"), result("y", "2"), result("x", "1")],
        ["a:+1+2", "t:1=x", "t:2=y"],
    ),
    "two replies in a row without text": (
        [call("ls", "1", "r1"), result("x", "1"), call("ls", "2", "r2"), result("y", "2")],
        ["a:+1", "t:1=x", "a:+2", "t:2=y"],
    ),
    "a reply follows another's text at once": (
        [agent("one", "r1"), call("ls", "1", "r2"), result("x", "1")], ["a:one", "a:+1", "t:1=x"],
    ),
    "a missing result": ([call("ls", "1", "r1"), agent("go", "r2")], ["a:+1", f"t:1={INTERRUPTED}!", "a:go"]),
    "an id used again while its call waits": (
        [call("ls", "1", "r1"), call("ls", "1", "r2"), result("y", "1")],
        ["a:+1", f"t:1={INTERRUPTED}!", "a:+1", "t:1=y"],
    ),
    "an id used again later": (
        [call("ls", "1", "r1"), result("x", "1"), call("ls", "1", "r2"), result("y", "1")],
        ["a:+1", "t:1=x", "a:+1", "t:1=y"],
    ),
    "an orphan result": ([result("x", "9")], ["u:[result of tool]\nx"]),
    "a failed result": ([call("ls", "1", "r1"), result("no", "1", is_error=True)], ["a:+1", "t:1=no!"]),
    "a partial reply is replayed as it is": ([agent("hal", partial="interrupted")], ["a:hal"]),
    "what call_user said is in its result": (
        [call("call_user", "1", "r1"), result("Which?", "1"), agent("Which?", call="1")], ["a:+1", "t:1=Which?"],
    ),
    "chibi: no ids, results by position": (
        [call("a"), result("x"), call("b"), result("y")], ["a:+call_c--", "t:call_c--=x", "a:+call_c--", "t:call_c--=y"],
    ),
    "a system message": ([entry("message", "be nice", role="system")], []),
    "an unknown kind of entry": ([entry("control_transfer"), entry("leg_ended")], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_entries_become_these_messages(case: str) -> None:
    entries, expected = CASES[case]
    assert short(History(entries).messages()) == expected


def test_thinking_stays_with_its_reply() -> None:
    block = {"provider": "anthropic", "text": "hm", "data": {"signature": "s"}}
    [text] = History([agent("so", "r1", thinking=[block])]).messages()
    assert text.thinking[0].data == {"signature": "s"}
    made = Entry(
        "c", 1, entry_type="tool_call", to="ls", tool_call_id="1", metadata={"reply": "r", "thinking": [block]}
    )
    assert History([made]).messages()[0].thinking[0].text == "hm"


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("chibi-0.10", ["u:go on", "a:+call_1", "t:call_1=text of a", "a:done"]),
        (
            "chibi-0.4",
            ["u:read a", "a:+call_0b54fd66", "t:call_0b54fd66=text of a", "a:It says: text of a", "u:thanks"],
        ),
    ],
)
def test_logs_of_other_programs_are_understood(sample: str, expected: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    for file in (SAMPLES / sample / "contexts" / "desk").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    store = closed_later(FileContext(folder))
    assert short(History(store.visible()).messages()) == expected


ENTRIES = st.one_of(
    st.builds(lambda t, s: user(t, s), st.sampled_from("ab"), st.sampled_from(["", "user", "inject"])),
    st.builds(lambda r, b: resolved(r, blocked=b), st.sampled_from(["message-a", "message-b"]), st.booleans()),
    st.builds(agent, st.sampled_from("xy"), st.sampled_from(["", "r1", "r2"])),
    st.builds(call, st.just("ls"), st.sampled_from(["", "1", "2"]), st.sampled_from(["", "r1", "r2"])),
    st.builds(result, st.just("out"), st.sampled_from(["", "1", "2", "3"])),
)


@pytest.mark.slow
@given(st.lists(ENTRIES, max_size=14))
@settings(max_examples=150, deadline=None)
def test_a_history_that_grew_equals_one_that_was_rebuilt(entries: list[Entry]) -> None:
    grown = History()
    for number, one in enumerate(entries, 1):
        grown.add(one)
        again = History(entries[:number])
        assert grown.messages() == again.messages()
        assert grown.size == again.size and grown.count == number
        if not grown.open_calls():
            assert grown.size == sum(map(weight, grown.messages()))


def test_each_call_of_a_reply_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[str] = []
    real = history._weight_of_call

    def counted(call: ToolCall) -> int:
        weighed.append(call.id)
        return real(call)

    monkeypatch.setattr(history, "_weight_of_call", counted)
    calls = [call("ls", f"k{number}", "r1") for number in range(300)]
    grown = History([user("hi"), agent("", "r1"), *calls, *(result("x", f"k{number}") for number in range(300))])
    assert len(weighed) == 300 and len(grown.messages()) == 302
    assert grown.size == sum(map(weight, grown.messages()))


@given(st.lists(ENTRIES, max_size=14))
@settings(max_examples=150, deadline=None)
def test_every_call_is_followed_by_its_results_at_once(entries: list[Entry]) -> None:
    """Providers refuse anything else."""
    messages = list(History(entries).messages())
    while messages:
        message = messages.pop(0)
        assert message.role != "tool"
        for made in message.calls:
            assert messages.pop(0).call_id == made.id


def test_what_was_visible_at_an_entry_follows_the_anchors() -> None:
    log = [
        user("a"),
        user("b"),
        Entry("A", 1, content="sum", entry_type="anchor", metadata={"keep": ["message-b"]}),
        user("c"),
    ]
    log = [e if e.id == "A" else Entry(f"message-{e.content}", 1, content=e.content, role="user") for e in log]
    assert [e.content for e in visible_at(log, "message-b")] == ["a", "b"]
    assert [e.content for e in visible_at(log, "message-c")] == ["b", "c"]
