"""Outputs too long for the model: saved whole to a file, with a stub in their place; removed on demand and by age."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.core.base.files import unsynced
from cru.core.base.files.regular import make_private_folder, write_all
from cru.core.base.values.messages import Entry
from cru.core.conversations.entries import now
from cru.core.tools.protocol import OUTPUT_FOLDER, ToolSettings


def is_too_long(content: str, settings: ToolSettings) -> bool:
    return len(content) > settings.tool_output_cache_threshold


def save_output(
    folder: Path, call_id: str, tool: str, content: str, settings: ToolSettings, summary: str | None
) -> tuple[str, str]:
    """Save `content` under folder/tool_cache; the stub that the model sees instead, and the file's path ("" if it could not be saved).
    `summary` replaces the preview.

    If it cannot be saved, the stub says so and holds the preview: a full disk does not end a turn.
    """
    shown = f"Summary:\n{summary}" if summary is not None else _preview(content, settings.tool_cache_preview_chars)
    size = f"{len(content):,} characters, {_lines(content):,} lines"
    try:
        path = _save(folder / OUTPUT_FOLDER, _file_name(tool, call_id), content)
    except OSError as error:
        why = f"[The output of `{tool}` is too long to show ({size}) and could not be saved: {error.strerror}.]"
        return f"{why}\n\n{shown}", ""
    stub = (
        f"[The output of `{tool}` is too long to show ({size}). The call ran; all of its output is saved in\n"
        f"{path}\n"
        f"Do not call `{tool}` again to see the rest: use `read` with this file_path, `offset` and `limit`, "
        f"or `grep` with this path.]\n\n{shown}"
    )
    return stub, str(path)


def _preview(content: str, limit: int) -> str:
    """The first lines that fit into `limit` characters; a longer first line is cut."""
    if len(content) <= limit:
        return content
    head = content[:limit]
    end = head.rfind("\n") + 1 or limit
    left = len(content) - end
    return f"It begins:\n{head[:end].rstrip()}\n[… {left:,} more characters in the file]"


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _file_name(tool: str, call_id: str) -> str:
    """Call ids come from a provider: nothing of them may leave the folder."""
    name = f"{tool}_{call_id}"[:100]
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)


def _save(folder: Path, name: str, content: str) -> Path:
    make_private_folder(folder)
    path, count = folder / f"{name}.txt", 1
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:  # providers reuse call ids; an earlier stub still points at the earlier file
            count += 1
            path = folder / f"{name}-{count}.txt"
    try:
        write_all(fd, content.encode("utf-8", "replace"))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    unsynced.add(os.fspath(path))
    return path


DAY = 86400


def clear_outputs(context: Path) -> int:
    """Remove every saved output of the context in that folder; how many. Raises OSError."""
    with _open_folder(context) as fd:
        names = [name for name, _ in _list_files(fd)]
        return _remove(fd, names)


def clean_outputs(context: Path, days: int, visible: Callable[[], Iterable[Entry]]) -> int:
    """Remove those older than `days` + 1 days; how many. One that an entry of that time still names stays: `visible` gives the entries,
    and is asked only if something is that old. Raises OSError."""
    limit = now() - (days + 1) * DAY
    with _open_folder(context) as fd:
        old = [name for name, written in _list_files(fd) if written < limit]
        if not old:
            return 0
        recent = "\n".join(f"{e.content}\n{e.metadata}" for e in visible() if e.timestamp >= limit)
        return _remove(fd, [name for name in old if name not in recent])


@contextmanager
def _open_folder(context: Path) -> Iterator[int]:
    """The folder's descriptor, -1 if there is none. A link is not followed: what it leads to is not ours."""
    try:
        fd = os.open(context / OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield -1
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _list_files(fd: int) -> list[tuple[str, float]]:
    if fd < 0:
        return []
    with os.scandir(fd) as entries:
        files = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return [(name, status.st_mtime) for name, status in files if stat.S_ISREG(status.st_mode)]


def _remove(fd: int, names: Iterable[str]) -> int:
    count = 0
    for name in names:
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue  # another process was faster
        count += 1
    return count
