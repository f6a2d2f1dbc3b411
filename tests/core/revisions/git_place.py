"""A project in git whose commands are functions, and the watcher that finds out what they change."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.core.revisions import StoreFailed, UndoSettings
from cru.core.revisions.commands import CommandWatcher, make_watcher
from cru.core.revisions.keeper import ChangeKeeper
from cru.core.revisions.records import ChangedBy, ChangeOrigin
from cru.core.revisions.restore import StepKind, apply, plan, summarize
from cru.core.revisions.store import RevisionStore

Command = Callable[[Path], object]
MINE = {"GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.environ["PATH"], "HOME": "/nowhere"}


def git(folder: Path, *words: str) -> None:
    argv = ("git", "-c", "user.email=a@b", "-c", "user.name=me", *words)
    subprocess.run(argv, cwd=folder, env=MINE, check=True, capture_output=True)


def origin(call: str, prompt: str = "prompt-1", agent: str = "") -> ChangeOrigin:
    return ChangeOrigin(ChangedBy.COMMAND, "session", "main", prompt, "bash", call, agent)


class Place:
    """A project in git, and what looks behind its commands; runs of git are counted by a wrapper on the PATH."""

    def __init__(self, path: Path) -> None:
        self.root, self.log = path / "project", path / "git-runs"
        self.root.mkdir()
        git(self.root, "init", "-q")
        (self.root / "kept").write_text("kept\n")
        (self.root / "gone").write_text("gone\n")
        (self.root / "folder").mkdir()
        (self.root / "folder/inner").write_text("inner\n")
        (self.root / "link").symlink_to("kept")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "first")
        (self.root / "draft").write_text("not committed\n")
        self.before = self.tree()
        wrapper = path / "bin/git"
        wrapper.parent.mkdir()
        wrapper.write_text(f'#!/bin/sh\necho "$1" >> {self.log}\nexec {shutil.which("git")} "$@"\n')
        wrapper.chmod(0o755)
        self.told: list[str] = []
        # no look is given up because the machine is busy: what it would have found is not taken back then
        self.store = RevisionStore(path / "store", UndoSettings(command_seconds=600))
        self.keeper = ChangeKeeper(self.store, self.told.append)
        watcher = make_watcher(self.store, self.root, f"{wrapper.parent}:{os.environ['PATH']}", self.warn)
        assert watcher is not None
        self.watcher: CommandWatcher = watcher
        self.keeper.watcher = watcher
        self.calls = 0

    def warn(self, error: StoreFailed) -> None:
        self.told.append(error.message)

    @contextmanager
    def running(self) -> Iterator[asyncio.Runner]:
        with asyncio.Runner() as runner:
            yield runner
            runner.run(self.watcher.close())

    async def play(self, *played: Command, prompt: str = "prompt-1", agent: str = "") -> None:
        for command in played:
            self.calls += 1
            by = origin(f"call_{self.calls}", prompt, agent)
            await self.watcher.before(by)
            command(self.root)
            self.watcher.after(by, f"command {self.calls}")

    def git_runs(self) -> list[str]:
        """The commands of git that were run since the last time."""
        runs = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return runs

    def looks(self) -> list[tuple[str, str]]:
        return [(look.origin.call, look.why) for look in self.store.looks()]

    def tree(self) -> dict[str, tuple[int, bytes]]:
        files: dict[str, tuple[int, bytes]] = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != ".git"]
            for name in (*names, *(f for f in folders if os.path.islink(os.path.join(folder, f)))):
                path = os.path.join(folder, name)
                data = os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
                files[os.path.relpath(path, self.root)] = (stat.S_IMODE(os.lstat(path).st_mode), data)
        return files

    def move(self, *, backwards: bool) -> None:
        """Bring all files to how they were before the commands, or after them again."""
        steps = plan(
            self.store,
            summarize(c for c in self.store.changes() if c.origin.by is not ChangedBy.UNDO),
            backwards=backwards,
        )
        assert {step.kind for step in steps} <= {StepKind.WRITE, StepKind.DONE}, steps
        assert not apply(self.store, steps, ChangeOrigin(ChangedBy.UNDO)).failed


def append(name: str, text: str = "x\n") -> Command:
    def run(root: Path) -> None:
        with (root / name).open("a") as file:
            file.write(text)

    return run


def write(name: str, text: str = "x\n") -> Command:
    def run(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return run


def remove(name: str) -> Command:
    return lambda root: shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()


def mode(name: str, bits: int) -> Command:
    return lambda root: (root / name).chmod(bits)


def link(name: str, target: str) -> Command:
    return lambda root: (root / name).symlink_to(target)
