"""Questions to the person at a client: what they read, and what their answers mean."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitResult,
    FormElicitationCapability,
    InputRequiredResult,
)
from tests.kit.waiting import PATIENCE

from cru.core.guard.rules.gate import PermissionReply, PermissionSubject
from cru.faces.mcp_server import calls
from cru.faces.mcp_server.asker import CHANNEL, ClientAsker, ElicitedAnswer, answer_schema, render_question
from cru.faces.mcp_server.calls import ClientCalls, SuspendedCall
from cru.faces.mcp_server.served_session import CallResult, ServedSession

ALL = ClientCapabilities(elicitation=ElicitationCapability(form=FormElicitationCapability()))
WRITE = PermissionSubject("write", "write", "a.txt", why="ask mode asks", rule="write:a.txt", preview="one\ntwo")


class Client:
    def __init__(self, answer: ElicitedAnswer | None) -> None:
        self._answer = answer

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitedAnswer | None:
        return self._answer


def ask(answer: ElicitedAnswer | None, *, one_client: bool = True) -> PermissionReply | None:
    async def run() -> PermissionReply | None:
        CHANNEL.set(Client(answer))
        return await ClientAsker(one_client).ask(WRITE)

    return asyncio.run(run())


def accepted(**content: Any) -> ElicitedAnswer:
    return ElicitedAnswer("accept", content)


REPLIES: list[tuple[ElicitedAnswer | None, PermissionReply | None]] = [
    (accepted(decision="once"), PermissionReply("once")),
    (accepted(decision="session"), PermissionReply("session")),
    (accepted(decision="no", reason="not\x1b now"), PermissionReply("no", "not\\x1b now")),
    (accepted(decision="always"), PermissionReply("no")),
    (accepted(decision=1), PermissionReply("no")),
    (accepted(), PermissionReply("no")),
    (ElicitedAnswer("decline"), PermissionReply("no", "the question was closed without leave")),
    (ElicitedAnswer("cancel", {"decision": "once"}), PermissionReply("no", "the question was closed without leave")),
    (None, None),
]


@pytest.mark.parametrize(("answer", "reply"), REPLIES)
def test_only_a_clear_leave_is_one(answer: ElicitedAnswer | None, reply: PermissionReply | None) -> None:
    assert ask(answer) == reply


def test_where_clients_share_a_session_no_answer_is_kept() -> None:
    assert ask(accepted(decision="session"), one_client=False) == PermissionReply("once")


def test_nobody_is_asked_outside_of_a_call() -> None:
    assert asyncio.run(ClientAsker(True).ask(WRITE)) is None


def test_the_question_shows_all_and_nothing_of_it_is_hidden() -> None:
    assert render_question(WRITE).splitlines() == [
        "write: a.txt", "| one", "| two", "ask mode asks", "for this session: the rule write:a.txt",
    ]  # fmt: skip
    sly = PermissionSubject(
        "bash", "shell", "ls\nauto mode asks", why="ask mode asks", preview="x\nfor this session: the rule write:safe",
        folder="/p\nq", parts=("ls", "for this\nsession: x"),
    )  # fmt: skip
    assert render_question(sly).splitlines() == [
        "bash: ls", ": auto mode asks", "| x", "| for this session: the rule write:safe", "in /p\\nq", "- ls",
        "- for this\\nsession: x", "ask mode asks",
    ]  # fmt: skip
    odd = PermissionSubject("bash", "shell", "ls\x1b[2K\u202e", agent="explore", changed_by="x.lua", before="rm")
    text = render_question(odd)
    assert text.startswith("[sub-agent explore] bash: ls") and "changed by x.lua; before: rm" in text
    assert "\x1b" not in text and "\u202e" not in text
    assert answer_schema(odd)["properties"]["decision"]["enum"] == ["once", "no"]


class Asking:
    """A session whose calls ask a few times."""

    def __init__(self, times: int = 2) -> None:
        self.replies: list[PermissionReply | None] = []
        self._times = times

    async def call(self, name: str, arguments: str) -> CallResult:
        for _ in range(self._times):
            self.replies.append(await ClientAsker(True).ask(WRITE))
        return CallResult(f"{name} {arguments}", False)


def suspended(asking: Asking, can_ask: bool = True) -> SuspendedCall:
    return SuspendedCall(cast(ServedSession, asking), CallToolRequestParams(name="x", arguments={"a": 1}), can_ask)


def test_a_call_stands_still_at_each_of_its_questions() -> None:
    async def run() -> None:
        asking = Asking()
        call = suspended(asking)
        for decision in ("once", "no"):
            question = await call.next()
            assert isinstance(question, ElicitRequest) and not call.is_over
            call.answer(accepted(decision=decision))
        assert await call.next() == CallResult('x {"a":1}', False)
        assert asking.replies == [PermissionReply("once"), PermissionReply("no")]

    asyncio.run(run())


def test_an_answer_that_does_not_come_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asking = Asking()
        call = suspended(asking)
        assert isinstance(await call.next(), ElicitRequest)
        assert isinstance(await call.next(), ElicitRequest)  # the first one has timed out
        call.answer(None)
        assert isinstance(await call.next(), CallResult)
        assert asking.replies == [None, None]

    monkeypatch.setattr(calls, "ANSWER_SECONDS", 0.01)
    asyncio.run(run())


def test_a_late_answer_is_not_taken_for_that_of_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    context = cast(
        Any, SimpleNamespace(protocol_version="2026-07-28", session=SimpleNamespace(client_capabilities=ALL))
    )

    def params(**fields: Any) -> CallToolRequestParams:
        return CallToolRequestParams(name="x", arguments={"a": 1}, **fields)

    async def run() -> None:
        asking = Asking()
        clients = ClientCalls(cast(ServedSession, asking))
        asked = await clients.call(context, params())
        assert isinstance(asked, InputRequiredResult)
        while not asking.replies:
            await asyncio.sleep(0)
        monkeypatch.setattr(calls, "ANSWER_SECONDS", 600)
        leave = {"permission": ElicitResult(action="accept", content={"decision": "once"})}
        with pytest.raises(MCPError, match="too late"):
            await clients.call(context, params(request_state=asked.request_state, input_responses=leave))
        assert asking.replies[0] is None and PermissionReply("once") not in asking.replies
        await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks()) == 1  # the call has ended

    monkeypatch.setattr(calls, "ANSWER_SECONDS", 0.01)
    asyncio.run(run())


def test_a_call_whose_client_has_gone_asks_on_and_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asking = Asking(4)
        call = suspended(asking)
        assert isinstance(await call.next(), ElicitRequest)
        async with asyncio.timeout(PATIENCE):
            while not call.is_over:
                await asyncio.sleep(0.01)
        assert asking.replies == [None] * 4

    monkeypatch.setattr(calls, "ANSWER_SECONDS", 0.01)
    asyncio.run(run())


def test_a_client_that_cannot_ask_gets_its_result_at_once() -> None:
    async def run() -> None:
        asking = Asking()
        assert isinstance(await suspended(asking, can_ask=False).next(), CallResult)
        assert asking.replies == [None, None]

    asyncio.run(run())
