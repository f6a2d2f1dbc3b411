"""ask, popup, ui: builders are plain data; dialogs reach a person, and are cancelled at once where nobody is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.core.turn.support import Person
from tests.kit.waiting import ends_soon

from cru.core.api.dialogs import ask, model_answers, popup, ui
from cru.core.api.dialogs.permission import permission
from cru.core.api.host import BadArgument, NamespaceError
from cru.core.events.payloads import InteractionCompleted, InteractionRequested, MessageBeforeSend
from cru.core.guard.rules.gate import PermissionReply


class Face:
    """A face that gives the same answer to every dialog."""

    def __init__(self, answer: dict[str, Any] | None, seconds: float = 0) -> None:
        self.answer, self.seconds = answer, seconds
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def show(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        self.asked.append((kind, request))
        await asyncio.sleep(self.seconds)
        return self.answer


def room_with(tmp_path: Path, answer: dict[str, Any] | None, seconds: float = 0) -> tuple[Room, Face]:
    room, face = Room(tmp_path), Face(answer, seconds)
    room.parts.services.face.dialogs = face
    return room, face


def way() -> ask.Question:
    return ask.question("Way", "Which way?").choice("left").choices(["right", "back"])


def test_questions_never_change() -> None:
    first = ask.question("Way", "Which way?")
    second = first.choice("left").multi_select()
    assert (first.get_choices(), first.is_multi_select()) == ([], False)
    assert (second.get_choices(), second.is_multi_select()) == (["left"], True)
    assert second.multi_select(False).is_multi_select() is False
    assert (second.header(), second.question_text()) == ("Way", "Which way?")
    empty = ask.batch()
    assert (empty.question(first).question_count(), empty.question_count()) == (1, 0)
    assert empty.id() == empty.question(first).id() != ask.batch().id()


def test_answers_are_data() -> None:
    chosen, other = ask.answer([2, 0]), ask.answer_other("neither")
    assert (chosen.selected(), chosen.first_selected(), chosen.selection_count(), chosen.has_selection()) == (
        [2, 0],
        2,
        2,
        True,
    )
    assert (chosen.other(), chosen.has_other()) == (None, False)
    assert (other.selected(), other.first_selected(), other.other(), other.has_other()) == ([], None, "neither", True)
    assert ask.notify("done") == {"kind": "notify", "message": "done"}


BAD: list[Callable[[], Any]] = [
    lambda: ask.question(1, "x"),  # type: ignore[arg-type]
    lambda: way().choice(None),  # type: ignore[arg-type]
    lambda: way().choices("x"),  # type: ignore[arg-type]
    lambda: ask.batch().question("x"),  # type: ignore[arg-type]
    lambda: ask.answer([-1]),
    lambda: ask.answer(["x"]),  # type: ignore[list-item]
    lambda: popup.entry(None),  # type: ignore[arg-type]
    lambda: popup.request("x", "y"),  # type: ignore[arg-type]
    lambda: ui.panel(None, []),
    lambda: ui.select("x", "y"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("work", BAD)
def test_builders_refuse_what_does_not_fit(work: Callable[[], Any]) -> None:
    with pytest.raises(BadArgument):
        work()


def test_where_nobody_is_every_dialog_is_cancelled_at_once(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with ends_soon():  # a dialog waits for five minutes
        answers_of_nobody(room)


def answers_of_nobody(room: Room) -> None:
    response = room(ask.ask_user, ask.batch().question(way()))
    assert (response.is_cancelled(), response.has_answers(), response.answers()) == (True, False, [])
    assert room(popup.show, popup.request("What?", ["a"])) == {}
    assert room(ui.show_panel, ui.confirm("Sure?")) == {"kind": "cancelled", "cancelled": True, "selected": []}
    for function, opts in DIALOGS:
        assert room(function, None, opts)["kind"] == "cancelled"


DIALOGS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (ui.ask, {"question": "Sure?", "choices": ["yes"]}),
    (ui.ask_batch, {"questions": [{"header": "A", "question": "b?"}]}),
    (ui.edit, {"content": "x", "format": "markdown", "hint": "h"}),
    (ui.show, {"content": "x", "title": "t"}),
    (ui.popup_, {"title": "What?", "entries": ["a"]}),
    (ui.panel, {"header": "Files", "items": ["a"]}),
    (permission, {"action": {"type": "bash", "tokens": ["ls", "-l"]}}),
]


@pytest.mark.parametrize(("function", "opts"), DIALOGS)
def test_bad_arguments_of_a_dialog_come_back_as_nil_and_a_message(
    tmp_path: Path, function: Callable[..., Any], opts: dict[str, Any]
) -> None:
    room = Room(tmp_path)
    nothing, message = room(function, "another session", opts)
    assert nothing is None
    assert "another session" in message
    broken = {key: print for key in opts}
    if function is not ui.panel:
        assert room(function, None, broken)[0] is None
    assert room(function, room.parts.store.session_id, opts)["kind"] == "cancelled"


def test_a_person_answers_questions(tmp_path: Path) -> None:
    room, face = room_with(tmp_path, {"answers": [{"selected": [1]}, {"other": "up"}]})
    batch = ask.batch().question(way()).question(ask.question("B", "b?"))
    response = room(ask.ask_user, batch)
    assert (response.id(), response.is_cancelled(), response.answer_count()) == (batch.id(), False, 2)
    assert response.answer(1).selected() == [1]
    assert response.answer(2).other() == "up"
    for index in (0, 3):
        with pytest.raises(BadArgument, match="there are 2"):
            response.answer(index)
    (completed,) = room.world.of(InteractionCompleted)
    assert (completed.outcome, completed.response) == ("answered", {"answers": [{"selected": [1]}, {"other": "up"}]})
    kind, request = face.asked[0]
    assert kind == "ask_batch"
    assert request["questions"][0]["choices"] == ["left", "right", "back"]


def test_a_dialog_is_announced_before_and_after(tmp_path: Path) -> None:
    room, _ = room_with(tmp_path, {})
    room(ui.show, None, {"content": "x", "title": "Look"})
    (before,), (after,) = room.world.of(InteractionRequested), room.world.of(InteractionCompleted)
    assert (before.kind, before.prompt) == ("show", "Look")
    assert (after.id, after.outcome, after.response) == (before.id, "answered", {})


SHOWN: list[tuple[Callable[..., Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (ui.ask, {"question": "q", "choices": ["a"]}, {"answers": [{"selected": [0]}]}, {"kind": "ask", "selected": [0]}),
    (ui.ask, {"question": "q"}, {"answers": [{"other": "x"}]}, {"kind": "ask", "selected": [], "other": "x"}),
    (ui.edit, {"content": "x"}, {"modified": "y"}, {"kind": "edit", "modified": "y"}),
    (ui.show, {"content": "x"}, {}, {"kind": "show"}),
    (ui.popup_, {"entries": ["a", {"label": "b", "data": 7}]}, {"selected_index": 1},
     {"kind": "popup", "selected_index": 1, "selected_entry": {"label": "b", "data": 7}}),
    (ui.popup_, {"entries": [], "allow_other": True}, {"other": "x"}, {"kind": "popup", "other": "x"}),
    (ui.popup_, {"entries": ["a"]}, {"selected_index": 5}, {"kind": "cancelled"}),
    (ui.panel, {"header": "h", "items": ["a"]}, {"selected": [0], "other": "x"},
     {"kind": "panel", "cancelled": False, "selected": [0], "other": "x"}),
    (ui.panel, {"header": "h"}, {"cancelled": True}, {"kind": "cancelled", "cancelled": True, "selected": []}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "opts", "answer", "result"), SHOWN)
def test_what_a_person_answered_comes_back(
    tmp_path: Path, function: Callable[..., Any], opts: dict[str, Any], answer: dict[str, Any], result: dict[str, Any]
) -> None:
    room, _ = room_with(tmp_path, answer)
    assert room(function, None, opts) == result


def test_a_batch_of_questions_comes_back_with_its_id(tmp_path: Path) -> None:
    room, face = room_with(tmp_path, {"answers": [{"selected": [0]}, {"other": "x"}]})
    opts = {"questions": [{"question": "a", "choices": ["1"]}, {"question": "b"}]}
    found = room(ui.ask_batch, None, opts)
    assert found["answers"] == [{"selected": [0]}, {"selected": [], "other": "x"}]
    assert found["id"] == face.asked[0][1]["id"]


def test_a_dialog_that_nobody_answers_in_time_is_cancelled(tmp_path: Path) -> None:
    room, _ = room_with(tmp_path, {}, seconds=5)
    assert room(ui.show, None, {"content": "x"}, 0.05) == {"kind": "cancelled"}
    assert room.world.of(InteractionCompleted)[0].outcome == "timeout"


def test_a_popup_shows_what_was_built(tmp_path: Path) -> None:
    entries = [popup.entry("a", "first"), popup.entry_with_data("b", None, 7)]
    assert entries == [{"label": "a", "description": "first"}, {"label": "b", "data": 7}]
    request = popup.request_with_other("What?", entries)
    assert request == {"title": "What?", "entries": entries, "allow_other": True}
    room, face = room_with(tmp_path, {"selected_index": 1})
    assert room(popup.show, request) == popup.response_selected(1, entries[1])
    assert face.asked == [("popup", request)]
    assert popup.response_other("x") == {"other": "x"}
    assert popup.response_none() == {}


def test_panels_are_plain_data() -> None:
    hints = ui.hints().filterable().multi_select().allow_other().initial_selection([0]).initial_filter("x")
    assert ui.panel("h", ["a", {"label": "b", "data": 1}], hints) == {
        "header": "h",
        "items": [{"label": "a"}, {"label": "b", "data": 1}],
        "hints": {
            "filterable": True, "multi_select": True, "allow_other": True, "initial_selection": [0], "initial_filter": "x",
        },
    }  # fmt: skip
    assert ui.confirm("Sure?")["items"] == [{"label": "Yes"}, {"label": "No"}]
    assert ui.select("h", ["a"])["hints"] == {}
    assert ui.multi_select("h", ["a"])["hints"] == {"multi_select": True}
    assert ui.search("h", [])["hints"] == {"filterable": True, "allow_other": True}
    assert ui.item_with_data("a", "d", 1) == {**ui.item("a", "d"), "data": 1}
    assert ui.result_selected([1]) == {"cancelled": False, "selected": [1]}
    assert ui.result_other("x") == {"cancelled": False, "other": "x", "selected": []}
    assert ui.result_cancelled() == {"cancelled": True, "selected": []}


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (PermissionReply("once"), {"kind": "permission", "allowed": True, "scope": "once"}),
        (PermissionReply("always"), {"kind": "permission", "allowed": True, "scope": "user"}),
        (PermissionReply("no", "why"), {"kind": "permission", "allowed": False, "scope": "once", "reason": "why"}),
    ],
)
def test_a_person_gives_leave_through_the_asker(tmp_path: Path, reply: PermissionReply, result: dict[str, Any]) -> None:
    person = Person(reply)
    room = Room(tmp_path, asker=person)
    assert room(permission, None, {"action": {"type": "write", "segments": ["a", "b.md"]}}) == result
    assert (person.questions[0].kind, person.questions[0].detail) == ("write", "a/b.md")
    assert room(permission, None, {"action": {"type": "tool", "name": "x", "args": {"a": 1}}}) == result
    assert room(permission, None, {"action": {"type": "fly"}})[0] is None


AGENT: list[tuple[str, list[Any]]] = [
    ('```json\n{"answers": [{"selected": [1]}]}\n```', [1]),
    ('I think\n```\n{"answers": [{"selected": [2, 0]}]}\n```', [2]),
    ('Sure: {"answers": [{"selected": [2]}]} indeed', [2]),
    ('{"answers": [{"selected": [9]}]}', [0]),
    ('{"answers": []}', [0]),
    ('{"other": 1}', [0]),
]


@pytest.mark.parametrize(("said", "selected"), AGENT)
def test_the_model_answers_beside_the_conversation(tmp_path: Path, said: str, selected: list[Any]) -> None:
    room = Room(tmp_path, "text: " + said.replace("\n", "\\n"))
    response = room(model_answers.agent, ask.batch().question(way()))
    assert response.answer(1).selected() == selected
    assert room.world.log() == []
    assert len(room.world.of(MessageBeforeSend)) == 1


def test_a_model_that_gives_no_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NamespaceError, match="no answer in JSON"):
        Room(tmp_path, "text: no idea")(model_answers.agent, ask.batch().question(way()))
    with pytest.raises(BadArgument, match="no questions"):
        Room(tmp_path)(model_answers.agent, ask.batch())
