"""Images on their way to a model: taken in with a prompt, lent to requests (docs/decisions/models.md). Loaded with the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from cru.core.base.values.messages import MESSAGE, TOOL_RESULT, Entry, Image, Request
from cru.core.conversations.images import BadImage, check_image, copy_images, keep_image, load_image
from cru.core.events.payloads import Attachment
from cru.core.turn import EngineError
from cru.core.turn.attachments import BadAttachment, read_image_file
from cru.core.turn.history import BYTES_PER_TOKEN, images_of
from cru.core.turn.parts import Parts

HINT = 'name another model (--model), or set `images = true` in [models."NAME"] if it takes them'


class ImagesNotTaken(EngineError):
    code = 2


async def admit_images(parts: Parts, attachments: Sequence[Attachment], model: str = "") -> None:
    """Keep the images of a prompt in the context, before anything of it is logged; `model`: who is asked, "": as configured.

    Raises ImagesNotTaken, BadAttachment, StoreUnwritable, and NoModel."""
    images = [attachment for attachment in attachments if attachment.image is not None]
    if not images:
        return
    resolved = await parts.models.choose(model)
    if not getattr(resolved.model, "takes_images", False):
        raise ImagesNotTaken(f"{resolved.label} takes no images, so {images[0].path} cannot be sent", HINT)
    for attachment in images:
        _keep(parts.store.folder, attachment)


def _keep(folder: Path, attachment: Attachment) -> None:
    image = attachment.image
    assert image is not None
    try:
        if load_image(folder, image) is not None:
            return  # pasted, or sent before
    except BadImage:
        pass  # written anew
    data = read_image_file(attachment.path, Path(attachment.path))
    if check_image(data, image.name).digest != image.digest:
        raise BadAttachment(f"cannot attach {attachment.path}: it was changed meanwhile", "attach it again")
    keep_image(folder, data, image)


def loader(folder: Path, warn: Callable[[str], object] = lambda text: None) -> Callable[[Image], bytes | None]:
    """Gives the images of the context in `folder`; `warn` hears why one cannot be given."""

    def load(image: Image) -> bytes | None:
        why = "its file is gone"
        try:
            data = load_image(folder, image)
            if data is not None:
                return data
        except BadImage as error:
            why = error.message
        warn(f"the image {image.name} is not sent: {why} (images/{image.digest[:12]}… of the context)")
        return None

    return load


def with_images(parts: Parts, request: Request) -> tuple[Request, int]:
    """The request with what gives its images, and by how many bytes these make its body larger than they count in a window."""
    if not any(message.images for message in request.messages):
        return request, 0
    known = parts.history.missing_images

    def warn(text: str) -> None:
        if text not in known:
            known.add(text)
            parts.bus.stream.warn(text)

    load = loader(parts.store.folder, warn)
    images = [image for message in request.messages for image in message.images]
    excess = sum(image.size * 4 // 3 - image.tokens * BYTES_PER_TOKEN for image in images)
    return replace(request, load_image=load), excess


def copy_images_of(entries: Iterable[Entry], source: Path, target: Path) -> None:
    """Keep in the context's folder `target` the images that these entries of `source` name. Raises StoreUnwritable."""
    for entry in entries:
        if entry.entry_type in (MESSAGE, TOOL_RESULT):
            copy_images(source, target, images_of(entry))
