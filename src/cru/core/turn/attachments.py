"""Files that go with a prompt: texts and images."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from cru.core.base.files.regular import blocking_reason
from cru.core.events.payloads import Attachment
from cru.core.tools.files import IMAGE_SUFFIXES
from cru.core.turn import EngineError

LIMIT = 1024 * 1024
IMAGE_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Pipes that a shell has opened already, as in `--attach <(command)`."""
_NAME = rf"(?:{'|'.join(map(re.escape, IMAGE_SUFFIXES))})"
REFERENCE = rf"(?<!\S)@(?:\"([^\"\n]+{_NAME})\"|(\S+{_NAME}))(?=[.,;:!?)]*(?:\s|$))"
"""`@picture.png` or `@"my picture.png"` in a prompt."""
NOT_READABLE = "images are sent as PNG, JPEG, GIF or WebP; of other files, attach their text"


class BadAttachment(EngineError):
    code = 2


def read_attachment(name: str, cwd: Path) -> Attachment:
    """Read a text file of at most 1 MiB, or what an image is; raises BadAttachment."""
    path = cwd / name
    try:
        if not str(path).startswith(HANDED_OVER) and (why := blocking_reason(str(path))):
            raise BadAttachment(f"cannot attach {name}: {why}")
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)  # the file may have no end
    except OSError as error:
        raise BadAttachment(f"cannot attach {name}: {error.strerror}") from error
    if data.startswith(IMAGE_BEGINNINGS):
        return _read_image(name, path)
    if len(data) > LIMIT:
        raise BadAttachment(f"cannot attach {name}: more than {LIMIT} bytes", "name the file in the prompt instead")
    try:
        return Attachment(str(path), data.decode())  # resuming elsewhere finds the same file
    except UnicodeDecodeError as error:
        raise BadAttachment(
            f"cannot attach {name}: neither UTF-8 text nor an image{_name_format(data)}", NOT_READABLE
        ) from error


def _name_format(data: bytes) -> str:
    from cru.core.base.values.image_formats import name_other

    other = name_other(data)
    return f" that models take ({other})" if other else ""


def _read_image(name: str, path: Path) -> Attachment:
    """The image in a file. Raises BadAttachment."""
    from cru.core.conversations.images import BadImage, check_image

    data = read_image_file(name, path)
    try:
        return Attachment(str(path), "", check_image(data, path.name))
    except BadImage as error:
        raise BadAttachment(f"cannot attach {name}: {error.message}", error.hint) from error


def may_name_image(text: str) -> bool:
    """Whether it is worth a closer look."""
    lowered = text.lower()
    return any(suffix in lowered for suffix in IMAGE_SUFFIXES)


def read_named_images(text: str, folders: Sequence[Path]) -> tuple[Attachment, ...]:
    """Read the images that a prompt names with `@`, each from the first of the folders that has the file. Raises BadAttachment."""
    if "@" not in text or not may_name_image(text):
        return ()
    images: dict[str, Attachment] = {}
    for match in re.finditer(REFERENCE, text, re.IGNORECASE):
        name = os.path.expanduser(match[1] or match[2])
        path = next((folder / name for folder in folders if os.path.isfile(folder / name)), None)
        attachment = read_attachment(str(path), path.parent) if path is not None else None
        if attachment is not None and attachment.image is not None:
            images.setdefault(attachment.image.digest, attachment)
    return tuple(images.values())


def read_image_file(name: str, path: Path) -> bytes:
    """Its bytes, one more than an image may have at most. Raises BadAttachment."""
    from cru.core.conversations.images import MOST_BYTES

    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadAttachment(f"cannot attach {name}: {error.strerror}") from error
