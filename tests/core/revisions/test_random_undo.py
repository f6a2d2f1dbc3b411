"""Random tool edits, commands, edits of the user, links, kinds, undo and redo, against a model: snapshots of the file system."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.core.revisions.git_place import Command, Place, append, link, mode, origin, remove, write

from cru.core.revisions import commands
from cru.core.revisions.records import ChangedBy, ChangeOrigin
from cru.core.revisions.restore import StepKind, apply, plan, summarize
from cru.core.revisions.work_tree import _is_loop

NAMES = ("kept", "draft", "folder", "folder/inner", "new", "new/a", "new/b/c", "link", "real")
UNDO = ChangeOrigin(ChangedBy.UNDO)


@pytest.fixture(autouse=True)
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look begins only when something forces it."""
    monkeypatch.setattr(commands, "PAUSE", 3600.0)
    monkeypatch.setattr(commands, "LONGEST", 3600.0)


def is_real(root: Path, name: str) -> bool:
    """Whether no link or file lies above it."""
    folder = (root / name).parent
    return (
        os.path.realpath(folder) == str(folder)
        and not any(above.is_file() for above in folder.parents if above.is_relative_to(root))
        and not folder.is_file()
    )


def clear(root: Path, name: str) -> None:
    """Remove what lies at a path, and files or links in the place of the folders above it."""
    for part in [*reversed((root / name).relative_to(root).parents), Path(name)][1:]:
        place = root / part
        if part == Path(name) and os.path.lexists(place):
            place.unlink() if place.is_symlink() else remove(str(part))(root)
        elif place.is_symlink() or place.is_file():
            place.unlink()


def act(rng: random.Random, root: Path) -> None:
    """Do one random thing to files, as a command or a user would."""
    name, text = rng.choice(NAMES), f"{rng.random()}\n"
    kind = rng.choice(("write", "write", "append", "remove", "mode", "link", "move behind link", "move"))
    if kind == "append" and is_real(root, name) and (root / name).is_file() and not (root / name).is_symlink():
        append(name, text)(root)
    elif kind == "mode" and is_real(root, name) and (root / name).is_file() and not (root / name).is_symlink():
        mode(name, rng.choice((0o644, 0o755)))(root)
    elif kind == "remove":
        clear(root, name)
    elif kind == "link":
        clear(root, name)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        link(name, rng.choice(("kept", "folder", "nowhere")))(root)
        if _is_loop(str(root / name)):  # cru cannot look past these; test_kinds.py has them
            (root / name).unlink()
    elif kind.startswith("move") and (root / "folder").is_dir() and not (root / "folder").is_symlink():
        clear(root, "real")
        (root / "folder").rename(root / "real")
        if kind == "move behind link":
            link("folder", "real")(root)
    elif kind == "write":
        clear(root, name)
        write(name, text)(root)


def command(rng: random.Random) -> Command:
    def run(root: Path) -> None:
        for _ in range(rng.randint(1, 4)):
            act(rng, root)

    return run


def edit_by_tool(place: Place, rng: random.Random, prompt: str) -> None:
    name = rng.choice(NAMES)
    if is_real(place.root, name) and not (place.root / name).is_dir() and not (place.root / name).is_symlink():
        data = f"{rng.random()}\n".encode()
        by = replace(origin("write", prompt), by=ChangedBy.TOOL)
        place.keeper.keep(str(place.root / name), data, by)
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_bytes(data)


def move(place: Place, prompts: set[str], *, backwards: bool) -> set[StepKind]:
    """Undo or redo turns as /undo does: not at all if a person would have to decide. Return the kinds of its steps."""
    changes = [c for c in place.store.changes() if c.origin.prompt in prompts and c.origin.by is not ChangedBy.UNDO]
    steps = plan(place.store, summarize(changes), backwards=backwards)
    kinds = {step.kind for step in steps}
    if not kinds & {StepKind.CHANGED, StepKind.BLOCKED}:
        assert not apply(place.store, steps, UNDO).failed
    return kinds


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(24))
def test_undo_and_redo_restore_every_state_or_touch_nothing(tmp_path: Path, seed: int) -> None:
    rng, place = random.Random(seed), Place(tmp_path)
    states = [place.tree()]
    with place.running() as runner:
        for number in range(4):
            prompt = f"prompt-{number}"
            for _ in range(rng.randint(1, 3)):
                if rng.random() < 0.6:
                    runner.run(place.play(command(rng), prompt=prompt))
                    runner.run(place.watcher.settle())
                else:
                    edit_by_tool(place, rng, prompt)
            states.append(place.tree())
    assert not [why for _, why in place.looks() if why]
    for first in reversed(range(4)):
        assert move(place, {f"prompt-{first}"}, backwards=True) <= {StepKind.WRITE, StepKind.DONE}
        assert place.tree() == states[first]
    for last in range(4):
        assert move(place, {f"prompt-{last}"}, backwards=False) <= {StepKind.WRITE, StepKind.DONE}
        assert place.tree() == states[last + 1]
    assert move(place, {f"prompt-{n}" for n in range(4)}, backwards=True) <= {StepKind.WRITE, StepKind.DONE}
    assert place.tree() == states[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(24))
def test_what_a_user_does_between_turns_is_never_lost(tmp_path: Path, seed: int) -> None:
    rng, place = random.Random(seed), Place(tmp_path)
    with place.running() as runner:
        for number in range(2):
            runner.run(place.play(command(rng), prompt=f"prompt-{number}"))
            runner.run(place.watcher.settle())
            before = place.tree()
            (place.root / f"mine{number}").write_text("mine\n")
            act(rng, place.root)
            theirs = {name: at for name, at in place.tree().items() if before.get(name) != at}
            if number == 0:
                first = theirs
    before = place.tree()
    kinds = move(place, {"prompt-0", "prompt-1"}, backwards=True)
    after = place.tree()
    if kinds & {StepKind.CHANGED, StepKind.BLOCKED}:
        assert after == before
    for name, at in (first | theirs).items():
        assert after.get(name) == at or before.get(name) != at, f"{name} was the user's"
