"""A conversation that is copied elsewhere while a run works on it: nothing acts on an entry before the copy has it, too. The one who copies
listens on a socket of this machine; it is asked after each write, and answers when all that was written is there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from cru.core.conversations import StoreUnwritable

COPY, COPIED = b".", b"1"
LONGEST_PATH = 100
"""Bytes of the path of a socket."""


@contextmanager
def socket_path(path: str) -> Iterator[str]:
    """A name for the same socket that is short enough for the system."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


class CopyLink:
    """The way to the one who copies."""

    def __init__(self, path: str) -> None:
        """Raises StoreUnwritable if nobody listens there."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            with socket_path(path) as short:
                self._socket.connect(short)
        except OSError as error:
            self._socket.close()
            raise _error(str(error.strerror or error)) from error

    def copy(self) -> None:
        """Wait until all that is on disk is copied. Raises StoreUnwritable."""
        try:
            self._socket.sendall(COPY)
            answer = self._socket.recv(1)
        except OSError as error:
            raise _error(str(error.strerror or error)) from error
        if answer != COPIED:
            raise _error("another worker has this task by now" if answer else "the worker is gone")

    def close(self) -> None:
        self._socket.close()


def _error(why: str) -> StoreUnwritable:
    return StoreUnwritable(
        f"the conversation cannot be copied to the database of the queue: {why}", "a worker goes on with what is there"
    )
