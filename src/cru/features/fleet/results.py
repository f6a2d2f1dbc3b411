"""Results of a batch as JSON lines: one for each finished item, in the order in which they end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import append_lines, write_all
from cru.features.fleet import FleetError
from cru.features.fleet.records import TaskRow


def result_line(row: TaskRow) -> bytes:
    """{id, line, prompt, status, response, …}: what came of an item."""
    result = msgspec.to_builtins(row.result)
    return msgspec.json.encode({"id": row.id, "line": row.line, "prompt": row.prompt, **result})


class ResultFile:
    """A file of results. What cannot be written to it is kept with the batch. A pipe or a device is written to as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_file = path.is_file() or not path.exists()

    def require_writable(self) -> None:
        """Before anything is run. Raises FleetError."""
        try:
            if self._is_file:
                os.close(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
            elif not os.access(self.path, os.W_OK) or self.path.is_dir():
                raise PermissionError(f"{self.path} is no file that can be written to")
        except OSError as error:
            raise FleetError(
                f"--out {self.path}: {error.strerror or error}",
                "nothing is run; give another --out, or make its folder",
            ) from error

    def begin(self, rows: Iterable[TaskRow]) -> None:
        """Replace it by what is finished already. Raises FleetError."""
        data = b"".join(result_line(row) + b"\n" for row in rows)
        self._write(lambda: replace_file(self.path, data, new_mode=0o666) if self._is_file else self._send(data))

    def add(self, row: TaskRow) -> None:
        """Raises FleetError."""
        data = result_line(row) + b"\n"
        self._write(lambda: append_lines(self.path, data) if self._is_file else self._send(data))

    def _send(self, data: bytes) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(handle, data)
        finally:
            os.close(handle)

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            raise FleetError(
                f"the results cannot be written to {self.path}: {error.strerror or error}",
                "they are kept: the same command with another --out writes them, and runs nothing twice",
            ) from error
