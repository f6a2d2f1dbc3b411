"""A disk that fails, a process that dies at a chosen change to it, and a power cut.

A run is a real process (faults_child.py) whose changes below cru's home are counted: creating, writing, syncing, renaming, truncating,
removing. `Fault` says which of them fails or kills. `cut_power` builds what a disk holds after a cut behind any step.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tests.kit.home import HomeDir
from tests.kit.run import Done

CHILD = Path(__file__).with_name("faults_child.py")
SPACE = ("create", "write", "mkdir")
"""Steps that a full disk refuses."""


class Fault(Struct, frozen=True, omit_defaults=True):
    """What goes wrong.

    kill: the process dies before this step (from 1 on)
    fail: this step raises `errno`
    lasting: so do all later ones
    kinds: only steps of these kinds count; empty: all
    path: only steps on files whose path ends so count
    """

    kill: int = 0
    fail: int = 0
    errno: int = 0
    lasting: bool = False
    kinds: tuple[str, ...] = ()
    path: str = ""


class Change(Struct, frozen=True):
    """A step as it was recorded.

    op: create, write, sync, rename, link, truncate, unlink, mkdir or rmdir
    path, to: below the root
    at, data: of a write, the data in base64
    size: of a truncation
    failed: it was refused
    """

    op: str
    path: str
    to: str = ""
    at: int = 0
    data: str = ""
    size: int = 0
    failed: bool = False


class FaultyRun(Struct, frozen=True):
    """How a run ended, and what it changed."""

    done: Done
    changes: list[Change]


def run_with(
    fault: Fault,
    *argv: str,
    home: HomeDir,
    code: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    root: Path | None = None,
) -> FaultyRun:
    """Run `cru` to its end, or `code` in its place. Changes count below `root`, by default cru's home."""
    record = home.path.parent / "changes.jsonl"
    record.unlink(missing_ok=True)
    home.cru.mkdir(parents=True, exist_ok=True)
    plan: dict[str, Any] = {
        "root": str(root or home.cru),
        "record": str(record),
        "code": code,
        **msgspec.to_builtins(fault),
    }
    run = subprocess.run(
        [sys.executable, "-P", str(CHILD), msgspec.json.encode(plan).decode(), *argv],
        cwd=home.project, env={**home.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    changes = [msgspec.json.decode(line, type=Change) for line in record.read_bytes().splitlines()]
    return FaultyRun(
        Done(run.returncode, run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")), changes
    )


# power cuts ------------------------------------------------------------------------------------------------------------------------


class Disk(Struct):
    """Files and folders as a disk holds them, by their paths below a root."""

    files: dict[str, bytes]
    folders: set[str]

    @classmethod
    def read(cls, root: Path) -> Disk:
        paths = sorted(root.rglob("*"))
        files = {str(path.relative_to(root)): path.read_bytes() for path in paths if path.is_file()}
        return cls(files, {str(path.relative_to(root)) for path in paths if path.is_dir()})

    def write(self, root: Path) -> None:
        """Make the folder anew."""
        shutil.rmtree(root, ignore_errors=True)
        for folder in (".", *sorted(self.folders)):
            (root / folder).mkdir(parents=True)
        for path, data in self.files.items():
            (root / path).write_bytes(data)


def cut_power(before: Disk, changes: Sequence[Change], keeps: Callable[[str], bool]) -> Disk:
    """The disk after a cut behind the last of `changes`. What was synced is there. Of what was not, the changes of those files are there
    for which `keeps` holds, since a disk writes files in any order; the names in a folder are kept or lost together, as
    `keeps("folder/")` says. Syncing a new file makes its name durable, too, as ext4, xfs and btrfs do."""
    files = {path: bytearray(data) for path, data in before.files.items()}
    folders = set(before.folders)
    for number, change in enumerate(changes):
        if change.op != "sync" and (_is_synced(change, changes[number + 1 :]) or keeps(_owner(change))):
            _apply(change, files, folders)
    return Disk({path: bytes(data) for path, data in files.items()}, folders)


def disks_after(before: Disk, changes: Sequence[Change]) -> Iterator[tuple[str, Disk]]:
    """What a disk may hold after a cut behind any step: nothing that was not synced, all of it, all but one file's or only one file's."""
    seen: list[Disk] = []
    for end in range(1, len(changes) + 1):
        done = changes[:end]
        for name, keeps in _choices({_owner(change) for change in done if change.op != "sync"}):
            disk = cut_power(before, done, keeps)
            if disk not in seen:
                seen.append(disk)
                yield f"after step {end} ({changes[end - 1].op} {changes[end - 1].path}), {name}", disk


def _choices(owners: Iterable[str]) -> Iterator[tuple[str, Callable[[str], bool]]]:
    yield "nothing more", lambda _: False
    yield "all of it", lambda _: True
    for owner in sorted(owners):
        yield f"without {owner}", owner.__ne__
        yield f"only {owner}", owner.__eq__


def _owner(change: Change) -> str:
    """The file, or the folder with a slash, that a change is one of."""
    if change.op in ("write", "truncate"):
        return change.path
    return f"{Path(change.path).parent}/"


def _is_synced(change: Change, later: Sequence[Change]) -> bool:
    path = change.path
    for after in later:
        if after.op == "rename" and after.path == path:
            path = after.to  # the file is called so now
        if after.op != "sync":
            continue
        if change.op in ("write", "truncate") and after.path == path:
            return True
        if change.op == "create" and after.path in (path, str(Path(change.path).parent)):
            return True
        if change.op == "mkdir" and (after.path == path or after.path.startswith(f"{path}/")):
            return True
        if change.op in ("rename", "link", "unlink", "rmdir") and after.path == str(
            Path(change.to or change.path).parent
        ):
            return True
    return False


def _apply(change: Change, files: dict[str, bytearray], folders: set[str]) -> None:
    match change.op:
        case "create":
            files.setdefault(change.path, bytearray())
        case "write" if change.path in files:
            data, content = base64.b64decode(change.data), files[change.path]
            content.extend(bytes(max(0, change.at - len(content))))
            content[change.at : change.at + len(data)] = data
        case "truncate" if change.path in files:
            del files[change.path][change.size :]
        case "rename" if change.path in files:
            files[change.to] = files.pop(change.path)
        case "rename" if change.path in folders:
            _move_folder(change, files, folders)
        case "link" if change.path in files:
            files[change.to] = files[change.path]
        case "unlink":
            files.pop(change.path, None)
        case "mkdir":
            folders.add(change.path)
        case "rmdir":
            folders.discard(change.path)


def _move_folder(change: Change, files: dict[str, bytearray], folders: set[str]) -> None:
    for path in [path for path in folders if path == change.path or path.startswith(f"{change.path}/")]:
        folders.remove(path)
        folders.add(change.to + path.removeprefix(change.path))
    for path in [path for path in files if path.startswith(f"{change.path}/")]:
        files[change.to + path.removeprefix(change.path)] = files.pop(path)
