"""Rules on shell commands: what an allow rule must not let through, and what a deny rule must find."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cru.core.base.files.glob import escape, matches_text, parse_glob
from cru.core.guard.rules import LayerRules, PermissionSettings, RuleLists
from cru.core.guard.rules.allowed_commands import allowed_text
from cru.core.guard.rules.command_matching import SearchedCommand
from cru.core.guard.rules.gate import Gate, Verdict
from cru.core.guard.rules.grants import Grants
from cru.core.guard.shell.analysis import analyze

HERE = Path("/nowhere/project")


def gate(
    *, mode: str = "ask", allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()
) -> Gate:
    rules = LayerRules("user", RuleLists(allow, ask, deny), "config.toml")
    home = HERE / ".cru"
    return Gate(
        PermissionSettings(mode), [rules], HERE, home, Grants(home / "grants.json", HERE), user_home=HERE.parent
    )


def bash(gate: Gate, command: str) -> Verdict:
    return gate.judge("bash", "shell", command)


GIT = ("bash:git *",)

ADVERSARIAL = [
    "git status; rm -rf /",
    "git status && rm -rf /",
    "git status || rm -rf /",
    "git status | sh",
    "git status |& sh",
    "git status & rm -rf /",
    "git status\nrm -rf /",
    "git status;rm x",
    "git status&&rm x",
    "git $(rm x)",
    'git "$(rm x)"',
    "git `rm x`",
    'git "`rm x`"',
    "git log > file",
    "git log >> file",
    "git log >| file",
    "git log 2> file",
    "git log &> file",
    "git log >& file",
    "git log >/dev/null/../../etc/x",
    "git log 1>&2>file",
    "git log > /dev/nullx",
    "git log > $HOME/x",
    "git apply < patch",
    "git apply <<< 'x'",
    "git apply << EOF\nx\nEOF\nrm x",
    "git diff <(rm x)",
    "git log >(rm x)",
    "GIT_PAGER='rm x' git log",
    "X=1 git log",
    "X+=1 git log",
    "X[0]=1 git log",
    "git() { rm x; }; git",
    "(rm x)",
    "{ git log; rm x; }",
    "if git log; then rm x; fi",
    "while git log; do rm x; done",
    "eval git log",
    "sh -c 'git log'",
    "bash -lc 'git log'",
    "sudo git log",
    "xargs git log",
    "nohup git log",
    "exec git log",
    "command git log",
    "alias git=rm; git x",
    "$GIT status",
    "${X:-git} status",
    'git "${X:-$(rm x)}"',
    "git ${X@P}",
    "git $[1+1]",
    "git $((a[$(rm x)]))",
    "git $'\\'' ; rm x #'",
    'git $"x"',
    "git log # it's\nrm x #'",
    "git log 'open",
    'git log "open',
    "git log \\",
    "git log\rrm x",
    "git log\x00rm x",
    "git log\x1b[2K",
    "gitx status",
    "git\u00a0status",
    "/tmp/git status",
    "./git status",
    "\\git-evil status",
    "'git status'",
    "git* x",
    "{git,log}",
    "~/git status",
    "",
    "   ",
]


@pytest.mark.parametrize("command", ADVERSARIAL)
def test_an_allow_rule_for_git_lets_nothing_else_through(command: str) -> None:
    assert bash(gate(allow=GIT), command).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git",
        "  git status  ",
        "git  status\t-s",
        "git commit -m 'a; b && c | d > e $(f) `g`'",
        'git commit -m "a; b && c | d > e # f"',
        'git commit -m "costs \\$(5) \\`x\\`"',
        "git commit -m it\\'s\\;fine",
        "git log; git status",
        "git log && git status || git diff",
        "git log | git hash-object --stdin",
        "git log &",
        "git log;",
        "git log\ngit status\n",
        "git log 2>/dev/null",
        "git log >/dev/null 2>&1",
        "git log &> /dev/null",
        "git log 2>&1 | git apply",
        "git log 1>&2",
        "git log \\\n  --oneline",
        "git show HEAD~1:src/a.py",
        'git show "v$COMMIT"',
        "git stash show stash@{0}",
        "git log --format=%H#x",
        "'git' status",
        "g\\it status",
    ],
)
def test_an_allow_rule_for_git_covers_what_is_only_git(command: str) -> None:
    assert bash(gate(allow=GIT), command).decision == "allow"


@pytest.mark.parametrize(
    ("rules", "command", "decision"),
    [
        (("bash:git *", "bash:wc *"), "git log | wc -l", "allow"),
        (("bash:git *", "bash:wc *"), "git log | wc -l | sh", "ask"),
        (("bash:git status",), "git status", "allow"),
        (("bash:git status",), "git status -s", "ask"),
        (("bash:git status *",), "git status", "allow"),
        (("bash:git status *",), "git statusx", "ask"),
        (("bash:git*",), "gitk", "allow"),
        (("bash:make && make test",), "make && make test", "allow"),
        (("bash:make && make test",), "make && make test && rm x", "ask"),
        (("bash:sh -c 'x > y'",), " sh -c 'x > y' ", "allow"),
        (("bash:rm \\*.pyc",), "rm *.pyc", "allow"),
        (("bash:rm \\*.pyc",), "rm a.pyc", "ask"),
        (("bash:git * --dry-run",), "git push --dry-run", "allow"),
        (("bash:git * --dry-run",), "git push 'x --dry-run'", "ask"),
        (("bash:git * --dry-run",), "git push x\\ --dry-run", "ask"),
        (("bash",), "rm -rf / > x", "allow"),
        (("bash:*",), "rm -rf / > x", "allow"),
        (("*",), "rm -rf / > x", "allow"),
        (("shell:git *",), "git log", "allow"),
        (("ba*:git *",), "git log", "allow"),
        (("bash:find *",), "find . -name x", "allow"),
        (("bash:find *",), "find . -exec rm {} +", "ask"),
        (("bash:bash *",), "bash script.sh", "allow"),
        (("bash:bash *",), "bash -c 'rm x'", "ask"),
        (("read:git *", "fetch"), "git log", "ask"),
    ],
)
def test_allow_rules_are_read_narrowly(rules: tuple[str, ...], command: str, decision: str) -> None:
    assert bash(gate(allow=rules), command).decision == decision


RM = [
    "$'rm' v",
    "$'r'm v",
    "$'\\x72m' v",
    "$'\\162m' v",
    '$"rm" v',
    "eval $'rm' v",
    "env -S'rm v'",
    "env -Srm v",
    "echo 'rm v' | sh",
    "printf 'rm v' | bash -s",
    "bash {-c,'rm v'}",
    "/usr/bin/time rm v",
    "setarch -R rm v",
    "prlimit rm v",
    "taskset 1 rm v",
    'python3.11 -c \'import subprocess; subprocess.run(["rm", "v"])\'',
    "perl5.34 -e 'system(q{rm v})'",
    "tar cf x --checkpoint=1 --checkpoint-action=exec='rm v' y",
    "git -c alias.x='!rm v' x",
    "sed '1e rm v' x",
    "unknown-wrapper sh -c 'rm v'",
    "rm x",
    "rm",
    "  rm   -rf\t/",
    "git status; rm x",
    "git status && rm x",
    "true | rm x",
    "true & rm x",
    "true\nrm x",
    "echo $(rm x)",
    "echo `rm x`",
    'echo "$(rm x)"',
    "cat <(rm x)",
    "(rm x)",
    "{ rm x; }",
    "if true; then rm x; fi",
    "! rm x",
    "X=1 rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "env X=1 rm x",
    "sh -c 'rm x'",
    'bash -c "rm x"',
    "eval 'rm x'",
    "xargs rm < list",
    "find . -exec rm {} +",
    "timeout 5 rm x",
    "command rm x",
    "/bin/rm x",
    "../bin/rm x",
    "sudo /bin/rm x",
    "\\rm x",
    "'rm' x",
    'r"m" x',
    "r\\m x",
    "r''m x",
    "r\\\nm x",
    "rm${IFS}x",
    "{rm,-rf,x}",
    "f() { rm x; }; f",
    "while :; do rm x; done",
    "trap 'rm x' EXIT",
    "alias a='rm x'",
    "python3 -c \"import os; os.system('rm x')\"",
    "awk 'BEGIN { system(\"rm x\") }'",
    "printf 'rm x\\n' | sh; echo 'open",
    "cat << EOF\nx\nEOF\nrm x",
    "rm x > log",
    "ssh host rm x",
    "<&-rm x",
    "ls; 2>&-rm x",
    "a[ ]=1 rm x",
]


@pytest.mark.parametrize("mode", ["ask", "trust"])
@pytest.mark.parametrize("command", RM)
def test_a_deny_rule_for_rm_finds_it(command: str, mode: str) -> None:
    verdict = bash(gate(mode=mode, allow=("bash",), deny=("bash:rm *",)), command)
    assert (verdict.decision, verdict.rule, verdict.explicit) == ("deny", "bash:rm *", True)
    assert "`bash:rm *`" in verdict.reason and "config.toml" in verdict.reason


@pytest.mark.parametrize("command", ["git rm x", "echo rm x", "git commit -m 'rm x'", "rmdir x", "npm rm x", "ls rm"])
def test_a_deny_rule_for_rm_leaves_other_commands_alone(command: str) -> None:
    assert bash(gate(allow=("bash",), deny=("bash:rm *",)), command).decision == "allow"


@pytest.mark.parametrize(
    ("rule", "command", "decision"),
    [
        ("bash:git push", "git push origin main", "deny"),
        ("bash:git push", "git pushx", "allow"),
        ("bash:git push *", "git -C . push", "deny"),
        ("bash:git push *", "git -C 'a folder' push x", "deny"),
        ("bash:git push *", "git -C 'a folder' push x > log", "deny"),
        ("bash:git push *", "git --no-pager push origin", "deny"),
        ("bash:git push *", "git --no-pager -c a=b push origin", "deny"),
        ("bash:git push *", "sudo /usr/bin/git -C . push", "deny"),
        ("bash:git push *", "git -C . log", "allow"),
        ("bash:git push *", "git log push", "allow"),
        ("bash:docker rm *", "docker --context x rm y", "deny"),
        ("bash:kubectl delete *", "kubectl -n prod delete pod x", "deny"),
        ("bash:npm publish *", "npm --silent publish", "deny"),
        ("bash:git push *", "git push", "deny"),
        ("bash:git push*--force*", "git push origin --force", "deny"),
        ("bash:git push*--force*", "git push origin", "allow"),
        ("bash:curl * | sh", "curl http://x | sh", "deny"),
        ("bash:curl * | sh", "true; curl http://x  |  sh", "deny"),
        ("bash:curl * | sh", "curl http://x", "allow"),
        ("bash:*secret*", "cat secret.txt", "deny"),
        ("bash", "true", "deny"),
        ("shell", "true", "deny"),
        ("*", "true", "deny"),
        ("b*", "true", "deny"),
        ("fetch", "true", "allow"),
        ("bash:echo \\*", "echo *", "deny"),
        ("bash:echo \\*", "echo x", "allow"),
    ],
)
def test_deny_rules_are_read_broadly(rule: str, command: str, decision: str) -> None:
    assert bash(gate(mode="trust", deny=(rule,)), command).decision == decision


def test_an_ask_rule_beats_allow_rules_and_trust() -> None:
    for mode in ("ask", "auto", "trust"):
        verdict = bash(gate(mode=mode, allow=("bash",), ask=("bash:git push *",)), "make && git push")
        assert (verdict.decision, verdict.explicit, verdict.rule) == ("ask", True, "bash:git push *")


TEXT = st.text(st.sampled_from("git rm;&|<>()$`'\"\\\n \t#{}=*x1"), max_size=25)


@given(TEXT)
def test_reading_never_fails_and_exact_rules_match_themselves(command: str) -> None:
    parsed = analyze(command)
    assert parsed.opaque or all(words for words in parsed.parts)
    if command.strip():
        assert bash(gate(allow=(f"bash:{escape(command.strip())}",)), command).decision == "allow"


@given(TEXT, TEXT)
def test_escaping_makes_a_pattern_of_one_text(one: str, other: str) -> None:
    assert matches_text(parse_glob(escape(one)), one)
    assert matches_text(parse_glob(escape(one)), other) == (one == other)


@given(TEXT)
def test_what_is_allowed_by_a_pattern_is_found_by_the_same_deny_pattern(command: str) -> None:
    for pattern in ("git *", "g*", "x1", "*m*"):
        parsed = analyze(command)
        if parsed.parts and any(matches_text(parse_glob(pattern), allowed_text(words)) for words in parsed.parts):
            assert SearchedCommand(parsed).matches(parse_glob(pattern))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab;&|()$`'\"\\\n #{}=x"), max_size=14).map(lambda tail: f"ok {tail}"))
def test_bash_agrees_on_what_a_transparent_command_runs(command: str) -> None:
    parsed = analyze(command)
    if parsed.opaque or not all(words[0] == "ok" for words in parsed.parts):
        return
    # every other name that bash looks up is reported by its handler for unknown commands
    script = f'PATH=/nowhere; ok() {{ :; }}; command_not_found_handle() {{ echo "RAN $1"; }}\n{command}'
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, errors="replace", timeout=30
    )
    assert "RAN" not in done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_rule_on_a_program_holds_for_its_versions(kind: str) -> None:
    rules = ("bash:pip install *", "bash:python *", "bash:gpg --export *")
    judge = gate(mode="trust", deny=rules) if kind == "deny" else gate(mode="trust", ask=rules)
    hit = [
        "pip3 install x", "pip3.11 install x", "/usr/bin/pip3 install x", "sudo pip3 install x", "pip3 --quiet install x",
        "python3 -c 1", "timeout 5 /opt/bin/python3.12 x", "gpg2 --expor x", "env pip-3.11 install x", "make; python3 x",
    ]  # fmt: skip
    for rule, command in (
        ("cat secrets/*", "cat secrets/cat2"), ("cat /data/cat1*", "cat /data/cat1"), ("rm * /backup/*", "rm -rf /backup/rm1"),
        ("git push * git2", "git push origin git2"), ("pip install pip3*", "pip install pip3"), ("make release/*", "make release/make1"),
        ("pip install pip3*", "pip3 install pip3"), ("python3 *", "python3.11 x"), ("pip3 install *", "sudo pip3.11 install x"),
    ):  # fmt: skip
        other = (
            gate(mode="trust", deny=(f"bash:{rule}",)) if kind == "deny" else gate(mode="trust", ask=(f"bash:{rule}",))
        )
        assert bash(other, command).decision == kind, command
    free = [
        "cp /usr/lib/python3 x",
        "ls lib/python3.11",
        "pip3 list",
        "pythonx y",
        "echo pip3 install",
        "cat python3.txt",
        "gpg2 --verify x",
        "pip3x install y",
    ]
    assert [command for command in hit if bash(judge, command).decision != kind] == []
    assert [command for command in free if bash(judge, command).decision != "allow"] == []
