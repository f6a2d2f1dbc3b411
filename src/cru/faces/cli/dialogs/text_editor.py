"""A text in the person's own editor, and back."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cru.core.api.dialogs.port import hand_over_control
from cru.faces.cli.console import one_line
from cru.faces.cli.dialogs.line_editor import LineEditor
from cru.faces.cli.terminal.keyboard import input_mode

SUFFIXES = {"markdown": ".md", "json": ".json"}
PATIENCE = 2.0  # seconds that an editor gets to leave
RESTORED = "\x1b[?1049l\x1b[?25h\x1b[0m\r\n"  # the ordinary screen, a cursor, no colours: an editor that was ended leaves neither


async def edit_text(line: LineEditor, content: str, kind: str, hint: str) -> dict[str, Any] | None:
    """{modified}, or None if there is no editor, it failed, or what it left is no text. What was typed is never lost: if the dialog
    ends before the editor does, the file stays and is named."""
    line.write(f"{one_line(hint) or 'a text to edit'}\n")
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        line.write("  there is no editor: set $VISUAL or $EDITOR, such as EDITOR=nano\n")
        return None
    try:
        path = _private(content, SUFFIXES.get(kind, ".txt"))
    except OSError as error:
        line.write(f"  the text cannot be put into a file: {error}\n")
        return None
    kept = True
    try:
        problem = await _run(line, [*words, str(path)])
        if problem:
            line.write(f"  {one_line(words[0])}: {problem}\n")
            return None
        modified = path.read_bytes().decode()
        kept = False
        return {"modified": modified}
    except (OSError, UnicodeDecodeError) as error:
        line.write(f"  what the editor left cannot be read: {error}\n")
        return None
    finally:
        _leave(line, path, content, kept)


def _leave(line: LineEditor, path: Path, content: str, kept: bool) -> None:
    """Take the file away, unless it holds what somebody typed and nobody has got."""
    with suppress(OSError):
        if kept and path.read_bytes() != content.encode("utf-8", "replace"):
            line.write(f"  your text is in {path}\n")
        else:
            path.unlink()


def _private(content: str, suffix: str) -> Path:
    number, name = tempfile.mkstemp(suffix, "cru-")
    with os.fdopen(number, "wb") as file:
        file.write(content.encode("utf-8", "replace"))
    return Path(name)


async def _run(line: LineEditor, words: list[str]) -> str:
    """Run the editor on the terminal; why it is no success, "" if it is one. Ended with this task, it is ended too."""
    fd = line.fd
    with input_mode(fd, "lines"), _deaf():
        async with hand_over_control("editor", "editor"):
            try:
                editor = await asyncio.create_subprocess_exec(
                    *words, stdin=fd, stdout=fd, stderr=fd, preexec_fn=_hearing
                )
            except OSError as error:
                return error.strerror or str(error)
            try:
                code = await editor.wait()
            except asyncio.CancelledError:
                await _end(editor)
                line.write(RESTORED)
                raise
    return f"exit status {code}" if code else ""


async def _end(editor: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        editor.terminate()
        try:
            await asyncio.wait_for(editor.wait(), PATIENCE)
        except TimeoutError:
            editor.kill()
            await editor.wait()


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C on the terminal is for the editor."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.siginterrupt(signal.SIGINT, False)  # as asyncio wants it


def _hearing() -> None:
    """In the child: it hears Ctrl-C again."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
