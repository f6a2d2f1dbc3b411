"""What is hidden stays hidden, and guards stay as they are, whatever around them may be changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings, snapshot
from tests.core.guard.sandbox.escapes import SECRET
from tests.kit import Call, HomeDir, Reply, cru, server
from tests.kit.sandbox import needs_sandbox

READS = [
    "cat {home}/.cru/keys.json",
    "grep -rs . {home}/.cru --include=*.json --include=*.jsonl --include=*.toml",
    "cat {home}/.ssh/id_rsa {home}/.local/share/crush/key",
    "cat {home}/.config/gh/hosts.yml; mv {home}/.config {home}/moved; cat {home}/moved/gh/hosts.yml",
    "cat {home}/.codex/auth.json {home}/.claude/.credentials.json {home}/notes/private/.cru/x",
    "mv {home}/notes {home}/moved; cat {home}/moved/private/.cru/x; mv {home}/moved {home}/notes",
]
WRITES = [
    "echo x > {home}/.cru/config.toml; mkdir -p {home}/.cru/plugins && echo x > {home}/.cru/plugins/a.lua",
    "mv {home}/.cru {home}/moved; mkdir {home}/.cru; echo x > {home}/.cru/config.toml",
    "echo k >> {home}/.ssh/authorized_keys && echo TOP-SECRET-9",
    "echo k >> {home}/.netrc && echo TOP-SECRET-9",
    "echo x >> {home}/.profile; echo x > {home}/.config/git/config; echo x > {home}/.claude/settings.json",
    "mv {home}/.config {home}/moved && mkdir -p {home}/.config/git && echo x > {home}/.config/git/config",
    "mv {home}/code {home}/moved; mkdir -p {home}/code/own/.git/hooks && echo x > {home}/code/own/.git/hooks/pre-commit",
    "echo x > {home}/code/own/.git/hooks/pre-commit; echo x > {home}/code/own/.claude/settings.json; echo x > {home}/code/own/.mcp.json",
    "cd {home}/code/own; mv tools t2; mkdir -p tools/hooks; echo x > tools/hooks/pre-commit",
    "echo x > {home}/.git/hooks/pre-commit; echo x >> {home}/.git/config; mv {home}/.git {home}/g2",
]
PLACES = {
    "the home is writable": ("code/own", "['~']"),
    "the home is the project": (".", "[]"),
    "the project is, and what is around it, too": ("code/own", "['~', '~/code']"),
}
GUARDED = (
    ".profile", ".config/git/config", ".claude/settings.json", ".git/config", ".git/hooks", ".cru/config.toml", ".cru/plugins",
    ".ssh", ".netrc",
)  # fmt: skip
OF_THE_PROJECT = (".git/config", ".git/hooks", ".claude/settings.json", ".mcp.json", "tools/hooks")
"""Where it is `~/code/own`: guards in folders below a project are not held."""


def furnish(home: Path) -> None:
    texts = {
        ".local/share/crush/key": SECRET, ".config/gh/hosts.yml": SECRET, ".codex/auth.json": SECRET,
        ".claude/.credentials.json": SECRET, "notes/private/.cru/x": SECRET, ".config/git/config": "", ".claude/settings.json": "{}",
        "code/own/.claude/settings.json": "{}", "code/own/tools/hooks/pre-push": "",
    }  # fmt: skip
    for name, text in texts.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for folder in (home, home / "code" / "own"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "config", "core.hooksPath", "tools/hooks"], cwd=home / "code" / "own", check=True)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("place", PLACES)
def test_hidden_and_guarded_places_hold_in_what_may_be_changed(surroundings: Surroundings, place: str) -> None:
    project, writable = PLACES[place]
    home = surroundings.here.path
    furnish(home)
    here = HomeDir(home, home / project)
    here.sandbox = ""
    calls = [Call("bash", {"command": surroundings.fill(text)}) for text in (*READS, *WRITES, "echo x > {home}/made")]
    config = f"[sandbox]\nmode = 'on'\nwritable = {writable}\nhidden = ['~/notes/private']\n"
    watched = [home / name for name in GUARDED]
    watched += [here.project / name for name in OF_THE_PROJECT if project != "."]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure(config, url=model.url)
        before = snapshot(watched)
        done = cru("-t", "--hooks", "none", "-C", "c", "go", home=here, timeout=120)
    assert (done.code, done.out) == (0, "done\n"), done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert len(results) == len(calls)
    assert [call for call, result in zip(calls, results, strict=True) if SECRET in result] == []
    assert snapshot(watched) == before
    assert (home / "made").read_text() == "x\n"
    assert "Read-only file system" in results[len(READS) + 2] and "this ran in a sandbox" in results[len(READS) + 2]
