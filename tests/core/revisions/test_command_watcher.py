"""What commands change in a git work tree: how often git is run, what shares a look, what forces one, and that everything comes back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from tests.core.revisions.git_place import Command, Place, append, git, mode, origin, remove, write

from cru.core.revisions import StoreFailed, commands
from cru.core.revisions.commands import LONG_LIST, MOST_FILES, CommandWatcher
from cru.core.revisions.records import ChangedBy, ChangeOrigin, CommandLook, PathState

TAKE_IN, LOOK, DETAILS, FLAGS = ["add", "ls-files"], ["ls-files"], ["diff-files", "cat-file"], ["ls-files"]


@pytest.fixture(autouse=True)
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look begins only when something forces it."""
    monkeypatch.setattr(commands, "PAUSE", 3600.0)
    monkeypatch.setattr(commands, "LONGEST", 3600.0)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")


def relink(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("gone")


def nothing(root: Path) -> None:
    pass


CASES: dict[str, tuple[Command, ...]] = {
    "one file again and again": (append("kept"), append("kept"), append("kept")),
    "there and back": (append("kept"), write("kept", "kept\n"), nothing),
    "there, back and away": (append("kept"), write("kept", "kept\n"), write("kept", "other\n")),
    "new, changed, deleted": (write("new"), append("new"), remove("new")),
    "new below new folders": (write("a/b/c"), append("a/b/c"), write("a/d")),
    "deleted and made again": (remove("gone"), write("gone", "other\n"), append("gone")),
    "a name with a newline": (write("two\nlines"), append("two\nlines"), append("kept")),
    "a tracked name that looks like a pattern": (write(":(top)*"), commit, append(":(top)*")),
    "a mode": (mode("kept", 0o755), append("kept"), mode("kept", 0o644)),
    "only a mode": (mode("kept", 0o755), nothing, mode("draft", 0o755)),
    "a deleted folder": (append("folder/inner"), remove("folder"), nothing),
    "a link": (relink, append("gone"), nothing),
    "a link that becomes a file": (remove("link"), write("link"), append("link")),
    "a commit in between": (append("kept"), commit, append("kept")),
    "a commit of what was no file before": (append("draft"), commit, remove("draft")),
}


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])
@pytest.mark.parametrize("case", CASES)
def test_all_comes_back_whether_commands_share_a_look_or_not(place: Place, case: str, shared: bool) -> None:
    async def run() -> None:
        for command in CASES[case]:
            await place.play(command)
            if not shared:
                await place.watcher.settle()
        await place.watcher.settle()

    with place.running() as runner:
        runner.run(run())
    after = place.tree()
    assert place.looks() == [(f"call_{number}", "") for number in (1, 2, 3)]
    place.move(backwards=True)
    assert place.tree() == place.before
    place.move(backwards=False)
    assert place.tree() == after and not place.told


def test_a_new_file_that_is_ignored_later_stays_known(place: Place) -> None:
    with place.running() as runner:
        for command in (write("new"), write(".gitignore", "new\n"), append("new")):
            runner.run(place.play(command))
            runner.run(place.watcher.settle())
    place.move(backwards=True)
    assert place.tree() == place.before


def test_repositories_inside_and_files_that_are_not_checked_out_are_left_alone(place: Place) -> None:
    inner = place.root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "file").write_text("1\n")
    commit(inner)
    git(place.root, "update-index", "--skip-worktree", "gone")
    (place.root / "gone").unlink()
    with place.running() as runner:
        for command in (append("inner/file"), lambda root: commit(inner), append("kept")):
            runner.run(place.play(command))
            runner.run(place.watcher.settle())
    assert place.looks() == [(f"call_{number}", "") for number in (1, 2, 3)]
    assert [change.path for change in place.store.changes()] == [str(place.root / "kept")]


def test_ten_quick_commands_share_a_look_and_each_has_its_line(place: Place) -> None:
    with place.running() as runner:
        runner.run(place.play(*(append("kept", f"{number}\n") for number in range(10))))
        assert place.git_runs() == FLAGS + TAKE_IN and place.watcher.is_looking and not place.looks()
        runner.run(place.watcher.settle())
    assert place.git_runs() == LOOK + DETAILS and not place.watcher.is_looking
    assert place.looks() == [(f"call_{number}", "") for number in range(1, 11)]
    [change] = place.store.changes()
    assert change.origin.call == "call_10" and place.store.content(change.before) == b"kept\n"
    assert place.store.content(change.after) == (place.root / "kept").read_bytes()


def test_a_look_runs_git_once_and_more_only_for_files_that_it_does_not_know(place: Place) -> None:
    rounds: list[tuple[Command, list[str]]] = [
        (nothing, FLAGS + TAKE_IN + LOOK),
        (append("kept"), LOOK + DETAILS),
        (append("kept"), LOOK),
        (nothing, LOOK),
        (commit, LOOK),
        (append("gone"), LOOK + DETAILS),
        (write("new"), LOOK),
        (write("folder/new"), LOOK + LOOK),
        (append("folder/new"), LOOK),
    ]
    with place.running() as runner:
        for number, (command, runs) in enumerate(rounds):
            runner.run(place.play(command))
            runner.run(place.watcher.settle())
            assert place.git_runs() == runs, number


def test_a_long_list_of_changes_is_taken_in_again_and_forgets_nothing(place: Place) -> None:
    def many(root: Path) -> None:
        for number in range(LONG_LIST + 1):
            append(f"many-{number}")(root)

    with place.running() as runner:
        for runs in (FLAGS + TAKE_IN + LOOK + TAKE_IN, LOOK + DETAILS + TAKE_IN, LOOK + DETAILS + TAKE_IN):
            runner.run(place.play(many))
            runner.run(place.watcher.settle())
            assert place.git_runs() == runs
        runner.run(place.play(append("many-0")))
        runner.run(place.watcher.settle())
    assert place.looks() == [(f"call_{number}", "") for number in (1, 2, 3, 4)]
    place.move(backwards=True)
    assert place.tree() == place.before


def test_after_a_look_that_failed_the_next_command_is_known_again(place: Place) -> None:
    def too_many(root: Path) -> None:
        for number in range(MOST_FILES + 1):
            append(f"many-{number}")(root)

    with place.running() as runner:
        for command in (too_many, append("kept")):
            runner.run(place.play(command))
            runner.run(place.watcher.settle())
    assert place.looks() == [("call_1", "1,001 files were changed"), ("call_2", "")]
    assert [change.path for change in place.store.changes()] == [str(place.root / "kept")]


async def end_turn(place: Place) -> None:
    place.keeper.begin_look()
    await place.watcher._wait()


FORCED: dict[str, Callable[[Place], Coroutine[object, object, None]]] = {
    "a tool that writes, /undo, /diff": lambda place: place.keeper.settle(),
    "the end of the session": lambda place: place.keeper.close(),
    "the end of the turn": end_turn,
    "the next turn": lambda place: place.play(nothing, prompt="prompt-2"),
    "a sub-agent's command": lambda place: place.play(nothing, agent="agent-1"),
}


@pytest.mark.parametrize("case", FORCED)
def test_a_pending_look_is_forced(place: Place, case: str) -> None:
    with place.running() as runner:
        runner.run(place.play(append("kept"), append("gone")))
        assert place.keeper.is_looking and not place.looks()
        runner.run(FORCED[case](place))
        assert place.looks() == [("call_1", ""), ("call_2", "")]
    assert {change.origin for change in place.store.changes()} == {origin("call_2")}


def test_commands_of_two_agents_share_no_look_even_if_they_end_together(place: Place) -> None:
    async def run() -> None:
        one, other = origin("call_1"), origin("call_2", agent="agent-1")
        await place.watcher.before(one)
        await place.watcher.before(other)
        append("kept")(place.root)
        place.watcher.after(one, "one")
        place.watcher.after(other, "other")
        await place.watcher.settle()

    with place.running() as runner:
        runner.run(run())
    assert place.looks() == [("call_1", ""), ("call_2", "")]
    [change] = place.store.changes()
    assert change.origin == origin("call_1")


def test_what_a_tool_writes_between_two_commands_is_the_tools(place: Place) -> None:
    by = ChangeOrigin(ChangedBy.TOOL, "session", "main", "prompt-1", "write", "call_tool")

    async def run() -> None:
        await place.play(append("kept"))
        await place.keeper.settle()
        place.keeper.keep(str(place.root / "kept"), b"tool\n", by)
        write("kept", "tool\n")(place.root)
        await place.play(nothing)
        await place.play(append("kept"))
        await place.watcher.settle()

    with place.running() as runner:
        runner.run(run())
    assert [change.origin.call for change in place.store.changes()] == ["call_1", "call_tool", "call_3"]
    place.move(backwards=True)
    assert place.tree() == place.before


def test_a_look_begins_after_a_while_although_a_command_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "LONGEST", 0.0)

    async def run() -> None:
        await place.play(append("kept"))
        running = origin("call_2")
        await place.watcher.before(running)
        while place.watcher.is_looking:
            await asyncio.sleep(0)
        assert place.looks() == [("call_1", "")], "a kill while the next command runs loses nothing of the first"
        place.watcher.after(running, "long")

    with place.running() as runner:
        runner.run(run())
    assert len(place.looks()) == 2


def test_commands_that_begin_together_all_wait_for_the_work_tree_to_be_taken_in(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        gate = asyncio.Event()
        monkeypatch.setattr(place.watcher._index, "take_in", gate.wait)
        both = [asyncio.ensure_future(place.watcher.before(origin(call))) for call in ("call_1", "call_2")]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(begun.done() for begun in both)
        gate.set()
        await asyncio.gather(*both)

    with place.running() as runner:
        runner.run(run())


def test_what_could_not_be_recorded_is_found_by_the_next_look(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*changes: object) -> None:
        raise StoreFailed("the disk is full")

    with place.running() as runner:
        with monkeypatch.context() as broken:
            broken.setattr(place.store, "record", fail)
            runner.run(place.play(append("kept")))
            runner.run(place.watcher.settle())
        assert place.told == ["the disk is full"] and not place.looks()
        runner.run(place.play(append("kept")))
        runner.run(place.watcher.settle())
    assert place.looks() == [("call_2", "")], "/undo names the first, which has no line"
    place.move(backwards=True)
    assert place.tree() == place.before


def test_a_file_that_was_not_touched_is_not_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    keep = place.store.keep

    def keep_and_note(path: str) -> PathState:
        read.append(os.path.basename(path))
        return keep(path)

    monkeypatch.setattr(place.store, "keep", keep_and_note)
    changed_just_now, changed_long_ago = commands.RACY, -3600.0
    rounds: list[tuple[float, Command, list[str]]] = [
        (changed_just_now, append("kept"), ["kept"]),
        (changed_just_now, nothing, ["kept"]),
        (changed_long_ago, append("gone"), ["gone", "kept"]),
        (changed_long_ago, nothing, []),
        (changed_long_ago, mode("gone", 0o755), ["gone"]),
    ]
    with place.running() as runner:
        for racy, command, names in rounds:
            monkeypatch.setattr(commands, "RACY", racy)
            runner.run(place.play(command))
            runner.run(place.watcher.settle())
            assert sorted(read) == names
            read.clear()


def test_a_status_proves_nothing_of_a_file_that_was_changed_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    changed = os.lstat(file).st_ctime
    for age, proves in ((0.0, False), (1.9, False), (2.1, True), (100.0, True), (-5.0, False)):
        monkeypatch.setattr("cru.core.revisions.commands.time.time", lambda age=age: changed + age)
        assert (commands._stamp(str(file)) is not None) is proves, age
    assert commands._stamp(str(tmp_path / "missing")) is None


class SlowWatcher(CommandWatcher):
    """Each look takes until it is let go."""

    gates: list[asyncio.Event]
    seen: list[str]

    async def _look_behind(self, earlier: asyncio.Task[None] | None, pending: list[CommandLook]) -> None:  # type: ignore[override]
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        self.seen += [look.command for look in pending]


def test_who_waits_for_a_look_waits_for_one_that_begins_meanwhile_too(place: Place) -> None:
    watcher = SlowWatcher(place.store, place.watcher._index, place.warn)
    watcher.gates, watcher.seen = [], []

    async def run() -> None:
        watcher.after(origin("call_1"), "first")
        waiting = asyncio.ensure_future(watcher.settle())
        await asyncio.sleep(0)
        watcher.after(origin("call_2"), "second")
        for _ in range(5):
            await asyncio.sleep(0)
        watcher.gates[0].set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done() and watcher.seen == ["first"]
        watcher.gates[1].set()
        await waiting

    asyncio.run(run())
    assert watcher.seen == ["first", "second"] and not watcher.is_looking


def test_a_command_that_ends_during_the_look_behind_another_one_is_looked_behind(place: Place) -> None:
    """The first one has changed so much that its look would take the work tree in again."""

    async def run() -> None:
        watcher = place.watcher
        await watcher.before(origin("c1"))
        for number in range(LONG_LIST + 1):
            write(f"new{number}")(place.root)
        watcher.after(origin("c1"), "much")
        await watcher.before(origin("c2"))
        find = watcher._index.contents

        async def contents(*arguments: object) -> dict[str, bytes]:
            append("kept")(place.root)
            watcher.after(origin("c2"), "append")
            return await find(*arguments)  # type: ignore[arg-type]

        watcher._index.contents = contents  # type: ignore[method-assign,assignment]
        watcher.begin_look()
        await watcher._wait()
        watcher._index.contents = find  # type: ignore[method-assign]
        await watcher.settle()

    with place.running() as runner:
        runner.run(run())
    assert str(place.root / "kept") in [change.path for change in place.store.changes()]


def test_a_turn_that_begins_beside_a_command_of_another_one_loses_no_command(place: Place) -> None:
    async def run() -> None:
        watcher, background = place.watcher, origin("b1", "P1", "agent")
        first, second = origin("m1", "P2"), origin("m2", "P2")
        await watcher.before(background)
        await watcher.before(first)
        watcher.after(background, "sleep")
        await watcher.settle()
        append("kept")(place.root)
        watcher.after(first, "append")
        await watcher.before(second)
        append("draft")(place.root)
        watcher.after(second, "append")
        await watcher.settle()

    with place.running() as runner:
        runner.run(run())
    assert {str(place.root / name) for name in ("kept", "draft")} <= {change.path for change in place.store.changes()}
