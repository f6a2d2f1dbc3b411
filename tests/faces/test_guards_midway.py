"""What becomes of guards while a chat runs: broken, gone, mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faces.hooks_home import model
from tests.kit import HomeDir, Terminal, cru, pty

CALL = 'call: bash {"command": "touch %s"}\n---\ntext: ended %s\n---\n'
GUARD = 'cru.on("tool:before_call", function() return {cancel = true, reason = "guarded"} end)\n'
DENY = '{"hooks": [{"event": "tool:before_call", "command": "echo no entry >&2; exit 2"}]}'


def scripted(home: HomeDir, *names: str, config: str = "") -> None:
    model(home, "by: order\n" + "".join(CALL % (name, name) for name in names), config)


def turn(terminal: Terminal, text: str, end: str) -> None:
    terminal.line(text)
    terminal.expect(end)


def test_a_file_of_hooks_that_breaks_keeps_its_guards_and_one_that_goes_is_told(home: HomeDir) -> None:
    scripted(home, "first", "second", "third")
    file = home.cru / "hooks.json"
    file.write_text(DENY)
    with pty(home=home, columns=120) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "ended first")
        file.write_text(DENY[:20])
        turn(terminal, "two", "ended second")
        assert "hooks.json: not JSON" in terminal.text
        assert "1 hook of a file that cannot be read any more stays as before: echo no entry" in terminal.text
        file.unlink()
        turn(terminal, "three", "ended third")
        assert "1 hook that was active is gone: echo no entry" in terminal.text
        terminal.eof()
    made = [(home.project / name).exists() for name in ("first", "second", "third")]
    assert made == [False, False, True]


def test_with_strict_hooks_a_file_of_hooks_that_goes_ends_the_asking(home: HomeDir) -> None:
    scripted(home, "first", "second", "third")
    file = home.cru / "hooks.json"
    file.write_text(DENY)
    with pty("--strict-hooks", home=home) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "ended first")
        file.unlink()
        turn(terminal, "two", "is gone, and its hooks with it")
        file.write_text("")
        turn(terminal, "three", "it is empty")
        file.write_text(DENY)
        turn(terminal, "four", "ended second")
        terminal.eof()
    assert not any((home.project / name).exists() for name in ("first", "second"))
    assert "two" not in str(home.log()) and "three" not in str(home.log())


def test_a_chat_asks_nothing_until_a_required_plugin_is_mended(home: HomeDir) -> None:
    scripted(home, "first", config="[plugins.guard]\nrequired = true\n")
    file = home.cru / "plugins" / "guard.lua"
    file.parent.mkdir()
    file.write_text("error('half written')\n")
    with pty(home=home) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "guard: ")
        turn(terminal, "two", "guard: ")
        assert "required" in terminal.text and home.log() == []
        file.write_text(GUARD)
        turn(terminal, "three", "ended first")
        turn(terminal, "/plugin disable guard", "the plugin guard is required")
        terminal.eof()
    assert not (home.project / "first").exists()


def test_a_required_plugin_that_goes_midway_ends_the_asking(home: HomeDir) -> None:
    scripted(home, "first", "second", config="[plugins]\nwatch = true\n[plugins.guard]\nrequired = true\n")
    file = home.cru / "plugins" / "guard.lua"
    file.parent.mkdir()
    file.write_text(GUARD)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "ended first")
        file.write_text("local x =\n")
        turn(terminal, "two", "ended second")
        assert "the version before stays active" in terminal.text
        file.unlink()
        turn(terminal, "three", "there is no such plugin")
        terminal.eof()
    made = [(home.project / name).exists() for name in ("first", "second")]
    assert made == [False, False] and "three" not in str(home.log())


MISSPELT = {
    "its event": (GUARD.replace("before_call", "befor_call"), "did you mean `tool:before_call`?"),
    "its pattern": (GUARD.replace("end)", 'end, { pattern = "bsh" })'), "the pattern `bsh` fits no tool"),
    "an option": (GUARD.replace("end)", 'end, { patern = "bash" })'), "unknown option `patern`"),
    "all of it": ("local x = 1\n", "this plugin has no effect"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", MISSPELT)
def test_in_a_strict_chat_a_required_plugin_that_becomes_misspelt_ends_the_asking(home: HomeDir, what: str) -> None:
    """Whatever is wrong with it as it is now, it guards nothing more, or as before; nothing is asked until it is mended."""
    text, told = MISSPELT[what]
    scripted(home, "first", "second", config="[plugins]\nwatch = true\n[plugins.guard]\nrequired = true\n")
    file = home.cru / "plugins" / "guard.lua"
    file.parent.mkdir()
    file.write_text(GUARD)
    with pty("--strict-hooks", home=home) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "ended first")
        file.write_text(text)
        turn(terminal, "two", told)
        file.write_text(GUARD + "-- mended\n")
        turn(terminal, "three", "ended second")
        terminal.eof()
    assert not any((home.project / name).exists() for name in ("first", "second"))
    assert "two" not in str(home.log())


def test_with_strict_hooks_a_chat_asks_nothing_while_a_rule_names_no_tool(home: HomeDir) -> None:
    scripted(home, "first", config='[permissions]\ndeny = ["bsh:touch *"]\n')
    with pty("--strict-hooks", home=home) as terminal:
        terminal.expect("> ")
        turn(terminal, "one", "not every rule can hold")
        turn(terminal, "two", "not every rule can hold")
        terminal.eof()
    assert not (home.project / "first").exists() and home.log() == []


def test_hooks_for_tools_of_other_systems_are_told_nothing_of(home: HomeDir) -> None:
    model(home, config='[hooks]\ndialects = ["claude"]\n')
    file = home.path / ".claude" / "settings.json"
    file.parent.mkdir()
    matchers = ("Task", "Edit|Write|NotebookEdit", "WebSearch", "mcp__memory__.*", "Notebook.*", "*")
    groups = ",".join(f'{{"matcher": "{m}", "hooks": [{{"type": "command", "command": "true"}}]}}' for m in matchers)
    file.write_text(f'{{"hooks": {{"PreToolUse": [{groups}]}}}}')
    assert cru("hello", home=home).err == ""


def test_hooks_that_work_are_told_nothing_of(home: HomeDir) -> None:
    model(home)
    script = home.project / "guard.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    own = '{"event": "tool:before_call", "matcher": "^(bash|mcp__x__y)$", "command": "./guard.sh"}'
    (home.cru / "hooks.json").write_text(
        f'{{"hooks": [{own}, {{"event": "message:received", "command": "cat | grep -q x || true"}}]}}'
    )
    plugins = Path(home.cru / "plugins")
    plugins.mkdir()
    body = 'cru.on("tool:before_call", function() end, { pattern = "%s" })\n'
    patterns = ("*", "mcp__github__*", "{bash,edit*}", "just_*", "later")
    (plugins / "early.lua").write_text("".join(body % pattern for pattern in patterns))
    (plugins / "zlate.lua").write_text("--- Later.\n-- @tool\nfunction later() return 'x' end\n")
    assert cru("--strict-hooks", "hello", home=home).err.count("cru:") == 0
