"""Where paths lead: the border of the project, protected places, and rules on paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.guard.rules.world import World, touch

INSIDE = [".", "", "src", "src/a.py", "src/../src/a.py", "./src//a.py", "new/deep/file", "inner/a.py"]
OUTSIDE = [
    "..",
    "../x",
    "src/../../x",
    "/etc/passwd",
    "/",
    "~",
    "~/x",
    "~root/x",
    "leak",
    "leak/secret",
    "leak/new/file",
    "inner/../../x",
    "leak/../project/x",
    "../project-twin/x",
]


@pytest.mark.parametrize("path", INSIDE)
def test_a_path_in_the_project_is_left_to_the_mode(world: World, path: str) -> None:
    assert touch(world.gate(), "read", path).decision == "allow"
    assert touch(world.gate("auto"), "write", path).decision == "allow"
    assert touch(world.gate(), "read", str(world.root / path)).decision == "allow"


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_out_of_the_project_is_asked_about(world: World, path: str) -> None:
    for access in ("read", "write"):
        for mode in ("ask", "auto"):
            verdict = touch(world.gate(mode), access, path)
            assert (verdict.decision, verdict.explicit) == ("ask", False)
            assert "outside the project" in verdict.reason or "protected" in verdict.reason
        assert touch(world.gate("trust"), access, path).decision == "allow"
    assert touch(world.gate("plan"), "read", path).decision == "ask"
    assert touch(world.gate("plan"), "write", path).decision == "deny"


def test_where_a_symlink_leads_is_said(world: World) -> None:
    assert str(world.outside / "secret") in touch(world.gate(), "read", "leak/secret").reason


def test_bare_allow_rules_and_relative_globs_do_not_reach_outside(world: World) -> None:
    for rule in ("*", "read", "read:*", "read:**", "read:**/secret", "read:leak/**", "read:../outside/x"):
        assert touch(world.gate(allow=(rule,)), "read", "leak/secret").decision == "ask", rule


def test_an_allow_rule_that_names_a_place_outside_reaches_it(world: World) -> None:
    for rule in (f"read:{world.outside}/**", f"r*:{world.outside}/secret", "read:/**"):
        assert touch(world.gate(allow=(rule,)), "read", "leak/secret").decision == "allow", rule
    gate = world.gate(allow=("read:~/notes/*",))
    assert touch(gate, "read", "~/notes/a").decision == "allow"
    assert touch(gate, "read", "~/notes/deep/a").decision == "ask"
    assert touch(gate, "write", "~/notes/a").decision == "ask"


def test_a_readable_folder_may_be_read_but_not_written(world: World) -> None:
    path = str(world.home / "contexts" / "c" / "tool_cache" / "1.txt")
    assert touch(world.gate(), "read", path).decision == "allow"
    assert touch(world.gate("auto"), "write", path).decision == "ask"
    assert touch(world.gate(), "read", str(world.home / "config.toml")).decision == "ask"


PROTECTED = [
    ".git/config",
    ".git",
    ".GIT/hooks/pre-commit",
    "vendor/lib/.git/config",
    ".cru/config.toml",
    ".Cru/hooks/x",
    "hook/config",
    "~/.cru/config.toml",
    "~/.bashrc",
    "~/.profile",
    "~/.zshrc",
    "~/.ssh/authorized_keys",
    "~/.config/fish/config.fish",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_protected_places_are_asked_about_in_every_mode_but_trust(world: World, path: str) -> None:
    for mode in ("ask", "auto"):
        verdict = touch(world.gate(mode, allow=("*", "edit:**", "edit:/**", "write:~/**")), "write", path)
        assert verdict.decision == "ask" and "protected" in verdict.reason
    assert touch(world.gate("plan"), "write", path).decision == "deny"
    assert touch(world.gate("trust"), "write", path).decision == "allow"
    assert world.gate().rule_for("edit", "write", path, [("write", path)]) == ""


SECRET = [
    "~/.cru/config.toml",
    "~/.cru/contexts/d/context.jsonl",
    "~/.ssh/id_ed25519",
    "~/.aws/credentials",
    "~/.netrc",
]
SECRET += ["~/.git-credentials", "~/.gnupg/private-keys-v1.d/x", "~/.ssh"]


@pytest.mark.parametrize("path", SECRET)
def test_keys_and_cru_s_home_are_asked_about_for_reading_too(tmp_path: Path, path: str) -> None:
    world = World(tmp_path)
    (world.user / ".ssh").mkdir()
    (world.root / "keys").symlink_to(world.user / ".ssh")
    for root in (world.root, world.user):
        world.root = root
        for mode in ("ask", "auto", "plan"):
            verdict = touch(world.gate(mode, allow=("*", "read", "read:**", "read:*")), "read", path)
            assert verdict.decision == "ask" and "protected" in verdict.reason
        assert touch(world.gate("trust"), "read", path).decision == "allow"
        assert touch(world.gate("auto"), "write", path).decision == "ask"
        assert touch(world.gate(allow=("read:~/.*/**", "read:~/.*")), "read", path).decision == "allow"
    world.root = world.user / "project"
    assert "protected" in touch(world.gate(), "read", "keys/id_rsa").reason


def test_a_readable_folder_stays_readable_when_the_project_is_the_users_home(world: World) -> None:
    world.root = world.user
    assert touch(world.gate(), "read", ".cru/contexts/c/tool_cache/1.txt").decision == "allow"
    assert touch(world.gate(), "read", ".bashrc").decision == "allow"


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "git/x", "src/.crux", "bashrc", ".bashrc"])
def test_names_that_only_look_protected_are_not(world: World, path: str) -> None:
    assert touch(world.gate("auto"), "write", path).decision == "allow"


def test_the_protected_home_counts_even_if_the_project_is_the_users_home(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.root = world.user
    assert touch(world.gate("auto"), "write", ".bashrc").decision == "ask"
    assert touch(world.gate("auto"), "write", ".cru/x").decision == "ask"
    assert touch(world.gate("auto"), "write", "notes").decision == "allow"


@pytest.mark.parametrize(
    ("rule", "path", "decision"),
    [
        ("read:secret", "src/secret", "deny"),
        ("read:.env", "deep/er/.env", "deny"),
        ("read:.env", "/else/where/.env", "deny"),
        ("read:.env*", ".env.local", "deny"),
        ("read:.env", ".envx", "allow"),
        ("read:src", "src/a.py", "deny"),
        ("read:src/", "src/a.py", "deny"),
        ("read:src/*", "src/deep/a.py", "deny"),
        ("read:src/**", "src/a.py", "deny"),
        ("read:src/**", "inner/a.py", "deny"),
        ("read:inner/**", "src/a.py", "deny"),
        ("read:leak/**", "leak/secret", "deny"),
        ("read:~/x", "~/x/y", "deny"),
        ("read:/etc", "/etc/passwd", "deny"),
        ("read:**/*.pem", "a/b/c.pem", "deny"),
        ("read:../x", "../x", "deny"),
        ("read:src/b*", "src/a.py", "allow"),
        ("write:src", "src/a.py", "allow"),
        ("read", "src/a.py", "deny"),
        ("read:*", "src/a.py", "deny"),
        ("*:**/a.py", "src/a.py", "deny"),
        ("grep:src/**", "src/a.py", "allow"),
        ("read:project", "src/a.py", "allow"),
    ],
)
def test_deny_rules_on_paths_are_read_broadly(world: World, rule: str, path: str, decision: str) -> None:
    verdict = touch(world.gate("trust", deny=(rule,)), "read", path)
    assert verdict.decision == decision


def test_a_deny_rule_finds_what_a_relative_path_leads_to_outside(world: World) -> None:
    up = "../" * len(world.root.parts)
    gate = world.gate("trust", deny=("read:/etc",))
    assert touch(gate, "read", f"{up}etc/passwd").decision == "deny"
    assert touch(gate, "read", f"src/{up}../etc/passwd").decision == "deny"
    assert touch(gate, "read", f"{up}else/passwd").decision == "allow"


def test_a_deny_rule_on_a_link_finds_its_target(world: World) -> None:
    gate = world.gate("trust", deny=("read:leak/**",))
    assert touch(gate, "read", str(world.outside / "secret")).decision == "deny"


def test_a_rule_named_after_a_kind_means_every_tool_that_does_it(world: World) -> None:
    gate = world.gate("trust", deny=("read:src/**", "write:*.lock"))
    assert gate.judge("grep", "read", "x", [("read", "src")]).decision == "deny"
    assert gate.judge("mcp_copy", "tool", "x", [("read", "src/a.py"), ("write", "b")]).decision == "deny"
    assert gate.judge("edit", "write", "uv.lock", [("write", "uv.lock")]).decision == "deny"


@pytest.mark.parametrize(
    ("rule", "path", "decision"),
    [
        ("edit:src/*", "src/a.py", "allow"),
        ("edit:src/*", "src/deep/a.py", "ask"),
        ("edit:src/**", "src/deep/a.py", "allow"),
        ("edit:src/", "src/deep/a.py", "allow"),
        ("edit:**/*.py", "src/a.py", "allow"),
        ("edit:**/*.py", "a.py", "allow"),
        ("edit:*.py", "a.py", "allow"),
        ("edit:*.py", "src/a.py", "ask"),
        ("edit:src", "src/a.py", "ask"),
        ("edit:inner/*", "inner/a.py", "ask"),
        ("edit:src/*", "inner/a.py", "allow"),
        ("edit:src/**", "src/../b", "ask"),
        ("edit", "src/a.py", "allow"),
        ("write:src/*", "src/a.py", "allow"),
        ("read:src/*", "src/a.py", "ask"),
        ("ed*", "src/a.py", "allow"),
        ("grep", "src/a.py", "ask"),
    ],
)
def test_allow_rules_on_paths_are_read_narrowly(world: World, rule: str, path: str, decision: str) -> None:
    assert touch(world.gate(allow=(rule,)), "write", path).decision == decision


def test_every_path_of_a_call_must_be_allowed(world: World) -> None:
    gate = world.gate(allow=("edit:src/*",))
    assert gate.judge("edit", "write", "", [("write", "src/a"), ("write", "src/b")]).decision == "allow"
    assert gate.judge("edit", "write", "", [("write", "src/a"), ("write", "b")]).decision == "ask"


def test_what_can_be_no_path_is_refused(world: World) -> None:
    assert touch(world.gate("trust"), "read", "a\0b").decision == "deny"
    assert world.gate().rule_for("read", "read", "a\0b") == ""
