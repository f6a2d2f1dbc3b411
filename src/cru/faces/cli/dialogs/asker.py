"""The asker at the terminal: questions on /dev/tty, one at a time, whether for leave or of a plugin."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from cru.faces.cli.dialogs.stray_input import StrayInput
from cru.faces.cli.terminal.keyboard import foreground_group, hide_prompt, input_mode
from cru.permissions.gate import PermissionReply, PermissionSubject, ReplyScope
from cru.values.visible import fold_blanks, visible, whole_lines

T = TypeVar("T")
KEEPING = ("s", "p", "a")
CHOICES: dict[str, ReplyScope] = {
    "y": "once", "yes": "once", "once": "once", "s": "session", "session": "session", "p": "project", "project": "project",
    "a": "always", "always": "always", "n": "no", "no": "no",
}  # fmt: skip


HELP = {
    "y": "allow this call, once",
    "s": "keep the rule until this cru ends",
    "p": "keep the rule for this project",
    "a": "keep the rule everywhere",
    "n": "refuse; what follows is the reason, for the model",
    "Ctrl-C": "refuse, and stop the answer",
}
LIMIT_HELP = {
    "y": "go on; what follows is told to the model",
    "n": "stop here; what follows is told to the model beside your next prompt",
    "Ctrl-C": "stop the answer",
}
# A preview comes short already (an edit: 12 lines of the old text and of the new); this holds for whoever made it longer.
PREVIEW_LINES, PREVIEW_COLUMNS = 30, 200
LONG_DETAIL = 2_000
"""Characters from which a question says how long the command is: its beginning may have left the screen."""


class TerminalAsker:
    """Asks on an open terminal. One question at a time; Ctrl-C at a question for leave ends the turn, at a plugin's only the dialog."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()
        self._stray = StrayInput(fd)

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        """The person's answer; None if the terminal is gone."""
        async with self._alone():
            with input_mode(self._fd, "kept"):
                try:
                    return await self._ask(subject)
                except OSError:
                    return None

    async def show(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """A plugin's dialog, as `cru.namespace.dialogs.port.Dialogs` says."""
        from cru.faces.cli.dialogs import plugin_dialogs

        async with self._alone():
            try:
                await self._stray.settle()
            except OSError:
                return None
            return await plugin_dialogs.show_dialog(self._fd, kind, request)

    async def converse(self, work: Callable[[int], Awaitable[T]]) -> T:
        """Let `work` ask what it likes on the terminal, whose descriptor it gets. Raises OSError if the terminal has gone."""
        async with self._alone():
            await self._stray.settle()
            with input_mode(self._fd, "kept"):
                return await work(self._fd)

    @asynccontextmanager
    async def lend(self, group: int) -> AsyncIterator[None]:
        """For the block the terminal belongs to a process group of this session, and hands over lines; Ctrl-C and Ctrl-Z go there."""
        async with self._alone():
            self._stray.take_waiting()
            with input_mode(self._fd, "lines"), foreground_group(self._fd, group):
                yield

    async def free(self) -> None:
        """Wait until no question stands on the terminal."""
        async with self._turn:
            return

    def take_typed(self) -> str:
        """What was typed at questions and answered none of them, once; what went into a prompt that stood there is no part of it."""
        return self._stray.take_kept()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        async with self._turn, hide_prompt():
            try:
                yield
            finally:
                self._stray.hand_over()

    async def _ask(self, subject: PermissionSubject) -> PermissionReply | None:
        """Raises OSError if the terminal has gone."""
        text = render_question(subject)
        while True:
            self._write(text)
            await self._stray.settle()
            with input_mode(self._fd, "lines"):
                self._write(f"  {_choices(subject)} > ")
                data = await self._line()
            if data is None:
                return None
            line = data.decode("utf-8", "replace")
            reply = read_reply(line, bool(subject.rule), subject.is_limit)
            if reply is None:
                self._stray.add(data if is_stray(line) else b"")
                text = _help(subject) if line.strip() == "?" else _not_understood(line, subject)
            elif await self._stray.is_pasted(data):
                text = "  an answer is one line, this came with more\n"
            else:
                return reply

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode("utf-8", "replace"))

    async def _line(self) -> bytes | None:
        """One line, read without blocking the loop; None at end of file."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()
        buffer = bytearray()

        def ready() -> None:
            try:
                data = os.read(self._fd, 4096)
            except OSError:
                data = b""
            buffer.extend(data)
            if (not data or b"\n" in data) and not done.done():
                done.set_result(bytes(buffer))

        loop.add_reader(self._fd, ready)
        try:
            data = await done
        finally:
            loop.remove_reader(self._fd)
        return data if b"\n" in data else None


def render_question(subject: PermissionSubject) -> str:
    """What the person reads. Of every text of the model all is shown, by lines behind a mark or on one line, so that it can neither hide a
    part of itself nor look like another question."""
    keep = f"\n  s, p and a keep the rule  {_shown(subject.rule)}" if subject.rule else ""
    seen = _preview(getattr(subject, "preview", ""))
    who = f"[sub-agent {_shown(subject.agent)}] " if subject.agent else ""
    head = f"{who}{_shown(subject.tool)}{_detail(subject.detail)}"
    return f"\r\n{head}\n{seen}{_change(subject)}  {_shown(subject.why)}{keep}\n"


def _change(subject: PermissionSubject) -> str:
    """Who changed the call, and what the model wanted before: whole, as the call itself."""
    if not subject.changed_by:
        return ""
    before = _detail(subject.before).removeprefix(":") if subject.before else ""
    return f"  changed by {_shown(subject.changed_by)}" + (f"; before:{before}\n" if before else "\n")


def _detail(text: str) -> str:
    """What is asked about, whole: a text of one line behind the tool's name, another one below it, behind colons:
    no line of it looks like one of the preview's."""
    lines = whole_lines(text.strip("\n"))
    if len(lines) == 1:
        shown = f": {lines[0]}" if lines[0] else ""
    else:
        shown = "".join([":", *(f"\n  : {line}" for line in lines)])
    if len(text) > LONG_DETAIL:
        count = text.count("\n") + 1
        shown += f"\n  (all of it: {len(text):,} characters, {count:,} {'line' if count == 1 else 'lines'})"
    return shown


def _shown(text: str) -> str:
    """On one line, line ends as `\\n`."""
    return visible(fold_blanks(text))


def _preview(text: str) -> str:
    """The first lines of what will be written or sent, each behind a bar: no line of it looks like the question's own."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    shown = [f"  | {_cut(line)}\n" for line in lines[:PREVIEW_LINES]]
    rest = len(lines) - PREVIEW_LINES
    if rest > 0:
        shown.append(f"  … {rest} more line{'s' if rest > 1 else ''}\n")
    return "".join(shown)


def _cut(line: str) -> str:
    folded = fold_blanks(line)
    rest = len(folded) - PREVIEW_COLUMNS
    return visible(folded[:PREVIEW_COLUMNS]) + (f" … {rest} more characters" if rest > 0 else "")


def _choices(subject: PermissionSubject) -> str:
    if subject.is_limit:
        return "y [words] go on, ? help, n [words] stop"
    keeps = "s session, p project, a always, " if subject.rule else ""
    return f"y once, {keeps}? help, n [reason] no"


def _help(subject: PermissionSubject) -> str:
    """What each choice means."""
    if subject.is_limit:
        return "".join(f"  {key:<7} {what}\n" for key, what in LIMIT_HELP.items())
    lines = [f"  {key:<7} {what}\n" for key, what in HELP.items() if subject.rule or key not in KEEPING]
    return "".join(lines) + ("" if subject.rule else f"  s, p, a are missing: {_why_once(subject)}\n")


def _why_once(subject: PermissionSubject) -> str:
    return _shown(subject.why_once) or "no rule can stand for this call alone"


def _not_understood(line: str, subject: PermissionSubject) -> str:
    """Why the question is put again."""
    words = line.strip()
    if not words:
        return "  nothing was answered\n"
    if words.lower() in CHOICES and not subject.is_limit:
        return f"  this answer cannot be kept: {_why_once(subject)}\n"
    return f"  `{_shown(words[:40])}{'…' if len(words) > 40 else ''}` is no answer\n"


def read_reply(line: str, keeps: bool = True, is_limit: bool = False) -> PermissionReply | None:
    """The answer in a line; None if it is none of the choices. What allows stands alone: whoever is writing to the model, and does not
    see the question, allows nothing. `keeps`: there is a rule that s, p and a would store."""
    word, _, words = line.strip().partition(" ")
    choice = CHOICES.get(word.lower())
    if CHOICES.get(word.lower().rstrip(",:")) == "no":
        return PermissionReply("no", words.strip())
    if choice is None or (words.strip() and not (is_limit and choice == "once")):
        return None
    if choice != "once" and not keeps:
        return None
    return PermissionReply(choice, words.strip())


def is_stray(line: str) -> bool:
    """Whether a line that is no answer was meant for something else."""
    words = line.strip()
    return words not in ("", "?") and words.lower() not in CHOICES


def open_terminal_asker() -> TerminalAsker | None:
    """An asker on /dev/tty, None if it does not open."""
    try:
        return TerminalAsker(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
