"""Puts a text into the clipboard: by a program that can, else by the terminal."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from cru.core.base.files.search_path import find_program
from cru.core.base.process.capture import ByteCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import AT_ONCE, run_program
from cru.core.commands.errors import NotHere

SECONDS = 5.0
"""That a program may take."""
PROGRAMS = (
    (("wl-copy",), "WAYLAND_DISPLAY"), (("xclip", "-selection", "clipboard"), "DISPLAY"), (("xsel", "-ib"), "DISPLAY"), (("pbcopy",), ""),
    (("clip.exe",), ""),
)  # fmt: skip
"""What takes a text on its standard input, and the variable without which it has no clipboard."""


async def copy_text(text: str) -> str:
    """Return what came of it. Raises NotHere if neither a program nor a terminal takes the text."""
    for argv, needs in PROGRAMS:
        program = find_program(argv[0], os.environ.get("PATH", "")) if not needs or os.environ.get(needs) else None
        if program is None:
            continue
        run = Program((program, *argv[1:]), Path.cwd(), os.environ, text.encode("utf-8", "replace"), linger=0)
        try:
            done = await run_program(run, SECONDS, ByteCapture(1024, 1024), ending=AT_ONCE)
        except StartError:
            continue
        if done.exit_status == 0:
            return f"copied: {len(text):,} characters, by {argv[0]}"
    _ask_terminal(text)
    return f"copied: {len(text):,} characters, by the terminal, if it allows that (OSC 52)"


def _ask_terminal(text: str) -> None:
    code = base64.b64encode(text.encode("utf-8", "replace")).decode()
    try:
        with open("/dev/tty", "w") as terminal:
            terminal.write(f"\x1b]52;c;{code}\x07")
    except OSError as error:
        raise NotHere("there is no terminal to copy by", "`cru -g 1` prints the last answer") from error
