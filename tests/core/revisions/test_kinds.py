"""Folders, links and files that take each other's place: undo brings back all of it or refuses, and redo too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.core.revisions.git_place import Command, Place, append, link, mode, origin, remove, write

from cru.core.revisions import commands
from cru.core.revisions.records import ChangedBy, ChangeOrigin
from cru.core.revisions.restore import StepKind, apply, plan, summarize


@pytest.fixture(autouse=True)
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look begins only when something forces it."""
    monkeypatch.setattr(commands, "PAUSE", 3600.0)
    monkeypatch.setattr(commands, "LONGEST", 3600.0)


def move_behind_link(root: Path) -> None:
    write("folder/untracked")(root)
    (root / "folder").rename(root / "real")
    (root / "folder").symlink_to("real")


def only_move_behind_link(root: Path) -> None:
    (root / "folder").rename(root / "real")
    (root / "folder").symlink_to("real")


def move(root: Path) -> None:
    (root / "folder").rename(root / "real")


def chain(*commands: Command) -> Command:
    def run(root: Path) -> None:
        for command in commands:
            command(root)

    return run


FOLDER_TO_FILE = chain(remove("folder"), write("folder"))
FILE_TO_FOLDER = chain(remove("kept"), write("kept/a"), write("kept/b/c"))

CASES: dict[str, tuple[Command, ...]] = {
    "a folder moved behind a link": (only_move_behind_link,),
    "the same with new work": (move_behind_link, append("real/inner")),
    "in two commands": (move, link("folder", "real")),
    "a link in the place of a removed folder": (chain(remove("folder"), link("folder", "nowhere")),),
    "a removed file made again as a program": (remove("kept"), chain(write("kept"), mode("kept", 0o755))),
    "a folder replaced by a file": (FOLDER_TO_FILE, append("folder")),
    "a file replaced by a folder": (FILE_TO_FOLDER, append("kept/a")),
    "a file replaced by an empty folder": (chain(remove("kept"), lambda root: (root / "kept/x").mkdir(parents=True)),),
    "a link replaced by a folder": (chain(remove("link"), write("link/a")),),
    "a file replaced by a link": (chain(remove("kept"), link("kept", "gone")),),
    "there and back": (FILE_TO_FOLDER, chain(remove("kept"), write("kept", "kept\n"))),
    "a folder, a file, a folder": (FOLDER_TO_FILE, chain(remove("folder"), write("folder/new"))),
}


def run(place: Place, played: tuple[Command, ...], shared: bool) -> None:
    with place.running() as runner:
        for command in played:
            runner.run(place.play(command))
            if not shared:
                runner.run(place.watcher.settle())


@pytest.mark.sample(14)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "each"])
@pytest.mark.parametrize("case", CASES)
def test_kinds_that_change_come_back(tmp_path: Path, case: str, shared: bool) -> None:
    place = Place(tmp_path)
    run(place, CASES[case], shared)
    after = place.tree()
    for _ in range(2):
        place.move(backwards=True)
        assert place.tree() == place.before
        place.move(backwards=False)
        assert place.tree() == after


@pytest.mark.parametrize(
    ("command", "user", "blocked"),
    [
        pytest.param(move, link("folder", "real"), "its folder is a link now", id="a link"),
        pytest.param(remove("folder"), write("folder"), "a file lies in the place of its folder", id="a file"),
        pytest.param(remove("kept"), write("kept/mine"), "a folder with other files lies there", id="a folder"),
        pytest.param(
            FILE_TO_FOLDER, write("kept/mine"), "a folder with other files lies there", id="a file among them"
        ),
    ],
)
def test_what_someone_else_put_in_the_way_is_named_and_nothing_is_touched(
    tmp_path: Path, command: Command, user: Command, blocked: str
) -> None:
    place = Place(tmp_path)
    run(place, (command,), True)
    user(place.root)
    before = place.tree()
    steps = plan(place.store, summarize(place.store.changes()), backwards=True)
    assert blocked in [step.why for step in steps if step.kind is StepKind.BLOCKED]
    assert apply(place.store, steps, ChangeOrigin(ChangedBy.UNDO)).changed == () and place.tree() == before


def test_a_file_waits_for_the_decision_about_what_is_in_its_way(tmp_path: Path) -> None:
    place = Place(tmp_path)
    run(place, (FOLDER_TO_FILE,), True)
    append("folder")(place.root)
    steps = plan(place.store, summarize(place.store.changes()), backwards=True)
    assert {step.kind for step in steps} == {StepKind.CHANGED} and len(steps) == 2
    assert not apply(place.store, steps, ChangeOrigin(ChangedBy.UNDO)).failed
    assert place.tree() == place.before


def test_a_link_that_leads_to_itself_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path)
    run(place, (chain(remove("folder"), link("folder", "folder")),), True)
    assert place.looks() == [("call_1", "git cannot look past a link that leads to itself: folder")]


@pytest.mark.parametrize(
    ("umask", "now", "then"),
    [
        (0o022, 0o755, 0o644),
        (0o022, 0o777, 0o666),
        (0o027, 0o755, 0o640),
        (0o077, 0o755, 0o600),
        (0o077, 0o700, 0o600),
        (0o002, 0o775, 0o664),
    ],
    indirect=["umask"],
)
def test_undo_lets_nobody_read_what_the_umask_keeps_private(tmp_path: Path, umask: int, now: int, then: int) -> None:
    """git does not know whether a file was 0600 or 0644 before a command made a program of it."""
    place = Place(tmp_path)
    with place.running() as runner:
        runner.run(place.play(mode("kept", now)))
        runner.run(place.watcher.settle())
    place.move(backwards=True)
    assert (place.root / "kept").stat().st_mode & 0o777 == then


@pytest.mark.parametrize(
    ("then", "now", "content"),
    [
        (0o600, 0o644, "other\n"),
        (0o600, None, ""),
        (0o755, 0o600, "other\n"),
        (0o644, 0o755, "kept\n"),
        (0o4711, None, ""),
    ],
)
def test_undo_gives_content_and_mode_back_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: int, now: int | None, content: str
) -> None:
    """A kill or a power cut in between must not leave a private file that all may read."""
    place, appeared = Place(tmp_path), list[int]()
    file = place.root / "kept"
    file.chmod(then)
    begun = place.keeper.begin([str(file)], origin("write", "prompt"))
    file.unlink() if now is None else file.write_text(content)
    if now is not None:
        file.chmod(now)
    place.keeper.end(begun)

    def replace(source: str, target: str, **folders: int) -> None:
        appeared.append(stat.S_IMODE(os.stat(source, dir_fd=folders["src_dir_fd"]).st_mode))
        os.rename(source, target, **folders)

    monkeypatch.setattr("cru.core.base.files.atomic.os.replace", replace)
    steps = plan(place.store, summarize(place.store.changes()), backwards=True)
    place.store.keep(str(file))
    assert not apply(place.store, steps, ChangeOrigin(ChangedBy.UNDO)).failed
    assert appeared[-1] == then == stat.S_IMODE(file.stat().st_mode) and file.read_text() == "kept\n"
