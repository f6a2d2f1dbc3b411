"""The profile for macOS as text, and that it is used there; it is not enforced by anything here."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings, detect, seatbelt
from cru.core.guard.sandbox.confinement import SessionSandbox
from cru.core.guard.sandbox.profile import CommandLimits, Profile

PROFILE = Profile(
    root="/Users/me/project",
    writable=("/Users/me/project", "/Users/me/project/.git", "/Users/me/scratch"),
    read_only=("/Users/me/project/.git/config", "/Users/me/project/.git/hooks", "/Users/me/project/.claude"),
    hidden=("/Users/me/.ssh", "/Users/me/.cru", '/Users/me/odd "\\name'),
    readable=("/Users/me/.cru/contexts/c/tool_cache",),
    temporary="/private/var/folders/x/cru-sandbox-1/tmp",
    absent=("/Users/me/project/.envrc",),
    limits=CommandLimits(cpu=5),
    variables=(("XDG_CACHE_HOME", "/private/var/folders/x/cru-sandbox-1/tmp/.caches/cache"),),
)
GOLDEN = Path(__file__).parents[3] / "data" / "sandbox" / "seatbelt.sb"

DECISIONS = {
    ("file-write", "/Users/me/project/src/a.py"): "allow",
    ("file-write", "/Users/me/scratch/x"): "allow",
    ("file-write", "/private/var/folders/x/cru-sandbox-1/tmp/x"): "allow",
    ("file-write", "/Users/me/project/.git/objects/x"): "allow",
    ("file-write", "/Users/me/project/.git/config"): "deny",
    ("file-write", "/Users/me/project/.git/hooks/pre-commit"): "deny",
    ("file-write", "/Users/me/project/.claude/settings.json"): "deny",
    ("file-write", "/Users/me/project/.envrc"): "deny",
    ("file-write-unlink", "/Users/me/project/.git"): "deny",
    ("file-write", "/Users/me/.profile"): "deny",
    ("file-write", "/etc/hosts"): "deny",
    ("file-write", "/Users/me/projects-of-others"): "deny",
    ("file-read", "/Users/me/.ssh/id_rsa"): "deny",
    ("file-read", "/Users/me/.cru/keys.json"): "deny",
    ("file-read", '/Users/me/odd "\\name/x'): "deny",
    ("file-read", "/Users/me/.cru/contexts/c/tool_cache/out"): "allow",
    ("file-write", "/Users/me/.cru/contexts/c/tool_cache/out"): "deny",
    ("file-read", "/etc/hosts"): "allow",
    ("network-outbound", ""): "deny",
    ("mach-lookup", "com.apple.launchd"): "deny",
}


def decide(text: str, operation: str, subject: str) -> str:
    """As the kernel does it, for what is written here: the last rule that means it."""
    decision = ""
    for rule in re.findall(r"^\((?:allow|deny) .*(?:\n  .*)*", text, re.MULTILINE):
        head, _, filters = rule.partition(" (")
        verdict, *operations = head.strip("() ").split()
        names = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(r'"((?:[^"\\]|\\.)*)"', filters)]
        is_literal = "(literal" in filters or "global-name" in filters
        hit = not filters or any(subject == n or (not is_literal and subject.startswith(f"{n}/")) for n in names)
        means = any(
            operation == o or (o.endswith("*") and operation.startswith(o[:-1])) or o == "default" for o in operations
        )
        decision = verdict if means and hit else decision
    return decision


def test_the_text_is_this() -> None:
    assert seatbelt.render(PROFILE) == GOLDEN.read_text()
    opened = seatbelt.render(Profile("/p", ("/p",), (), (), (), "/t", network=True))
    assert decide(opened, "network-outbound", "") == "allow"


@pytest.mark.parametrize(("operation", "subject"), DECISIONS)
def test_the_rules_mean_what_the_profile_says(operation: str, subject: str) -> None:
    assert decide(seatbelt.render(PROFILE), operation, subject) == DECISIONS[operation, subject]


def test_it_is_used_on_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for sandbox-exec runs the command and keeps the profile."""
    program, project = tmp_path / "sandbox-exec", tmp_path / "project"
    program.write_text(f'#!/bin/sh\n[ "$1" = -p ] || exit 9\nprintf %s "$2" > {tmp_path}/profile\nshift 2\nexec "$@"\n')
    program.chmod(0o755)
    project.mkdir()
    monkeypatch.setattr(detect, "SEATBELT_PROGRAM", str(program))
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(detect, "_known", {})
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "SSH_AUTH_SOCK": "x"}
    places = PathRoots(str(project), str(tmp_path / "home" / ".cru"), str(tmp_path / "home"))

    async def run() -> str:
        sandbox = SessionSandbox(SandboxSettings("on", cpu_seconds=5), env, print)
        words = ("/bin/sh", "-c", "echo $CRU_SANDBOX $TMPDIR ${SSH_AUTH_SOCK-none} $npm_config_cache; ulimit -t")
        confined = await sandbox.confine(places, words)
        assert confined is not None and not confined.has_monitor
        shown = subprocess.run(confined.argv, env=env, capture_output=True, text=True, check=True, cwd=project).stdout
        assert confined.settle() == []
        await sandbox.close()
        return shown

    name, folder, agent, cache, seconds = asyncio.run(run()).split()
    assert (name, agent, seconds) == ("sandbox-exec", "none", "5")
    assert folder.startswith(f"{tmp_path}/cru-{os.getuid()}/run-") and cache == f"{folder}/.caches/npm"
    assert f'(allow file-read* file-write* (subpath "{project}"))' in (tmp_path / "profile").read_text()
    assert not list(tmp_path.glob("cru-*"))
