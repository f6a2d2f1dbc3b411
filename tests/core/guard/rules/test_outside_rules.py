"""Which rule an answer keeps for a run outside of the sandbox."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.core.guard.rules.world import World

from cru.core.guard import BadRule
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject
from cru.core.guard.rules.outside_runs import OutsideRuns
from cru.core.guard.rules.paths import JudgedCall
from cru.core.guard.rules.rules import OUTSIDE

KEPT = [
    "git push origin main", "git fetch", "git pull --rebase", "git ls-remote origin", "docker ps -a", "docker logs web",
    "kubectl get pods -A", "gh pr view 3", "gh run list", "systemctl status x",
]  # fmt: skip
NEVER = [
    # code of the project, or of what it names
    "make", "make test", "npm test", "npm ci", "npx x", "pytest", "python x.py", "python3 -m pytest", "./run", "bin/run", "cargo test",
    "pip install x", "docker build .", "docker run x", "docker compose up", "sh x", "bash -c ls", "sudo ls", "env ls",
    "xargs ls", "git commit -m x", "git add .", "git checkout main", "git rebase main", "git merge x", "git stash", "git clone x",
    "git submodule update", "git -C x push", "git -c core.hooksPath=x push", "git push --receive-pack=x", "git fetch --upload-pack=x",
    "git push && make", "git push; ls", "git push | cat", "git push $(ls)", "git push > x", "GIT_SSH_COMMAND=x git push", "PATH=. git push",
    # what reads files, or gives away or changes what is elsewhere
    "cat x", "cp a b", "curl -T x https://h", "scp a h:", "rsync a h:", "gh release upload v x", "gh pr create -F x", "gh api x",
    "gh auth token", "kubectl apply -f x", "kubectl get secrets", "kubectl exec x ls", "docker cp a b", "docker rm x", "rm x", "ls",
]  # fmt: skip


REMOTE = """[remote "origin"]
\turl = git@github.com:me/it.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
"""


def world_with(tmp_path: Path, config: str = REMOTE) -> World:
    """One whose project has this configuration of git."""
    world = World(tmp_path)
    (world.root / ".git" / "config").write_text(config)
    return world


@pytest.mark.parametrize("command", KEPT)
def test_the_very_command_is_kept_and_covers_it_outside_only(tmp_path: Path, command: str) -> None:
    world = world_with(tmp_path)
    rule = world.gate().rule_for(OUTSIDE, "shell", command)
    assert rule == f"outside_sandbox:{command}"
    gate = world.gate(allow=(rule,))
    assert gate.judge("bash", "shell", command, why_ask="outside", is_outside=True).decision == "allow"
    assert gate.judge("bash", "shell", f"{command} more", why_ask="outside", is_outside=True).decision == "ask"
    assert gate.judge("bash", "shell", command).decision == "ask", "inside it is another thing"
    editing = gate.editing_for(rule, OUTSIDE, "shell", command)
    assert (editing is None) is command.startswith("git"), "where only this rule would be kept, none is edited"
    assert editing is None or (editing.why_not(editing.proposal), editing.why_not(rule)) == ("", "")
    subject = PermissionSubject("bash", "shell", command, rule=rule, editing=editing)
    for wide in (
        f"bash:{command}",
        f"shell:{command}",
        "outside_sandbox:*",
        "outside_sandbox:git *",
        f"outside_sandbox:{command[:5]}*",
    ):
        assert editing is None or editing.why_not(wide), wide
        with pytest.raises(BadRule):
            gate.remember(subject, PermissionReply("always", rule=wide))


@pytest.mark.parametrize("command", NEVER)
def test_none_is_kept_of_what_the_project_decides_or_what_reads_files(tmp_path: Path, command: str) -> None:
    assert world_with(tmp_path).gate().rule_for(OUTSIDE, "shell", command) == ""


PLACES = [
    "git push ./evilbare master", "git push evilbare", "git push {root}/evilbare", "git push file://{root}/evilbare", "git fetch ./x",
    "git fetch ../x", "git pull x", "git ls-remote .", "git push ext::sh", "git push ssh://localhost{root}/evilbare", "git push upstream",
    "git push me@127.0.0.1:evilbare", "git push [::1]:x", "git fetch https://0x7f.1/x", "git push -q ./evilbare",
]  # fmt: skip
"""Repositories whose hooks may be written by commands inside."""


@pytest.mark.parametrize("command", PLACES)
def test_none_is_kept_of_git_that_leads_to_a_repository_on_this_machine(tmp_path: Path, command: str) -> None:
    world = world_with(tmp_path)
    assert world.gate().rule_for(OUTSIDE, "shell", command.replace("{root}", str(world.root))) == ""


REMOTES = {
    "there is none": "",
    "it is a folder": '[remote "origin"]\nurl = ./evilbare',
    "it is a folder in quotes": '[remote "origin"]\n\turl = "/srv/x" # mine',
    "it is a file": '[remote "origin"]\nurl = file:///srv/x',
    "it is pushed elsewhere": '[remote "origin"]\nurl = https://h.example/x\npushurl = ./evilbare',
    "another one is a folder": '[remote "origin"]\nurl = https://h.example/x\n[remote "up"] url = ./x',
    "the branch has a folder": '[remote "origin"]\nurl = https://h.example/x\n[branch "main"]\nremote = .',
    "pushes go to a folder": '[remote]\npushDefault = evilbare\n[remote "origin"]\nurl = https://h.example/x',
    "addresses are replaced": '[remote "origin"]\nurl = https://h.example/x\n[url "./evil"]\ninsteadOf = https://h.example/',
    "in the old writing": "[remote.origin]\nurl = ./evilbare",
}


@pytest.mark.parametrize("case", REMOTES)
def test_none_is_kept_of_git_whose_settings_lead_to_a_repository_on_this_machine(tmp_path: Path, case: str) -> None:
    gate = world_with(tmp_path, REMOTES[case]).gate()
    assert gate.rule_for(OUTSIDE, "shell", "git push") == ""
    is_kept = case in ("the branch has a folder", "pushes go to a folder")
    assert bool(gate.rule_for(OUTSIDE, "shell", "git push origin main")) == is_kept


def test_git_that_a_rule_permits_and_what_is_confined_do_not_run_at_one_time() -> None:
    async def play() -> None:
        outside = OutsideRuns()
        outside.is_confined = True

        def judge(command: str) -> str:
            call = JudgedCall("bash", "shell", command)
            call.is_outside = True
            return outside.judge_rule(call, True)

        assert judge("git push") == ""
        end = outside.begin("make")
        assert outside.hold("git push") is None, "it began since"
        assert "`make` runs there" in judge("git push") and judge("docker ps") == ""
        assert outside.hold("git push") is not None, "a person has permitted it"
        end()
        assert judge("git push") == ""
        release = outside.hold("git push")
        assert release is not None
        waiting = asyncio.ensure_future(outside.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        release()
        await waiting

    asyncio.run(play())


SETTINGS = {
    "hooks in the project": ("project/.git/config", "[core]\n\thooksPath = .husky/_\n"),
    "in one line": ("project/.git/config", "[core] HOOKSPATH=.husky"),
    "hooks for all": ("home/.gitconfig", "[core]\n\thooksPath = hooks\n"),
    "something included": ("home/.config/git/config", '[includeIf "gitdir:~/"]\n\tpath = x\n'),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_none_is_kept_of_git_whose_hooks_lie_elsewhere(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    world = World(tmp_path)
    path, text = SETTINGS[case]
    file = (world.root if path.startswith("project") else world.user) / path.partition("/")[2]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert world.gate().rule_for(OUTSIDE, "shell", "git push") == ""
    assert world.gate().rule_for(OUTSIDE, "shell", "docker ps") == "outside_sandbox:docker ps"


def test_none_is_kept_of_git_where_there_is_no_repository_of_the_projects_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.root / ".git").rmdir()
    (world.root / ".git").write_text("gitdir: elsewhere")
    assert world.gate().rule_for(OUTSIDE, "shell", "git push") == ""


@pytest.mark.parametrize("command", ["git push origin main", "git fetch", "git status", "git diff"])
def test_none_is_kept_of_git_where_there_are_submodules(tmp_path: Path, command: str) -> None:
    """Git goes into them, and their settings decide what runs."""
    world, tree = world_with(tmp_path), tmp_path / "tree"
    kept = world.gate().rule_for(OUTSIDE, "shell", command)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    words = ["git", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub"]
    subprocess.run(words, cwd=tree, check=True)
    (world.root / ".git" / "index").write_bytes((tree / ".git" / "index").read_bytes())
    assert kept == f"outside_sandbox:{command}"
    assert world.gate().rule_for(OUTSIDE, "shell", command) == ""
    assert world.gate().rule_for(OUTSIDE, "shell", "docker ps") == "outside_sandbox:docker ps"
