"""Repositories that a command makes or changes: no git that a person starts later runs anything of theirs, and honest work goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.playing import run
from tests.kit.sandbox import needs_sandbox
from tests.kit.waiting import ends_soon

from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings, repositories
from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.confinement import SessionSandbox
from cru.core.guard.sandbox.git_settings import dangerous_settings
from cru.core.guard.sandbox.repositories import find_risks

ME = "git -c user.name=a -c user.email=a@b"
EVIL = "git {at} config core.fsmonitor 'touch {ran}; false'"
HOOK = "printf '#!/bin/sh\\ntouch {ran}\\n'"
BARE = f"git init -q --bare {{at}} && git -C {{at}} config core.bare false && {EVIL.replace('{at}', '-C {at}')}"
MANY = "for i in $(seq 1100); do mkdir -p {}; done"
MODULE = (
    "cd own && mkdir -p .git/modules/a && cp -r .git ../t && rm -rf ../t/modules && mv ../t .git/modules/a/b && {more}; mkdir s"
    " && echo 'gitdir: ../.git/modules/a/b' > s/.git && git -C s config core.worktree ../../../../s"
    f" && {EVIL.replace('{at}', '-C s')}"
)
COMMITS = f"git init -q -b master && for i in 1 2 3; do echo $i > file; git add file; {ME} commit -qm $i; done;"
STRATEGY = f"mkdir git-merge-x; {HOOK} > git-merge-x/run; chmod +x git-merge-x/run"
"""What git runs for a strategy of merges that is called `x/run`."""

PLANTED: dict[str, tuple[str, ...]] = {
    "settings": (f"git init -q && {EVIL}",),
    "settings of another spelling": ("git init -q && printf '[CORE]fsmonitor = \"touch {ran}; false\"\\n' >> .git/config",),
    "settings behind a line that goes on": (
        "git init -q && printf '[user]\\nname = a \\\\\\n\\n[core]\\nfsmonitor = \"touch {ran}; false\"\\n' >> .git/config",
    ),
    "settings elsewhere": ("git init -q && git config -f more core.fsmonitor 'touch {ran}; false' && git config include.path ../more",),
    "settings that are a link": (f"git init -q && {EVIL} && mv .git/config more && ln -s ../more .git/config",),
    "settings of a work tree": (
        "git init -q && git config extensions.worktreeConfig true && git config --worktree core.fsmonitor 'touch {ran}; false'",
    ),
    "a pager": ("git init -q && git config core.pager 'touch {ran}; cat'",),
    "a hook": (f"git init -q && {HOOK} > .git/hooks/post-index-change && chmod +x .git/hooks/*",),
    "hooks that are a link": (
        f"git init -q && mv .git/hooks h && {HOOK} > h/post-index-change && chmod +x h/* && ln -s ../h .git/hooks",
    ),
    "a file that leads elsewhere": (f"git init -q && {EVIL} && mv .git evil && echo 'gitdir: evil' > .git",),
    "a link that leads elsewhere": (f"git init -q && {EVIL} && mv .git evil && ln -s evil .git",),
    "shared settings": (
        "git init -q && cp -r .git evil && git config -f evil/config core.fsmonitor 'touch {ran}; false'"
        " && echo ../evil > .git/commondir",
    ),
    "a repository without .git": (BARE.replace("{at}", ".") + " && git config core.worktree .",),
    "one in place of the project's": (
        "git init -q && " + ME + " commit -q --allow-empty -m first",
        "rm -rf .git; " + BARE.replace("{at}", ".") + " && git config core.worktree .",
    ),
    "a nested repository": (f"git init -q sub && {EVIL.replace('{at}', '-C sub')}",),
    "one far below": (f"mkdir -p a/b/c/d && git init -q a/b/c/d/sub && {EVIL.replace('{at}', '-C a/b/c/d/sub')}",),
    "a nested one without .git": (BARE.replace("{at}", "sub") + " && git -C sub config core.worktree .",),
    "a nested one that exists": ("git init -q sub", EVIL.replace("{at}", "-C sub")),
    "one of the user that exists": (EVIL.replace("{at}", "-C own"),),
    "a hook of one of the user": (f"{HOOK} > own/.git/hooks/post-index-change && chmod +x own/.git/hooks/*",),
    "one that is put together later": (
        f"git init -q sub && mv sub/.git sub/git; {EVIL.replace('{at}', '--git-dir=sub/git')}",
        "mv sub/git sub/.git",
    ),
    "one that is moved": (f"git init -q sub && {EVIL.replace('{at}', '-C sub')} && mv sub moved",),
    "a nested file": (f"git init -q sub && {EVIL.replace('{at}', '-C sub')} && mv sub/.git sub/evil && echo 'gitdir: evil' > sub/.git",),
    "a work tree": (
        f"git init -q && {ME} commit -q --allow-empty -m first && git worktree add -q side && cp -r .git evil"
        " && git config -f evil/config core.fsmonitor 'touch {ran}; false' && echo ../../../evil > .git/worktrees/side/commondir",
    ),
    "a work tree of the user's repository": (
        "cd own && git worktree add -q ../side && cp -r .git ../evil && cd .."
        " && git config -f evil/config core.fsmonitor 'touch {ran}; false' && echo ../../../../evil > own/.git/worktrees/side/commondir",
    ),
    "a submodule": (
        f"git init -q && git -c protocol.file.allow=always submodule -q add ./own sub && {EVIL.replace('{at}', '-C sub')}",
    ),
    "steps of a rebase": (
        "git init -q && for i in 1 2 3; do echo $i > file; git add file; " + ME + " commit -qm $i; done;"
        " GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' " + ME + " rebase -q -i HEAD~2;"
        " echo 'exec touch {ran}' >> .git/rebase-merge/git-rebase-todo",
    ),
    "the user's behind many folders": (f"{MANY.format('.a$i')}; {EVIL.replace('{at}', '-C own')}",),
    "a nested one behind many folders": (f"{MANY.format('.a$i')}; git init -q sub && {EVIL.replace('{at}', '-C sub')}",),
    "a hook among many": (
        f"{MANY.format('own/.git/hooks/0$i.sample')}; {HOOK} > own/.git/hooks/post-index-change && chmod +x own/.git/hooks/*; touch own/f",
    ),
    "a submodule below what looks like one": (MODULE.replace("{more}", "touch .git/modules/a/config"),),
    "a submodule behind many folders": (MODULE.replace("{more}", MANY.format(".git/modules/z$i")),),
    "a repository in the folder of a work tree": (
        "cd own && git worktree add -q ../side && cp -r .git ../t && mv ../t .git/worktrees/side/evil && mkdir s"
        f" && echo 'gitdir: ../.git/worktrees/side/evil' > s/.git && {EVIL.replace('{at}', '-C s')}",
    ),
    "a folder with nothing but HEAD and commondir": (
        "cp -r own/.git evil && rm evil/HEAD && mkdir src && cp own/.git/HEAD src/ && echo ../evil > src/commondir"
        " && git config -f evil/config extensions.worktreeConfig true && git config -f src/config.worktree core.worktree .."
        f" && git config -f src/config.worktree core.bare false && {EVIL.replace('{at} config', 'config -f evil/config')}",
    ),
    "a submodule in node_modules": (
        f"cd own && git init -q node_modules/x && {ME} -C node_modules/x commit -q --allow-empty -m x && git update-index --add"
        f" --cacheinfo 160000,$(git -C node_modules/x rev-parse HEAD),node_modules/x && {EVIL.replace('{at}', '-C node_modules/x')}",
    ),
    "a link into node_modules": (
        f"git init -q node_modules/x && {EVIL.replace('{at}', '-C node_modules/x')} && ln -s node_modules/x link",
    ),
    "a link into a folder of git": (f"git init -q own/.git/x && {EVIL.replace('{at}', '-C own/.git/x')} && ln -s own/.git/x link",),
    "a remote in node_modules": (
        f"git init -q --bare node_modules/x && {HOOK} > node_modules/x/hooks/post-receive && chmod +x node_modules/x/hooks/*"
        " && git -C own remote add origin ../node_modules/x",
    ),
    "a strategy of a rebase": (
        f"{COMMITS} GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' {ME} rebase -q -i HEAD~2; {STRATEGY};"
        " echo x/run > .git/rebase-merge/strategy",
    ),
    "a strategy of a cherry-pick": (
        f"{COMMITS} git checkout -q -b o HEAD~2; echo 7 > file; {ME} commit -qam 7; {ME} cherry-pick master~1 master; {STRATEGY};"
        f" git config -f .git/sequencer/opts options.strategy x/run; git add .; {ME} commit -qm new",
    ),
}  # fmt: skip
"""Commands one after the other in a folder that holds no `.git` but that of `own`."""
AFTERWARDS = (
    "status", "diff", "log --oneline -1", "add -A", "status", "rebase --continue", "cherry-pick --continue",
    "push origin HEAD:refs/heads/main",
)  # fmt: skip

HONEST = (
    "git init -q && echo a > file && git config user.name kit && git config user.email kit@example.org && git config pull.rebase true"
    " && git remote add origin https://example.org/a.git && git branch -M main && git add file && git commit -qm first",
    "echo b >> file && git commit -qam second && git switch -q -c feature && echo c >> file && git stash -q && git stash pop -q"
    " && git commit -qam third && git rebase -q main && git switch -q main && git merge -q feature",
    "git worktree add -q side && cd side && echo x > new && git add new && git commit -qm side && git status --short",
    "git clone -q . copy && cd copy && git config user.name other && git config user.email a@b && echo y > y && git add y"
    " && git commit -qm y && git push -q origin HEAD:refs/heads/from-copy",
    "git init -q -b main --bare store.git && git push -q ./store.git main && git clone -q store.git again && git -C again log --oneline",
    "git -C copy remote add second https://example.org/b.git && git -C copy switch -q -c more",
    "rm -rf copy again store.git && git status --short",
    "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2; git rebase --continue && git log --format=%s -1",
)


@pytest.fixture
def folder(surroundings: Surroundings) -> Surroundings:
    """A project without `.git`, in which the user has a repository `own`."""
    project = surroundings.here.project
    subprocess.run(["rm", "-rf", project / ".git"], check=True)
    commands = f"git init -q own && cd own && {ME} commit -q --allow-empty -m first"
    subprocess.run(["sh", "-ec", commands], check=True, cwd=project, env=surroundings.here.env)
    return surroundings


@needs_sandbox
@pytest.mark.sample(8)
@pytest.mark.parametrize("case", PLANTED)
def test_no_later_git_runs_what_a_command_has_planted(folder: Surroundings, case: str) -> None:
    project, ran = folder.here.project, folder.out / "ran"
    commands = [command.replace("{at}", "").replace("{ran}", str(ran)) for command in PLANTED[case]]
    results = run(folder, commands)
    assert not ran.exists()
    found = [
        project / ".git",
        project / "link" / ".git",
        *sorted(project.rglob("HEAD")),
        *sorted(project.rglob(".git")),
    ]
    for where in dict.fromkeys(git.parent for git in found if "node_modules" not in git.parts and git.parent.is_dir()):
        for words in AFTERWARDS:
            _git(folder, where, words.split())
    assert not ran.exists(), results
    assert any(moved for _, moved in results), "it must be said"


def _git(around: Surroundings, where: Path, words: list[str]) -> None:
    me = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(
        ["git", *me, *words], cwd=where, env={**around.here.env, "GIT_EDITOR": "true"}, capture_output=True, check=False
    )


@needs_sandbox
def test_honest_work_is_what_it_is_outside(folder: Surroundings) -> None:
    results = run(folder, HONEST)
    assert [
        (command, result) for command, result in zip(HONEST, results, strict=True) if result[0][:2] != "0 " or result[1]
    ] == []


@needs_sandbox
def test_what_is_harmless_in_a_file_stays_in_it(folder: Surroundings) -> None:
    project = folder.here.project
    [(_, moved)] = run(folder, ["git init -q && git config user.name kit && git config core.hooksPath evil"])
    assert moved == [str(project / ".git" / "config.from-sandbox")]
    text = (project / ".git" / "config").read_text()
    assert "name = kit" in text and "evil" not in text and "bare = false" in text


@needs_sandbox
def test_settings_of_the_user_stay_when_a_command_adds_harmless_lines(folder: Surroundings) -> None:
    config = folder.here.project / "own" / ".git" / "config"
    _git(folder, config.parent.parent, ["config", "filter.lfs.process", "git-lfs filter-process"])
    [(_, moved)] = run(folder, ["git -C own remote add origin https://example.org/a.git"])
    assert moved == [] and "git-lfs" in config.read_text() and "origin" in config.read_text()


@needs_sandbox
def test_what_a_running_command_has_planted_is_known_to_no_other_one(folder: Surroundings) -> None:
    here = folder.here
    places = PathRoots(str(here.project), str(here.cru), str(here.path))
    env = {**here.env, "PATH": backend_path(os.environ), "TMPDIR": str(folder.temporary)}
    plant = ("git", "-C", str(here.project / "own"), "config", "core.fsmonitor", "evil")

    async def play() -> list[list[str]]:
        sandbox = SessionSandbox(SandboxSettings(), env, lambda text: None)
        first = await sandbox.confine(places, ("true",))
        subprocess.run(plant, check=True)
        second = await sandbox.confine(places, ("true",))
        assert first is not None and second is not None
        moved = [first.settle()]
        subprocess.run(plant, check=True)
        moved.append(second.settle())
        await sandbox.close()
        return moved

    aside = str(here.project / "own" / ".git" / "config.from-sandbox")
    assert asyncio.run(play()) == [[aside], [f"{aside}-1"]]


LINES = {
    '[core]\n\tbare = false\n[remote "o"]\n\turl = https://a/b.git\n\tfetch = +refs/heads/*:refs/remotes/o/*': 0,
    "# remark\n; remark\n\n[user]\nname = A B\n[init]\ndefaultBranch=main": 0,
    '[branch "a"]\n\tremote = o\n\tmerge = refs/heads/a\n[user]\n\tname = "A B"': 0,
    "[core]\n\tfsmonitor = x": 1,
    "[core]\n\tbare": 0,
    "[core] bare = false": 1,
    "[core.x]\n\tbare = false": 2,
    '[core "x"]\n\tbare = false': 1,
    "[alias]\n\tst = status": 1,
    '[remote "o"]\n\turl = ext::sh -c x': 1,
    '[remote "o"]\n\tuploadpack = x': 1,
    '[submodule "s"]\n\tupdate = !x': 1,
    "[core]\n\tworktree = ..": 1,
    "[user]\n\tname = a\rb": 1,
    "[user]\n\tname = a\\\n[core]\n\tbare = false": 4,
    "\ufeff[core]\n\tbare = false": 2,
    '[remote "o"]\n\turl = ../store.git\n\tpushurl = /a/b/.git/\n[branch "b"]\n\tremote = .': 0,
    '[remote "o"]\n\turl = https://a/node_modules/b%20c.git': 0,
    '[remote "o"]\n\turl = file:///a/node%5fmodules/x': 1,
    '[branch "o"]\n\tpushremote = .git/x': 1,
    "[options]\n\tstrategy = ort\n\tsignoff = true": 0,
    "[options]\n\tstrategy = x/run": 1,
}


@pytest.mark.parametrize("text", LINES)
def test_only_lines_that_are_known_are_harmless(text: str) -> None:
    assert len(list(dangerous_settings(text, "/project/.git", ("/project",)))) == LINES[text]


def test_a_submodule_names_only_a_folder_of_the_project() -> None:
    def count(value: str, folder: str) -> int:
        return len(list(dangerous_settings(f"[core]\n\tworktree = {value}", folder, ("/project",))))

    assert count("../../../sub", "/project/.git/modules/sub") == 0
    assert count("../../../../home", "/project/.git/modules/sub") == 1
    assert count("../sub", "/project/.git") == 1


@needs_sandbox
def test_a_person_is_told_where_not_everything_was_looked_at(
    folder: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "MOST_FOLDERS", 5)
    monkeypatch.setattr(repositories, "MOST_LATER", 10)
    [(_, first), (_, moved)] = run(folder, ["true", "for i in $(seq 20); do mkdir $i; done"])
    assert first == [] and len(moved) == 1 and moved[0].startswith(f"{folder.here.project} (whose many folders")


@pytest.mark.parametrize("name", ["shut", "shut/.git/hooks"])
def test_a_folder_of_the_user_that_cannot_be_listed_is_dangerous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """git finds by its name what nobody can list. Root can list everything, so that the answer of the system is replaced here."""
    subprocess.run(["git", "init", "-q", tmp_path / "shut"], check=True)
    place, scandir, listdir, access = f"{tmp_path}/{name}", os.scandir, os.listdir, os.access

    def deny(call: Callable[[str], Any]) -> Callable[[str], Any]:
        def denied(path: str) -> Any:
            if path == place:
                raise PermissionError
            return call(path)

        return denied

    monkeypatch.setattr(os, "scandir", deny(scandir))
    monkeypatch.setattr(os, "listdir", deny(listdir))
    monkeypatch.setattr(os, "access", lambda path, mode: path != place and access(path, mode))
    assert list(find_risks([str(tmp_path)], [])) == [place]


def test_settings_are_read_in_time_proportional_to_their_length() -> None:
    with ends_soon():
        lines = list(dangerous_settings(f'[a]\n b ={" " * 500_000}"', "/", ()))
    assert len(lines) == 1


@needs_sandbox
def test_a_repository_whose_name_is_no_text_stops_no_command(folder: Surroundings) -> None:
    """git's settings of the user name a program there, so that the place is part of what is recorded."""
    place = os.fsencode(folder.here.project) + b"/a\xff"
    subprocess.run([b"git", b"init", b"-q", place], check=True)
    subprocess.run([b"git", b"-C", place, b"config", b"filter.lfs.process", b"git-lfs"], check=True)
    warnings: list[str] = []
    assert run(folder, ["echo ok"], warnings.append) == [("0 ok\n", [])]
    assert any("not UTF-8" in text for text in warnings)
