"""The asker at the terminal: a question on /dev/tty, one line as the answer."""

from __future__ import annotations

import asyncio
import os

from cru.permissions.asker import Choice, Reply, Subject

CHOICES: dict[str, Choice] = {
    "y": "once", "yes": "once", "once": "once", "s": "session", "session": "session", "p": "project", "project": "project",
    "a": "always", "always": "always", "n": "no", "no": "no",
}  # fmt: skip


class TerminalAsker:
    """Asks on an open terminal. One question at a time; Ctrl-C ends the turn, not only the question."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def ask(self, subject: Subject) -> Reply | None:
        """The person's answer; None if the terminal is gone."""
        async with self._turn:
            while True:
                self._write(question(subject))
                line = await self._line()
                if line is None:
                    return None
                reply = read_reply(line)
                if reply is not None:
                    return reply

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode())

    async def _line(self) -> str | None:
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
        return data.decode("utf-8", "replace") if b"\n" in data else None


def question(subject: Subject) -> str:
    """What the person reads."""
    detail = f": {subject.detail}" if subject.detail else ""
    keep = f"\n  s, p and a keep the rule  {subject.rule}" if subject.rule else ""
    choices = "y once, s session, p project, a always, n [reason] no" if subject.rule else "y once, n [reason] no"
    return f"\r\n{subject.tool}{detail}\n  {subject.why}{keep}\n  {choices} > "


def read_reply(line: str) -> Reply | None:
    """The answer in a line; None if it is none of the choices."""
    word, _, reason = line.strip().partition(" ")
    choice = CHOICES.get(word.lower())
    return None if choice is None else Reply(choice, reason.strip())


def terminal_asker() -> TerminalAsker | None:
    """An asker on /dev/tty, None if it does not open."""
    try:
        return TerminalAsker(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
