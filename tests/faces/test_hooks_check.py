"""`cru hooks check`: what is broken or odd, told without running anything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.faces.hooked import claude, crush, hooks, model, script
from tests.kit import HomeDir, cru

TRUE = {"command": "true"}


def check(home: HomeDir, code: int) -> str:
    model(home)
    return hooks(home, "check", code=code).out


def test_nothing_odd_is_said_and_nothing_is_run(home: HomeDir) -> None:
    guard = script(home, "guard.sh", "#!/bin/sh\ntouch ran\n").rename(home.path / "guard.sh")
    crush(home, {"matcher": "^bash$", "command": str(guard)}, {"command": "touch ran"})
    assert check(home, 0) == "2 hooks in 1 file: 2 active; 0 broken, 0 odd\n"
    assert not (home.project / "ran").exists()


def test_no_hooks_at_all(home: HomeDir) -> None:
    assert check(home, 0) == "0 hooks in 0 files: 0 active; 0 broken, 0 odd\n"


@pytest.mark.parametrize(
    ("entry", "event", "said"),
    [
        (TRUE, "PreToolUsee", "crush has no event PreToolUsee, so this never runs (did you mean `PreToolUse`?)"),
        ({"command": "./nosuch.sh"}, "PreToolUse", "there is no ./nosuch.sh (it is looked for in "),
        ({"command": "nosuchprogram --x"}, "PreToolUse", "there is no program nosuchprogram on the PATH"),
        ({"command": "python3 hooks/guard.py"}, "PreToolUse", "there is no hooks/guard.py (it is looked for in "),
        ({"command": "cd sub && ./gone.sh"}, "PreToolUse", "there is no ./gone.sh"),
        ({"command": "./folder"}, "PreToolUse", "./folder is a folder"),
        ({"command": "./badline.sh"}, "PreToolUse", "the interpreter of ./badline.sh, /nowhere/python9, is not there"),
    ],
)
def test_what_cannot_work_is_broken(home: HomeDir, entry: dict[str, Any], event: str, said: str) -> None:
    (home.project / "folder").mkdir()
    script(home, "badline.sh", "#!/nowhere/python9\n")
    crush(home, entry, event=event)
    out = check(home, 1)
    assert said in out and "1 broken" in out, out


@pytest.mark.parametrize(
    "command",
    [
        "jq -r .tool_name",
        "f() { true; }; f",
        "FOO=1 true && [[ -n $FOO ]]",
        "$CRUSH_PROJECT_DIR/ok.sh",
        "./ok.sh | grep -q x || true",
        "python3 -c 'print(1)'",
        "~/.local/bin/mine",
        'if [ -f x ]; then "$TOOL" x; fi',
    ],
)
def test_what_works_is_not_called_broken(home: HomeDir, command: str) -> None:
    script(home, "ok.sh", "echo hi\n", mode=0o644)
    mine = home.path / ".local" / "bin" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    crush(home, {"command": command})
    out = check(home, 0)
    assert "0 broken" in out and "there is no" not in out


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("nosuchprogram x || true", 1),
        ("true && nosuchprogram", 1),
        ("if nosuchprogram; then true; fi", 1),
        ("python3 gone.py || true", 1),
        ("true | nosuchprogram", 1),
        ("command -v nosuchprogram && nosuchprogram x", 0),
        ("if which nosuchprogram; then nosuchprogram; fi", 0),
        ("[ -f gone.py ] && python3 gone.py", 0),
        ("[ -x ./gone.sh ] && ./gone.sh", 0),
        ('if [ "$(uname)" = Darwin ]; then nosuchprogram; fi', 0),
    ],
)
def test_what_is_missing_is_broken_unless_the_command_looks_for_it(home: HomeDir, command: str, code: int) -> None:
    crush(home, {"command": command})
    out = check(home, code)
    assert "there is no " in out and f"{code} broken, " in out, out


@pytest.mark.parametrize("command", ["if true; then exit 2", "python3 bad.py"])
def test_source_that_cannot_be_read_is_broken_and_not_run(home: HomeDir, command: str) -> None:
    script(home, "bad.py", "open('ran', 'w')\ndef f(:\n")
    crush(home, {"command": command})
    assert "1 broken, " in check(home, 1)
    assert not (home.project / "ran").exists()


@pytest.mark.parametrize("command", ["~/guard.py", "python3 ~/guard.py"])
def test_a_script_of_the_home_folder_is_looked_for_there(home: HomeDir, command: str) -> None:
    crush(home, {"command": command})
    out = check(home, 1)
    assert f"there is no {home.path}/guard.py\n" in out and "looked for" not in out, out


def test_in_the_exec_form_a_placeholder_is_a_folder_and_a_tilde_is_a_name(home: HomeDir) -> None:
    script(home, "guard.sh", "#!/bin/sh\n")
    (home.path / "guard.sh").write_text("#!/bin/sh\n")
    claude(
        home,
        {"command": "${CLAUDE_PROJECT_DIR}/guard.sh", "args": ["x"]},
        {"command": "~/guard.sh", "args": ["x"]},
    )
    out = check(home, 1)
    assert "1 broken" in out and "there is no ~/guard.sh (it is looked for in " in out, out


@pytest.mark.sample(1)
@pytest.mark.parametrize(("command", "path"), [("./python3 bad.py", ""), ("python3 bad.py", "{}:/usr/bin:/bin")])
def test_an_interpreter_that_the_project_brings_is_not_asked_about_a_script(
    home: HomeDir, command: str, path: str
) -> None:
    script(home, "bad.py", "def f(:\n")
    script(home, "python3", "#!/bin/sh\ntouch ran; echo no >&2; exit 1\n")
    crush(home, {"command": command})
    model(home)
    env = {"PATH": path.format(home.project)} if path else {}
    assert "0 broken" in cru("hooks", "check", home=home, env=env).out
    assert not (home.project / "ran").exists()


def own(home: HomeDir, *entries: dict[str, Any]) -> None:
    home.cru.mkdir(exist_ok=True)
    (home.cru / "hooks.json").write_text(msgspec.json.encode({"hooks": entries}).decode().replace("},{", "},\n{"))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"lua": "retrun nil"}, "its code is no Lua, line 1: "),
        ({"lua": "x.lua"}, "x.lua is no Lua, line 3: "),
        ({"lua": "gone.lua"}, "gone.lua"),
        ({"python": "x.py:guard"}, "x.py has no function guard (did you mean `guards`?)"),
        ({"python": "bad.py:guard"}, "bad.py is no Python, line 1: "),
        ({"python": "gone.py:guard"}, "gone.py"),
    ],
)
def test_code_that_cannot_be_used_is_broken_and_is_not_run(home: HomeDir, entry: dict[str, Any], said: str) -> None:
    home.cru.mkdir()
    (home.cru / "x.lua").write_text('io.open("ran", "w")\nlocal a =\n')
    (home.cru / "x.py").write_text('open("ran", "w")\ndef guards(ctx, event):\n    pass\n')
    (home.cru / "bad.py").write_text("def guard(:\n")
    own(home, {"event": "PreToolUse", **entry})
    out = check(home, 1)
    assert said in out and "1 broken, 0 odd" in out, out
    assert not (home.project / "ran").exists()


def test_code_that_can_be_used_is_not_run(home: HomeDir) -> None:
    home.cru.mkdir()
    (home.cru / "x.py").write_text(
        'open("ran", "w")\nif True:\n    from os import getcwd as guard\nelse:\n    guard = print\n'
    )
    own(
        home,
        {"event": "PreToolUse", "python": "x.py:guard"},
        {"event": "PreToolUse", "lua": "io.open('ran', 'w') return nil"},
    )
    assert "0 broken, 0 odd" in check(home, 0)
    assert not (home.project / "ran").exists()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"if": "bsh:*"}, "`if` names `bsh`, which is no tool of cru's, so this never runs (did you mean `bash`?)"),
        (
            {"event": "turn:complete", "matcher": "^dnoe$"},
            "its matcher `^dnoe$` fits nothing that cru has (did you mean `done`?)",
        ),
        ({"async": True, "priority": 5}, "nobody waits for it (`async`), so it can forbid nothing on tool:before_call"),
        ({"async": True, "on_error": "deny"}, "nobody waits for it (`async`), so `on_error` has no effect"),
    ],
)
def test_what_never_fits_or_never_guards_is_told(home: HomeDir, entry: dict[str, Any], said: str) -> None:
    own(home, {"event": "tool:before_call", "command": "true", **entry})
    is_odd = "priority" in entry  # nobody said that it is a guard
    out = check(home, 0 if is_odd else 1)
    assert said in out and ("0 broken, 1 odd" if is_odd else "1 broken, 0 odd") in out, out


@pytest.mark.parametrize(
    ("event", "matcher", "said"),
    [
        ("Stop", "x", "its matcher `x` has no effect on Stop"),
        (
            "Notification",
            "idle_promt",
            "its matcher `idle_promt` fits nothing that cru has (did you mean `idle_prompt`?)",
        ),
        ("SessionEnd", "claer", "its matcher `claer` fits nothing that cru has (did you mean `clear`?)"),
        (
            "StopFailure",
            "rate_limits",
            "its matcher `rate_limits` fits nothing that cru has (did you mean `rate_limit`?)",
        ),
    ],
)
def test_a_matcher_that_never_fits(home: HomeDir, event: str, matcher: str, said: str) -> None:
    claude(home, TRUE, event=event, matcher=matcher)
    assert said in check(home, int(event == "StopFailure"))


def test_an_unknown_tool_in_claudes_if_is_broken(home: HomeDir) -> None:
    claude(home, {"command": "true", "if": "Bsh(git *)"}, {"command": "true", "if": "Bash(git *)"})
    out = check(home, 1)
    assert "`if` names `Bsh`" in out and "did you mean `Bash`?" in out and "1 broken, 0 odd" in out, out


@pytest.mark.parametrize(("folder", "event"), [("codex", "Stop"), ("gemini", "AfterAgent")])
def test_a_matcher_where_none_counts(home: HomeDir, folder: str, event: str) -> None:
    path = home.path / f".{folder}" / ("hooks.json" if folder == "codex" else "settings.json")
    path.parent.mkdir()
    group = {"matcher": "x", "hooks": [{"type": "command", "command": "true"}]}
    path.write_bytes(msgspec.json.encode({"hooks": {event: [group]}}))
    assert f"a matcher has no effect on {event}" in check(home, 0)


def test_findings_stand_in_the_order_of_the_file(home: HomeDir) -> None:
    own(
        home,
        {"event": "PreToolUse", "command": "true", "matcher": "Bsah"},
        {"event": "PreToolUs", "command": "true"},
        {"event": "PreToolUse", "command": "nosuchprogram"},
    )
    lines = [int(line.split("hooks.json:")[1].partition(":")[0]) for line in check(home, 1).splitlines()[:-1]]
    assert lines == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "text", "mode", "said"),
    [
        ("plain.py", "#!/usr/bin/env python3\n", 0o644, "./plain.py is not executable (chmod +x ./plain.py)"),
        ("dos.py", "#!/usr/bin/env python3\r\nprint()\r\n", 0o755, "./dos.py has line ends of Windows"),
    ],
)
def test_modes_and_line_ends_matter_where_the_system_starts_the_script(
    home: HomeDir, name: str, text: str, mode: int, said: str
) -> None:
    script(home, name, text, mode)
    crush(home, {"command": f"./{name}"})
    assert "0 broken" in check(home, 0)  # Crush runs it all the same
    claude(home, {"command": f"./{name}"})
    assert said in check(home, 1)


@pytest.mark.parametrize(
    ("matcher", "said"),
    [
        ("Bsah", "its matcher `Bsah` fits nothing that cru has (did you mean `Bash`?)"),
        ("Edit|Wirte", "`Wirte` in its matcher fits nothing that cru has (did you mean `Write`?)"),
        (
            "mcp__memory",
            "`mcp__memory` is the exact name of a tool here (mcp__memory__.* fits all tools of the server)",
        ),
    ],
)
def test_a_matcher_that_fits_no_tool_names_the_closest(home: HomeDir, matcher: str, said: str) -> None:
    claude(home, TRUE, matcher=matcher)
    out = check(home, 1)
    assert said in out and "1 broken, 0 odd" in out, out


@pytest.mark.parametrize("matcher", ["Bash", "Edit|Write", "mcp__memory__.*", "", "*", ".*", "^(Read|Glob)$"])
def test_a_matcher_that_fits_is_not_odd(home: HomeDir, matcher: str) -> None:
    claude(home, TRUE, matcher=matcher)
    assert "0 broken, 0 odd" in check(home, 0)


def test_a_matcher_of_another_event_is_looked_at_too(home: HomeDir) -> None:
    claude(home, TRUE, event="SessionStart", matcher="statrup")
    assert "did you mean `startup`?" in check(home, 0)


def test_limits_in_the_wrong_unit(home: HomeDir) -> None:
    crush(home, {"command": "true", "timeout": 60000})
    assert "its `timeout` is 60000 seconds (1000 minutes); only Gemini counts milliseconds (60 seconds?)" in check(
        home, 0
    )


def test_a_login_shell(home: HomeDir) -> None:
    crush(home, {"command": "bash -lc 'true'"})
    assert "it starts a login shell" in check(home, 0)


def test_a_condition_on_an_event_without_a_tool(home: HomeDir) -> None:
    claude(home, {"command": "true", "if": "Bash(git *)"}, event="UserPromptSubmit")
    model(home)
    out = cru("hooks", "check", home=home).out
    assert "if" in out and "0 broken, 0 odd" not in out


def test_twins(home: HomeDir) -> None:
    crush(home, TRUE, TRUE)
    assert "the same as crush-" in check(home, 0) and "it runs once" in check(home, 0)


def test_the_other_systems_shape(home: HomeDir) -> None:
    crush(home, {"matcher": "bash", "hooks": [{"type": "command", "command": "true"}]})
    assert "the nested form belongs into .claude/settings.json" in check(home, 1)


def test_flat_entries_in_claudes_file(home: HomeDir) -> None:
    path = home.path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {"PreToolUse": [{"command": "true"}]}}')
    assert "needs a list `hooks`" in cru("hooks", "check", home=home).out


def test_a_file_that_is_no_json_names_its_line(home: HomeDir) -> None:
    crush(home).write_text('{"hooks":\n {"PreToolUse": [}\n}')
    run = cru("hooks", "check", home=home)
    assert run.code == 1 and "crush.json:2" in run.out and "Traceback" not in run.err


def test_what_waits_is_said_and_ends_the_check_as_a_strict_run(home: HomeDir) -> None:
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "true"}]}}')
    out = check(home, 1)
    assert "waiting" in out and "1 await trust (`cru hooks review`)" in out


def test_for_programs_it_is_json(home: HomeDir) -> None:
    crush(home, {"command": "./nosuch.sh"})
    model(home)
    one, _ = msgspec.json.decode(hooks(home, "check", "--json", code=1).out)
    assert one["level"] == "broken" and one["where"].endswith("crush.json:4") and one["hint"]
