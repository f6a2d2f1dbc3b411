"""`cru permissions` and `/permissions`: what holds, what would happen, what is taken back; and that a real run does the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Call, HomeDir, Reply, cru, pty, server, trust_project

from cru.core.commands.permissions import LATER_FEW

RULES = """
[permissions]
deny = ["bash:rm *", "read:.env"]
ask = [
    "bash:git push *",  # with a person
    "edit:docs/**",
]
allow = ["bash:make test", "bash:git status *", "write:../out/*"]
"""
CALLS = [
    Call("bash", {"command": "true"}), Call("bash", {"command": "make test"}), Call("bash", {"command": "git status -s"}),
    Call("bash", {"command": "git status && rm x"}), Call("bash", {"command": "git status; git push"}),
    Call("bash", {"command": "git status > .git/config"}), Call("read", {"file_path": "a"}), Call("read", {"file_path": ".env"}),
    Call("read", {"file_path": "~/.ssh/id"}), Call("ls", {}), Call("ls", {"path": "/"}), Call("write", {"file_path": "n", "content": ""}),
    Call("write", {"file_path": ".git/x", "content": ""}), Call("write", {"file_path": "../o", "content": ""}),
    Call("write", {"file_path": "../out/o", "content": ""}),
    Call("edit", {"file_path": "docs/d", "old_string": "a", "new_string": "b"}),
    Call("fetch", {"url": "http://127.0.0.1:9/"}), Call("update_todos", {"content": "x"}),
    Call("bash", {"command": "make test", "background": True, "detached": True}), Call("pay", {"to": "me"}),
]  # fmt: skip
SUBJECTS = {
    "bash": "command",
    "read": "file_path",
    "ls": "path",
    "write": "file_path",
    "edit": "file_path",
    "fetch": "url",
}
PLUGIN = """return { name = "bank", tools = { pay = { desc = "Pays", fn = function() return "paid" end,
  params = {{ name = "to", type = "string" }} } } }"""
NOBODY = "nobody can be asked here"


def judged(home: HomeDir, call: Call, mode: str) -> tuple[str, str, int]:
    """Decision, reason and exit status of `cru permissions test`."""
    assert isinstance(call.args, dict)
    own = SUBJECTS.get(call.name)
    is_plain = own is not None and set(call.args) <= {own, "content", "old_string", "new_string"}
    detail = str(call.args.get(own, "")) if own is not None and is_plain else json.dumps(call.args)
    run = cru("permissions", "test", "--json", "--mode", mode, call.name, *([detail] if detail else []), home=home)
    assert run.out, (call, run.err)
    verdict = json.loads(run.out)
    return verdict["decision"], verdict["reason"], run.code


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ask", "auto", "plan", "trust"])
def test_a_real_run_does_what_the_test_of_a_call_says(home: HomeDir, mode: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "bank.lua").write_text(PLUGIN)
    with server([Reply(calls=CALLS), *[Reply("ok")] * 3]) as model:
        home.configure(RULES, url=model.url)
        verdicts = [judged(home, call, mode) for call in CALLS]
        assert cru("--mode", mode, "go", home=home).code == 0
    results = [m["content"] for m in model.requests[1].body["messages"] if m["role"] == "tool"]
    assert len(results) == len(CALLS)
    for call, (decision, reason, code), result in zip(CALLS, verdicts, results, strict=True):
        refused = result.startswith("Not allowed by policy")
        real = "allow" if not refused else "ask" if NOBODY in result else "deny"
        assert (decision, code) == (real, {"allow": 0, "deny": 3, "ask": 6}[real]), (call, reason, result)
        assert not refused or reason in result


def listed(home: HomeDir) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = json.loads(cru("permissions", "--json", home=home).out)["rules"]
    return rules


def test_every_rule_has_its_layer_its_file_and_its_line(home: HomeDir) -> None:
    home.configure(RULES)
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text('permissions.deny = ["bash:dd *"]\n')
    (home.project / ".claude").mkdir()
    (home.project / ".claude" / "settings.json").write_text('{"permissions": {\n"ask": [\n"Bash(npm publish *)"]}}')
    trust_project(home)
    text = (home.cru / "config.toml").read_text().splitlines()
    rows = {row["rule"]: row for row in listed(home)}
    for rule in ("bash:rm *", "bash:git push *", "write:../out/*"):
        row = rows[rule]
        assert row["layer"] == "user config" and f'"{rule}"' in text[row["line"] - 1]
        assert row["file"] == str(home.cru / "config.toml")
    assert (rows["bash:dd *"]["layer"], rows["bash:dd *"]["line"]) == ("project config", 1)
    row = rows["bash:npm publish *"]
    assert (row["layer"], row["decision"], row["line"]) == ("Claude settings (project)", "ask", 3)
    shown = cru("permissions", home=home).out
    assert "mode ask: reads freely" in shown and "deny beats ask beats allow:" in shown
    assert f"{home.cru}/config.toml:{rows['bash:rm *']['line']}" in shown


def test_answers_are_listed_and_taken_back(home: HomeDir) -> None:
    grants = {"version": 1, "always": ["bash:make"], "projects": {str(home.project): ["bash:make", "edit:src/*"]}}
    hooks = [{"grant": kind, "text": f"bash:{kind}", "scope": "user", "by": "hook x"} for kind in ("allow", "deny")]
    home.configure("")
    (home.cru / "grants.json").write_text(json.dumps({**grants, "hooks": hooks}, indent=2) + "\n")
    lines = (home.cru / "grants.json").read_text().splitlines()
    rows = listed(home)
    assert [(row["rule"], row["layer"]) for row in rows] == [
        ("bash:deny", "hook hook x, always"), ("bash:make", "answer, always"), ("bash:make", "answer, this project"),
        ("edit:src/*", "answer, this project"), ("bash:allow", "hook hook x, always"),
    ]  # fmt: skip
    assert all(json.dumps(row["rule"]) in lines[row["line"] - 1] for row in rows)
    assert len({row["line"] for row in rows}) == 5
    assert cru("permissions", "revoke", "bash:make", home=home).out.count("taken back: allow bash:make") == 2
    assert "hook x" in cru("permissions", "revoke", "bash:allow", home=home).out
    assert [row["rule"] for row in listed(home)] == ["bash:deny", "edit:src/*"]
    assert cru("permissions", "test", "bash", "make", home=home).code == 6


BAD = [
    (("tst",), "cru permissions test"), (("test",), "needs a tool"), (("revoke",), "needs one rule"),
    (("test", "bsh", "x"), "did you mean: bash"), (("test", "bash"), "bash needs its command"),
    (("test", "bash", '{"comand": "x"}'), "bad arguments for bash"), (("test", "bash", "x", "y"), "does not take y"),
    (("test", "--sandbox", "bash", "x"), "cru --sandbox permissions test bash x"),
    (("tst", "bash", "x"), "did you mean: cru permissions test bash x"),
    (("test", "--jsn", "bash", "x"), "cru permissions test --json bash x"),
    (("test", "--mode", "autp", "bash", "x"), "did you mean `auto`"), (("revoke", "bash:rm *"), "config.toml:"),
    (("revoke", "bash:mak"), "there is no rule"), (("revoke", "bash:d"), "which alone takes back"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "text"), BAD)
def test_what_cannot_be_done_says_why(home: HomeDir, words: tuple[str, ...], text: str) -> None:
    home.configure(RULES)
    hook = {"grant": "deny", "text": "bash:d", "scope": "user", "by": "hook x"}
    (home.cru / "grants.json").write_text(json.dumps({"version": 1, "hooks": [hook]}))
    run = cru("permissions", *words, home=home)
    assert run.code == 2 and text in run.err and not run.out


def test_a_command_is_judged_part_by_part(home: HomeDir) -> None:
    home.configure(RULES)
    run = cru("permissions", "test", "bash", "git status && make lint; rm x $(date)", home=home)
    assert run.code == 3 and "decided by the rule `bash:rm *` (deny): user config" in run.out
    for line in (
        "  allow  git status  (`bash:git status *`)",
        "  ask    make lint  (ask mode",
        "  deny   rm x $(date)",
    ):
        assert line in run.out
    assert "no allow rule with a star covers the whole: it has a command substitution" in run.out


def test_the_chat_shows_the_same_and_takes_back_answers_of_the_session(home: HomeDir) -> None:
    touch = Call("bash", {"command": "touch made"})
    with server([Reply(calls=[touch]), Reply("ok")]) as model:
        home.configure(RULES, url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("no > ")
            terminal.line("s")
            terminal.expect("ok")
            terminal.line("/permissions")
            terminal.expect("answer, this session")
            terminal.line("/permissions revoke bash:touch made")
            terminal.expect("taken back: allow bash:touch made")
            terminal.line("/permissions test bash 'touch made'")
            terminal.expect("ask    bash: touch made")
            assert terminal.eof() == 0


def test_rules_that_never_hold_are_flagged_and_files_that_run_later_are_named(home: HomeDir) -> None:
    dead = {
        "wirte:src": "did you mean `write`?", "bash:env *": "`env` runs what stands behind it", "bash:sudo *": "`sudo` runs",
        "bash:cd * && make": "`&&` joins two", "weather:x": "holds only where a plugin or a server",
        "input_to:ssh *": "`ssh` runs", "bash:CI=1 *": "a variable before a program", "bash:FOO=1 npm *": "leave it out",
        "bash:timeout 5 npm *": "`timeout` runs", "bash:git -C *": "an option before what `git` is to do",
    }  # fmt: skip
    alive = [
        "bash:env",
        "bash:CI=1 npm *",
        "bash:nice npm *",
        "bash:git *",
        "bash:sudo ls",
        "bash:python *",
        "recurse",
        "outside_sandbox:git fetch",
        "mcp_a_*",
    ]
    home.configure(f"[permissions]\ndeny = ['bash:doas *', 'bash:*|*']\nallow = {json.dumps([*dead, *alive])}\n")
    rows = {(row["decision"], row["rule"]): row["flaw"] for row in listed(home)}
    assert all(text in rows["allow", rule] for rule, text in dead.items()), rows
    assert {rows["allow", rule] for rule in alive} | {rows["deny", "bash:doas *"], rows["deny", "bash:*|*"]} == {""}
    shown = cru("permissions", home=home).out
    assert "never holds: it names no tool; did you mean `write`?" in shown
    assert "what something runs or obeys later: .envrc, .vscode" in shown and "AGENTS.md" in shown
    later = json.loads(cru("permissions", "--json", home=home).out)["later"]
    assert {".envrc", ".github/workflows", ".mcp.json"} <= set(later)
    assert all(name.casefold() in later for name in LATER_FEW)
    checked = cru("hooks", "check", home=home).out
    assert "rule `bash:env *` never holds: `env` runs" in checked and "rule `wirte:src` names no tool" in checked
    for command in ("env A=b", "sudo make", "cd x && make"):
        assert cru("permissions", "test", "bash", command, home=home).code == 6


def test_a_run_outside_of_the_sandbox_is_judged_by_the_rules_for_it(home: HomeDir) -> None:
    rules = (
        'deny = ["outside_sandbox:git push --force *"]\nallow = ["outside_sandbox:git push origin main", "bash:make *"]'
    )
    home.configure(f"[permissions]\n{rules}\n")
    cases = {"git push origin main": 0, "git push": 6, "git push --force": 3, "make x": 6}
    for command, code in cases.items():
        run = cru("permissions", "test", "outside_sandbox", command, home=home)
        assert run.code == code and f"outside_sandbox: {command}" in run.out and "is not there" not in run.out, run
        assert "nothing confines commands here" in run.out
    run = cru(
        "permissions",
        "test",
        "--json",
        "--mode",
        "trust",
        "outside_sandbox",
        "make x && git push origin main",
        home=home,
    )
    verdict = json.loads(run.out)
    assert (verdict["tool"], verdict["decision"], run.code) == ("outside_sandbox", "ask", 6)
    assert [part["decision"] for part in verdict["parts"]] == ["ask", "allow"]
    assert cru("permissions", "test", "outside_sandbox", "", home=home).code == 2


def test_the_whole_disk_may_be_the_project(home: HomeDir) -> None:
    """As in containers that start in `/`."""
    with server([Reply("hello")]) as model:
        home.configure('mode = "auto"\n', url=model.url)
        done = cru("hi", home=home, cwd=Path("/"))
    assert (done.out, done.err) == ("hello\n", "")
    cases = [
        ("write", "tmp/zz", 0),
        ("write", ".git/hooks/x", 6),
        ("read", "etc/hosts", 0),
        ("write", "srv/a/.git/config", 6),
    ]
    for tool, path, code in cases:
        assert cru("permissions", "test", tool, path, home=home, cwd=Path("/")).code == code, path
