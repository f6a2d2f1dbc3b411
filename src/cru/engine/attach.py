"""Files that a user gives with a prompt (`--attach`)."""

from __future__ import annotations

from pathlib import Path

from cru.engine.errors import EngineError
from cru.events.payloads import Attachment

LIMIT = 1024 * 1024


class BadAttachment(EngineError):
    code = 2


def read_attachment(name: str, cwd: Path) -> Attachment:
    """Read a text file of at most 1 MiB; raises BadAttachment."""
    path = cwd / name
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)  # the file may have no end
    except OSError as error:
        raise BadAttachment(f"cannot attach {name}: {error.strerror}") from error
    if len(data) > LIMIT:
        raise BadAttachment(f"cannot attach {name}: more than {LIMIT} bytes", "name the file in the prompt instead")
    try:
        return Attachment(str(path), data.decode())  # resuming elsewhere finds the same file
    except UnicodeDecodeError as error:
        raise BadAttachment(f"cannot attach {name}: not UTF-8 text", "images are not available yet") from error
