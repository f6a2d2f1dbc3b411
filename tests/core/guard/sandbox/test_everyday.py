"""Everyday work goes on in the sandbox that a first run offers (the network is open): what a command gives inside is what it gives outside.
The second table is what does not, which is what the sandbox is for (docs/decisions/sandbox.md)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox
from tests.kit.scripts import cru_word

SAME = """
git status --short
echo a > new && git add -A && git commit -qm more && git log --format=%s -1
git checkout -q -b feature && git checkout -q main && git branch --format='%(refname:short)'
echo z >> file && git stash -q && git stash list && git stash pop -q
git checkout -q file && git rebase -q HEAD~1 && git diff HEAD~1 --stat
git config user.name && git submodule status
git clone -q . {scratch} && ls {scratch}
git worktree add -q side && ls side
git fetch -q && git ls-remote -q origin main | cut -f2
python3 -m venv --without-pip .venv && .venv/bin/python -c 'print(1)'
python3 -m unittest -q tests.test_sockets
python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]), m.Lock() and 1)'
python3 -c 'import socket; print(socket.create_connection(("127.0.0.1", {port})).recv(0))'
python3 -m http.server 0 --bind 127.0.0.1 2>/dev/null >served & sleep 0.5; kill %1; wc -l <served
npm --version >/dev/null && node -e 'console.log(1)'
npm --loglevel=silent test
make -s && cat built
gcc -o hello hello.c && ./hello
echo hi >{scratch}/note && cat {scratch}/note
cat {scratch}/note
mktemp >/dev/null; mktemp -d >/dev/null; echo $?
nohup true >/dev/null 2>&1; echo started
script -qc 'test -t 1 && echo tty' /dev/null
tmux -L cru-kit new-session -d -s x true; echo $?
sqlite3 t.db 'create table t(a); insert into t values (1); select * from t'
cat ~/.gitconfig; git config --global --list; ls ~/.cargo
head -1 /etc/passwd; nproc; uname; id -u; hostname
tar czf {scratch}/a.tgz file && tar tzf {scratch}/a.tgz; cat {scratch}/note
chmod +x hello.c && ln -s file link && readlink link; rm link
mkdir -p .github/workflows deep/er && touch .github/workflows/ci.yml && ls .github
trap 'echo bye' EXIT; sleep 0.01 & wait; exit 3
echo $0 $# $HOME $PWD | sed 's/[0-9]//g'
printf '#!/bin/sh\\necho run\\n' >run.sh && chmod 700 run.sh && ./run.sh
df . >/dev/null && du -s . >/dev/null && ps >/dev/null && free >/dev/null; echo $?
timeout 60 sleep 0.01; perl -e 'print 1'; jq -n 1; awk 'BEGIN{{print 2}}'
"""
DIFFERENT = {
    "a work tree beside the project": "git worktree add -q ../side2",
    "a repository beside the project": "git commit -q --allow-empty -m more && git push -q origin main",
    "git's settings, which name programs": "git config user.name other",
    "the home": "echo x > ~/made",
    "guards' files": "echo x > .envrc; mkdir .vscode && echo x > .vscode/tasks.json",
    "keys": "cat ~/.ssh/id_rsa ~/.netrc",
    "what else is in the home": "cat ~/.profile",
    "other processes": "kill -0 {pid}",
    "namespaces of its own": "unshare -r true",
    "packages of the machine": "echo x > /usr/local/made",
}
"""What it is about: a command that fails inside, or of which something is put aside."""


def furnish(project: Path) -> None:
    texts = {
        "hello.c": '#include <stdio.h>\nint main(void) { puts("hi"); }\n',
        "Makefile": "all:\n\techo built > built\n",
        "package.json": '{"name": "p", "version": "1.0.0", "scripts": {"test": "node -e 1"}}',
        "tests/__init__.py": "",
        "tests/test_sockets.py": "import socket, unittest\nclass Test(unittest.TestCase):\n  def test(self):\n"
        "    s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()).close(); s.close()\n",
        "file": "one\n",
    }
    (project / "tests").mkdir()
    for name, text in texts.items():
        (project / name).write_text(text)
    home = project.parent / "home"
    (home / ".gitconfig").write_text("[alias]\n\tst = status\n")
    (home / ".cargo").mkdir()
    (home / ".cargo" / "config.toml").write_text("")
    origin = project.parent / "origin"
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    steps = (
        "checkout -q -b main", "config user.name kit", "config user.email kit@example.org", "add -A", "commit -qm first",
        "commit -q --allow-empty -m second", f"remote add origin {origin}", "push -q -u origin main",
    )  # fmt: skip
    for step in steps:
        subprocess.run(["git", "-C", str(project), *step.split()], check=True)


def play(around: Surroundings, commands: list[str], config: str, env: Mapping[str, str] = {}) -> list[str]:
    """What each gave."""
    with server([*(Reply(calls=[Call("bash", {"command": command})]) for command in commands), Reply("done")]) as model:
        around.here.configure(f"max_idle_rounds = 0\n[sandbox]\n{config}", url=model.url)
        done = cru("-t", "--hooks", "none", "-C", "c", "go", home=around.here, env=env, timeout=180)
    assert (done.code, done.out) == (0, "done\n"), done.err
    results = [str(entry["content"]) for entry in around.here.log("c") if entry["entry_type"] == "tool_result"]
    shutil.rmtree(around.here.context("c"))
    assert len(results) == len(commands)
    return [_same(text) for text in results]


def _same(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"\b[0-9a-f]{7,40}\b|\d+\.\d+s|in \d\S+s", "*", text)


@pytest.mark.slow
@needs_sandbox
def test_everyday_work_gives_inside_what_it_gives_outside(surroundings: Surroundings) -> None:
    commands = [surroundings.fill(line) for line in SAME.strip().splitlines()]
    project = surroundings.here.project
    furnish(project)
    untouched = project.parent / "untouched"
    shutil.copytree(project, untouched)
    try:
        outside = play(surroundings, commands, "mode = 'off'")
    finally:
        shutil.rmtree(surroundings.fill("{scratch}"))
    shutil.rmtree(project)
    untouched.rename(project)
    inside = play(surroundings, commands, "mode = 'on'\nnetwork = true")
    rows = zip(commands, outside, inside, strict=True)
    assert [row for row in rows if row[1] != row[2]] == []
    failed = [text for text in outside if "[exit code" in text]
    assert len(failed) <= 1 + sum("command not found" in text for text in failed), failed


@pytest.mark.slow
@needs_sandbox
def test_what_fails_inside_says_why_and_what_the_way_out_is(surroundings: Surroundings) -> None:
    furnish(surroundings.here.project)
    commands = [surroundings.fill(command) for command in DIFFERENT.values()]
    inside = dict(zip(DIFFERENT, play(surroundings, commands, "mode = 'on'\nnetwork = true"), strict=True))
    assert [(about, text) for about, text in inside.items() if "sandbox" not in text] == []
    assert [about for about, text in inside.items() if "`outside_sandbox`: true" not in text] == ["guards' files"]


SEE = "env | grep -i retr | sort"
RETRIES = {
    "network = true": "(no output)",
    "hosts = ['pypi.org']": "(no output)",
    "network = false": "CARGO_NET_RETRY=0\nPIP_RETRIES=0\nnpm_config_fetch_retries=0",
}


@needs_sandbox
@pytest.mark.parametrize("config", RETRIES)
def test_where_there_is_no_network_package_managers_do_not_try_for_minutes(
    surroundings: Surroundings, config: str
) -> None:
    [given] = play(surroundings, [SEE], f"mode = 'on'\n{config}")
    assert given.partition("\n[")[0] == RETRIES[config]


@needs_sandbox
def test_a_number_of_tries_that_a_person_has_set_stays(surroundings: Surroundings) -> None:
    [given] = play(surroundings, [SEE], "mode = 'on'", {"PIP_RETRIES": "7"})
    assert "PIP_RETRIES=7" in given.splitlines()


@needs_sandbox
def test_a_cru_that_a_confined_command_starts_says_what_it_cannot_and_works_with_a_home_of_its_own(
    surroundings: Surroundings,
) -> None:
    (surroundings.here.project / "inner.txt").write_text("text: from inside\n")
    inner = f"{cru_word()} --no-sandbox --model scripted:inner.txt"
    own = "CRU_HOME=/tmp/home"
    commands = [f"{inner} hi", f"{own} {inner} hi", f"{own} {cru_word()} --sandbox --model scripted:inner.txt hi"]
    no_home, at_tmp, nested = play(surroundings, commands, "mode = 'on'")
    assert "this cru runs in a sandbox, and its home" in no_home and "`outside_sandbox`: true" in no_home
    assert at_tmp.startswith("from inside"), at_tmp
    assert "this cru runs in a sandbox already, and none works in another" in nested, nested
    assert "the outer one confines it all the same" in nested and "Traceback" not in no_home + nested
