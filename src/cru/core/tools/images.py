"""What `read` gives of an image: the image, and a line about it. Loaded with the first one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cru.core.base.files.regular import open_regular
from cru.core.base.values.image_formats import identify
from cru.core.base.values.messages import Image
from cru.core.conversations import StoreUnwritable
from cru.core.conversations.images import MOST_BYTES, BadImage, check_image, keep_image
from cru.core.tools.paths import os_failure
from cru.core.tools.protocol import ToolError, ToolResult


def read_image(path: Path, name: str, folder: Path) -> ToolResult | None:
    """None: what is in it is no image. Raises ToolError."""
    try:
        with open(open_regular(path), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise os_failure("read", name, error) from error
    return show_image(data, name, folder) if identify(data) is not None else None


def show_image(data: bytes, name: str, folder: Path) -> ToolResult:
    """An image as a result; the context keeps it. Raises ToolError."""
    try:
        image = check_image(data, name)
        keep_image(folder, data, image)
    except (BadImage, StoreUnwritable) as error:
        raise ToolError(f"`{name}` cannot be shown: {error.message}", error.hint) from error
    return ToolResult(f"[image {image.about}]", images=(image,))


def keep_images(contents: Mapping[str, bytes], folder: Path) -> tuple[Image, ...]:
    """Those that models take, by their names; the text of the result tells where each of them is saved in any case."""
    images: list[Image] = []
    for name, data in contents.items():
        try:
            image = check_image(data, name)
            keep_image(folder, data, image)
        except (BadImage, StoreUnwritable):
            continue
        images.append(image)
    return tuple(images)
