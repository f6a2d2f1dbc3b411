"""Commands that run another one through an option, a name or an expansion of a program that a rule allows."""

from __future__ import annotations

import pytest
from tests.core.guard.rules.test_commands import bash, gate

SNEAKED = [
    "find . -maxdepth 0 {-exec,touch,P3,\\;}",
    "find . {-exe,x}c touch P \\;",
    "find . \\${-exec,x}",
    "find . *",
    "fd -Hx touch P",
    "fd --exec-b touch P",
    "printf -v 'a[$(touch P1)]' x",
    "printf -va[0] x",
    "printf *",
    "test -v 'a[$(touch P2)]'",
    "test 'a[$(touch P)]' -eq 0",
    "[ -v 'a[$(touch P2)]' ]",
    "[ -R x ]",
    "[[ -v 'a[$(touch P2)]' ]]",
    "unset 'a[$(touch P)]'",
    "read 'a[$(touch P)]'",
    "declare 'a[$(touch P)]=1'",
    "typeset 'a[$(touch P)]=1'",
    "local 'a[$(touch P)]=1'",
    "let 'a[$(touch P)]=1'",
    "export 'a=1'",
    "readonly 'a=1'",
    "mapfile -C 'touch P' a",
    "wait -p 'a[$(touch P)]'",
    "set -x",
    "/usr/bin/time touch P",
    "setarch -R touch P",
    "prlimit touch P",
    "taskset 1 touch P",
    "/lib64/ld-linux-x86-64.so.2 /bin/touch P",
    "git -c alias.x='!touch P' x",
    "git -C . push",
    "git --exec-path=. push origin",
    "git fetch --upload-pack='touch P' .",
    "git fetch --upload-p='touch P' .",
    "tar cf x --checkpoint-action=exec='touch P' y",
    "tar -xIsh x",
    "sort --compress-program=./x y",
    "go test -exec ./x",
    "bash",
    "bash -s",
    "bash {-c,'touch P'}",
]


@pytest.mark.parametrize("command", SNEAKED)
def test_no_allow_rule_for_a_program_lets_it_run_another(command: str) -> None:
    name = command.split()[0]
    assert bash(gate(allow=(f"bash:{name} *",)), command).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.py'",
        "find src -maxdepth 1",
        "printf '[%s]' x",
        "test -f x",
        "[ -n x ]",
        "git show stash@{0}",
        "git rev-parse @{u}",
        "echo ${HOME},b {} {x}",
        "echo '{a,b}' \"{a,b}\"",
        "git --version",
        "ls *.py",
        "tar tf x.tar",
        "bash -x script.sh",
    ],
)
def test_what_only_looks_like_another_command_stays_allowed(command: str) -> None:
    name = command.split()[0]
    assert bash(gate(allow=(f"bash:{name} *",)), command).decision == "allow"
