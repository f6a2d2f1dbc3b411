"""Where the prompt comes from: words, a pipe, or both (chibi 0.4, section 1.4 of its contract; newlines are kept)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def read_prompt(words: Sequence[str]) -> tuple[str, str]:
    """The prompt and a warning ("" = none): argv words, blank line, piped text. A terminal on stdin adds nothing."""
    said, odd = _decode(os.fsencode(" ".join(words)), "the prompt")
    if _is_terminal():
        return said, odd
    piped, warning = _decode(_read_all(), "standard input")
    if not said and piped[:1].isspace() and piped.lstrip().startswith("/"):
        return f" {piped.strip()}", odd or warning  # a space before a slash: no command
    piped = piped.strip()
    return "\n\n".join(part for part in (said, piped) if part.strip()), odd or warning


def _is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return True


def _read_all() -> bytes:
    try:
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    except (OSError, ValueError):
        return b""  # standard input is closed: there is nothing to read


def _decode(data: bytes, what: str) -> tuple[str, str]:
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "backslashreplace")
        return text, f"{what} is not UTF-8 (first at byte {error.start}); such bytes are sent as \\xNN"
