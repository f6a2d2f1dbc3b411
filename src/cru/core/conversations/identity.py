"""Which context it is: what it may be called, and `context_meta.json` with the id that it keeps through renames, when it was made and
when it is to go (see expiry.py)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from errno import ENOENT
from pathlib import Path

import msgspec

from cru.core.base.files import decode_json
from cru.core.base.files.regular import make_private_folder
from cru.core.conversations import BadName, StoreUnreadable, read_if_exists, write_errors
from cru.core.conversations.entries import LOG, LogProblem, new_id, now, short_error

META = "context_meta.json"
ORIGIN = "project"
VERSION = 1
FORKING = ".forking-"
"""How a folder begins to be called that is not a context yet (see forks.py)."""
EMPTY = "was empty, as after a power cut, and was made anew; /undo no longer finds the files that earlier turns changed"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def ensure_session_id(folder: Path, project: str = "") -> tuple[str, tuple[LogProblem, ...]]:
    """The id of the context in `folder`. A missing file is made; chibi's file gets the id added, its own keys stay. A conversation that
    begins in a project keeps its root.

    Where nothing can be written the id holds for this process only, and a problem says so.
    """
    path = folder / META
    try:
        meta = _read(path)
        known = meta.get("session_id")
        if isinstance(known, str) and known:
            return known, ()
        # an earlier version, which did not sync the file, and a power cut
        is_empty = not meta and os.path.isfile(path) and not os.path.getsize(path)
        problems = (LogProblem(META, 0, EMPTY),) if is_empty and os.path.lexists(folder / LOG) else ()
    except UNREADABLE as error:
        meta, is_empty = {}, False
        problems = (LogProblem(META, 0, f"not readable, a new one was made beside it: {short_error(error)}"),)
    session_id = new_id()
    new = {"created_at": now(), **meta, "session_id": session_id, "version": VERSION}
    if project and not meta and not any(os.path.lexists(folder / name) for name in (LOG, "context.json")):
        new[ORIGIN] = project
    try:
        return _write(path, new, replace=bool(meta) or is_empty, broken=bool(problems) and not is_empty), problems
    except OSError as error:
        text = f"cannot be written ({error.strerror}); this context has another session id in every run"
        return session_id, (*problems, LogProblem(META, 0, text))


def find_context(contexts: Path, session: str) -> str:
    """The name of the context that has this session id now, "" if none has."""
    folders = sorted(contexts.iterdir()) if contexts.is_dir() else []
    return next((f.name for f in folders if (f / META).is_file() and known_session_id(f) == session), "")


def known_session_id(folder: Path) -> str:
    """The session id of a context, "" if it has none yet. Raises StoreUnreadable."""
    value = read_meta(folder).get("session_id")
    return value if isinstance(value, str) else ""


def known_origin(folder: Path) -> str:
    """The root of the project that a conversation began in; "" if it began in none, or before that was written down, or if its file
    cannot be read."""
    try:
        value = read_meta(folder).get(ORIGIN)
    except StoreUnreadable:
        return ""
    return value if isinstance(value, str) else ""


def read_meta(folder: Path) -> dict[str, object]:
    """What the file says; {} if there is none or it is broken. Raises StoreUnreadable."""
    try:
        return _read(folder / META)
    except UNREADABLE:
        return {}


def update_meta(folder: Path, new: Mapping[str, int]) -> None:
    """Set keys; 0 takes a key away. The file is there: opening a context makes it. Raises StoreUnwritable, StoreUnreadable."""
    from cru.core.base.files.atomic import replace_file

    kept = {key: value for key, value in read_meta(folder).items() if key not in new}
    with write_errors(folder / META):
        replace_file(
            folder / META,
            msgspec.json.encode({**kept, **{k: v for k, v in new.items() if v}}),
            follow=False,
            keep_mode=False,
        )


def _read(path: Path) -> dict[str, object]:
    """The file as it is; {} if it is missing or empty."""
    data = read_if_exists(path)
    return {} if not data else decode_json(data, dict[str, object])


def _write(path: Path, meta: dict[str, object], *, replace: bool, broken: bool) -> str:
    from cru.core.base.files.atomic import create_file, replace_file, set_aside

    data = msgspec.json.encode(meta)
    if broken:
        set_aside(path, "corrupt")
    if replace:
        replace_file(path, data, follow=False, keep_mode=False)
    elif not create_file(path, data):
        known = _read(path).get("session_id")  # another process was faster
        if known is None:
            raise FileNotFoundError(ENOENT, "it is a link to nothing, or was taken away at once")
        return str(known)
    return str(meta["session_id"])


def make_folder(folder: Path) -> None:
    """The folder of a context, private, with the folders above it. Raises StoreUnwritable."""
    with write_errors(folder):
        make_private_folder(folder)


DEFAULT = "default"
_LONGEST = 200


def is_name(name: str) -> bool:
    """ASCII letters, digits, - and _; no - in front; not "system" in any case; at most 200 characters."""
    plain = name.replace("-", "a").replace("_", "a")
    return (
        plain.isalnum()
        and name.isascii()
        and not name.startswith("-")
        and name.lower() != "system"
        and len(name) <= _LONGEST
    )


def check_name(name: str) -> str:
    """The name itself. Raises BadName."""
    if is_name(name):
        return name
    if name.lower() == "system":
        raise BadName(f"a context cannot be called '{name}'", "the name belongs to the program; choose another one")
    hint = f"use ASCII letters, digits, - and _ (no - in front, at most {_LONGEST} characters)"
    raise BadName(f"not a name for a context: {name!r}", hint)
