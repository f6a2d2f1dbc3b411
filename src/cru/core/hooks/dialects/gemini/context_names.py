"""`context.fileName` in settings of Gemini CLI: what its guides are called."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from cru.core.base.files import decode_json
from cru.core.base.files.regular import read_regular
from cru.core.hooks.parsing.positions import without_comments

LIMIT_BYTES = 1 << 20


def read_context_names(files: Iterable[Path]) -> tuple[str, ...]:
    """The names in these files; what is no plain name of a file is left out, and so is a file that cannot be read (its hooks are told)."""
    names: list[str] = []
    for file in files:
        try:
            text = without_comments(read_regular(file, LIMIT_BYTES).decode("utf-8", "replace"))
            settings = decode_json(text, dict[str, Any])
        except (OSError, msgspec.DecodeError):
            continue
        context = settings.get("context")
        value = context.get("fileName") if isinstance(context, dict) else None
        listed = value if isinstance(value, list) else [value]
        names += [name for name in listed if isinstance(name, str) and name and "/" not in name and "\0" not in name]
    return tuple(dict.fromkeys(names))
