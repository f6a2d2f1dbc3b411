"""Paths in calls: guards read one spelling, and the tool opens the file that they read of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, Person, World

from cru.core.events.answers import Answer, Change
from cru.core.events.stamp import Event
from cru.core.guard.rules import PermissionReply, PermissionSubject
from cru.core.revisions.keeper import ChangeKeeper
from cru.core.turn.parts import FileChanges

# case: (what the model wrote, what guards read); ROOT and HOME stand for the project's root and the user's home
SPELLINGS: dict[str, tuple[str, str]] = {
    "as it is": ("secret/x.txt", "secret/x.txt"),
    "up and down": ("src/../secret/x.txt", "secret/x.txt"),
    "up and down, absolute": ("ROOT/src/../secret/x.txt", "ROOT/secret/x.txt"),
    "a dot": ("./secret/./x.txt", "secret/x.txt"),
    "two slashes": ("secret//x.txt", "secret/x.txt"),
    "two slashes at the beginning": ("/ROOT//secret/x.txt", "ROOT/secret/x.txt"),
    "three slashes at the beginning": ("//ROOT/secret/x.txt", "ROOT/secret/x.txt"),
    "a slash at the end": ("secret/x.txt/", "secret/x.txt"),
    "out of the project and back": ("../project/secret/x.txt", "secret/x.txt"),
    "out of the project": ("../other/x.txt", "HOME/other/x.txt"),
    "a sibling whose name begins as the root's": ("../project2/x.txt", "HOME/project2/x.txt"),
    "above the top": ("../../../../../../../../../../../../ROOT/secret/x.txt", "secret/x.txt"),
    "through a link": ("src/link/../x.txt", "src/x.txt"),
    "a link stays": ("src/link/x.txt", "src/link/x.txt"),
    "the home": ("~/project/secret/x.txt", "ROOT/secret/x.txt"),
    "up from the home": ("~/src/../project/secret/x.txt", "ROOT/secret/x.txt"),
    "a folder called ~": ("./~/x.txt", "ROOT/~/x.txt"),
}


def write(path: str) -> str:
    return f"call: write {json.dumps({'file_path': path, 'content': 'x'})}\n---\ntext: end\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "project" / "src" / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    return tmp_path


def filled(text: str, place: Path) -> str:
    return text.replace("ROOT", str(place / "project")).replace("HOME", str(place))


@pytest.mark.parametrize("case", SPELLINGS)
def test_guards_and_the_tool_have_the_same_path(place: Path, case: str) -> None:
    given, expected = (filled(text, place) for text in SPELLINGS[case])
    read: list[object] = []
    world = World(
        place, write(given), Ext({"tool:before_call": lambda event: read.append(event.payload.args["file_path"])}),
        settings={"mode": "trust", "permissions": {"allow": ["write"]}},
    )  # fmt: skip
    world.run("go")
    assert read == [expected]
    assert (place / "project" / expected).read_text() == "x", world.results()


@pytest.mark.parametrize("call", ["read", "edit", "ls", "glob", "grep"])
def test_each_tool_with_a_path_is_normalized(place: Path, call: str) -> None:
    name = "file_path" if call in ("read", "edit") else "path"
    more = {"edit": {"old_string": "", "new_string": "x"}, "glob": {"pattern": "*"}, "grep": {"pattern": "x"}}
    args = json.dumps({name: "src/../secret/", **more.get(call, {})})
    read: list[object] = []
    guard = Ext({"tool:before_call": lambda event: read.append(event.payload.args[name])})
    World(place, f"call: {call} {args}\n---\ntext: end\n", guard, settings={"mode": "trust"}).run("go")
    assert read == ["secret"]


def test_a_path_that_a_handler_gave_is_normalized_for_the_tool(place: Path) -> None:
    def rewrite(event: Event) -> Answer:
        return Answer(changes=(Change("args", "merge", {"file_path": "src/link/../moved.txt"}),))

    read: list[object] = []
    called = Ext({"tool:called": lambda event: read.append(event.payload.args["file_path"])}, "watch")
    World(place, write("a.txt"), Ext({"tool:before_call": rewrite}), called, settings={"mode": "trust"}).run("go")
    assert read == ["src/moved.txt"] and (place / "project" / "src" / "moved.txt").exists()


def test_a_command_is_not_taken_for_a_path(place: Path) -> None:
    read: list[object] = []
    guard = Ext({"tool:before_call": lambda event: read.append(event.payload.args["command"])})
    World(place, 'call: bash {"command": "true ./a/../b"}\n---\ntext: end\n', guard, settings={"mode": "trust"}).run(
        "go"
    )
    assert read == ["true ./a/../b"]


class SlowPerson(Person):
    """Answers when something else has put a link where the file was to be."""

    def __init__(self, link: Path, target: Path) -> None:
        super().__init__(PermissionReply("once"))
        self._link, self._target = link, target

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        self._link.symlink_to(self._target)
        return await super().ask(subject)


@pytest.mark.parametrize("answers", ["a person", "a handler"])
def test_an_answer_is_about_the_file_to_which_the_path_led_when_it_was_judged(place: Path, answers: str) -> None:
    link, target = place / "project/x.txt", place / "elsewhere/x.txt"

    def allow(_event: Event) -> Answer:
        link.symlink_to(target)
        return Answer(decision="allow")

    handlers = {"permission:requested": allow} if answers == "a handler" else {}
    person = SlowPerson(link, target)
    world = World(place, write("x.txt"), Ext(handlers), settings={"mode": "ask"}, asker=person)
    world.run("go")
    assert len(person.questions) == (answers == "a person")
    assert "leads elsewhere now" in world.results()[0]
    assert not target.exists()


def test_a_link_that_appears_while_earlier_commands_are_recorded_is_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, target = place / "project/x.txt", place / "elsewhere/x.txt"

    async def settle(_keeper: ChangeKeeper) -> None:
        link.symlink_to(target)

    monkeypatch.setattr(ChangeKeeper, "settle", settle)
    monkeypatch.setattr(FileChanges, "needs_record", lambda _changes, _tool, _root: True)
    world = World(place, write("x.txt"), settings={"mode": "auto"})
    world.run("go")
    assert link.is_symlink() and not target.exists()
    assert "leads elsewhere now" in world.results()[0]
