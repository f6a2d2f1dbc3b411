from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.tools.box import Box

from cru.core.base.values.errors import CruError
from cru.core.conversations.store import FileContext
from cru.core.tools.builtin import BuiltInTools
from cru.core.tools.protocol import ToolContext, ToolError, ToolResult


class Store:
    def __init__(self, error: Exception | None = None) -> None:
        self.texts: dict[str, str] = {}
        self._error = error

    def write_text(self, name: str, text: str) -> None:
        if self._error:
            raise self._error
        self.texts[name] = text


class Home:
    def __init__(self, error: Exception | None = None) -> None:
        self.text = "old"
        self._error = error

    def write_reflection(self, text: str, limit_bytes: int) -> None:
        if self._error:
            raise self._error
        self.text = text

    def find(self, name: str) -> FileContext:
        raise AssertionError(name)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_todos_and_goals_replace_their_files(box: Box) -> None:
    store = box.services.store = Store()
    assert box.text("update_todos", content="- a") == "Todos updated."
    assert box.text("update_goals", content="") == "Goals updated."
    assert store.texts == {"todos.md": "- a", "goals.md": ""}


def test_a_change_of_the_todos_is_told(box: Box) -> None:
    told: list[str] = []

    async def changed() -> None:
        told.append("changed")

    box.services.store, box.services.todos_changed = Store(), changed
    box.call("update_todos", content="y")
    box.call("update_goals", content="z")
    assert told == ["changed"]


@pytest.mark.parametrize("tool", ["update_todos", "update_goals", "update_reflection"])
def test_without_what_they_need_they_say_so(box: Box, tool: str) -> None:
    assert "this tool does not work here\n  nothing provides `" in box.error(tool, content="x")


@pytest.mark.parametrize("error", [OSError("disk full"), CruError("disk full")])
def test_what_cannot_be_saved_is_an_error(box: Box, error: Exception) -> None:
    box.services.store, box.services.home = Store(error), Home(error)
    assert box.error("update_todos", content="x") == "todos.md could not be saved: disk full"
    assert box.error("update_goals", content="x") == "goals.md could not be saved: disk full"
    assert box.error("update_reflection", content="x") == "the reflection could not be saved: disk full"


def test_a_reflection_is_saved_up_to_its_limit_in_bytes(box: Box) -> None:
    home = box.services.home = Home()
    (tool,) = (t for t in BuiltInTools(reflection_limit=4).tools() if t.spec.name == "update_reflection")

    def update(text: str, running: ToolContext) -> ToolResult:
        return asyncio.run(tool.run({"content": text}, running))

    assert update("éé", box.running).content == "Reflection updated."
    with pytest.raises(ToolError, match="5 bytes, at most 4; it was not changed"):
        update("ééx", box.running)
    assert home.text == "éé"


def test_a_message_is_given_on_with_its_sender(box: Box) -> None:
    sent: list[tuple[str, str, str | None]] = []

    async def send(to: str, content: str, sender: str | None) -> str:
        sent.append((to, content, sender))
        return f"Delivered to {to}."

    box.services.send = send
    assert box.text("send_message", to="other", content="hi") == "Delivered to other."
    box.call("send_message", **{"to": "other", "content": "hi", "from": "me"})
    assert sent == [("other", "hi", None), ("other", "hi", "me")]


def test_a_message_cannot_be_sent_where_nothing_sends(box: Box) -> None:
    assert "nothing provides `send`" in box.error("send_message", to="a", content="x")


def test_call_user_ends_the_turn_with_its_message(box: Box) -> None:
    assert box.call("call_user", message="done") == ToolResult("done", ends_turn=True)
    assert box.call("call_user") == ToolResult("", ends_turn=True)


def test_recurse_succeeds_by_itself(box: Box) -> None:
    assert box.call("recurse", note="go on") == ToolResult("recursion requested")
