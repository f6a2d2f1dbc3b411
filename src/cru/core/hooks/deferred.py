"""What hooks have to say to the model when no request is near: it waits in the context's folder for the next one, of whichever process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from cru.core.base.files import MAX_BYTES, decode_json
from cru.core.base.files.regular import append_lines, read_regular
from cru.core.hooks.parsing.common import to_json_line

FILE = "hook_context.jsonl"


class DeferredContext:
    """Texts for the next request, one a line of JSON; whoever takes them holds the context. Lines that are none are left out."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def add(self, texts: Iterable[str]) -> None:
        """Keep them at once: the process may end here. Raises OSError."""
        data = b"".join(to_json_line({"text": text}) for text in texts)
        if data:
            append_lines(self._path, data)

    def take(self) -> tuple[str, ...]:
        """All of them, in order; none is left. Raises OSError."""
        try:
            data = read_regular(self._path, MAX_BYTES)
            self._path.unlink()
        except FileNotFoundError:
            return ()
        texts = []
        for line in data.splitlines():
            try:
                texts.append(decode_json(line, _Line).text)
            except msgspec.DecodeError:  # a torn line
                continue
        return tuple(texts)


class _Line(msgspec.Struct, frozen=True):
    text: str
