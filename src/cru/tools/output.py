"""Outputs too long for the model: saved whole to a file, with a stub in their place."""

from __future__ import annotations

import os
from pathlib import Path

from cru.tools.settings import ToolSettings

FOLDER = "tool_cache"


def wants_spill(content: str, settings: ToolSettings) -> bool:
    return len(content) > settings.tool_output_cache_threshold


def spill(
    folder: Path, call_id: str, tool: str, content: str, settings: ToolSettings, summary: str | None
) -> tuple[str, str]:
    """Save `content` under folder/tool_cache; the stub that the model sees instead, and the file's path ("" if it could not be saved).
    `summary` replaces the preview.

    If it cannot be saved, the stub says so and holds the preview: a full disk does not end a turn.
    """
    shown = f"Summary:\n{summary}" if summary is not None else _preview(content, settings.tool_cache_preview_chars)
    size = f"{len(content):,} characters, {_lines(content):,} lines"
    try:
        path = _save(folder / FOLDER, _file_name(tool, call_id), content)
    except OSError as error:
        why = f"[The output of `{tool}` is too long to show ({size}) and could not be saved: {error.strerror}.]"
        return f"{why}\n\n{shown}", ""
    stub = (
        f"[The output of `{tool}` is too long to show ({size}). The call ran; all of its output is saved in\n"
        f"{path}\n"
        f"Do not call `{tool}` again to see the rest: use `read` with this file_path, `offset` and `limit`, "
        f"or `grep` with this path.]\n\n{shown}"
    )
    return stub, str(path)


def _preview(content: str, limit: int) -> str:
    """The first lines that fit into `limit` characters; a longer first line is cut."""
    if len(content) <= limit:
        return content
    head = content[:limit]
    end = head.rfind("\n") + 1 or limit
    left = len(content) - end
    return f"It begins:\n{head[:end].rstrip()}\n[… {left:,} more characters in the file]"


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _file_name(tool: str, call_id: str) -> str:
    """Call ids come from a provider: nothing of them may leave the folder."""
    name = f"{tool}_{call_id}"[:100]
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)


def _save(folder: Path, name: str, content: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path, count = folder / f"{name}.txt", 1
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:  # providers reuse call ids; an earlier stub still points at the earlier file
            count += 1
            path = folder / f"{name}-{count}.txt"
    try:
        with open(fd, "wb") as file:
            file.write(content.encode("utf-8", "replace"))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path
