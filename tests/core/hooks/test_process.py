from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.hooks.crush_world import Made, call, config
from tests.core.hooks.running import Hooks

from cru.core.hooks.dialects.crush.dialect import QUIET
from cru.core.hooks.launch.process import LONGEST, passable


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    return Hooks(tmp_path)


def test_s1_echo(hooks: Hooks) -> None:
    assert hooks.out("echo hi") == "hi\n"


def test_s2_exit_status(hooks: Hooks) -> None:
    assert hooks.run("exit 7").exit == 7


def test_s3_stdin(hooks: Hooks) -> None:
    assert hooks.out("read -r line; echo got:$line", b"hello\n") == "got:hello\n"


def test_s3_read_under_set_e(hooks: Hooks) -> None:
    assert hooks.out("set -euo pipefail; read -r line; echo $line", b'{"a":1}\n') == '{"a":1}\n'


def test_s4_env(hooks: Hooks) -> None:
    assert hooks.out('echo "$FOO"', also={"FOO": "bar"}) == "bar\n"


def test_s5_cwd(hooks: Hooks) -> None:
    assert hooks.out("pwd -P") == f"{hooks.cwd.resolve()}\n"


def test_s6_jq(hooks: Hooks) -> None:
    assert hooks.out("jq -r .a", b'{"a":"x"}\n') == "x\n"


def test_s7_ten_at_once_do_not_mix(hooks: Hooks) -> None:
    async def main() -> list[str]:
        runs = [hooks.arun('cat; echo "$MARKER"', f"{n} ".encode(), also={"MARKER": f"id-{n}"}) for n in range(10)]
        return [made.stdout for made in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [f"{n} id-{n}\n" for n in range(10)]


@pytest.mark.parametrize("command", ["echo 'unterminated", "if then", "echo $(", "echo a\nfi"])
def test_s10_a_command_that_cannot_be_parsed_is_no_deny(hooks: Hooks, command: str) -> None:
    """Shells say 2, which is a Crush hook's "deny"."""
    made = hooks.run(command)
    assert made.exit == 1
    assert "line 1" in made.stderr or "line 2" in made.stderr


@pytest.mark.parametrize(
    "command", ["echo no >&2; exit 2", "shopt -s extglob\n[[ ab == @(ab|c) ]] && echo no >&2 && exit 2"]
)
def test_a_deny_stays_one(hooks: Hooks, command: str) -> None:
    made = hooks.run(command)
    assert (made.exit, made.stderr) == (2, "no\n")


def test_other_dialects_shells_keep_their_word_on_what_cannot_be_parsed(hooks: Hooks) -> None:
    assert hooks.run("if then", dialect="claude").exit == 2


def test_s_no_command_is_forbidden_to_a_hook(hooks: Hooks) -> None:
    hooks.script("bin/curl", "#!/bin/sh\necho fetched $1\n", 0o755)
    assert hooks.out("curl x", also={"PATH": f"{hooks.cwd}/bin:/bin"}) == "fetched x\n"


def test_s_without_a_working_directory_nothing_runs(hooks: Hooks) -> None:
    hooks.cwd = Path("")
    made = hooks.run("echo hi")
    assert (made.exit, made.stdout, made.error) == (None, "", "it needs a working directory")


def test_s_a_quiet_environment_overrides_the_users_and_nothing_that_only_begins_alike(hooks: Hooks) -> None:
    users = {"EDITOR": "nvim", "PAGER": "less", "EDITORIAL": "yes", "FOO": "bar"}
    assert hooks.out("echo $EDITOR $PAGER $EDITORIAL $FOO", also={**users, **QUIET}) == "false cat yes bar\n"


def test_output_and_errors_come_apart(hooks: Hooks) -> None:
    made = hooks.run("echo out; echo err >&2; exit 3")
    assert (made.exit, made.stdout, made.stderr) == (3, "out\n", "err\n")


def test_there_is_no_terminal(hooks: Hooks) -> None:
    assert hooks.run("(: </dev/tty) 2>/dev/null || echo none").stdout == "none\n"


def test_without_a_payload_input_is_empty(hooks: Hooks) -> None:
    assert hooks.out("cat; echo end") == "end\n"


def test_t6_a_hook_that_never_reads(hooks: Hooks) -> None:
    assert hooks.out("echo done", b"x" * (1 << 20)) == "done\n"


def test_t6_a_hook_that_stops_reading(hooks: Hooks) -> None:
    assert hooks.out("head -c 3; exec 0<&-; sleep 0.1; echo .", b"x" * (1 << 20)) == "xxx.\n"


def test_a_large_payload_reaches_a_slow_reader_whole(hooks: Hooks) -> None:
    slow = "head -c 70000 | wc -c; sleep 0.1; head -c 200000 | wc -c; sleep 0.1; wc -c"
    assert [int(n) for n in hooks.out(slow, b"x" * (1 << 20)).split()] == [70000, 200000, (1 << 20) - 270000]


def test_t8_bytes_that_are_not_utf8_are_replaced(hooks: Hooks) -> None:
    assert hooks.out(r"printf 'a\377b\303\251'") == "a\ufffdbé"


def test_t9_a_byte_order_mark_is_removed(hooks: Hooks) -> None:
    assert hooks.out(r"""printf '\357\273\277{"decision":"deny"}'""") == '{"decision":"deny"}'


def test_t10_what_no_variable_can_hold_is_left_out_and_said(hooks: Hooks) -> None:
    also = {"HUGE": "é" * 70_000, "NULL": "a\0b", "": "x", "A=B": "x", "LONE": "\ud800", "GOOD": "yes"}
    made = hooks.run('echo "$GOOD${HUGE-}${NULL-}${LONE-}"', also=also)
    assert made.stdout == "yes\n"
    assert made.note.startswith("HUGE, NULL, (no name), A=B, LONE cannot be passed as an environment variable")


def test_t10_the_longest_variable_that_a_process_takes(hooks: Hooks) -> None:
    value = "x" * (LONGEST - len("BIG="))
    assert hooks.out("echo ${#BIG}", also={"BIG": value}) == f"{len(value)}\n"
    assert passable({"BIG": value + "x"}) == ({}, ["BIG"])


def test_what_was_odd_about_running_it_is_told(tmp_path: Path) -> None:
    called = call(Made(tmp_path, config({"command": "exit 2", "name": "guard"})), args={"command": "x" * 140_000})
    assert called.decision == "deny"
    (text,) = called.notices
    assert "guard" in text
    assert "CRUSH_TOOL_INPUT_COMMAND cannot be passed as an environment variable" in text


def test_t11_the_folder_is_gone(hooks: Hooks) -> None:
    hooks.cwd = hooks.cwd / "gone"
    made = hooks.run("echo hi")
    assert (made.exit, made.error) == (None, f"the folder {hooks.cwd} is gone")


def test_a_command_that_is_too_long(hooks: Hooks) -> None:
    made = hooks.run(": " + "x" * 200_000)
    assert made.exit is None
    assert made.error == "the command and its environment are too long; write the command to a file and run that"


def test_a_nul_in_the_command(hooks: Hooks) -> None:
    assert hooks.run("echo a\0b").error == "a command cannot hold a NUL character"


def test_a_missing_command_is_the_shells_127(hooks: Hooks) -> None:
    made = hooks.run("no-such-program")
    assert made.exit == 127
    assert "not found" in made.stderr


def test_a_signal_is_a_negative_exit_status(hooks: Hooks) -> None:
    assert hooks.run("kill -9 $$").exit == -9


def test_a_command_that_begins_with_a_sign_is_no_option(hooks: Hooks) -> None:
    assert hooks.run("-x foo").exit == 127


def test_start_up_files_are_not_read(hooks: Hooks) -> None:
    for name in (".bashrc", ".bash_profile", ".profile"):
        hooks.script(name, "echo noise\n")
    assert hooks.out("echo hi; shopt -q login_shell && echo login || true") == "hi\n"


def test_the_exec_form_needs_no_shell(hooks: Hooks) -> None:
    assert hooks.out("printf", args=("%s|", "a b", "$HOME", "*"), dialect="claude") == "a b|$HOME|*|"


def test_the_exec_form_finds_programs_of_the_folder(hooks: Hooks) -> None:
    hooks.script("run", "#!/bin/sh\necho ran $1\n", 0o755)
    assert hooks.out("./run", args=("it",), dialect="claude") == "ran it\n"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("no-such-program", "No such file or directory"), ("./folder", "Permission denied"), ("./plain", "Permission denied"),
        ("./lost", "No such file or directory"),
    ],
)  # fmt: skip
def test_the_exec_form_says_why_it_cannot_start(hooks: Hooks, program: str, why: str) -> None:
    hooks.script("folder/x", "")
    hooks.script("plain", "text")
    hooks.script("lost", "#!/no/such/interpreter\n", 0o755)
    made = hooks.run(program, args=(), dialect="claude")
    assert (made.exit, made.error) == (None, f"cannot start {program}: {why}")


def test_more_than_a_mebibyte_is_cut_and_said(hooks: Hooks) -> None:
    made = hooks.run("head -c 3000000 /dev/zero | tr '\\0' x; echo err >&2")
    assert (made.exit, len(made.stdout), made.stderr, made.truncated) == (0, 1 << 20, "err\n", True)
    assert made.note == "only the first 1 MiB of what it printed counts"
