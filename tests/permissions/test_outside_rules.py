"""Which rule an answer keeps for a run outside of the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.permissions.world import World

from cru.permissions.rules import OUTSIDE

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


@pytest.mark.parametrize("command", KEPT)
def test_the_very_command_is_kept_and_covers_it_outside_only(tmp_path: Path, command: str) -> None:
    world = World(tmp_path)
    rule = world.gate().rule_for(OUTSIDE, "shell", command)
    assert rule == f"outside_sandbox:{command}"
    gate = world.gate(allow=(rule,))
    assert gate.judge("bash", "shell", command, why_ask="outside", is_outside=True).decision == "allow"
    assert gate.judge("bash", "shell", f"{command} more", why_ask="outside", is_outside=True).decision == "ask"
    assert gate.judge("bash", "shell", command).decision == "ask", "inside it is another thing"
    editing = gate.editing_for(rule, OUTSIDE, "shell", command)
    assert editing is not None and editing.why_not(editing.proposal) == "" and editing.why_not(rule) == ""
    for wide in (
        f"bash:{command}",
        f"shell:{command}",
        "outside_sandbox:*",
        "outside_sandbox:git *",
        f"outside_sandbox:{command[:5]}*",
    ):
        assert editing.why_not(wide), wide


@pytest.mark.parametrize("command", NEVER)
def test_none_is_kept_of_what_the_project_decides_or_what_reads_files(tmp_path: Path, command: str) -> None:
    assert World(tmp_path).gate().rule_for(OUTSIDE, "shell", command) == ""


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
