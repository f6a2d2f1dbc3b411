"""How other processes end a task: through a FIFO in the context's folder while its session runs, which nobody reads afterwards; then
a command that has outlived its session is ended directly."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from cru.core.agents import FOLDER, TaskError
from cru.core.agents.record import CancelledBy, TaskRecord, TaskStatus, write_record
from cru.core.base.files.regular import make_private_folder
from cru.core.base.process.descent import end_process

LONGEST = 200
"""Bytes of a line, far below what a pipe takes whole."""


def _path(context: Path, owner: int) -> Path:
    return context / FOLDER / f"control.{owner}"


class ControlPipe:
    """The session's end; `on_cancel` gets the ids. Everything belongs to the loop's thread. Raises OSError."""

    def __init__(self, context: Path, on_cancel: Callable[[str], object]) -> None:
        self._path = _path(context, os.getpid())
        self._on_cancel = on_cancel
        self._rest = b""
        make_private_folder(self._path.parent)
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path, 0o600)
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # a writer of our own: it never ends
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[:LONGEST]
        for line in lines:
            self._on_cancel(line.decode("ascii", "replace"))

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        self._path.unlink(missing_ok=True)


def ask_to_cancel(context: Path, owner: int, task_id: str) -> None:
    """Ask the process that runs the task. Raises TaskError if it is gone."""
    try:
        fd = os.open(_path(context, owner), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            raise TaskError(f"no session runs task {task_id} any more") from error
        raise TaskError(f"the session of task {task_id} cannot be asked: {error.strerror}") from error
    try:
        os.write(fd, f"{task_id}\n".encode("ascii", "replace")[:LONGEST])
    except OSError as error:
        raise TaskError(f"the session of task {task_id} cannot be asked: {error.strerror}") from error
    finally:
        os.close(fd)


def end_detached(folder: Path, record: TaskRecord) -> None:
    """End a command that has outlived its session, with all that it started, and record that. Raises TaskError if it is gone, OSError."""
    if not (record.detached and record.pid and end_process(record.pid, record.identity)):
        raise TaskError(f"the command of task {record.id} runs no more")
    record.status, record.ended, record.cancelled_by = TaskStatus.CANCELLED, time.time(), CancelledBy.PERSON
    write_record(folder, record)
