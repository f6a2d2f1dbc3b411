"""The real command with hooks that somebody wrote to do harm, or got wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.faces.hooked import ids, script
from tests.faces.hooks_home import model, trust_all, turn
from tests.kit import HomeDir, cru

WRITES = 'by: order\ncall: bash {"command": "echo > made"}\n---\ntext: Done.\n'


def mine(home: HomeDir, *entries: dict[str, Any]) -> None:
    (home.path / ".cru").mkdir(exist_ok=True)
    (home.path / ".cru" / "hooks.json").write_bytes(msgspec.json.encode({"hooks": entries}))


def theirs(home: HomeDir, data: bytes | list[dict[str, Any]]) -> None:
    folder = home.project / ".cru"
    folder.mkdir(exist_ok=True)
    encoded = data if isinstance(data, bytes) else msgspec.json.encode({"hooks": data})
    (folder / "hooks.json").write_bytes(encoded)


def test_a_projects_twin_does_not_switch_off_a_guard(home: HomeDir) -> None:
    guard = script(home, "guard.sh", "#!/bin/sh\nexit 2\n").rename(home.path / "guard.sh")
    entry: dict[str, Any] = {"event": "tool:before_call", "command": str(guard)}
    mine(home, {**entry, "on_error": "deny"})
    model(home, WRITES)
    for twin in (
        {"priority": 1, "async": True, "timeout": 0.01},
        {"priority": 1, "on_error": "deny", "timeout": 0.001},
    ):
        theirs(home, [{**entry, **twin}])
        trust_all(home)
        turn(home, "-c", "new")
        assert not (home.project / "made").exists()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "command",
    [
        '"$PWD"/guard.sh',
        "./guard.sh",
        "sh guard.sh",
        'f=guard.sh; sh "./$f"',
        '"$CLAUDE_PROJECT_DIR"/guard.sh',
        "true # ./guard.sh\nexit 2",
    ],
)
def test_a_project_cannot_make_a_guard_of_mine_wait(home: HomeDir, command: str) -> None:
    model(home, WRITES)
    mine(home, {"event": "tool:before_call", "command": command, "on_error": "deny"})
    script(home, "guard.sh", "#!/bin/sh\nexit 2\n")
    for name in ("true", "exit", "2"):
        (home.project / name).write_text("x")
    run = turn(home, "--strict-hooks")
    assert "wait" not in run.err and not (home.project / "made").exists()
    assert cru("hooks", "review", home=home).out == "no hook awaits trust\n"


def test_check_names_a_hook_of_mine_that_runs_a_file_of_the_project(home: HomeDir) -> None:
    model(home)
    script(home, "fmt.sh", "#!/bin/sh\n")
    theirs = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/fmt.sh'
    commands = (
        "# ./fmt.sh\ntrue",
        "~/fmt.sh; /usr/bin/env true",
        "cat ./fmt.sh",
        "cd ~/x && ./fmt.sh",
        "./fmt.sh > ./log",
        theirs,
    )
    mine(home, *({"event": "tool:completed", "command": command} for command in commands))
    odd = [line for line in cru("hooks", "check", home=home).out.splitlines() if "project you stand in" in line]
    assert (
        len(odd) == 2
        and "runs ./fmt.sh of whatever project you stand in; cru does not review it, and in mode auto" in odd[0]
    )
    assert 'protect it with `[permissions] ask = ["write:fmt.sh"]`' in odd[0] and "in mode auto" not in odd[1]


def test_the_rule_that_check_names_protects_the_file(home: HomeDir) -> None:
    mine(home, {"event": "tool:completed", "command": "./fmt.sh"})
    check = cru("hooks", "check", home=home).out
    rule = check.partition("protect it with `")[2].partition("`")[0]
    model(
        home,
        'by: order\ncall: write {"file_path": "fmt.sh", "content": "x"}\n---\ntext: Done.\n',
        rule.replace(" ", "\n", 1),
    )
    turn(home, "--mode", "auto")
    assert not (home.project / "fmt.sh").exists()


def test_a_guard_in_utf_16_stops_a_strict_start(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    (home.path / ".cru" / "hooks.json").write_bytes(
        '{"hooks": [{"event": "tool:before_call", "command": "exit 2"}]}'.encode("utf-16")
    )
    assert "hooks.json: not UTF-8 (save the file as UTF-8)" in turn(home).err
    run = cru("--strict-hooks", "hello", home=home)
    assert run.code == 3 and "not UTF-8" in run.err


def test_a_mistake_stops_a_strict_start(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    for data, told in (
        (b'{"hook": [{"event": "tool:before_call", "command": "exit 2"}]}', "did you mean `hooks`?"),
        (b'{"hooks": [{"event": "tool:before_call", "command": "exit 2"}], "hooks": []}', "`hooks` is given twice"),
        (
            b'{"hooks": [{"event": "tool:before_call", "command": "exit 2", "on_error": true}]}',
            "`on_error` must be a text",
        ),
    ):
        (home.path / ".cru" / "hooks.json").write_bytes(data)
        assert told in turn(home).err
        run = cru("--strict-hooks", "hello", home=home)
        assert run.code == 3 and told in run.err


@pytest.mark.slow
def test_a_strangers_file_does_not_flood_a_terminal(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    entry = {"event": "tool:before_call", "command": "true", "matcher": "(\x1b[31m\n" + "x" * 5000}
    theirs(home, [{**entry, "name": str(number)} for number in range(100)])
    run = turn(home)
    assert "and 95 more: `cru hooks check`" in run.err and "\x1b" not in run.err
    assert len(run.err.splitlines()) <= 6 and max(map(len, run.err.splitlines())) < 600
    assert ids(home)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", ["1" * 4400, "0x" + "f" * 4400], ids=["decimal", "hexadecimal"])
@pytest.mark.parametrize("name", [".codex/config.toml", ".cru/config.toml"])
def test_a_number_without_an_end_does_not_end_a_start(home: HomeDir, name: str, number: str) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    path = home.project / name
    path.parent.mkdir()
    path.write_text(f'[[hooks.PreToolUse]]\nn = {number}\n[[hooks.PreToolUse.hooks]]\ncommand = "true"\nn = {number}\n')
    for words in (("hello",), ("hooks", "check"), ("hooks", "list"), ("hooks", "review")):
        run = cru(*words, home=home)
        assert "Traceback" not in run.err + run.out and run.code in (0, 1, 2), (words, run)
    if number[1] == "1":
        assert f"{name}: not TOML: Exceeds the limit (4300 digits)" in run.err


@pytest.mark.slow
def test_a_command_of_any_length_is_no_reason_to_wait(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    theirs(
        home,
        [
            {"event": "tool:before_call", "command": "a/b $(c) " * 100_000},
            {"event": "tool:before_call", "args": ["x" * 9000] * 2},
        ],
    )
    for words in (("hooks", "check"), ("hooks", "review"), ("hooks", "list"), ("hello",)):
        run = cru(*words, home=home)
        assert len(run.out + run.err) < 20_000, words
    assert run.err.count("the command is too long") == 2
    only = next(iter(ids(home).values()))
    run = cru("hooks", "review", "--trust", only, home=home)
    assert run.code == 2 and "nothing is accepted" in run.err


def test_code_that_is_nested_deeply_cannot_be_checked(home: HomeDir) -> None:
    model(home)
    source = "if 0: pass\n" + "".join(f"elif {n}: x{n} = 1\n" for n in range(1500))
    (home.cru / "deep.py").write_text(source + "def guard(ctx, event): pass\n")
    (home.cru / "worse.py").write_text("x = " + "-" * 100_000 + "1\n")
    entries = [{"event": "tool:before_call", "python": f"{name}.py:guard"} for name in ("deep", "worse")]
    mine(home, *entries)
    run = cru("hooks", "check", home=home)
    assert "Traceback" not in run.err and run.out.count("cannot be checked: its code is nested too deeply") == 1, run
    assert "deep.py" not in run.out
