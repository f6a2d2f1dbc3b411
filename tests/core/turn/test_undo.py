"""/undo, /redo and /diff in a session: messages and files together, nothing erased, nothing of somebody else's overwritten."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import MadeTool, Person, World
from tests.kit.closing import close_later

from cru.core.base.files import unsynced
from cru.core.base.values.messages import Entry
from cru.core.commands.errors import BadCommand
from cru.core.conversations.entries import apply_anchor
from cru.core.conversations.store import FileContext
from cru.core.events.stream import CommandSaid
from cru.core.guard.rules.gate import PermissionReply
from cru.core.records.requests import decode_trace_line, rebuild_request
from cru.core.revisions import restore
from cru.core.revisions.records import PathState
from cru.core.turn import NothingToUndo, UndoRefused
from cru.core.turn.recorder import RequestLine
from cru.core.undo.turns import carry_out, plan_undo


def write(name: str, content: str) -> str:
    return f"call: write {json.dumps({'file_path': name, 'content': content})}\n"


SCRIPT = "\n---\n".join(
    [
        f"by: order\n{write('a', 'one' + chr(10))}{write('deep/b', 'b' + chr(10))}", "text: first done",
        write("a", "two\n"), "text: second done", "text: more", "text: more",
    ]
)  # fmt: skip


class Desk(World):
    """A session whose tools may write, with a file in its project."""

    def __init__(self, path: Path, script: str = SCRIPT, **more: Any) -> None:
        super().__init__(path, script, settings={"mode": "trust", **more.pop("settings", {})}, **more)
        self.a = path / "project/a"
        if script:
            self.a.write_text("zero\n")

    def type(self, *texts: str) -> list[str]:
        """What was shown after these were typed."""
        begun = len(self.of(CommandSaid))

        async def run() -> None:
            for text in texts:
                self.session.submit(text)
                await self.session.run()

        asyncio.run(run())
        return [said.text for said in self.of(CommandSaid)[begun:]]

    def texts(self) -> list[str]:
        """What the model sees."""
        return [message.content for message in self.session.parts.history.messages() if message.role != "tool"]

    def files(self) -> dict[str, str]:
        root = self.path / "project"
        return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.run("first", "second")
    return desk


def test_what_undo_replaces_is_durable_before_it_is_replaced(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut in between would leave neither the user's change nor a copy of it."""
    desk.a.write_text("my own words\n")
    pending: list[list[str]] = []
    really_put = restore.put

    def put(file: str, state: PathState, data: bytes) -> None:
        pending.append([path for path in unsynced if "/blobs/" in path])
        really_put(file, state, data)

    parts = desk.session.parts
    planned = plan_undo(parts, 2)
    monkeypatch.setattr(restore, "put", put)
    carry_out(parts, planned, overwrite=True)
    assert pending == [[], []] and desk.files()["a"] == "zero\n"


def test_undo_and_redo_take_messages_and_files_together(desk: Desk) -> None:
    states = [(desk.texts(), desk.files())]
    [shown] = desk.type("/undo")
    assert shown == "1 turn is taken back: “second”\nfiles: a\n/redo brings it again, until the next prompt"
    states.append((desk.texts(), desk.files()))
    assert states[1] == (["first", "", "first done"], {"a": "one\n", "deep/b": "b\n"})
    assert desk.type("/undo")[0].startswith("1 turn is taken back: “first”\nfiles: a, deep/b\n")
    assert (desk.texts(), desk.files()) == ([], {"a": "zero\n"}) and not (desk.path / "project/deep").exists()
    assert desk.type("/redo") == ["1 turn is here again: “first”\nfiles: a, deep/b\n/undo takes it back"]
    assert (desk.texts(), desk.files()) == states[1]
    desk.type("/redo")
    assert (desk.texts(), desk.files()) == states[0]
    with pytest.raises(NothingToUndo, match="nothing to bring again"):
        desk.type("/redo")


def test_several_turns_go_and_come_at_once(desk: Desk) -> None:
    before = (desk.texts(), desk.files())
    assert desk.type("/undo 7")[0].startswith("2 turns are taken back: “first”, “second”\nfiles: a, deep/b\n")
    assert (desk.texts(), desk.files()) == ([], {"a": "zero\n"})
    desk.type("/redo")
    assert (desk.texts(), desk.files()) == before
    with pytest.raises(NothingToUndo, match="main has no turn to take back"):
        desk.type("/undo 2", "/undo")


def test_nothing_is_erased_and_another_process_sees_the_same(desk: Desk) -> None:
    everything = [entry.id for entry in desk.log()]
    desk.type("/undo", "/undo", "/redo")
    assert [entry.id for entry in desk.log()][: len(everything)] == everything
    other = FileContext(desk.built.store.folder)
    assert [e.id for e in other.visible()] == [e.id for e in desk.built.store.visible()]
    assert list(other.undone()) == list(desk.built.store.undone()) != []
    other.close()
    later = Desk(desk.path, "")
    later.type("/redo")
    assert later.files()["a"] == "two\n" and later.texts()[-1] == "second done"


def test_a_prompt_ends_what_can_be_redone_and_goes_on_from_what_is_left(desk: Desk) -> None:
    desk.type("/undo")
    desk.run("third")
    assert desk.texts() == ["first", "", "first done", "third", "more"]
    with pytest.raises(NothingToUndo):
        desk.type("/redo")
    assert desk.built.store.undone() == {}
    assert desk.type("/undo")[0].startswith("1 turn is taken back: “third”")
    assert desk.type("/undo")[0].startswith("1 turn is taken back: “first”")


def test_every_request_is_rebuilt_as_it_was_sent_also_after_undo_and_redo(desk: Desk) -> None:
    desk.type("/undo", "/redo")
    desk.run("third")
    desk.type("/undo 2")
    desk.run("fourth")
    desk.session.parts.recorder.flush()
    lines = [decode_trace_line(x) for x in (desk.built.store.folder / "trace.jsonl").read_bytes().splitlines()]
    recipes = [line for line in lines if line.kind == "request"]
    assert len(recipes) == len(desk.requests) == 6
    import msgspec

    for line, sent in zip(recipes, desk.requests, strict=True):
        recipe = msgspec.convert({**line.data, "k": "request"}, RequestLine)
        rebuilt = rebuild_request(recipe, desk.built.store.everything(), desk.built.store.folder)
        assert rebuilt.messages == sent.messages


def test_a_compaction_ends_the_redo_and_undo_takes_what_is_left(desk: Desk) -> None:
    desk.run("third")
    desk.type("/undo")
    desk.type("/compact")
    assert desk.built.store.undone() == {}
    with pytest.raises(NothingToUndo, match="nothing to bring again"):
        desk.type("/redo")
    with pytest.raises(NothingToUndo) as caught:
        desk.type("/undo")
    assert "cru history" in caught.value.hint and desk.a.read_text() == "two\n"


def test_undo_keeps_the_summary_of_an_earlier_compaction(desk: Desk) -> None:
    desk.type("/compact")
    summary = desk.built.store.summary()
    desk.run("fourth")
    desk.type("/undo")
    assert desk.built.store.summary() == summary == "more"


@pytest.mark.parametrize("reply", [None, PermissionReply("no"), PermissionReply("once")])
def test_a_file_that_somebody_else_changed_is_shown_and_asked(tmp_path: Path, reply: PermissionReply | None) -> None:
    person = Person(reply)
    desk = Desk(tmp_path, asker=person)
    desk.run("first")
    desk.a.write_text("mine\n")
    before = (desk.texts(), desk.files())
    if reply is not None and reply.choice == "once":
        desk.type("/undo")
        assert desk.a.read_text() == "zero\n" and desk.texts() == []
        desk.type("/redo")
        assert desk.a.read_text() == "one\n"
    else:
        with pytest.raises(UndoRefused, match=r"changed by someone else, so nothing was done: .*/a"):
            desk.type("/undo")
        assert (desk.texts(), desk.files()) == before
    assert "-one\n+mine" in person.questions[0].preview and person.questions[0].detail == "a"


@pytest.mark.parametrize(
    ("changes", "undo", "left"),
    [
        pytest.param(("theirs\n",), "/undo 2", None, id="an edit"),
        pytest.param((None,), "/undo 2", None, id="removed"),
        pytest.param(("theirs\n", "one\n"), "/undo 2", "zero\n", id="there and back"),
        pytest.param((), "/undo 2", "zero\n", id="nothing"),
        pytest.param(("theirs\n",), "/undo", "theirs\n", id="only the last turn"),
        pytest.param(("theirs\n",), "/undo 2 --leave", "two\n", id="left"),
    ],
)
def test_what_the_user_changed_between_turns_is_not_erased(
    tmp_path: Path, changes: tuple[str | None, ...], undo: str, left: str | None
) -> None:
    desk = Desk(tmp_path)
    desk.run("first")
    for content in changes:
        desk.a.unlink() if content is None else desk.a.write_text(content)
    desk.run("second")
    if left is None:
        with pytest.raises(
            UndoRefused, match=r"changed by someone else, so nothing was done: .*/a \(between the changes"
        ):
            desk.type(undo)
        assert desk.files() == {"a": "two\n", "deep/b": "b\n"}
    else:
        desk.type(undo)
        assert desk.files()["a"] == left


def test_a_person_sees_what_they_changed_between_turns_and_decides(tmp_path: Path) -> None:
    person = Person(PermissionReply("once"))
    desk = Desk(tmp_path, asker=person)
    desk.run("first")
    desk.a.write_text("mine\n")
    desk.run("second")
    [shown] = desk.type("/diff 2")
    assert "-one" not in shown and "-mine\n+two" in shown and "-zero\n+one" in shown
    desk.type("/undo 2")
    assert "-one\n+mine" in person.questions[0].preview and desk.a.read_text() == "zero\n"
    desk.type("/redo")
    assert desk.a.read_text() == "two\n"


def test_leave_takes_back_the_rest(desk: Desk) -> None:
    desk.a.write_text("mine\n")
    [shown] = desk.type("/undo 2 --leave")
    assert "files: deep/b\nleft as they are, since someone else changed them: a\n" in shown
    assert desk.files() == {"a": "mine\n"} and desk.texts() == []
    assert desk.type("/redo --leave")[0].count("left as they are") == 1
    assert desk.files() == {"a": "mine\n", "deep/b": "b\n"}


def test_another_context_that_changed_the_file_is_somebody_else(desk: Desk) -> None:
    from cru.core.compose import Start, build

    start = Start(
        desk.path / "home", "other", {"PATH": "/usr/bin:/bin", "HOME": str(desk.path), "CRU_SANDBOX": "off"},
        desk.path / "project", desk.path / "project", {"model": f"scripted:{desk.path / 'script.txt'}", "mode": "trust"},
    )  # fmt: skip
    (desk.path / "script.txt").write_text("by: order\n" + write("a", "of the other\n") + "---\ntext: ok\n")
    other = build(start)
    close_later(other.close)

    async def run() -> None:
        other.session.submit("theirs")
        await other.session.run()

    asyncio.run(run())
    with pytest.raises(UndoRefused):
        desk.type("/undo")
    other.session.submit("/undo")
    asyncio.run(other.session.run())
    assert desk.a.read_text() == "two\n"
    desk.type("/undo")
    assert desk.a.read_text() == "one\n"


def test_what_cannot_be_taken_back_is_named(tmp_path: Path) -> None:
    calls = (
        'call: bash {"command": "echo x > out"}\ncall: deliver {}\ncall: edit {"file_path": "a", "old_string": "no", "new_string": "y"}\n'
        'call: read {"file_path": "a"}\n'
    )
    desk = Desk(tmp_path, f"by: order\n{calls}---\ntext: done\n", settings={"undo": {"commands": False}})
    tool = MadeTool("deliver", str)
    tool.kind = "tool"
    desk.session.parts.tools.add(tool)
    desk.run("go")
    [shown] = desk.type("/undo")
    assert shown.splitlines()[1:-1] == [
        "commands ran that cannot be taken back: `echo x > out`", "tools ran whose effects are not known: deliver",
    ]  # fmt: skip
    assert (desk.path / "project/out").exists()


def test_a_file_that_could_not_be_kept_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.path / "home/revisions").write_text("in the way")
    desk.run("first")
    assert [text for text in desk.notices() if "may not be taken back by /undo" in text] == desk.notices()
    assert len(desk.notices()) == 1 and desk.a.read_text() == "one\n"
    (desk.path / "home/revisions").unlink()
    assert "files were written of which no revision is kept: `a`, `deep/b`" in desk.type("/undo")[0]
    assert desk.a.read_text() == "one\n" and desk.texts() == []


def test_nothing_is_kept_if_it_is_switched_off(tmp_path: Path) -> None:
    desk = Desk(tmp_path, settings={"undo": {"enabled": False}})
    desk.run("first")
    assert "files were written of which no revision is kept: `a`, `deep/b`" in desk.type("/undo")[0]
    assert not (desk.path / "home/revisions").exists() and desk.texts() == []


def test_a_denied_call_is_not_named(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        'by: order\ncall: bash {"command": "rm x"}\n---\ntext: ok\n',
        settings={"mode": "plan"},
    )
    desk.run("go")
    assert desk.type("/undo") == ["1 turn is taken back: “go”\n/redo brings it again, until the next prompt"]


def test_undo_is_refused_while_a_sub_agent_works(desk: Desk) -> None:
    class Work:
        def running_agents(self) -> tuple[str, ...]:
            return ("t1 (look around)",)

    desk.session.parts.services.tasks.background = Work()  # type: ignore[assignment]
    with pytest.raises(UndoRefused, match=r"sub-agents are at work and may change files: t1 \(look around\)"):
        desk.type("/undo")
    assert desk.a.read_text() == "two\n"
    desk.session.parts.services.tasks.background = None


def test_diff_shows_the_last_turn_or_more(desk: Desk) -> None:
    last = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two"
    everything = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-zero\n+two\n--- /dev/null\n+++ b/deep/b\n@@ -0,0 +1 @@\n+b"
    assert desk.type("/diff", "/diff 2", "/diff all", "/diff 9") == [last, everything, everything, everything]
    desk.run("third")
    assert desk.type("/diff") == ["no file was changed in this turn"]


@pytest.mark.parametrize("text", ["/undo two", "/undo 0", "/undo -1", "/redo 2", "/diff x", "/undo ²"])
def test_words_that_do_not_fit_are_refused(desk: Desk, text: str) -> None:
    with pytest.raises(BadCommand):
        desk.type(text)
    assert desk.a.read_text() == "two\n"


def test_a_thousand_turns_are_taken_back_and_come_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "loop: yes\ntext: ok\n")
    store = desk.built.store
    for number in range(1000):
        store.append(
            Entry(f"p{number}", 1, "user", "main", str(number), "message", "user"),
            Entry(f"r{number}", 1, "main", "user", "ok", "message", "agent"),
        )
    desk.type("/undo 400", "/undo")
    assert len(store.visible()) == 1198
    desk.type("/redo", "/redo")
    assert len(store.visible()) == 2000 and len(desk.texts()) == 2000


def test_an_anchor_of_an_undo_that_nobody_knows_keeps_what_it_can() -> None:
    seen = [Entry("a", 1), Entry("b", 1)]
    redo = Entry("r", 1, metadata={"kind": "redo", "redoes": "gone", "keep": ["a", "x"]}, entry_type="anchor")
    assert [e.id for e in apply_anchor(redo, {"a", "x"}, seen, {})] == ["a"]


def test_scripts_take_turns_back_with_their_files_and_see_what_can_come_again(desk: Desk) -> None:
    from cru.core.undo.turns import carry_out, plan_undo, undone_turns

    carry_out(desk.session.parts, plan_undo(desk.session.parts, 2))
    assert desk.files() == {"a": "zero\n"}
    assert list(undone_turns(desk.built.store)) == [("first", "second")]
