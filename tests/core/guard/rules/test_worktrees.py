"""The gate of a sub-agent that works in a worktree: what guards the project guards its copy, and the project from there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from tests.core.guard.rules.world import World, touch

from cru.core.guard.rules.gate import Gate


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "worktree" / "project"
    (path / "src").mkdir(parents=True)
    return path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


PATTERNS = (
    "src/secret/*",
    "secret",
    "{root}/src/secret/*",
    "{root}/**/key",
    "{above}/**",
    "~/project/src/secret/",
    "/**/secret/*",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_rule_holds_for_the_project_and_for_its_worktree(
    decision: Literal["deny", "ask"], access: Literal["read", "write"], pattern: str, world: World, tree: Path
) -> None:
    rule = f"{access}:{pattern.format(root=world.root, above=world.root.parent)}"
    gate = world.gate("trust", deny=(rule,)) if decision == "deny" else world.gate("trust", ask=(rule,))
    child = gate.narrowed(root=tree)
    for path in (f"{tree}/src/secret/key", f"{world.root}/src/secret/key", "src/secret/key"):
        assert touch(child, access, path).decision == decision, path
        assert touch(child.narrowed(), access, path).decision == decision, path


def test_a_rule_for_another_place_leaves_the_worktree_alone(world: World, tree: Path) -> None:
    gate = world.gate("auto", deny=(f"write:{world.root}/other/*", "write:doc/*", f"write:{world.outside}/**"))
    child = gate.narrowed(root=tree)
    assert touch(child, "write", "src/a.py").decision == "allow"
    assert touch(child, "write", f"{tree}/src/a.py").decision == "allow"


def test_a_search_in_a_worktree_shows_no_file_that_a_rule_of_the_project_hides(world: World, tree: Path) -> None:
    gate = world.gate("trust", deny=(f"read:{world.root}/src/key", "read:hidden/*"))
    hidden = gate.narrowed(root=tree).hidden_files("grep", ".")
    assert hidden is not None
    names = ("src/key", "hidden/a", "src/a.py")
    assert [name for name in names if hidden.why(f"{tree}/{name}")] == ["src/key", "hidden/a"]
    assert [name for name in names if hidden.why(f"{world.root}/{name}")] == ["src/key", "hidden/a"]


def test_what_is_protected_in_the_project_stays_so(world: World, tree: Path) -> None:
    gate = world.gate("auto", allow=(f"write:{world.root}/**",))
    gate.protect([str(world.root / "src" / "guard.sh")])
    child = gate.narrowed(root=tree)
    for path in (f"{world.root}/.git/config", f"{world.root}/src/guard.sh", "src/guard.sh", ".git"):
        assert touch(child, "write", path).decision == "ask", path


def test_agents_below_one_in_a_worktree_work_there(world: World, tree: Path) -> None:
    child = world.gate("auto").narrowed(root=tree, readable=[world.outside])

    def verdicts(gate: Gate) -> list[str]:
        calls: list[tuple[Literal["read", "write"], str]] = [
            ("write", f"{tree}/src/a.py"), ("write", f"{world.root}/src/a.py"), ("read", f"{world.outside}/secret"),
        ]  # fmt: skip
        return [str(touch(gate, access, path).decision) for access, path in calls]

    assert verdicts(child) == verdicts(child.narrowed()) == ["allow", "ask", "allow"]


BESIDE = ("read:../private/**", "read:{above}/private/*", "read:~/private/key", "read:/**/private/*")


@pytest.mark.parametrize("rule", BESIDE)
def test_a_rule_for_what_is_beside_the_project_in_its_repository_holds_for_its_copy(
    rule: str, world: World, tmp_path: Path
) -> None:
    copy = tmp_path / "worktree" / "repository"
    (copy / "project" / "src").mkdir(parents=True)
    gate = world.gate("trust", deny=(rule.format(above=world.root.parent), "read:./src/own"))
    gate.protect([str(world.root / "src" / "guard.sh")])
    child = gate.narrowed(root=copy / "project", inner="project")
    for path in ("../private/key", f"{copy}/private/key", f"{world.root.parent}/private/key"):
        for one in (child, child.narrowed()):
            assert touch(one, "read", path).decision == "deny", path
    for path in ("src/own", f"{copy}/project/src/own", f"{world.root}/src/own"):
        assert touch(child, "read", path).decision == "deny", path
    auto = world.gate("auto").narrowed(root=copy / "project", inner="project")
    places = ("src/a.py", "../beside", f"{copy}/.git", f"{world.root}/src/a.py")
    assert [touch(auto, "write", path).decision for path in places] == ["allow", "ask", "ask", "ask"]
    assert touch(child, "write", "src/guard.sh").decision == touch(gate, "write", "src/guard.sh").decision
