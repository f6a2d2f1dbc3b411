"""`cru` on a real pseudo-terminal of 80 × 24, as a person sits at it.

with pty(home=here) as terminal:
    terminal.expect("> ")
    terminal.line("hello")
    terminal.expect("hi")
    assert terminal.eof() == 0
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import select
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.kit.forked import run_process
from tests.kit.home import HomeDir
from tests.kit.run import program
from tests.kit.screen import Screen
from tests.kit.waiting import PATIENCE

ROWS, COLUMNS = 24, 80
KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "pagedown": "\x1b[6~",
    "backspace": "\x7f",
}


class Terminal:
    """A person's side of the terminal. `expect` looks only at what was printed after the previous match."""

    def __init__(
        self, argv: list[str], env: Mapping[str, str], cwd: Path, prompt: str, rows: int = ROWS, columns: int = COLUMNS,
        typed: str = "",
    ) -> None:  # fmt: skip
        self._master, slave = os.openpty()
        try:
            termios.tcsetwinsize(slave, (rows, columns))
            os.write(self._master, typed.encode())
            self._popen = run_process(
                argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, takes_terminal=True
            )
        finally:
            os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._screen = Screen(rows, columns)
        self._seen = 0
        self._awaited_prompt = prompt

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def descriptor(self) -> int:
        """The end of the terminal at which the person sits."""
        return self._master

    @property
    def text(self) -> str:
        """All that was ever printed, without escape sequences."""
        return self._screen.plain

    def screen(self) -> str:
        """What stands on the screen now."""
        self._pump(0.02)
        return "\n".join(self._screen.lines())

    def expect(self, text: str, timeout: float = PATIENCE) -> None:
        """Wait until the text is printed; AssertionError shows the screen. A blank between words may be a line break, because cru breaks
        its lines at words. The chat's prompt counts once the line editor has drawn it: then the chat is in its context."""
        end = time.monotonic() + timeout
        pattern = re.compile(re.sub(r"(?<=\S)\\ (?=\S)", r"(?: |\n *)", re.escape(text)))
        if text == self._awaited_prompt:
            while self._screen.editor_at is None and time.monotonic() < end and self._pump(0.05):
                pass
            self._seen, self._awaited_prompt = max(self._seen, self._screen.editor_at or 0), ""
        while (match := pattern.search(self._screen.plain, self._seen)) is None:
            left = end - time.monotonic()
            if left <= 0 or not self._pump(min(left, 0.05)):
                if match := pattern.search(self._screen.plain, self._seen):
                    break
                raise AssertionError(f"no {text!r} on the terminal:\n" + "\n".join(self._screen.lines()))
        self._seen = match.end()

    def expect_screen(self, text: str, timeout: float = PATIENCE) -> None:
        """Wait until the text stands on the screen (for programs that redraw parts of lines)."""
        end = time.monotonic() + timeout
        while text not in self.screen():
            if time.monotonic() > end:
                raise AssertionError(f"no {text!r} on the screen:\n{self.screen()}")

    def expect_silence(self, seconds: float, timeout: float = PATIENCE) -> None:
        """Wait until nothing has been printed for so long."""
        end = time.monotonic() + timeout
        printed, since = len(self.text), time.monotonic()
        while time.monotonic() < since + seconds:
            self._pump(0.05)
            if len(self.text) != printed:
                printed, since = len(self.text), time.monotonic()
            if since > end:
                raise AssertionError(f"it does not stop printing:\n{self.screen()}")

    def send(self, text: str) -> None:
        """Type characters."""
        self.send_bytes(text.encode())

    def send_bytes(self, data: bytes) -> None:
        """Type bytes, which need not be whole characters."""
        while data:
            data = data[os.write(self._master, data) :]

    def is_cooked(self) -> bool:
        """Whether the terminal shows what is typed and hands over lines, as a shell leaves it."""
        local: int = termios.tcgetattr(self._master)[3]
        cooked = termios.ICANON | termios.ECHO | termios.ISIG
        return local & cooked == cooked

    def line(self, text: str) -> None:
        """Type a line and press Enter."""
        self.send(text + "\r")

    def paste(self, text: str) -> None:
        """Paste as terminals do: between marks, if the program has asked for them by now."""
        self._pump(0.02)
        self.send(f"\x1b[200~{text}\x1b[201~" if self._screen.marks_pastes else text)

    def marks_pastes(self) -> bool:
        """Whether the program wants what is pasted between marks."""
        self._pump(0.02)
        return self._screen.marks_pastes

    def key(self, name: str) -> None:
        """Press a key: a name from KEYS, or c-x for Control and a letter."""
        self.send(chr(ord(name[2:]) & 0x1F) if name.startswith("c-") else KEYS[name])

    def resize(self, rows: int, columns: int) -> None:
        """The window changes its size; what stands on the screen is forgotten."""
        plain, marks_pastes = self._screen.plain, self._screen.marks_pastes
        self._screen = Screen(rows, columns)
        self._screen.plain, self._screen.marks_pastes = plain, marks_pastes
        termios.tcsetwinsize(self._master, (rows, columns))

    def eof(self, timeout: float = PATIENCE) -> int:
        """Press Ctrl-D and wait for the end."""
        self.key("c-d")
        return self.wait(timeout)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for the end; the exit code, negative if a signal ended it."""
        end = time.monotonic() + timeout
        while self._pump(0.05):
            if time.monotonic() > end:
                raise AssertionError(f"still running after {timeout} s:\n{self.screen()}")
        return self._popen.wait()

    def hang_up(self, timeout: float = PATIENCE) -> int:
        """Take the terminal away, as when its window is closed; the exit code."""
        os.close(self._master)
        self._master = -1
        return self._popen.wait(timeout)

    def close(self) -> None:
        """Hang up; whatever still runs is killed."""
        self._popen.kill()
        self._popen.wait()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _pump(self, seconds: float) -> bool:
        """Take in what is printed within that time; False at the end of the program's output."""
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:  # that of a terminal without programs
                raise
            return False
        self._screen.feed(self._decoder.decode(data))
        if self._screen.answers:
            answers, self._screen.answers = self._screen.answers, ""
            self.send(answers)
        return True


def pty(
    *argv: str,
    home: HomeDir,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    script: Path | None = None,
    is_first_prompt_enough: bool = False,
    rows: int = ROWS,
    columns: int = COLUMNS,
    typed: str = "",
) -> Terminal:
    """Start `cru` on a terminal; use it in a `with` block. `is_first_prompt_enough`: the prompt that is drawn before the chat is loaded
    counts, too; `typed`: what is typed before the start."""
    environ = {**home.env, "TERM": "xterm-256color", **(env or {})}
    prompt = "" if is_first_prompt_enough else "> "
    return Terminal([str(script or program()), *argv], environ, cwd or home.project, prompt, rows, columns, typed)
