"""What must not be shown, decided for whole folders: the same as the gate's verdict on each file."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import pytest
from tests.core.guard.rules.world import World

from cru.core.base.files.selection import FileSelection
from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.hidden_files import HiddenReason

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


def _expected(gate: Gate, path: str) -> HiddenReason | None:
    """By the verdict on this one file; that it lies outside of the project is what the question about the folder is about."""
    verdict = gate.judge("read", "read", path, [("read", path)])
    if verdict.decision == "deny":
        return HiddenReason.DENIED
    is_hidden = verdict.decision == "ask" and (verdict.explicit or "is protected" in verdict.reason)
    return HiddenReason.UNASKED if is_hidden else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_files_are_judged_alike_one_by_one_and_by_the_tree(world: World, seed: int) -> None:
    draw = random.Random(seed)
    _plant(world, draw)
    for secret in (".ssh/id", ".aws/a", ".config/gh/b", ".netrc"):
        (world.user / secret).parent.mkdir(parents=True, exist_ok=True)
        (world.user / secret).touch()
    top = world.user.parent
    files = _files(top)
    hits = 0
    for _ in range(10):
        deny, ask, allow = (tuple(_rule(world, draw) for _ in range(draw.randint(least, 3))) for least in (1, 0, 0))
        gate = world.gate(draw.choice(["ask", "trust", "plan"]), deny=deny, ask=ask, allow=allow)
        each = {path: _expected(gate, path) for path in files}
        for start in (top, world.user, world.root, world.root / "a", world.outside):
            granted = gate.judge("read", "read", str(start), [("read", str(start))])
            if not start.is_dir() or granted.decision == "deny" or granted.explicit:
                continue  # refused, or the question may have been about the same rule
            below = [path for path in files if path.startswith(f"{start}/")]
            expected = {path: reason for path in below if (reason := each[path]) is not None}
            hits += len(expected)
            hidden = gate.hidden_files("read", str(start))
            reasons = {path: reason for path in below if hidden and (reason := hidden.why(path)) is not None}
            assert reasons == expected, (deny, ask, allow, start)
            walked = _descend(hidden.below(str(start)), start) if hidden else set()
            assert walked == set(expected), (deny, ask, allow, start)
    assert hits


def test_rules_on_other_calls_hide_nothing(world: World) -> None:
    start = str(world.root)
    for rules in ({"allow": ("read:a",)}, {"deny": ("bash:rm *", "write:a", "edit", "grep:a")}, {"ask": ("write:a",)}):
        assert world.gate(**rules).hidden_files("glob", start) is None


def test_a_rule_that_names_the_searching_tool_holds_for_what_it_finds(world: World) -> None:
    gate = world.gate(deny=("grep:a",), ask=("gl*:b",))
    for tool, shown in (("grep", "b"), ("glob", "a")):
        hidden = gate.hidden_files(tool, str(world.root))
        assert hidden is not None
        assert [name for name in "ab" if not hidden.why(f"{world.root}/{name}")] == [shown]


def test_what_the_question_about_the_folder_was_about_is_shown(world: World) -> None:
    keys = world.user / ".ssh"
    gate = world.gate(ask=("read:src/**", "read:.env", "ls"))
    for tool, start, file, is_hidden in (
        ("grep", world.root, world.root / "src/a.py", True),
        ("grep", world.root / "src", world.root / "src/a.py", False),
        ("grep", world.root / "inner", world.root / "src/a.py", False),
        ("grep", world.root / "src", world.root / "src/.env", True),
        ("ls", world.root, world.root / "b", False),
        ("grep", world.user, keys / "id", True),
        ("grep", keys, keys / "id", False),
        ("grep", keys, world.home / "grants.json", False),
    ):
        hidden = gate.hidden_files(tool, str(start))
        assert (hidden is not None and hidden.why(str(file)) is HiddenReason.UNASKED) is is_hidden, (start, file)


def test_trust_mode_hides_no_protected_places(world: World) -> None:
    assert world.gate("trust").hidden_files("grep", str(world.user)) is None


def test_only_a_folder_above_protected_places_costs_a_set(world: World) -> None:
    gate = world.gate()
    assert gate.hidden_files("grep", str(world.root)) is None
    assert gate.hidden_files("grep", str(world.outside)) is None
    for folder in ("/", str(world.user), str(world.user.parent), f"{world.user}/.config"):
        assert gate.hidden_files("grep", folder) is not None, folder


def test_an_absolute_allow_rule_opens_what_is_protected(world: World) -> None:
    gate = world.gate(allow=("read:~/.ssh/config", "read:.aws/**"))
    hidden = gate.hidden_files("grep", str(world.user))
    assert hidden is not None
    shown = {name: hidden.why(f"{world.user}/{name}") is None for name in (".ssh/config", ".ssh/id", ".aws/x")}
    assert shown == {".ssh/config": True, ".ssh/id": False, ".aws/x": False}


def test_a_rule_without_a_glob_denies_everything(world: World) -> None:
    for rule in ("read", "read:*", "*"):
        hidden = world.gate(deny=(rule,)).hidden_files("grep", str(world.root))
        assert hidden is not None and hidden.below(str(world.root)).is_whole


def test_folders_in_which_no_rule_can_match_are_known(world: World) -> None:
    gate = world.gate(deny=("read:src/keys/**", f"read:{world.outside}"), ask=("read:src/more/**",))
    hidden = gate.hidden_files("grep", str(world.root))
    assert hidden is not None
    project = hidden.below(str(world.root))
    assert not project.is_empty
    assert project.below("docs").is_empty
    assert project.below("src").below("keys").is_whole
    assert project.below("src").below("more").is_whole
    assert hidden.below(str(world.outside)).is_whole


def test_names_of_the_folders_above_the_project_do_not_count_in_it(world: World) -> None:
    hidden = world.gate(deny=("read:home",)).hidden_files("grep", str(world.root))
    assert hidden is not None
    assert not hidden.why(f"{world.root}/a")
    assert hidden.why(f"{world.root}/home/a")
    assert hidden.why(f"{world.user}/a")


def test_it_can_be_handed_to_another_process(world: World) -> None:
    gate = world.gate(deny=("read:.env", "read:src/**"), allow=("read:~/.ssh/config",))
    copy = pickle.loads(pickle.dumps(gate.hidden_files("grep", str(world.user))))
    for name in (".env", "src/a.py", "a.py"):
        assert (copy.why(f"{world.root}/{name}") is None) is (name == "a.py")
    assert [copy.why(f"{world.user}/.ssh/{name}") for name in ("config", "id")] == [None, HiddenReason.UNASKED]
