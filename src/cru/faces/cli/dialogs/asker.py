"""The asker at the terminal: questions on /dev/tty, one at a time, whether for leave or of a plugin."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from cru.core.base.values.visible import fold_blanks, visible, whole_lines
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject, ReplyScope
from cru.core.tools.preview import cut_line, cut_preview
from cru.faces.cli.console import break_at_words, is_dumb_terminal
from cru.faces.cli.dialogs.answers import (
    CHOICES,
    END_OF_INPUT,
    ENTER_ENDS,
    ESCAPE,
    HELP,
    KEEP_FOR,
    KEEPING,
    LIMIT_HELP,
    LINE_HELP,
    MORE,
    WORDS,
    describe_choices,
    is_line,
    is_no_text,
    is_stray,
    read_key,
    read_reply,
    takes_keys,
)
from cru.faces.cli.dialogs.stray_input import StrayInput
from cru.faces.cli.terminal.keyboard import foreground_group, hide_prompt, input_mode, typed_text

T = TypeVar("T")
HELP_HANG = 8
"""Columns from a key to what it does, in the help."""
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
        """A plugin's dialog, as `cru.core.api.dialogs.port.Dialogs` says."""
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
        text = render_question(subject, self._own)
        while True:
            self._write(text)
            was_typing = await self._stray.settle()
            by_key = takes_keys(subject) and not was_typing  # who was typing ends an answer with Enter
            # \0 is a blank at which no row ends: within a choice, and before the prompt
            choices = describe_choices(subject, by_key, _has_more(subject)).replace(" ", "\0").replace(",\0", ", ")
            hint = f"  {choices}\0> "
            if was_typing and takes_keys(subject):
                hint = f"  {ENTER_ENDS}\n{hint}"
            hint = self._own(hint).replace("\0", " ")
            answer = await (self._take_key(subject, hint) if by_key else self._take_line(subject, hint))
            if answer is None or isinstance(answer, PermissionReply):
                return answer
            text = answer

    async def _take_line(self, subject: PermissionSubject, hint: str) -> PermissionReply | str | None:
        """An answer that Enter ends; a text: why it is none; None: the terminal has gone."""
        data = await self._line(hint)
        return None if data is None else await self._answer_line(data, subject)

    async def _answer_line(self, data: bytes, subject: PermissionSubject) -> PermissionReply | str | None:
        line = data.decode("utf-8", "replace")
        reply = read_reply(line, bool(subject.rule), subject.is_limit)
        if reply is not None:
            return "  an answer is one line, this came with more\n" if await self._stray.is_pasted(data) else reply
        if line.strip().lower() == "e" and subject.rule and subject.editing is not None:
            return await self._edit(subject)
        if line.strip().lower() == MORE and _has_more(subject):
            return await self._show_all(subject)
        self._stray.add(data if is_stray(line) else b"")
        return (
            self._own(_help(subject, False), HELP_HANG)
            if line.strip() == "?"
            else self._own(_not_understood(line, subject))
        )

    async def _take_key(self, subject: PermissionSubject, hint: str) -> PermissionReply | str | None:
        """The same of one key."""
        self._write(hint)
        data = await self._stray.read_keys()
        while is_no_text(data) and not is_line(data) and data not in (ESCAPE, END_OF_INPUT):
            data = await self._stray.read_keys()
        if data == END_OF_INPUT:
            return None
        if is_line(data):
            self._write(f"{_shown(data.decode('utf-8', 'replace').strip())}\n")
            return await self._answer_line(data, subject)
        key = read_key(data)
        self._write(f"{WORDS.get(key, '') if _has_effect(key, subject) else ''}\n")
        if key == "r":
            reason = await self._type("the reason, for the model")
            return "" if reason is None else PermissionReply("no", reason.strip())
        if key == "e" and subject.rule and subject.editing is not None:
            return await self._edit(subject)
        if key == MORE and _has_more(subject):
            return await self._show_all(subject)
        if key == "?":
            return self._own(_help(subject, True), HELP_HANG)
        reply = read_reply(key, bool(subject.rule))
        if reply is not None:
            return reply
        self._stray.add(b"" if key in CHOICES else data)
        return self._own(_not_understood(typed_text(data), subject))

    async def _show_all(self, subject: PermissionSubject) -> str:
        """Show what the question leaves out, a screenful at a time; returns the question, to be put again."""
        text = _whole(subject)
        if is_dumb_terminal():
            self._write("".join(f"  {line}\n" for line in text.split("\n")))
        else:
            from cru.faces.cli.dialogs.line_editor import LineEditor
            from cru.faces.cli.dialogs.pager import show_paged

            await show_paged(LineEditor(self._fd), text, "plain")
        return render_question(subject, self._own)

    async def _edit(self, subject: PermissionSubject) -> PermissionReply | str | None:
        """The rule as the person wants it, and for how long; back to the question for Esc, and for what is none of that."""
        assert subject.editing is not None
        text = subject.editing.proposal
        while True:
            text = (await self._type("the rule, Esc goes back", text) or "").strip()
            if not text:
                return ""
            problem = subject.editing.why_not(text)
            if not problem:
                break
            self._write(self._own(f"  {_shown(problem)}\n"))
        choice = await self._read_scope()
        return "" if choice == "no" else PermissionReply(choice, rule=text)

    async def _read_scope(self) -> ReplyScope:
        """For how long an edited rule is kept; "no" for Esc, too."""
        while True:
            self._write(self._own(f"  {KEEP_FOR} > "))
            data = await self._stray.read_keys()
            word = data.decode("utf-8", "replace").strip().lower()
            choice = "no" if data in (ESCAPE, END_OF_INPUT) else CHOICES.get(word, "once")
            if choice != "once":
                self._write(f"{choice}\n")
                return choice
            self._write(f"\n  `{_shown(typed_text(data).strip()[:40])}` is none of these\n")

    async def _type(self, hint: str, default: str = "") -> str | None:
        """A line that can be edited; where the terminal cannot do that, a plain one, in which an empty one is the default."""
        if is_dumb_terminal():
            data = await self._line(f"  {hint}{f' [{_shown(default)}]' if default else ''} > ")
            return None if data is None else data.decode("utf-8", "replace").strip() or default
        from cru.faces.cli.dialogs.line_editor import LineEditor

        return await LineEditor(self._fd).read(hint, default)

    def _own(self, text: str, hang: int = 2) -> str:
        """Break cru's own lines at words. Their further rows are indented more than any line of a question, so that none looks like one."""
        return break_at_words(text, self._fd, hang)

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode("utf-8", "replace"))

    async def _line(self, hint: str) -> bytes | None:
        """One line behind the hint, read without blocking the loop; None at end of file."""
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

        with input_mode(self._fd, "lines"):
            self._write(hint)
            loop.add_reader(self._fd, ready)
            try:
                data = await done
            finally:
                loop.remove_reader(self._fd)
        return data if b"\n" in data else None


def render_question(subject: PermissionSubject, own: Callable[[str], str] = str) -> str:
    """What the person reads. Of every text of the model all is shown, by lines behind a mark or on one line, so that it can neither hide a
    part of itself nor look like another question. `own` prepares the lines that are cru's."""
    keep = f"\n  s, p and a keep the rule  {_shown(subject.rule)}" if subject.rule else ""
    seen = _preview(getattr(subject, "preview", ""))
    who = f"[sub-agent {_shown(subject.agent)}] " if subject.agent else ""
    head = f"{who}{_shown(subject.tool)}{_detail(subject.detail)}"
    return f"\r\n{head}\n{seen}{_change(subject)}{_surroundings(subject)}{own(f'  {_shown(subject.why)}{keep}')}\n"


def _surroundings(subject: PermissionSubject) -> str:
    """The parts of a command, and where it runs."""
    folder = f"  in {_shown(subject.folder)}\n" if subject.folder else ""
    return folder + "".join(f"  - {cut_line(part)}\n" for part in subject.parts)


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
    """What will be written or sent, as far as there is room, each line behind a bar: no line of it looks like the question's own."""
    return "".join(f"  | {line}\n" for line in cut_preview(text))


def _has_more(subject: PermissionSubject) -> bool:
    """Whether the question leaves something out, or is so long that its beginning may have left the screen."""
    shown = "\n".join(cut_preview(subject.preview))
    return len(subject.detail) > LONG_DETAIL or shown != subject.preview.rstrip("\n")


def _whole(subject: PermissionSubject) -> str:
    """All that the question is about, each line behind the mark that it has there."""
    detail = [f": {line}" for line in whole_lines(subject.detail.strip("\n"))]
    preview = subject.preview.rstrip("\n").split("\n") if subject.preview.strip() else []
    return "\n".join([*detail, *(f"| {visible(fold_blanks(line))}" for line in preview)])


def _help(subject: PermissionSubject, by_key: bool) -> str:
    """What each choice means."""
    if subject.is_limit:
        return "".join(f"  {key:<7} {what}\n" for key, what in LIMIT_HELP.items())
    rows = (HELP if by_key else LINE_HELP).items()
    lines = [f"  {key:<7} {what}\n" for key, what in rows if _has_effect(key, subject)]
    return "".join(lines) + ("" if subject.rule else f"  s, p, a are missing: {_why_once(subject)}\n")


def _has_effect(key: str, subject: PermissionSubject) -> bool:
    if key == MORE:
        return _has_more(subject)
    return key not in KEEPING or bool(subject.rule and (key != "e" or subject.editing is not None))


def _why_once(subject: PermissionSubject) -> str:
    return _shown(subject.why_once) or "no rule can stand for this call alone"


def _not_understood(line: str, subject: PermissionSubject) -> str:
    """Why the question is put again."""
    words = line.strip()
    if not words:
        return "  nothing was answered\n"
    if words.lower() in CHOICES and not subject.is_limit and not subject.rule:
        return f"  this answer cannot be kept: {_why_once(subject)}\n"
    shown = f"`{_shown(words[:40])}{'…' if len(words) > 40 else ''}`"
    if words.lower() in CHOICES:
        return f"  {shown} came in one go, as what is pasted does: it is no answer without Enter\n"
    return f"  {shown} is no answer\n"


def open_terminal_asker() -> TerminalAsker | None:
    """An asker on /dev/tty, None if it does not open."""
    try:
        return TerminalAsker(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
