"""What permissions keep in the home folder: grants.json and trust.json. They are read leniently and never dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from cru.core.base.config.layers import SettingsProblem
from cru.core.base.files import decode_json
from cru.core.base.files.json_file import DamagedFile, load_json, update_json
from cru.core.guard import NotStored
from cru.core.guard.trust.hook_grants import HookGrant

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
    hooks: what hooks gave, never what a person answered
    """

    always: tuple[str, ...] = ()
    projects: dict[str, tuple[str, ...]] = {}
    hooks: tuple[HookGrant, ...] = ()


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


def load_stored(path: Path, kind: type[T]) -> tuple[T, SettingsProblem | None]:
    """The file's content, or an empty one if it is missing. A file that cannot be understood is kept beside, as
    `NAME.corrupt-N`, and reported; one that cannot be read, or is of a newer version, is reported and left alone."""

    def decode(content: bytes) -> T | int:
        version = decode_json(content, Versioned).version
        return version if version > VERSION else decode_json(content, kind)

    try:
        value = load_json(path, decode)
    except DamagedFile as damaged:
        hint = f"{damaged.notice}; its permissions do not count"
        return kind(), SettingsProblem(f"not understood: {damaged.reason}", str(path), hint)
    except OSError as error:
        return kind(), SettingsProblem(
            f"cannot be read: {error.strerror or error}", str(path), "its permissions do not count"
        )
    if isinstance(value, int):
        hint = "update cru; until then its permissions do not count"
        return kind(), SettingsProblem(f"written by a newer version ({value})", str(path), hint)
    return value or kind(), None


def update_stored(path: Path, kind: type[T], change: Callable[[T], T]) -> tuple[T, SettingsProblem | None]:
    """Read, change and replace the file under a lock. Raises NotStored if it cannot be written or must not be."""
    value, problem = kind(), None

    def apply() -> bytes:
        nonlocal value, problem
        value, problem = load_stored(path, kind)
        if problem is not None and path.exists():
            raise NotStored(f"{path}: {problem.message}", problem.hint)
        value = change(value)
        return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"

    try:
        update_json(path, apply)
    except OSError as error:
        raise NotStored(f"{path} cannot be written: {error.strerror}", "check the folder's permissions") from error
    return value, problem
