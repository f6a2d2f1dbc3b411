"""What deny rules forbid to read, decided for whole folders: the same as the gate's verdict on each file."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import pytest
from tests.permissions.world import World

from cru.files.selection import FileSelection
from cru.permissions import denied_paths
from cru.permissions.gate import Gate

NAMES = ("a", "b", "ab", "build", "project", "home", ".env", "x.pem", "key.pem", "*", "a b", "Ä", "A")
PIECES = (*NAMES, "*", "**", "*.pem", "a*", "*b", "*a*b*", "\\*", "k*.pem", ".", "..", "B*")
FIRST = ("", "", "", "/", "~/", "../", "./", "link/", "**/", "out/", "deep/")
TOOLS = ("read", "read", "read", "*", "r*d", "write", "grep", "edit", "re*", "bash")


def _plant(world: World, draw: random.Random) -> None:
    """Files and folders of a few names in the project and around it, links into and out of it."""
    for top in (world.root, world.user, world.outside, world.root.parent / "project-twin"):
        for _ in range(12):
            path = top.joinpath(*draw.choices(NAMES, k=draw.randint(1, 4)))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError:
                continue  # a file stands where the folder would be
    for link, target in (("link", world.root / "a"), ("out", world.outside), ("deep", world.root / "b" / "a")):
        if not (world.root / link).is_symlink():
            (world.root / link).symlink_to(target)


def _rule(world: World, draw: random.Random) -> str:
    tool = draw.choice(TOOLS)
    if draw.random() < 0.05:
        return tool
    base = draw.choice([*FIRST, f"{world.root}/", f"{world.outside}/", f"{world.root}/link/"])
    return f"{tool}:{base}{'/'.join(draw.choices(PIECES, k=draw.randint(1, 4)))}{draw.choice(('', '', '/', '/**'))}"


def _files(top: Path) -> list[str]:
    """Every file below, named by where it really is."""
    files = {os.path.realpath(os.path.join(folder, name)) for folder, _, names in os.walk(top) for name in names}
    return sorted(path for path in files if os.path.isfile(path))


def _denied(gate: Gate, path: str) -> bool:
    return gate.judge("read", "read", path, [("read", path)]).decision == "deny"


def _descend(selection: FileSelection, path: Path) -> set[str]:
    """The files of the selection; also checks that what is said of whole folders holds for each file in them."""
    denied: set[str] = set()
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            inner = _descend(selection.below(entry.name), Path(entry.path))
            assert not (selection.below(entry.name).is_empty and inner), entry.path
            denied |= inner
        elif not entry.is_symlink():
            assert selection.holds(entry.name) or not selection.is_whole
            denied |= {entry.path} if selection.holds(entry.name) else set()
    return denied


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("folds", [False, True])
def test_files_are_denied_alike_one_by_one_and_by_the_tree(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int, folds: bool
) -> None:
    monkeypatch.setattr(denied_paths, "FOLDS_NAMES", folds)
    draw = random.Random(seed)
    _plant(world, draw)
    top = world.user.parent
    hits = 0
    for _ in range(10):
        rules = tuple(_rule(world, draw) for _ in range(draw.randint(1, 5)))
        gate = world.gate(deny=rules)
        by_verdict = {path for path in _files(top) if _denied(gate, path)}
        hits += len(by_verdict)
        denied = gate.denied_reads()
        assert {path for path in _files(top) if denied and denied.forbids(path)} == by_verdict, rules
        for start in (top, world.user, world.root, world.root / "a", world.outside):
            if start.is_dir():
                walked = _descend(denied.below(str(start)), start) if denied else set()
                assert walked == {path for path in by_verdict if path.startswith(f"{start}/")}, (rules, start)
    assert hits


def test_allow_and_ask_rules_deny_nothing_and_neither_do_rules_on_other_calls(world: World) -> None:
    assert world.gate(allow=("read:a",), ask=("read:b", "read")).denied_reads() is None
    assert world.gate(deny=("bash:rm *", "write:a", "edit")).denied_reads() is None


def test_a_rule_without_a_glob_denies_everything(world: World) -> None:
    for rule in ("read", "read:*", "*"):
        denied = world.gate(deny=(rule,)).denied_reads()
        assert denied is not None and denied.below(str(world.root)).is_whole


def test_folders_in_which_no_rule_can_match_are_known(world: World) -> None:
    denied = world.gate(deny=("read:src/keys/**", f"read:{world.outside}")).denied_reads()
    assert denied is not None
    project = denied.below(str(world.root))
    assert not project.is_empty
    assert project.below("docs").is_empty
    assert project.below("src").below("keys").is_whole
    assert denied.below(str(world.outside)).is_whole


def test_names_of_the_folders_above_the_project_do_not_count_in_it(world: World) -> None:
    denied = world.gate(deny=("read:home",)).denied_reads()
    assert denied is not None
    assert not denied.forbids(f"{world.root}/a")
    assert denied.forbids(f"{world.root}/home/a")
    assert denied.forbids(f"{world.user}/a")


def test_it_can_be_handed_to_another_process(world: World) -> None:
    denied = world.gate(deny=("read:.env", "read:src/**")).denied_reads()
    copy = pickle.loads(pickle.dumps(denied))
    for name in (".env", "src/a.py", "a.py"):
        assert copy.forbids(f"{world.root}/{name}") is (name != "a.py")
