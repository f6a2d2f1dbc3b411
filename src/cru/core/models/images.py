"""How messages with images go out: to models that take images as such, to others as a text. Loaded with the first image."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence

import msgspec

from cru.core.base.values.messages import Image, Message
from cru.core.models.protocol import ID_CHARACTERS, Say
from cru.core.models.valid_history import valid_id

Load = Callable[[Image], bytes | None]
_encode = msgspec.json.encode

_TEXT_ONLY = (
    "gpt-3.5", "gpt-4-0", "gpt-4-1106", "gpt-4-32k", "o1-mini", "o1-preview", "o3-mini", "claude-2", "claude-instant", "deepseek-chat",
    "deepseek-reasoner", "deepseek-r1", "deepseek-v3", "deepseek-coder", "codellama", "codestral", "qwen2.5-coder", "qwen3-coder",
    "llama3.1", "llama3.3", "llama-3.1", "llama-3.3", "gpt-oss", "smollm2",
)  # fmt: skip
"""Beginnings of the names of models that are known to read text alone; any other may take images, or its server says that it does not."""
_TEXT_ONLY_NAMES = ("gpt-4", "llama3")


def takes_images(name: str) -> bool:
    """As far as it can be known from a model's id, `vendor/` before it or not."""
    short = name.rpartition("/")[2].lower()
    return not short.startswith(_TEXT_ONLY) and short.partition(":")[0] not in _TEXT_ONLY_NAMES


class ImageWriter:
    """Writes messages with images for one adapter.

    takes: whether the model takes images
    load: gives their bytes
    say: hears once that the model gets no images
    """

    def __init__(self, takes: bool, label: str, say: Say) -> None:
        self._takes, self._label, self._say = takes, label, say
        self._told = False
        self.load: Load = lambda _: None

    def chat_message(self, message: Message) -> bytes:
        """For servers of OpenAI's kind: the images of a tool's result, which takes none there, stand behind a line break, as a message of
        the user's (see join_chat)."""
        text, images = self._shown(message)
        parts: list[dict[str, object]] = [
            {"type": "image_url", "image_url": {"url": f"data:{i.media_type};base64,{data}"}} for i, data in images
        ]
        if message.role == "tool":
            result = _encode(
                {"role": "tool", "tool_call_id": valid_id(message.call_id, ID_CHARACTERS), "content": text}
            )
            return b"\n".join([result, _encode(parts)[1:-1]]) if parts else result
        if not parts:
            return _encode({"role": message.role, "content": text})
        texts: list[dict[str, object]] = [{"type": "text", "text": text}] if text.strip() else []
        return _encode({"role": message.role, "content": parts + texts})

    def anthropic_blocks(self, message: Message) -> list[dict[str, object]]:
        """The content of a message, or of a tool's result: images first."""
        text, images = self._shown(message)
        blocks: list[dict[str, object]] = [
            {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
            for image, data in images
        ]
        return [*blocks, {"type": "text", "text": text}] if text.strip() else blocks

    def text(self, message: Message) -> str:
        """For models that never take images."""
        return self._shown(message)[0]

    def _shown(self, message: Message) -> tuple[str, list[tuple[Image, str]]]:
        """The text, which names what is not shown, and what is."""
        lines, shown = [message.content], list[tuple[Image, str]]()
        for image in message.images:
            data = self.load(image) if self._takes else None
            if data is not None:
                shown.append((image, b64encode(data).decode()))
            elif self._takes:
                lines.append(f"[image {image.name}: it is not kept any more]")
            else:
                lines.append(f"[image {image.name}, not shown to this model]")
                self._tell_not_taken()
        return "\n".join(lines), shown

    def _tell_not_taken(self) -> None:
        if not self._told:
            self._told = True
            self._say(
                f'{self._label} takes no images: it reads their names; `images = true` in [models."NAME"] says otherwise'
            )


def join_chat(messages: Sequence[Message], fragments: Sequence[bytes]) -> list[bytes]:
    """The elements of an array: images of tools' results follow the last result of their row, since nothing may stand between results."""
    elements: list[bytes] = []
    waiting: list[bytes] = []
    for message, fragment in zip(messages, fragments, strict=True):
        if message.role != "tool":
            elements += _user_message(waiting)
            waiting = []
        element, _, images = fragment.partition(b"\n")
        elements.append(element)
        if images:
            waiting.append(images)
    elements += _user_message(waiting)
    return elements


def _user_message(images: list[bytes]) -> list[bytes]:
    lead = b'{"type":"text","text":"[images of the tools\' results above]"}'
    return [b'{"role":"user","content":[%b,%b]}' % (lead, b",".join(images))] if images else []
