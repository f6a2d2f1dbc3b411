"""How the terminal hands over what is typed (INPUT_MODES), so that nothing typed at any time spoils the output or is lost."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from typing import Any, Literal

    InputMode = Literal["lines", "kept", "keys", "unshown"]

INPUT_MODES = {
    "lines": (("ICRNL",), ("ICANON", "ECHO", "ISIG"), ()),
    "kept": ((), ("ISIG", "NOFLSH"), ("ICANON", "ECHO")),
    "keys": ((), ("NOFLSH",), ("ICANON", "ECHO", "ISIG")),
    "unshown": (("ICRNL",), ("ICANON", "ISIG", "NOFLSH"), ("ECHO",)),
}
"""What termios sets of input and local flags, and clears of local ones.

lines: shown, line by line, for a question; Ctrl-C throws away what was typed there, and nothing else
kept:  not shown, for whoever reads next; Ctrl-C and Ctrl-Z are signals, and leave what was typed before them
keys:  not shown, for the line editor, which is about to read: Ctrl-C and Ctrl-Z are keys as the others
unshown: line by line, not shown, while a chat starts
"""

MARK_PASTE, LEAVE_PASTE = "\x1b[?2004h", "\x1b[?2004l"
"""What is pasted comes between two marks, so that its lines are no Enter, and a letter of it is no key."""
PASTE_BEGINS, PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"


@contextmanager
def pastes_marked(fd: int) -> Iterator[None]:
    """The terminal marks what is pasted, for the block."""
    os.write(fd, MARK_PASTE.encode())
    try:
        yield
    finally:
        with suppress(OSError):  # the terminal has gone
            os.write(fd, LEAVE_PASTE.encode())


@contextmanager
def input_mode(fd: int, mode: InputMode) -> Iterator[None]:
    """Change it for the block, if `fd` is a terminal."""
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    input_flags, on, off = (sum(getattr(termios, name) for name in names) for names in INPUT_MODES[mode])
    local = before[3] & ~(off | termios.NOFLSH) | on
    block = _ModeBlock(fd, before)
    _blocks.append(block)
    termios.tcsetattr(
        fd, termios.TCSADRAIN, [before[0] & ~termios.ICRNL | input_flags, *before[1:3], local, *before[4:]]
    )
    try:
        yield
    finally:
        at = _blocks.index(block)
        del _blocks[at]
        if at < len(_blocks):  # a block that began later goes on: it restores what this one would have
            _blocks[at].before = block.before
        else:
            try:
                termios.tcsetattr(fd, termios.TCSADRAIN, block.before)
            except termios.error:
                pass  # the terminal has gone


class _ModeBlock:
    """One that goes on. before: the mode to restore; there is one terminal."""

    def __init__(self, fd: int, before: list[Any]) -> None:
        self.fd, self.before = fd, before


_blocks: list[_ModeBlock] = []


def restore_mode() -> None:
    """Restore the terminal in a process that is ended, and throw away what was typed for it: the shell would run it."""
    import termios

    with suppress(termios.error):  # the terminal has gone
        if _blocks:
            termios.tcsetattr(_blocks[0].fd, termios.TCSAFLUSH, _blocks[0].before)
        else:
            termios.tcflush(0, termios.TCIFLUSH)


@contextmanager
def foreground_group(fd: int, group: int) -> Iterator[None]:
    """The terminal's foreground is another process group for the block; nothing changes if that has gone."""

    def give(to: int) -> None:
        # from the background this would stop us
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
        try:
            with suppress(OSError):
                os.tcsetpgrp(fd, to)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    give(group)
    try:
        yield
    finally:
        give(os.getpgrp())


def has_typed(fd: int) -> bool:
    """Whether something waits to be read."""
    import select

    return bool(select.select([fd], [], [], 0)[0])


def ask_line(question: str) -> str:
    """The line that a person types below a question, with its end; "" at the end of the input. What was typed or pasted before the question
    stood there is no answer to it, and is thrown away."""
    import termios

    with suppress(termios.error):  # no terminal
        termios.tcflush(0, termios.TCIFLUSH)
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline()


def read_typed_lines(fd: int) -> bytes:
    """The keys of the lines that wait on a terminal that still hands over lines; Ctrl-D ends one, and is none of its bytes."""
    keys = b""
    while has_typed(fd):
        line = os.read(fd, 4096)
        keys += line if line.endswith(b"\n") else line + b"\x04"
    return keys.replace(b"\n", b"\r")


def hide_prompt() -> AbstractAsyncContextManager[None]:
    """A prompt of the line editor, if one stands on the terminal, goes away for the block, with what is typed in it."""
    editor = sys.modules.get("prompt_toolkit.application")
    return nullcontext() if editor is None else editor.in_terminal()


def editor_text() -> str:
    """What stands in the line editor's prompt, shown or hidden; "" if it does not run."""
    editor = sys.modules.get("prompt_toolkit.application")
    app = editor.get_app_or_none() if editor is not None else None
    return app.current_buffer.text if app is not None and app.is_running else ""


def insert_typed(text: str) -> bool:
    """Insert it in the line editor's prompt, as if it was typed there; False if there is none."""
    editor = sys.modules.get("prompt_toolkit.application")
    app = editor.get_app_or_none() if editor is not None else None
    if app is None or not app.is_running:
        return False
    app.current_buffer.insert_text(text)
    return True


def read_typed(fd: int) -> str:
    """What was typed up to now and nobody has read: its lines, without keys that are no text; "" if there is nothing."""
    data = b""
    try:
        while has_typed(fd) and (more := os.read(fd, 4096)):
            data += more
    except OSError:
        pass  # the terminal has gone
    return typed_text(data)


def typed_text(data: bytes) -> str:
    """The text that these keys make: a key that erases does so, the last Enter is left out."""
    keys, text = data.decode("utf-8", "replace").replace("\r", "\n"), ""
    for key in re.sub(r"\x1b(\[[0-9;]*[@-~]|O.|.)?", "", keys):
        if key in "\x7f\b":
            text = text[:-1]
        elif key == "\n" or key.isprintable():
            text += key
    return text.rstrip("\n")
