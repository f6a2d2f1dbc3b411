"""What the process is to whoever started it: the three standard streams and the exit status. The streams are safe to write to whatever
they are, and no escape sequence of a stranger reaches a terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar, NoReturn, TextIO


class ExitStatus:
    """What the command ends with (docs/command-line.md); a signal ends it with 128 + its number."""

    DONE, ERROR, USAGE, DENIED, HELD, NO_MODEL = 0, 1, 2, 3, 4, 5
    HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143


_ASCII_MARKS = {code: f"\\x{code:02x}" for code in (*range(32), 127) if code not in (9, 10)}
COLUMN_GAP = 48
"""Blanks between columns, at most."""
MANY_BLANKS = " " * (COLUMN_GAP + 1)


def prepare_streams() -> None:
    """Make the streams usable: a closed one becomes /dev/null (so that no other file is opened under its number), and what
    the locale cannot write is written as an escape."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_null(number, name)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _open_null(number: int, name: str) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def printable(text: str) -> str:
    """Text for a terminal, perhaps a part of one: lines stay lines, other control characters and what cannot be seen are shown instead of
    sent."""
    return _marked(text.replace("\r\n", "\n"), is_continued=True)


def _marked(text: str, is_continued: bool = False) -> str:
    if text.isascii():
        return text.translate(_ASCII_MARKS)
    from cru.core.base.values.visible import mark_hidden

    return mark_hidden(text, is_continued)


def one_line(text: str, limit: int = 0) -> str:
    """The same on one line, with the number of very many blanks in their place; longer than `limit` characters (0 = no limit) it is cut."""
    shown = _marked(text).replace("\n", "\\n").replace("\t", " ")
    if MANY_BLANKS in shown:
        from cru.core.base.values.visible import fold_blanks

        shown = fold_blanks(shown, COLUMN_GAP)
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"


def cut_to_columns(text: str, columns: int) -> str:
    """A line of at most that many columns; wide characters take two."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= columns else set_cell_size(text, max(columns - 1, 1)).rstrip() + "…"


DUMB = ("", "dumb", "unknown")
"""Values of $TERM of terminals that know no escape sequences."""


def is_dumb_terminal() -> bool:
    """Whether the terminal knows no escape sequences."""
    return os.environ.get("TERM", "").lower() in DUMB


def takes_escapes(fd: int) -> bool:
    """Whether escape sequences may be written there: for the cursor, and for colours unless $NO_COLOR is set."""
    return not is_dumb_terminal() and os.isatty(fd)


def takes_styles(fd: int) -> bool:
    """Whether colours and other styles may be written there."""
    return takes_escapes(fd) and not os.environ.get("NO_COLOR")


ERASE_LINE = "\r\x1b[2K"
_drawn_prompt = ""


def draw_prompt(text: str) -> None:
    """A prompt on stderr for the time until the line editor draws its own; whatever else is printed there takes its place."""
    global _drawn_prompt
    _drawn_prompt = text
    write_error(text)


def erase_prompt() -> None:
    """Take away what `draw_prompt` drew, if it still stands there."""
    global _drawn_prompt
    if _drawn_prompt:
        _drawn_prompt = ""
        write_error(ERASE_LINE)


def write_error(text: str) -> None:
    """On stderr, as it is; a reader that has gone does not stop anything."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody can be told


def say(text: str) -> None:
    """A line on stderr."""
    erase_prompt()
    write_error(f"{break_at_words(printable(text), 2)}\n")


def break_at_words(text: str, fd: int, hang: int = 0) -> str:
    """Break lines that are longer than a row of the terminal `fd` at words (`wrap_words`). Anywhere else they stay whole."""
    try:
        columns = os.get_terminal_size(fd).columns
    except OSError:  # no terminal
        return text
    if not columns or (text.isascii() and max(map(len, text.split("\n"))) <= columns):
        return text
    from cru.faces.cli.words import wrap_words

    return wrap_words(text, columns, hang)


def complain(message: str, hint: str = "") -> None:
    """One clear error on stderr, and the next step below it."""
    say("\n  ".join([f"cru: {message}", *hint.splitlines()]))


def await_input(what: str, hint: str) -> None:
    """Wait a second for standard input to begin or end. If nothing comes, report what cru waits for, and go on to read it."""
    import select

    try:
        is_ready = bool(select.select([0], [], [], 1.0)[0])
    except (OSError, ValueError):  # closed: the next reader finds that out
        return
    if not is_ready:
        complain(f"waiting for {what} on standard input", hint)


class StandardOutput:
    """Where results go. Once plugins in Python are there, what they print goes elsewhere (diversion.py).

    fd: the descriptor
    stream: the text stream on it; None: sys.stdout
    """

    fd: ClassVar[int] = 1
    stream: ClassVar[TextIO | None] = None

    @classmethod
    def text(cls) -> TextIO:
        return cls.stream or sys.stdout


def show(text: str) -> None:
    """A result on stdout: as it is into a pipe or file, harmless on a terminal."""
    write(f"{text}\n")


def write(text: str) -> None:
    """The same without an end of line."""
    stream = StandardOutput.text()
    stream.write(printable(text) if stream.isatty() else text)


_printer: Callable[[Callable[[], object]], None] | None = None


def set_printer(printer: Callable[[Callable[[], object]], None] | None) -> None:
    """Who prints above what stands on the terminal: the chat's screen, as long as it is there."""
    global _printer
    _printer = printer


def print_above_prompt(work: Callable[[], object]) -> None:
    """Let `work` print: above the chat's screen, or above the line editor's prompt if one stands on the terminal, else at once."""
    if _printer is not None:
        _printer(work)
        return
    editor = sys.modules.get("prompt_toolkit.application")
    prompt = editor.get_app_or_none() if editor is not None else None
    if editor is not None and prompt is not None and prompt.is_running:
        editor.run_in_terminal(work)
    else:
        work()


class TerminalOutput:
    """Standard output for bytes, each piece written at once. Once it fails nothing more is written: the turn goes on, and is in the log.

    problem: why it failed, "" while all is well or if only the reader has gone
    lost: the problem of any output of this process that nobody has reported yet
    """

    lost: ClassVar[str] = ""

    def __init__(self) -> None:
        self.problem = ""
        self._gone = False
        try:
            StandardOutput.text().flush()  # what was printed before stands before
        except OSError as error:
            self._fail(error)

    def write(self, data: bytes) -> None:
        while data and not self._gone:
            try:
                data = data[os.write(StandardOutput.fd, data) :]
            except BlockingIOError:
                _wait_for_room()
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._gone = True
        if not isinstance(error, BrokenPipeError):
            self.problem = TerminalOutput.lost = error.strerror or str(error)


def _wait_for_room() -> None:
    """Somebody made the pipe non-blocking, and it is full."""
    import select

    select.select([], [StandardOutput.fd], [], 1.0)


def end_startup() -> None:
    """What was loaded stays for good, and from now on garbage is collected again (main.py turned it off)."""
    import gc

    gc.freeze()
    gc.enable()


def leave(code: int) -> NoReturn:
    """Flush and go, without the interpreter's slow farewell: everything that matters is closed already."""
    lost = TerminalOutput.lost
    try:
        StandardOutput.text().flush()
    except (BrokenPipeError, ValueError, AttributeError):
        pass  # the reader has gone, or a plugin has taken the stream away; there is nobody to tell
    except OSError as error:
        lost = error.strerror or str(error)
    if lost:
        complain(f"standard output: {lost}")
        code = code or ExitStatus.ERROR
    if code > 128 and code not in (ExitStatus.HUNG_UP, ExitStatus.INTERRUPTED, ExitStatus.TERMINATED):
        _die_by(code - 128)
    os._exit(code)


def _die_by(number: int) -> None:
    """End by a signal, as a program does that does not handle it: its parent sees which one, and the system may write a core."""
    import signal

    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
