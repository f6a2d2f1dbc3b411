"""Images in the chat: a path that is dropped or pasted, `@picture.png`, and the clipboard. Loaded with the first one."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from cru.core.base.files.search_path import find_program
from cru.core.base.process.capture import ByteCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import AT_ONCE, run_program
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Image
from cru.core.conversations.images import MOST_BYTES, BadImage, check_image, image_path, keep_image
from cru.core.events.payloads import Attachment
from cru.core.turn.attachments import BadAttachment, read_attachment, read_named_images
from cru.core.turn.images import admit_images
from cru.core.turn.session import Session

SECONDS = 5.0
"""That a program may take to give the clipboard."""
_NAMES = r"png|jpe?g|gif|webp"
_PATH = re.compile(rf"[^\n]+\.(?:{_NAMES})['\"]?", re.IGNORECASE)
_POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $i=[Windows.Forms.Clipboard]::GetImage(); if($i){"
    "$m=New-Object IO.MemoryStream; $i.Save($m,[Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray())}"
)


class ClipboardProgram(Struct, frozen=True):
    """argv: prints the clipboard's image; needs: a variable without which it has no clipboard; is_text: it prints Base64"""

    argv: tuple[str, ...]
    needs: str = ""
    is_text: bool = False


CLIPBOARDS = (
    ClipboardProgram(("wl-paste", "--no-newline", "--type", "image/png"), "WAYLAND_DISPLAY"),
    ClipboardProgram(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"), "DISPLAY"),
    ClipboardProgram(("pngpaste", "-")),
    ClipboardProgram(("powershell.exe", "-NoProfile", "-STA", "-Command", _POWERSHELL), is_text=True),
)


class ClipboardProblem(CruError):
    pass


class ChatImages:
    """Those of one chat, by what stands for them in its input."""

    def __init__(self, session: Session, cwd: Path) -> None:
        self._session, self._folders = session, (cwd, session.parts.place.root)
        self._marks: dict[str, Attachment] = {}
        self._contents: dict[str, bytes] = {}

    def mark_path(self, text: str) -> str:
        """What stands for an image whose path was pasted or dropped; "" if it is no such path."""
        path = _dropped_path(text)
        if path is None:
            return ""
        try:
            attachment = read_attachment(str(path), self._session.parts.place.root)
        except BadAttachment:
            return ""  # the path stands there as it was pasted
        return self._mark(attachment) if attachment.image is not None else ""

    async def mark_clipboard(self) -> str:
        """What stands for the clipboard's image. Raises ClipboardProblem."""
        parts = self._session.parts
        data = await read_clipboard(parts.tool_services.commands.env_of_own_programs(parts.place.root, os.environ))
        try:
            image = check_image(data, "clipboard.png")
        except BadImage as error:
            raise ClipboardProblem(f"the clipboard's image cannot be sent: {error.message}", error.hint) from error
        self._contents[image.digest] = data
        return self._mark(Attachment(str(image_path(self._session.parts.store.folder, image)), "", image))

    def _mark(self, attachment: Attachment) -> str:
        image = attachment.image
        assert image is not None
        size = f"{image.width}x{image.height}"
        mark, number = f"[image {size}]", 1
        while self._marks.setdefault(mark, attachment) != attachment:
            number += 1
            mark = f"[image {size}, {number}]"
        return mark

    async def take_in(self, text: str) -> tuple[Attachment, ...]:
        """The images of a prompt, which the context keeps from now on. Raises what admit_images raises."""
        marked = [attachment for mark, attachment in self._marks.items() if mark in text]
        attachments = tuple(dict.fromkeys([*marked, *read_named_images(text, self._folders)]))
        if not attachments:
            return ()
        session = self._session
        await session.open("startup")
        with session.locked():
            for image in filter(None, (attachment.image for attachment in attachments)):
                self._keep_pasted(image)
            await admit_images(session.parts, attachments)
        return attachments

    def _keep_pasted(self, image: Image) -> None:
        if image.digest in self._contents:
            keep_image(self._session.parts.store.folder, self._contents[image.digest], image)


def _dropped_path(text: str) -> Path | None:
    """The path that a terminal pastes for a file that is dropped on it: quoted, with backslashes, or a file: address."""
    text = text.strip()
    if not _PATH.fullmatch(text):
        return None
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    elif not os.path.exists(text):
        text = re.sub(r"\\(.)", r"\1", text)
    path = Path(text).expanduser()
    return path if path.is_absolute() and path.is_file() else None


def _decode(text: bytes) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


async def read_clipboard(env: Mapping[str, str], which: Callable[[str], str | None] | None = None) -> bytes:
    """The image in the clipboard. Raises ClipboardProblem."""
    which = which or partial(find_program, path=env.get("PATH", os.defpath))
    programs = [
        program for program in CLIPBOARDS if (not program.needs or env.get(program.needs)) and which(program.argv[0])
    ]
    if not programs:
        raise ClipboardProblem(
            "no program is there that reads images from the clipboard",
            "install wl-clipboard, xclip or pngpaste; or give @picture.png",
        )
    program = programs[0]
    output, errors = ByteCapture(2 * MOST_BYTES, 2 * MOST_BYTES), ByteCapture(1000, 1 << 20)
    try:
        argv = (which(program.argv[0]) or program.argv[0], *program.argv[1:])
        ended = await run_program(Program(argv, Path.cwd(), env), SECONDS, output, errors, ending=AT_ONCE)
    except StartError as error:
        raise ClipboardProblem(f"the clipboard cannot be read: {error.message}") from error
    if ended.timed_out:
        raise ClipboardProblem(f"{program.argv[0]} did not give the clipboard within {SECONDS:g} s")
    data = output.content()
    if program.is_text:
        data = _decode(data)
    if ended.exit_status or not data:
        raise ClipboardProblem(
            "the clipboard holds no image", "text is pasted with the terminal's own key, as Ctrl-Shift-V"
        )
    return data
