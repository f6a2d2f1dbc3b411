"""V1 to V3 of Crush's own tests; where its configurations lie, in which order, and what is wrong with them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.crush_world import about, config, read

from cru.core.hooks.dialects.crush.dialect import DIALECT as CRUSH
from cru.core.hooks.dialects.crush.regex import to_python
from cru.core.hooks.model.entry import HookSource, ProblemKind

GOOD = {"command": "true"}


def test_v1_a_matcher_that_is_no_regular_expression(tmp_path: Path) -> None:
    entries, [problem] = read(tmp_path, config(GOOD, {"command": "x", "matcher": "[invalid"}))
    assert entries == [] and problem.kind is ProblemKind.WHOLE_FILE
    assert str(problem).startswith(f'{tmp_path}/crush.json:1: hook PreToolUse[1]: invalid matcher regex "[invalid": ')


@pytest.mark.parametrize("entry", [{}, {"command": ""}, {"command": " "}, {"command": None}, "true", None])
def test_v2_an_entry_without_a_command(tmp_path: Path, entry: Any) -> None:
    entries, [problem] = read(tmp_path, config(entry))
    assert (
        entries == []
        and problem.kind is ProblemKind.WHOLE_FILE
        and problem.text == "hook PreToolUse[0]: command is required"
    )


def test_v2_claudes_nested_form_says_where_it_belongs(tmp_path: Path) -> None:
    _, [problem] = read(tmp_path, config({"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}))
    assert "command is required" in problem.text and ".claude/settings.json" in problem.hint


@pytest.mark.parametrize("event", ["PreToolUse", "pretooluse", "pre_tool_use", "PRE_TOOL_USE", "preToolUse"])
def test_v3_every_spelling_of_an_event(tmp_path: Path, event: str) -> None:
    [entry], problems = read(tmp_path, config(GOOD, event=event))
    assert (entry.event, problems) == ("PreToolUse", [])


@pytest.mark.parametrize("event", ["pre-tool-use", "Pre Tool Use", "PostToolUse", "user-prompt"])
def test_other_events_are_read_and_never_fire(tmp_path: Path, event: str) -> None:
    [entry], problems = read(tmp_path, config(GOOD, event=event))
    assert (entry.event, CRUSH.events.get(entry.event), problems) == (event, None, [])
    _, [problem] = read(tmp_path, config({}, event=event))
    assert problem.text == f"hook {event}[0]: command is required"


def test_the_canonical_spelling_goes_before_the_others(tmp_path: Path) -> None:
    hooks = {
        "pre_tool_use": [{"command": "c"}],
        "PreToolUse": [{"command": "a"}, {"command": "b"}],
        "PRE_TOOL_USE": [{"command": "d"}],
    }
    entries, _ = read(tmp_path, msgspec.json.encode({"hooks": hooks}).decode())
    assert [entry.command for entry in entries] == ["a", "b", "c", "d"]


def test_an_entry_as_it_is_read(tmp_path: Path) -> None:
    entry = '{"name": "n", "matcher": "^bash$",\n "command": "c", "timeout": 5}'
    text = f'{{\n  "model": "x",\n  "hooks": {{"PreToolUse": [\n    {entry}\n  ]}}\n}}'
    [made], problems = read(tmp_path, text)
    assert problems == [] and made.where == f"{tmp_path}/crush.json:4"
    assert (made.name, made.matcher, made.command, made.timeout) == ("n", "^bash$", "c", 5)
    assert made.include_sub_agents is False


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 30), (0, 30), (-1, 30), (1, 1), (600, 600)])
def test_the_time_limit(tmp_path: Path, timeout: int | None, seconds: int) -> None:
    [entry], _ = read(tmp_path, config({**GOOD, "timeout": timeout}))
    assert entry.timeout == seconds


@pytest.mark.parametrize(("key", "value"), [
    ("matcher", 5), ("matcher", ["bash"]), ("timeout", "30"), ("timeout", 1.5), ("name", {}), ("command", 5), ("include_sub_agents", "no"),
])  # fmt: skip
def test_a_wrong_type_voids_the_file_as_in_crush(tmp_path: Path, key: str, value: Any) -> None:
    """Above all: a matcher that cannot be read does not become one that fits everything."""
    entries, [problem] = read(tmp_path, config(GOOD, {**GOOD, key: value}))
    assert (
        entries == []
        and problem.kind is ProblemKind.WHOLE_FILE
        and f"hook PreToolUse[1]: `{key}` must be " in problem.text
    )


@pytest.mark.parametrize(("text", "told"), [
    ("{", "not JSON"), ("[]", "not a JSON object"), ('{"hooks": []}', "`hooks` must be an object"),
    ('{"hooks": {"PreToolUse": {}}}', "`PreToolUse` must be a list"),
])  # fmt: skip
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str, told: str) -> None:
    entries, [problem] = read(tmp_path, text)
    assert entries == [] and told in problem.text


@pytest.mark.parametrize("text", ["{}", '{"hooks": null}', '{"hooks": {"PreToolUse": null}}', "\ufeff{}"])
def test_a_file_without_hooks(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == ([], [])


@pytest.mark.parametrize(("entry", "event", "told"), [
    ({**GOOD, "matchers": "x"}, "PreToolUse", "unknown key `matchers` (did you mean `matcher`?)"),
    ({**GOOD, "matcher": "^(?!bash)"}, "PreToolUse", "Crush itself would refuse the matcher"),
    ({**GOOD, "matcher": "x"}, "UserPromptSubmit", "a matcher has no effect on UserPromptSubmit"),
])  # fmt: skip
def test_what_works_but_is_odd(tmp_path: Path, entry: Any, event: str, told: str) -> None:
    """UP10 among them."""
    [made], [problem] = read(tmp_path, config(entry, event=event))
    assert made.command == "true" and problem.kind is not ProblemKind.WHOLE_FILE and told in str(problem)


def test_a_crushrc_is_named_if_it_has_hooks(tmp_path: Path) -> None:
    entries, [problem] = read(tmp_path, "# mine\n  hook add PreToolUse --command x\n", name="crushrc")
    assert (entries, problem.line, problem.kind) == ([], 2, ProblemKind.PART) and "do not run here" in problem.text
    assert read(tmp_path, "export EDITOR=vi\n", name=".crushrc") == ([], [])


def test_where_configurations_lie_lowest_first(tmp_path: Path) -> None:
    root = tmp_path / "work"
    found = CRUSH.places(about(tmp_path, root=root, cwd=root / "a" / "b"))
    user = tmp_path / ".config" / "crush"
    assert [str(path) for layer, path in found if layer != "project"] == [
        "/etc/crush/crush.json", str(user / "crush.json"), str(user / "crushrc"),
        str(tmp_path / ".local" / "share" / "crush" / "crush.json"),
    ]  # fmt: skip
    names = ("crush.json", ".crush.json", "crushrc", ".crushrc")
    assert [path for layer, path in found if layer == "project"] == [
        *(folder / name for folder in (root, root / "a", root / "a" / "b") for name in names),
        root / "a" / "b" / ".crush" / "crush.json",
    ]


def test_folders_that_the_environment_names(tmp_path: Path) -> None:
    env = {"CRUSH_GLOBAL_CONFIG": "/one", "CRUSH_GLOBAL_DATA": "/two", "XDG_CONFIG_HOME": "/no", "XDG_DATA_HOME": "/no"}
    paths = [str(path) for layer, path in CRUSH.places(about(tmp_path, env=env)) if layer == "user"]
    assert paths == ["/one/crush.json", "/one/crushrc", "/two/crush.json"]
    env = {"XDG_CONFIG_HOME": "/xdg", "XDG_DATA_HOME": "/data"}
    paths = [str(path) for layer, path in CRUSH.places(about(tmp_path, env=env)) if layer == "user"]
    assert paths == ["/xdg/crush/crush.json", "/xdg/crush/crushrc", "/data/crush/crush.json"]


# RE2's words, what they find and what they do not.
SAME: list[tuple[str, str, str]] = [
    (r"^bash\z", "bash", "bashx"),
    (r"(?i)^BASH$", "bash", "edit"),
    (r"^b(?i)ASH$", "bash", "Bash"),
    (r"^a(?i)b|c$", "C", "A"),
    (r"^(?:(?i)a|b)c$", "Bc", "BC"),
    (r"^(?i:ba)sh$", "BAsh", "BASH"),
    (r"^\pL+$", "bash", "b4"),
    (r"^\p{Lu}", "Bash", "bash"),
    (r"^\P{Lu}+$", "bash", "Bash"),
    (r"^[\pL_]+$", "mcp_x", "mcp-x"),
    (r"^[^\pL]+$", "123", "a1"),
    (r"^\p{^L}$", "1", "a"),
    (r"^[[:alpha:]]+$", "bash", "b1"),
    (r"^[[:^digit:]_]+$", "a_b", "a1"),
    (r"^[][]$", "[", "a"),
    (r"^[a&&b]+$", "a&b", "c"),
    (r"\Qa.b\Ec", "a.bc", "axbc"),
    (r"\Qa.b", "a.b", "axb"),
    (r"^(?P<x>bash)$", "bash", "b"),
    (r"^(?<x>bash)$", "bash", "b"),
    (r"^(?U)b.*h$", "bash", "b"),
    (r"^\x{62}ash$", "bash", "cash"),
    (r"^\Aba\Csh", "baxsh", "bash"),
    (r"^a\|b$", "a|b", "a"),
    (r"\\z$", "\\z", "z"),
    (r"edit|write", "write", "bash"),
    (r"^mcp_", "mcp_github_get_me", "bash"),
]


@pytest.mark.parametrize(("pattern", "fits", "fits_not"), SAME)
def test_res_words_mean_the_same(tmp_path: Path, pattern: str, fits: str, fits_not: str) -> None:
    import re

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = re.compile(to_python(pattern)[0])
    assert wanted.search(fits) and not wanted.search(fits_not)
    assert read(tmp_path, config({**GOOD, "matcher": pattern}))[1] == []


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?<!a)b", r"(a)\1", "a++", "(?>a)", r"a\Z"])
def test_what_re2_refuses_works_and_is_said(tmp_path: Path, pattern: str) -> None:
    assert to_python(pattern)[1]


@pytest.mark.parametrize("pattern", [r"\\1", "[*+]", r"\++", "[(?=]", "(?i)a", r"\Q(?=\E"])
def test_what_only_looks_like_it_is_fine(pattern: str) -> None:
    assert not to_python(pattern)[1]


@pytest.mark.parametrize(
    "pattern", ["(", ")", "[", "a**", "\\", "(?z)", "[z-a]", r"\x{}", "(?", r"\p", "(?i", "[[:alpha:", "a{2,1}"]
)
def test_what_is_no_expression_is_refused(tmp_path: Path, pattern: str) -> None:
    entries, [problem] = read(tmp_path, config({**GOOD, "matcher": pattern}))
    assert entries == [] and "invalid matcher regex" in problem.text


ANNOUNCED = """{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "^bash$",
        "command": "./hooks/audit.sh",
        "include_sub_agents": true, // default false
      },
    ],
  },
}
"""
"""As Crush's documents print it."""


def test_a_configuration_with_comments_and_commas_behind_last_values(tmp_path: Path) -> None:
    file = CRUSH.parse(HookSource("crush", "user", tmp_path / "crush.json", ANNOUNCED), about(tmp_path))
    assert not file.problems
    [entry] = file.entries
    assert (entry.event, entry.matcher, entry.command, entry.line) == ("PreToolUse", "^bash$", "./hooks/audit.sh", 4)
    assert entry.include_sub_agents is True


def test_commas_and_slashes_in_texts_stay(tmp_path: Path) -> None:
    text = '{"hooks": {"PreToolUse": [{"command": "echo [1,] {a,} // b",}]}}'
    file = CRUSH.parse(HookSource("crush", "user", tmp_path / "crush.json", text), about(tmp_path))
    assert [entry.command for entry in file.entries] == ["echo [1,] {a,} // b"]
