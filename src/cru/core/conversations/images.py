"""The images of a context: each once, in a folder beside the log, by the SHA-256 of its bytes (docs/decisions/models.md)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import read_regular
from cru.core.base.values.image_formats import identify, name_other
from cru.core.base.values.messages import Image
from cru.core.conversations import ContextError, os_error_text, write_errors

FOLDER = "images"
MOST_BYTES = 3_932_160
"""Base64 makes 5 MiB of them, which is what Anthropic's API takes."""
MOST_PIXELS = 8000
"""Of a side, likewise."""


class BadImage(ContextError):
    """It is none that models take; `message` says why, as the end of a sentence."""

    code = 2


def check_image(data: bytes, name: str) -> Image:
    """What these bytes are. Raises BadImage."""
    known = identify(data)
    if known is None:
        other = name_other(data)
        raise BadImage(
            f"{other + ' is' if other else 'it is'} none of the images that models take",
            "convert it to PNG, JPEG, GIF or WebP",
        )
    if len(data) > MOST_BYTES:
        raise BadImage(
            f"an image may have {MOST_BYTES / 2**20:.2f} MiB, this one has {len(data) / 2**20:.2f} or more",
            "make it smaller",
        )
    if max(known.width, known.height) > MOST_PIXELS:
        raise BadImage(
            f"an image may have {MOST_PIXELS} pixels a side, this one has {known.width}x{known.height}",
            "make it smaller",
        )
    name = "".join(char if char.isprintable() else "?" for char in name)
    digest = hashlib.sha256(data).hexdigest()
    return Image(digest, known.media_type, name, len(data), known.width, known.height)


def keep_image(folder: Path, data: bytes, image: Image) -> None:
    """Keep it in the context's `folder`; what is there already is left. Raises StoreUnwritable."""
    path = image_path(folder, image)
    try:
        if load_image(folder, image) is not None:
            return
    except ContextError:
        pass  # damaged: it is written anew
    with write_errors(path):
        replace_file(path, data, keep_mode=False, follow=False, make_folders=True)


def load_image(folder: Path, image: Image) -> bytes | None:
    """Its bytes, None if its file is gone. Raises BadImage if the file is damaged or cannot be read."""
    try:
        data = read_regular(image_path(folder, image))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadImage(f"it cannot be read: {os_error_text(error)}") from error
    if hashlib.sha256(data).hexdigest() != image.digest:
        raise BadImage("its file is damaged")
    return data


def image_path(folder: Path, image: Image) -> Path:
    """Raises BadImage for what is no digest: it may be the word of a plugin, or of another program's log."""
    if len(image.digest) != 64 or not set(image.digest) <= set("0123456789abcdef"):
        raise BadImage("no file is kept under such a name")
    return folder / FOLDER / image.digest


def copy_images(source: Path, target: Path, images: tuple[Image, ...]) -> None:
    """Keep in the context's folder `target` what `source` has of these. Raises StoreUnwritable."""
    for image in images:
        try:
            data = load_image(source, image)
        except BadImage:
            continue  # who sends the message tells it
        if data is not None:
            keep_image(target, data, image)
