"""What stands around a command and changes nothing of what it runs needs no rule of its own (docs/decisions/command-rules.md)."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from tests.core.guard.rules.world import World
from tests.kit import Call, HomeDir, Reply, cru, server

from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.simplify import simplify

MESSAGE = 'git commit -m "$(cat <<\'EOF\'\nIt isn\'t (only) a fix: $HOME stays\n\n- `all` "of it"\nEOF\n)"'
COVERED = {
    "git log *": [
        "git --no-pager log -5", "git -P log", "git --no-optional-locks log", "git log @{u}..", "git log --oneline @{u}..HEAD",
        "git log -- *.py", "git log --oneline -n 5 -- *.py", "(git log)", "{ git log; }", "! git log", "time git log", "time -p git log",
        "if git log; then git log -1; else git log -2; fi", "if [ -f x ]; then git log; fi", "env git log", "env LANG=C git log",
        "LC_ALL=C git log", "GIT_PAGER=cat git log", "TZ=UTC LANG=de_DE.UTF-8 git log", "git log # the last ones",
        "# the last ones\ngit log", "git log\n\n# and these\ngit log -1", "cd {root} && git log", "(cd {root}/ && git log)",
        "git log; cd {root}; git log", "git log || true", "git log; echo \"status $?\"", "echo --- && git log && echo done",
        "test -d src && git log", "[ -d src ] && git log", "[ -n \"$HOME\" ] && git log", "pwd; git log",
        "timeout 5 git --no-pager log", "timeout -k 5 5s git log", "timeout --signal=KILL 1.5m git log", "nice git log",
        "nice -n 10 git log", "time -- git log", "time -p -- git log", "(git log) 2>&1 | (git log) 2>/dev/null",
        "git log && exit 0", "(git 2>&1 log)", "git -C {root} log", "git --no-pager -C {root}/ -P log", "timeout 5 git -C '{root}' log",
        "git log; echo $?", "git log; echo EXIT=$?", "git log; exit $?", "git log; [ $? -eq 0 ] && git log -1",
        "set -Eeuo pipefail; git log",
        "sleep 1; git log", "sleep 0.5 && git log", "printf '%s\\n' \"$?\"; git log", "printf '100%%\\n'; git log",
        "which git; git log", "command -v git rg && git log", "type git && git log", "nice -n19 git log", "GIT_PAGER= PAGER= git log",
    ],
    "printf *": ["cd {root} && printf x", "LC_ALL=C printf '%s' one # two", "(printf x)"],
    "git commit -m *": [
        MESSAGE, MESSAGE.replace("'EOF'", '"EOF"'), MESSAGE.replace("'EOF'", " 'END'").replace("\nEOF", "\nEND"),
        "git commit -m \"$(cat <<-'EOF'\n\tfix\n\tEOF\n)\"", "git commit -m \"$(cat <<EOF\nfix (this)\nEOF\n)\"",
        "git commit -m \"fix: $(cat <<'EOF'\n\nEOF\n)\"",
    ],
    "git --no-pager diff *": ["git --no-pager diff", "git --no-pager diff --stat 2>&1", "git -P diff", "git --no-pager diff || true"],
    "LC_ALL=C ls *": ["LC_ALL=C ls -l", "LC_ALL=C ls 2>&1", "(ls)"],
    "NO_COLOR=1 pytest -q": ["NO_COLOR=1 pytest -q", "NO_COLOR=1 pytest -q 2>&1", "pytest -q || true"],
    "env LANG=C ls": ["env LANG=C ls", "LANG=C ls"],
    "pytest *": ["NO_COLOR=1 CI=true pytest -q", "PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 pytest", "timeout 600 pytest -x"],
}  # fmt: skip
"""Rules, and commands that each covers."""
NOT_COVERED = {
    "git log *": [
        "git --exec-path=. log", "git --git-dir=x log", "git -C src log", "git -c core.pager=x log", "git --paginate log",
        "git log -S -- *.py", "git log *.py -- x", "git log --output -- *", "git log @{a,b}", "git log {u..v}",
        "(git log) > file", "{ git log; } < file", "(touch P)", "while true; do git log; done", "for PATH in .; do git log; done",
        "git() { touch P; }; git log", "coproc git log", "[[ -v a[0] ]] && git log", "((a[0])) ; git log",
        # redirections without a command
        "> P; git log", "git log; > P", "(> P); git log", "{ > P; }; git log", "! > P\ngit log", "if > P; then git log; fi",
        "git log; <> P", "git log; {x}> P", "git log | > P", "git log && >> P", "git log; >| P", "&> P; git log", "3> P; git log",
        "< <(touch P); git log", "<<EOF\n$(touch P)\nEOF\ngit log", "<<<\"$(touch P)\"; git log", "> \"$(touch P)\"; git log",
        # variables
        "env -S 'git log'", "env -i git log", "env X=1 git log", "env PATH=. git log", "env -u X git log", "env LANG=C",
        "LC_ALL=/tmp/x git log", "LC_ALL=../x git log", "LANG=$X git log", "TZ=:/etc/x git log", "PAGER='cat x' git log", "PAGER=x git log",
        "LANG=C", "LANG=C PATH=. git log", "LANG+=C git log", "LANG[0]=C git log", "GIT_PAGER=less git log", "LC_ALL=zh_CN.GBK git log",
        "LANG=ja_JP.SJIS git log", "LANG=zh_TW git log", "LC_CTYPE=big5 git log", "DEBIAN_FRONTEND=noninteractive+system git log",
        "DEBIAN_FRONTEND=readline git log", "NODE_ENV=production git log", "CI=--upload git log", "COLUMNS=PATH=5 git log",
        "TERM=x+y git log", "TZ=a,b git log", "LANGUAGE=/x git log", "PYTHONHASHSEED=x git log", "CI=１ git log",
        # comments
        "git log # it's", "git log # a `b`", 'git log # "', "git log # $(x)", "git log # \\",
        # folders
        "cd .. && git log", "cd . && git log", "cd src && git log", "cd {root}/src && git log", "cd {root}/src/.. && git log",
        "cd / && git log", "cd {outside} && git log", "cd {root}/missing/.. && git log", "cd /proc/self/cwd && git log",
        "cd ~ && git log", "cd $X && git log", "cd - && git log", "cd && git log", "cd -P {root} && git log", "cd {root} a && git log",
        "cd {root}* && git log", "cd {root} > file && git log", "cd {root} | git log", "pushd {root} && git log", "cd {root}x && git log",
        # what prints or tests
        "pwd > file; git log", "echo x > file; git log", "echo $(touch P); git log", "echo ${X@P}; git log", "echo x | git log",
        "(echo x) | git log", "{ echo x; git log; } | git log", "if echo x; then git log; fi | git log", "echo {1..999999999}; git log",
        "[ -v 'a[$(touch P)]' ] && git log", "test -v a && git log", "test -R a && git log", "[ $X ] && git log", "[ -n $X ] && git log",
        "[ * ] && git log", "[ x = 'a[0]' ] && git log", "[ -f *.py ] && git log", "[ -f x && git log", "test \"$X\" = y && git log",
        "set -x; git log", "set -- x; git log", "set a; git log", "set -eo; git log", "set -o posix; git log", "set -e > file; git log",
        "set -euo pipefail x; git log", "set +e; git log", "set -e$X; git log",
        "echo $AWS_SECRET_ACCESS_KEY; git log", "echo ~/.ssh/*; git log", "echo /*/*; git log", "echo ~root; git log",
        # programs that run others
        "git -C . log", "git -C {root}/src log", "git -C {root} -C .. log", "git -C {root} -c core.pager=x log", "git -C $X log",
        "git -C {root}* log", "git -C{root} log", "git -C {root}", "git -C {root} -- log",
        "printf '%n' x; git log", "printf -v x y; git log", "printf \"$PWD\" x; git log", "printf -- '%n' x; git log", "printf; git log",
        "printf %b x; git log", "printf '%s%'n x; git log", "sleep $X; git log", "sleep 1 2; git log", "sleep infinity; git log",
        "command git; git log", "command -v; git log", "command -p x; git log", "which 'a b'; git log", "type $X; git log",
        "set -E > file; git log", "set -eux; git log", "nice -nx git log", "PAGER=\"\" touch P; git log", "$? git log",
        "nice -n ２ git log", "time -- touch P", "time -p -- touch P", "time -- git log --output=P", "time -- -- git log",
        "timeout git log", "timeout 5 touch P", "timeout -x 5 git log", "timeout 5 -- git log", "timeout $T git log", "timeout 5 $GIT log",
        "timeout 5 LANG=C git log", "timeout 5 sh -c 'git log'", "nice -20 git log", "nice -n $X git log", "nice touch P",
        "time timeout 5 nice env LANG=C touch P", "! touch P", "true", "pwd", "echo x", "cd {root}", "# only this", "exit 0",
    ],
    "git commit *": [
        "git commit -m \"$(cat <<'EOF' x\nfix\nEOF\n)\"", "git commit -m \"$(cat x <<'EOF'\nfix\nEOF\n)\"", "git commit -m \"$(touch P)\"",
        "git commit -m $(cat <<'EOF'\n--amend\nEOF\n)", "git commit -m x \"$(cat <<'EOF'\n--file=/etc/passwd\nEOF\n)\"",
        "git commit -m \"$(cat <<EOF\n$(touch P)\nEOF\n)\"", "git commit -m \"$(cat <<EOF\n`touch P`\nEOF\n)\"",
        "git commit -m \"$(cat <<EOF\n$HOME\nEOF\n)\"", "git commit -m \"$(cat <<'EOF'\nfix\nEOF\ntouch P)\"",
        "git commit -m \"$(tac <<'EOF'\nfix\nEOF\n)\"", "git commit -m \"$(cat <<'EOF' | sh\ntouch P\nEOF\n)\"",
        "git commit -m \"$(cat <<< 'x')\"", "git commit -m \"$(cat 0<<'EOF'\nfix\nEOF\n)\"",
        "git commit -m \"$(X=1 cat <<'EOF'\nfix\nEOF\n)\"", "git commit -m \"`cat <<'EOF'\nfix\nEOF\n`\"", "cat() { touch P; }; " + MESSAGE,
        # ends that bash sees elsewhere
        "git commit -m \"$(cat <<'EOF'\nfix\nEOF touch P)\" #\nEOF\n)\"", "git commit -m \"$(cat <<''\nfix\ntouch P)\" #\n\n)\"",
        "git commit -m \"$(cat <<$'EOF'\nfix\nEOF\ntouch P\n$'EOF'\n)\"", "git commit -m \"$(cat <<E\\\nOF\n$(touch P)\nEOF\n)\"",
        "git commit -m \"$(cat <<${X:-y}\nfix\n${X:-y}\n)\"", "git commit -m \"$(cat <<E'O'F\nfix\nEOF\n)\"",
        "git commit -m \"$(cat <<'EOF' # )\nfix\nEOF\n)\"", "git commit -m \"$(cat <<'EOF'\nfix\nEOF\n# it )\n)\"",
        "git commit -m \"$(cat <<'EOF' <<'END'\nfix\nEOF\n$(x)\nEND\n)\"", "git commit -m \"$(cat <<'EOF'; touch P\nfix\nEOF\n)\"",
        "git commit -m \"$(cat <<-'EOF'\n\tfix\n\tEOFtouch P)\n\tEOF\n)\"",
    ],
    # what such rules do not mean
    "LC_ALL=C *": ["(rm x)", "touch P || true", "LC_ALL=C curl x", "timeout 5 curl x"], "CI=1 *": ["CI=1 rm x"],
    "CI=1 * test": ["rm test || true", "CI=1 rm test"], "CI=1 *m x": ["CI=1 rm x"],
    "LC_ALL=C * || true": ["LC_ALL=C rm x || true", "(rm x)"], "CI=1 true; rm *": ["rm x || true"],
    "LC_ALL=C test -f ok && npm publish *": ["(npm publish)"], "CI=1 ls > *": ["(ls)"], "CI=1 ! ls *": ["(ls)"],
    "nice -n 10 curl *": ["nice -n 10 curl -n https://x", "curl -n https://x || true"], "nice -n 10 *": ["nice -n 10 curl x"],
    "CI=1 timeout -k 5 60 curl *": ["CI=1 timeout -k 5 60 curl -k https://x"],
    "CI=1 timeout -s KILL 60 ssh-add *": ["timeout 5 ssh-add -s lib", "ssh-add -s lib || true"],
    "pytest *": ["PYTHONPATH=. pytest", "PYTHONWARNINGS=x pytest", "PYTEST_ADDOPTS=-p pytest", "FOO=1 pytest", "NODE_OPTIONS=x pytest"],
    "git --no-pager log": ["git --no-pager log -1", "git --no-pager diff", "git -c x=y log"],
    "LC_ALL=C PATH=. ls *": ["ls || true", "LC_ALL=C ls"],
    "timeout 5 touch P": ["timeout 6 touch P", "touch P || true"],
    "cd x && ls *": ["ls || true"],
    "git pull *": ["git pull -- *", "git pull origin -- -*", "timeout 5 git pull -- *"],
    "git remote *": ["git remote update -- -*"],
    "git describe *": ["git describe --contains -- *"],
    "* --version": ["time -- bash -c 'touch P' --version", "time -- sudo git --version", "time -- PATH=. git --version"],
    "./run *": ["cd src && ./run", "cd src && ../run", "cd src && src/run"],
    "rm -rf tmp": ["cd src && rm -rf tmp"],
    "git stash *": ["git stash list *", "git stash show *"],
    "sed *": ["LC_ALL=zh_CN.GBK sed 's/.*/touch P #中\\/e;#/' a.txt"],
}  # fmt: skip
"""Rules, and commands that none of them covers."""
DENIED = {
    "git push --force *": [
        "git push \"$(cat <<'EOF'\n--force\nEOF\n)\"", "git push --f\"$(cat <<'EOF'\no\nEOF\n)\"rce", "timeout 5 git 2>&1 push --force",
        "(git 2>&1 push --force)", "LC_ALL=C git push 2>&1 --force", "timeout 5 git push >/dev/null --force",
        "git pu\"$(cat <<'EOF'\nsh\nEOF\n)\" --force", "g\"$(cat <<'EOF'\nit\nEOF\n)\" push --force", "env git 2>&1 push --force$X",
    ],
    "git push *": [
        "git \"$(cat <<'EOF'\npush\nEOF\n)\"", "g\"$(cat <<'EOF'\nit\nEOF\n)\" push", "timeout 5 git >/dev/null push origin",
        "LC_ALL=C git 2>&1 push", "nice git --no-pager 2>&1 push",
    ],
    "git p*sh *": ["time -- git pu\"$(cat <<'EOF'\nsh\nEOF\n)\""],
    "one -b *": ["one -b$X", "one -b\"$X\" c", "one -${X}b", "timeout 5 one -b$X"],
}  # fmt: skip
"""Deny rules, and commands that each hits whatever is allowed."""


def decisions(world: World, rule: str, commands: list[str]) -> dict[str, str]:
    judge = world.gate(allow=(f"bash:{rule}",))
    places = {"{root}": str(world.root), "{outside}": str(world.outside)}
    decided: dict[str, str] = {}
    for command in commands:
        for place, path in places.items():
            command = command.replace(place, path)
        decided[command] = judge.judge("bash", "shell", command).decision
    return decided


@pytest.mark.parametrize("rule", COVERED)
def test_what_changes_nothing_needs_no_rule_of_its_own(world: World, rule: str) -> None:
    decided = decisions(world, rule, COVERED[rule])
    assert [command for command, decision in decided.items() if decision != "allow"] == []


@pytest.mark.parametrize("rule", NOT_COVERED)
def test_what_may_change_something_asks(world: World, rule: str) -> None:
    decided = decisions(world, rule, NOT_COVERED[rule])
    assert [command for command, decision in decided.items() if decision != "ask"] == []


@pytest.mark.parametrize("command", COVERED["git log *"])
def test_what_stands_around_a_denied_command_does_not_hide_it(world: World, command: str) -> None:
    for place, path in (("{root}", world.root), ("{outside}", world.outside)):
        command = command.replace(place, str(path))
    gates = (
        world.gate("trust", deny=("bash:git log *",)),
        world.gate("trust", deny=("bash:* log *",), allow=("bash:git log *",)),
        world.gate("trust", ask=("bash:git log *",)),
    )
    assert [judge.judge("bash", "shell", command).decision for judge in gates] == ["deny", "deny", "ask"]


@pytest.mark.parametrize("rule", DENIED)
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_what_allow_rules_see_deny_and_ask_rules_see_too(world: World, rule: str, kind: str) -> None:
    program = rule.split()[0]
    allow, own = (f"bash:{program} *",), (f"bash:{rule}",)
    judge = world.gate("trust", allow=allow, deny=own) if kind == "deny" else world.gate("trust", allow=allow, ask=own)
    assert [text for text in DENIED[rule] if judge.judge("bash", "shell", text).decision != kind] == []


def test_an_answer_that_is_kept_for_runs_outside_covers_nothing_around_it(world: World) -> None:
    judge = world.gate(allow=("outside_sandbox:git log *",))
    why = "outside"
    plain, other = (
        judge.judge("bash", "shell", command, why_ask=why, is_outside=True).decision
        for command in ("git log", "LC_ALL=C git log")
    )
    assert other == "ask" and plain == judge.judge("bash", "shell", "git log -1", why_ask=why, is_outside=True).decision


@pytest.mark.slow
def test_the_real_command_runs_it_and_what_is_left_over_asks(home: HomeDir) -> None:
    calls = [
        Call("bash", {"command": f"cd {home.project.resolve()} && LC_ALL=C printf '%s' one # {word}"})
        for word in ("two", "`touch x`")
    ]
    with server([*(Reply(calls=[call]) for call in calls), Reply("done")]) as model:
        home.configure('[permissions]\nallow = ["bash:printf *"]\n', url=model.url)
        assert cru("-C", "c", "go", home=home).code == 0
    results = [str(entry["content"]) for entry in home.log("c") if entry["entry_type"] == "tool_result"]
    assert results[0] == "one" and "ask mode" in results[1]


PROGRAMS = ("one", "two", "git")
LOG = """#!/bin/sh
line=${0##*/}
for word; do line=$line$(printf '\\001')$word; done
printf '%s\\002' "$line" >> "$LOG"
[ $# -lt 3 ]
"""
WORDS = (
    "a",
    "-b",
    "'c d'",
    '"e"',
    "log",
    "--no-pager",
    "$?",
    "\"$(cat <<'EOF'\nit's (x)\nEOF\n)\"",
    "src",
    "*.none",
    "2>&1",
    ">/dev/null",
)
AROUND = (
    "{}", "({})", "{{ {}; }}", "! {}", "time -p {}", "timeout 5 {}", "env LANG=C {}", "LC_ALL=C {}", "nice {}", "cd @ && {}",
    "{} ; > /dev/null",
    "if {}; then {}; else {}; fi", "{} && {}", "{} || {}", "{} | {}", "{}; {}", "{} # note", "# note\n{}", "true; {}", "echo x; {}",
    "[ -d src ] && {}", "({}) 2>/dev/null", "test 1 = 2 || {}", "{} &\nwait; {}", "timeout 5 git --no-pager {}",
    "printf 'a%s\\n' $?; {}", "sleep 0 && {}", "which one; {}", "command -v {} || {}", "set -Eeu; {}", "nice -n1 {}", "git -C @ {}",
    "PAGER= {}", "[ $? -eq 0 ] || {}", "{}; exit $?",
)  # fmt: skip


def compose(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return " ".join((chance.choice(PROGRAMS), *chance.choices(WORDS, k=chance.randrange(3))))
    pattern = chance.choice(AROUND)
    return pattern.format(*(compose(chance, depth - 1) for _ in range(pattern.count("{}"))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_bash_runs_is_what_the_simplified_command_says(tmp_path: Path, seed: int) -> None:
    """Of random commands: each program that bash starts, with its arguments, is one that rules have looked at."""
    for name in PROGRAMS:
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(LOG)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "src").mkdir()
    chance, judged = random.Random(seed), 0
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LOG": str(tmp_path / "log")}
    for _ in range(150):
        command = compose(chance, 3).replace("@", str(tmp_path.resolve()))
        simplified = analyze(simplify(command, str(tmp_path.resolve())) or command)
        if simplified.opaque:
            continue
        judged += 1
        (tmp_path / "log").write_bytes(b"")
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False)
        ran = [tuple(line.split("\1")) for line in (tmp_path / "log").read_text().split("\2") if line]
        known = {_comparable(words) for words in simplified.parts}
        assert [words for words in ran if _comparable(words) not in known] == [], command
    assert judged > 40


def _comparable(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without what says how git prints, and with one number for all."""
    while words[:2] == ("git", "--no-pager") or words[:2] == ("git", "-C"):
        words = ("git", *words[2 if words[1] == "--no-pager" else 3 :])
    return tuple("0" if word == "$?" or word.isdigit() else word for word in words)
