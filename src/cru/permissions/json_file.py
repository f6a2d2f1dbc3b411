"""Small JSON files in the home folder: read leniently, changed under a lock, replaced whole, mode 0600, never dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from cru.config.layers import SettingsProblem
from cru.permissions import NotStored

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1


class Versioned(Struct, frozen=True, kw_only=True):
    """The beginning of every such file."""

    version: int = VERSION


class GrantFile(Versioned, frozen=True):
    """`grants.json`.

    always: rules that hold everywhere
    projects: rules by the absolute root of a project
    """

    always: tuple[str, ...] = ()
    projects: dict[str, tuple[str, ...]] = {}


class HookJudgement(Struct, frozen=True):
    """A person's decision about one hook.

    accepted: it may run
    file: where it is defined, for people
    what: its command, for people
    key: a digest of its definition alone; "" in older records
    files: path -> SHA-256 of each file that it named then
    """

    accepted: bool
    file: str = ""
    what: str = ""
    key: str = ""
    files: dict[str, str] = {}


class TrustFile(Versioned, frozen=True):
    """`trust.json`.

    files: resolved absolute path -> SHA-256 of the accepted content in hexadecimal
    hooks: SHA-256 of a hook and of the files that it names -> the decision about it
    """

    files: dict[str, str] = {}
    hooks: dict[str, HookJudgement] = {}


T = TypeVar("T", bound=Versioned)


def load_json(path: Path, kind: type[T]) -> tuple[T, SettingsProblem | None]:
    """The file's content, or an empty one if it is missing. A file that cannot be understood is kept beside, as
    `NAME.corrupt-N`, and reported; one that cannot be read, or is of a newer version, is reported and left alone."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return kind(), None
    except OSError as error:
        return kind(), SettingsProblem(f"cannot be read: {error.strerror}", str(path), "its permissions do not count")
    try:
        version = msgspec.json.decode(data, type=Versioned).version
        if version > VERSION:
            hint = "update cru; until then its permissions do not count"
            return kind(), SettingsProblem(f"written by a newer version ({version})", str(path), hint)
        return msgspec.json.decode(data, type=kind), None
    except msgspec.MsgspecError as error:
        return kind(), _keep_aside(path, str(error))


def _keep_aside(path: Path, reason: str) -> SettingsProblem:
    from cru.files.atomic import set_aside

    try:
        aside = set_aside(path, "corrupt")
    except OSError as error:
        return SettingsProblem(f"not understood: {reason}; cannot be kept aside: {error.strerror}", str(path))
    return SettingsProblem(f"not understood: {reason}", str(path), f"kept as {aside}; its permissions do not count")


def update_json(path: Path, kind: type[T], change: Callable[[T], T]) -> tuple[T, SettingsProblem | None]:
    """Read, change and replace the file under a lock. Raises NotStored if it cannot be written or must not be."""
    from cru.files.atomic import file_lock, replace_file

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path):
            value, problem = load_json(path, kind)
            if problem is not None and path.exists():
                raise NotStored(f"{path}: {problem.message}", problem.hint)
            value = change(value)
            replace_file(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    except OSError as error:
        raise NotStored(f"{path} cannot be written: {error.strerror}", "check the folder's permissions") from error
    return value, problem
