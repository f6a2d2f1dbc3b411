"""What follows from the names of paths is computed once a session; what a command can change is looked at before each one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec
import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.kit import HomeDir
from tests.kit.sandbox import needs_sandbox

from cru.core.base.files import is_inside
from cru.core.base.files.atomic import replace_file
from cru.core.base.process.confined import PreparedCommand
from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings, caches, own_places, profile, programs
from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.confinement import SessionSandbox
from cru.core.guard.sandbox.guard_records import FOLDER, GuardRecord, GuardState, runs_elsewhere, settle_records
from cru.core.guard.sandbox.profile import Profile, make_profile

MOST_CALLS = 20
"""Of `is_inside`, for a command after the first one of an agent; 160 before."""


def places(home: HomeDir) -> PathRoots:
    subprocess.run(["git", "init", "-q", str(home.project)], check=True)
    for folder in (".cru", ".ssh", ".cache"):
        (home.path / folder).mkdir()
    return PathRoots(str(home.project), str(home.cru), str(home.path))


def sandbox(home: HomeDir) -> SessionSandbox:
    env = {"PATH": backend_path(os.environ), "HOME": str(home.path), "TMPDIR": str(home.path.parent)}
    return SessionSandbox(SandboxSettings(), env, pytest.fail)


async def start(sandbox: SessionSandbox, where: PathRoots) -> PreparedCommand:
    confined = await sandbox.confine(where, ("/bin/sh", "-c", "true"))
    assert confined is not None
    return confined


def records(home: HomeDir) -> list[str]:
    """The names of records; those that say that something runs end in `json`."""
    folder = home.cru / FOLDER
    return sorted(path.suffix for path in folder.iterdir()) if folder.is_dir() else []


@needs_sandbox
def test_a_command_after_the_first_one_computes_and_writes_nothing_again(home: HomeDir) -> None:
    where = places(home)
    counted = {is_inside.__code__: "is_inside", replace_file.__code__: "replace_file"}

    async def count() -> list[Counter[str]]:
        session, counts = sandbox(home), []
        for _ in range(3):
            calls: Counter[str] = Counter()

            def note(frame: FrameType, event: str, _: object, calls: Counter[str] = calls) -> None:
                if event == "call" and (name := counted.get(frame.f_code)):
                    calls[name] += 1

            sys.setprofile(note)
            try:
                (await start(session, where)).settle()
            finally:
                sys.setprofile(None)
            counts.append(calls)
        await session.close()
        return counts

    first, second, third = asyncio.run(count())
    assert first["replace_file"] == 1 and first["is_inside"] > MOST_CALLS
    assert second == third and second["replace_file"] == 0 and 0 < second["is_inside"] <= MOST_CALLS, second
    assert not (home.cru / FOLDER).exists()


CHANGES: dict[str, str] = {
    "a guard is made": "touch .envrc",
    "a guard becomes a link": "mv .git/config config; ln -s ../config .git/config",
    "a guard's folder is made": "mkdir .husky",
    "git's settings name hooks": "mkdir tools; git config core.hooksPath tools",
    "a repository moves": "mv .git repository; echo gitdir: repository > .git",
    "a submodule comes": "git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git add sub",
    "a repository of a submodule comes": "mkdir -p .git/modules/sub/objects; touch .git/modules/sub/HEAD .git/modules/sub/config",
    "keys come to the home": "mkdir $HOME/.kube",
    "keys are moved behind a link": "mv $HOME/.ssh $HOME/keys; ln -s keys $HOME/.ssh",
    "a socket of an agent comes": "mkdir $HOME/.colima",
    "a folder of programs comes": "mkdir $TMP/bin",
    "a folder of programs becomes a link to keys": "rmdir $TMP/first; ln -s $HOME/.ssh $TMP/first",
}
"""What may happen between two commands, in the project; TMP is a folder below /tmp that is on the PATH."""


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_change_between_two_commands_is_looked_at(surroundings: Surroundings, change: str) -> None:
    """The second profile is what a session would make that begins then, and another one than before."""
    home = surroundings.here
    where = PathRoots(str(home.project), str(home.cru), str(home.path))
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cru-test-") as folder:
        tmp = Path(folder)
        (tmp / "first").mkdir()
        path = f"{tmp}/first:{tmp}/bin:/usr/bin"

        def look() -> Profile:
            sockets = [str(home.path / ".colima")]
            return make_profile(where, SandboxSettings(), str(home.path.parent / "tmp"), sockets=sockets, path=path)

        first = look()
        assert look() == first
        subprocess.run(["sh", "-ec", CHANGES[change]], cwd=home.project, env={**home.env, "TMP": str(tmp)}, check=True)
        second = look()
        forget()
        assert second == look() and second != first


def forget() -> None:
    """Forget all that is kept from one command to the next."""
    kept: list[Callable[..., object]] = [*vars(profile).values(), *vars(caches).values(), *vars(programs).values()]
    kept += vars(own_places).values()
    clears = [clear for function in kept if (clear := getattr(function, "cache_clear", None)) is not None]
    assert len(clears) >= 6
    for clear in clears:
        clear()


@needs_sandbox
def test_a_record_says_that_a_command_runs_while_it_does_and_no_longer(home: HomeDir) -> None:
    """It is what other sessions, and the next start after a kill, go by."""
    where = places(home)
    accepted = home.project / ".envrc"

    def others_see_it() -> bool:
        return runs_elsewhere(where.home, where.roots, "another session")

    async def play() -> None:
        session = sandbox(home)
        for _ in range(2):
            confined = await start(session, where)
            assert others_see_it() and records(home) == [".json"]
            confined.settle()
            assert not others_see_it() and records(home) == [".idle"]
        both = [await start(session, where), await start(session, where)]
        both[0].settle()
        assert others_see_it() and records(home) == [".idle", ".json"]
        both[1].settle()
        session.accept(str(accepted), b"digest")
        confined = await start(session, where)
        (record,) = (home.cru / FOLDER).glob("*.json")
        assert msgspec.json.decode(record.read_bytes(), type=GuardRecord).accepted == {str(accepted): b"digest"}
        confined.settle()
        await session.close()

    asyncio.run(play())
    assert records(home) == []


def test_the_record_of_a_command_that_had_ended_before_a_kill_moves_nothing(home: HomeDir, tmp_path: Path) -> None:
    made = home.project / ".envrc"
    made.write_text("the user's own")
    record = GuardRecord(str(tmp_path / "gone"), GuardState({str(made): ""}, (str(tmp_path),)), {})
    for name, moved in (("a.idle", 0), ("a.json", 1)):
        (home.cru / FOLDER).mkdir(parents=True)
        (home.cru / FOLDER / name).write_bytes(msgspec.json.encode(record))
        assert len(settle_records(home.cru)) == moved and records(home) == []
    assert not made.exists()
