"""What cru makes in its home is for its owner alone, whatever the umask: folders 0700, files 0600, programs 0700."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Reply, cru, home, server

from cru.core.base.files.atomic import private_opener, write_private
from cru.core.base.files.regular import make_private_folder

PLUGIN = 'cru.storage.set("a", "b", "c")\ncru.state.set("x", 1)\ncru.paths.state("p")\n'
PROGRAM = """#!/bin/sh
echo '{"name": "prog", "description": "x", "parameters": {"type": "object", "properties": {}}}'
"""


def plant(here: HomeDir, url: str) -> set[Path]:
    """Make a project and the user's own files in cru's home. Returns what is in the home before cru runs."""
    here.configure('[vault]\npath = "notes"\n', url)
    (here.project / "notes").mkdir()
    (here.project / "notes/a.md").write_text("# A\n[[b]]\n")
    (here.project / "a.txt").write_text("a\n")
    (here.project / "batch.jsonl").write_text('{"id": "1", "prompt": "x"}\n')
    commit = "git init -q . && git add . && git -c user.name=x -c user.email=x commit -qm x"
    subprocess.run(commit, shell=True, cwd=here.project, check=True)
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins/p.lua").write_text(PLUGIN)
    (here.cru / "plugins/prog").write_text(PROGRAM)
    (here.cru / "plugins/prog").chmod(0o755)
    (here.cru / "hooks.json").write_text('{"hooks": {"PreToolUse": [{"command": "true"}]}}')
    return {here.cru, *here.cru.rglob("*")}


def open_to_others(here: HomeDir, planted: set[Path]) -> Iterator[str]:
    for path in sorted({*here.cru.rglob("*")} - planted):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & 0o077:
            yield f"{stat.S_IMODE(mode):o} {path.relative_to(here.cru)}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_an_everyday_session_opens_nothing_of_the_home_to_others(tmp_path: Path, umask: int) -> None:
    """A command comes first: its snapshot of a git project is what makes the folder of revisions."""
    calls = [
        Call("bash", {"command": "echo x >c.txt; seq 30000"}, "c1"),
        Call("write", {"file_path": "b.txt", "content": "x"}, "c2"),
        Call("edit", {"file_path": "a.txt", "old_string": "a", "new_string": "b"}, "c3"),
        Call("bash", {"command": "echo later", "background": True}, "c4"),
        Call("send_message", {"to": "other", "content": "x"}, "c5"),
        Call("task", {"prompt": "look", "description": "look", "agent": "general"}, "c6"),
    ]
    before = os.umask(umask)
    try:
        with server([Reply(calls=calls), *[Reply("done")] * 12]) as model:
            here = home(tmp_path, url=model.url)
            planted = plant(here, model.url)
            codes = [
                cru(*words, home=here).code
                for words in (
                    ("--mode", "trust", "--debug", "all", "go"),
                    ("-C", "other", "hi"),
                    ("vault", "search", "A"),
                    ("batch", "batch.jsonl"),
                    ("plugin", "new", "mine"),
                    ("plugin", "new", "own", "--executable", "bash"),
                    ("/undo",),
                )
            ]
    finally:
        os.umask(before)
    assert codes == [0] * len(codes)
    made = {path.relative_to(here.cru).parts[0] for path in {*here.cru.rglob("*")} - planted}
    assert {"cache", "contexts", "fleet", "plugin-state", "revisions", "vaults", "plugins"} <= made
    assert list(open_to_others(here, planted)) == []
    assert (here.cru / "config.toml").stat().st_mode & 0o777 == 0o666 & ~umask  # the user's own keeps its mode


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077])
def test_what_makes_private_files_does_not_ask_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private_folder(tmp_path / "a/b")
        write_private(tmp_path / "a/b/file", b"x")
        write_private(tmp_path / "a/b/program", b"x", 0o700)
        with open(tmp_path / "a/b/opened", "ab", opener=private_opener) as file:
            file.write(b"x")
    finally:
        os.umask(before)
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": "0o700", "file": "0o600", "program": "0o700", "opened": "0o600"}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


FOLDERS = {
    "core/base/files/regular.py": 1,  # make_private_folder
    "core/base/files/folder_handle.py": 2,  # of a project, for a tool's write
    "core/base/files/atomic.py": 1,  # of the user's, for a file that is not private
    "core/api/fs.py": 2,  # what a plugin asks for
    "features/vault/rename.py": 2,  # the notes
    "faces/cli/vault/init.py": 1,  # the notes
    "core/revisions/restore.py": 1,  # the project
    "core/hooks/dialects/transcript.py": 1,  # in ~/.claude, one by one and private
    "core/revisions/store.py": 2,  # one by one and private
    "core/conversations/home.py": 1,  # the same
    "core/conversations/private.py": 2,  # the same
    "core/agents/worktree.py": 1,  # the same
    "core/guard/sandbox/confinement.py": 1,  # the runtime folder of the user, to hide it
}
"""Calls that make a folder by another way than `make_private_folder`, and why."""


def test_folders_are_made_in_one_place() -> None:
    """`mkdir(mode=0o700, parents=True)` makes private only the last of the folders."""
    root = Path(__file__).parents[2] / "src" / "cru"
    counts: dict[str, int] = {}
    for path in root.rglob("*.py"):
        text = path.read_text()
        if not any(word in text for word in ("mkdir", "makedirs", "write_text", "write_bytes")):
            continue
        for node in ast.walk(ast.parse(text)):
            call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if call.endswith(("store.write_text", "self.write_text")):  # a method of ours
                continue
            if call.endswith((".mkdir", ".makedirs", ".write_text", ".write_bytes")):
                name = str(path.relative_to(root))
                counts[name] = counts.get(name, 0) + 1
    assert counts == FOLDERS
