"""Settings of other programs that cru does not take over: what tightens is told and ends a strict run, what widens is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.dialect_world import about, source
from tests.faces.hooked import CALLS, crush, model
from tests.kit import HomeDir, cru

from cru.core.guard.rules import RuleLists
from cru.core.hooks.dialects import load_dialect
from cru.core.hooks.model.entry import HookFileProblem, ProblemKind

UNHELD, IGNORED, PART = ProblemKind.UNHELD, ProblemKind.IGNORED, ProblemKind.PART


def read(dialect: str, value: Any, mode: str = "ask", layer: Any = "user") -> tuple[RuleLists, list[HookFileProblem]]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    file = load_dialect(dialect).parse(source(dialect, text, "settings.json", layer), about(mode=mode))
    return file.settings.rules, file.problems


def rules(**permissions: Any) -> dict[str, Any]:
    return {"permissions": permissions}


@pytest.mark.parametrize(
    ("dialect", "value", "mode", "kind", "text"),
    [
        ("claude", rules(defaultMode="plan"), "ask", UNHELD, '`permissions.defaultMode` "plan" does not hold here'),
        ("claude", rules(defaultMode="dontAsk"), "plan", UNHELD, '`permissions.defaultMode` "dontAsk" does not hold'),
        ("claude", rules(defaultMode="acceptEdits"), "ask", IGNORED, '"acceptEdits" has no effect in cru (`--mode`'),
        ("claude", rules(disableBypassPermissionsMode="disable"), "trust", UNHELD, "does not hold here: this session"),
        ("claude", rules(additionalDirectories=["/x", 3]), "ask", ProblemKind.ODDITY, "additionalDirectories`: 3 is no folder"),
        ("claude", rules(additionalDirectorys=["/x"]), "ask", PART, "did you mean `additionalDirectories`?"),
        ("claude", {"Permissions": {"deny": ["Bash"]}}, "ask", PART, "did you mean `permissions`?"),
        ("claude", {"permission": {"deny": ["Bash"]}}, "ask", PART, "did you mean `permissions`?"),
        ("claude", '{"permissions": {"deny": ["Bash"], "deny": []}}', "ask", PART, "`deny` is given twice"),
        ("claude", '{"permissions": {"deny": ["Bash"]}, "permissions": {}}', "ask", PART, "`permissions` is given twice"),
        ("gemini", {"tools": {"core": ["read_file"]}}, "ask", UNHELD, "`tools.core` does not hold here"),
        ("gemini", {"coreTools": ["read_file"]}, "ask", UNHELD, "`coreTools` does not hold here"),
        ("gemini", {"tools": {"allowed": ["read_file"]}}, "ask", IGNORED, "`tools.allowed` has no effect"),
        ("gemini", {"tools": {"exclude": ["run_shel_command"]}}, "ask", PART, "did you mean `run_shell_command`?"),
        ("gemini", {"tools": {"exclude": "x"}}, "ask", PART, "`tools.exclude` must be a list"),
        ("gemini", {"tools": {"exclude": [3]}}, "ask", PART, "`tools.exclude`: 3 names no tool"),
        ("gemini", '{"tools": {"exclude": ["x"], "exclude": []}}', "ask", PART, "`exclude` is given twice"),
    ],
)  # fmt: skip
def test_a_setting_that_has_no_effect_is_told(
    dialect: str, value: Any, mode: str, kind: ProblemKind, text: str
) -> None:
    _, problems = read(dialect, value, mode)
    assert [problem.kind for problem in problems] == [kind] and text in str(problems[0])


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        (rules(defaultMode="plan"), "plan"),
        (rules(defaultMode="default"), "ask"),
        (rules(disableBypassPermissionsMode="disable"), "auto"),
        (rules(additionalDirectories=[]), "ask"),
    ],
)
def test_what_holds_all_the_same_is_not_told(value: Any, mode: str) -> None:
    assert read("claude", value, mode)[1] == []


@pytest.mark.parametrize("layer", ["user", "project"])
def test_disable_all_hooks_of_a_project_is_told_to_hold_for_its_file(layer: str) -> None:
    _, problems = read("claude", {"disableAllHooks": True}, layer=layer)
    assert [problem.kind for problem in problems] == ([IGNORED] if layer == "project" else [])


@pytest.mark.parametrize("key", ["tools", "excludeTools"])
def test_tools_that_gemini_excludes_are_denied(key: str) -> None:
    names = ["run_shell_command(rm -rf)", "write_file", "google_web_search", "mcp__x__y", "EditTool"]
    found, problems = read("gemini", {key: {"exclude": names} if key == "tools" else names})
    assert found.deny == ("bash:rm -rf", "write", "mcp_x_y", "edit") and problems == []


# through the real command -----------------------------------------------------------------------------------------------------------


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


def test_an_excluded_tool_does_not_run_before_anybody_has_accepted_the_project(home: HomeDir) -> None:
    model(home, hooks="")
    put(home.project / ".gemini" / "settings.json", {"tools": {"exclude": ["run_shell_command(echo)"]}})
    run = cru("hello", home=home)
    assert "the rule `bash:echo` in [permissions] deny" in run.err + run.out, run


def test_what_tightens_and_does_not_hold_ends_a_strict_run_and_what_widens_does_not(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    file = home.project / ".claude" / "settings.json"
    put(file, rules(defaultMode="plan"))
    assert f'cru: {file}:1: `permissions.defaultMode` "plan" does not hold here' in cru("hello", home=home).err
    assert cru("--strict-hooks", "hello", home=home).code == 3 and cru("hooks", "check", home=home).code == 1
    put(file, rules(defaultMode="acceptEdits"))
    run = cru("--strict-hooks", "hello", home=home)
    assert run.code == 0 and run.err.count("defaultMode") == 1 and cru("hooks", "check", home=home).code == 0


def test_a_local_file_that_disables_all_hooks_is_told_what_it_disables(home: HomeDir) -> None:
    model(home)
    put(home.project / ".claude" / "settings.local.json", {"disableAllHooks": True})
    run = cru("hello", home=home)
    assert run.err.count("switches off the hooks of this file only (`cru hooks disable ID`") == 1


@pytest.mark.parametrize(
    ("text", "is_told"),
    [("[model\n", False), ("[hooks\n", True), ("[[hoks.PreToolUse]]\n", True), ('x = "\n# hooks\n', True)],
)
def test_a_broken_file_of_codex_is_told_if_hooks_may_be_in_it(home: HomeDir, text: str, is_told: bool) -> None:
    model(home)
    put(home.project / ".codex" / "config.toml", {})
    (home.project / ".codex" / "config.toml").write_text(text)
    assert (".codex/config.toml" in cru("hello", home=home).err) is is_told


@pytest.mark.parametrize(
    ("output", "has_run"),
    [
        ('{"decision": "deny", "decision": "allow"}', False),
        ('{"decision": "allow", "decision": "deny"}', False),
        ('{"halt": true, "decision": "allow", "halt": false}', False),
        (r'{"decision": "deny", "decisi\u006fn": "allow"}', False),
        ('{"decision": "allow", "decision": "allow"}', True),
        ('{"decision": "allow", "reason": "a", "reason": "b"}', True),
    ],
)
def test_a_refusal_is_not_lost_when_its_key_stands_twice(home: HomeDir, output: str, has_run: bool) -> None:
    model(home, CALLS.replace("echo hi", "touch ran"))
    crush(home, {"command": f"echo '{output}'"})
    run = cru("hello", home=home)
    assert (home.project / "ran").exists() is has_run, run
    assert ("more than once" in run.err) is ('"allow", "decision": "allow"' not in output), run
