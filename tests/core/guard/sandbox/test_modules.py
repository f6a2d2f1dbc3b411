"""Submodules and work trees: what `git status` of a person runs there later is decided by nobody inside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.kit import Call, HomeDir, Reply, cru, server
from tests.kit.sandbox import needs_sandbox
from tests.kit.waiting import ends_soon

from cru.core.guard.places.gitlinks import find_gitlinks
from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.profile import make_profile

OF_MODULES = {
    "a link to a changed copy": "cp -r .git/modules/sub evilgit; git config -f evilgit/config core.worktree ../sub; {evil} evilgit/config;"
    " rm -f sub/.git; echo 'gitdir: ../evilgit' > sub/.git",
    "another folder at its place": "cp -r .git/modules/sub evilgit;"
    " git config -f evilgit/config core.worktree ../sub; {evil} evilgit/config;"
    " mv sub old; mkdir sub; echo 'gitdir: ../evilgit' > sub/.git",
    "its settings": "{evil} .git/modules/sub/config",
    "a submodule that was not here": "git init -q absent; {evil} absent/.git/config",
    "a repository that becomes a submodule": "git init -q new; {evil} new/.git/config; git -C new -c user.name=a -c user.email=a@b commit"
    " -q --allow-empty -m x; git add new",
    "one in a split index": "git init -q new; {evil} new/.git/config; git -C new -c user.name=a -c user.email=a@b commit"
    " -q --allow-empty -m x; git add new; git update-index --split-index",
    "one that is a folder": "{evil} own/.git/config",
    "a hook of one that is a folder": "cp evil.sh own/.git/hooks/pre-commit; {evil} own/.git/commondir",
    "settings of another work tree": "cp -r .git evilgit; {evil} evilgit/config; echo ../../../evilgit > .git/worktrees/wt/commondir",
    "settings of another work tree alone": "cp .git/config .git/worktrees/wt/config.worktree; {evil} .git/worktrees/wt/config.worktree",
    "a folder of another work tree": "cp -r .git evilgit; {evil} evilgit/config; mv .git/worktrees/wt .git/worktrees/old;"
    " cp -r .git/worktrees/old .git/worktrees/wt; echo ../../../evilgit > .git/worktrees/wt/commondir",
}
EVIL = """#!/bin/sh
echo ran >> {ran}
"""


def git(folder: Path, *words: str, around: Surroundings) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *settings, *words], cwd=folder, env=around.here.env, capture_output=True, text=True)
    return done.stdout + done.stderr


def furnish(around: Surroundings) -> None:
    """A project with submodules: one as git makes them, one that is not here, one whose repository is in it; and another work tree."""
    project, other = around.here.project, around.here.path / "other"
    other.mkdir()
    for folder in (other, project, project / "own"):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "-q", around=around)
        git(folder, "commit", "-q", "--allow-empty", "-m", "first", around=around)
    for name in ("sub", "absent"):
        git(project, "submodule", "add", "-q", str(other), name, around=around)
    git(project, "add", "own", around=around)
    git(project, "config", "extensions.worktreeConfig", "true", around=around)
    git(project, "commit", "-qm", "second", around=around)
    git(project, "submodule", "deinit", "-f", "absent", around=around)
    git(project, "worktree", "add", "-q", str(around.here.path / "wt"), around=around)
    assert sorted(find_gitlinks(str(project))) == [str(project / name) for name in ("absent", "own", "sub")]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("case", OF_MODULES)
def test_nothing_is_planted_for_a_later_git_status(surroundings: Surroundings, case: str) -> None:
    here = surroundings.here
    furnish(surroundings)
    script, ran = here.project / "evil.sh", surroundings.out / "ran"
    script.write_text(EVIL.format(ran=ran))
    script.chmod(0o755)
    command = OF_MODULES[case].replace("{evil}", f"printf '[core]\\n\\tfsmonitor = {script}\\n' >>")
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    for folder in (here.project, here.path / "wt", here.project / "own", here.project / "sub"):
        git(folder, "status", around=surroundings)
        git(folder, "diff", around=surroundings)
    assert not ran.exists(), (here.log("c")[-2:], done.err)


@pytest.mark.slow
@needs_sandbox
def test_work_in_submodules_is_what_it_was(surroundings: Surroundings) -> None:
    here = surroundings.here
    furnish(surroundings)
    me = "git -c user.name=a -c user.email=a@b"
    command = (
        f"me='{me}'; for d in sub own; do cd $d && echo x > new && git add new && $me commit -qm in-$d && cd ..; done"
    )
    command += "; git add . && $me commit -qm out"
    with server([Reply(calls=[Call("bash", {"command": f"set -e; {command}"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0 and "put aside" not in done.err, done.err
    assert [git(here.project / name, "log", "-1", "--format=%s", around=surroundings) for name in ("sub", "own", ".")] == [
        "in-sub\n", "in-own\n", "out\n",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["2", "4", "sha256"])
def test_every_form_of_an_index_is_read(surroundings: Surroundings, form: str) -> None:
    tree = surroundings.out / "tree"
    tree.mkdir()
    is_long = form == "sha256"
    git(tree, "init", "-q", *(["--object-format=sha256"] if is_long else []), around=surroundings)
    for name in ("a", "a.txt", "folder-with-a-name", "z"):
        (tree / name).write_text("x")
    (tree / "deep" / "er").mkdir(parents=True)
    git(tree, "add", ".", around=surroundings)
    for name in ("deep/er/sub", "deep/er/sub2", "y"):
        git(
            tree,
            "update-index",
            "--add",
            "--cacheinfo",
            f"160000,{'1' * (64 if is_long else 40)},{name}",
            around=surroundings,
        )
    if not is_long:
        git(tree, "update-index", "--index-version", form, around=surroundings)
    assert find_gitlinks(str(tree)) == [str(tree / name) for name in ("deep/er/sub", "deep/er/sub2", "y")]


@pytest.mark.parametrize("pipe", ["gitdir", "commondir"])
def test_a_pipe_in_place_of_what_names_a_repository_keeps_nobody_waiting(home: HomeDir, pipe: str) -> None:
    folder = home.project / "evil"
    folder.mkdir()
    (home.project / ".git").write_text("gitdir: evil")
    (folder / "gitdir").write_text(str(home.project / ".git"))
    (folder / pipe).unlink(missing_ok=True)
    os.mkfifo(folder / pipe)
    places = PathRoots(str(home.project), str(home.cru), str(home.path))
    with ends_soon():
        profile = make_profile(places, SandboxSettings(), str(home.path))
    assert profile.root == str(home.project)
