"""What users typed and nobody has taken yet: prompts and commands, in order."""

from __future__ import annotations

from collections import deque

from cru.engine.commands import split_command
from cru.engine.turn import Prompt

TYPED = ("user", "queue")


class PromptQueue:
    """First in, first out. `closed` means that nothing more is started."""

    def __init__(self) -> None:
        self._waiting: deque[Prompt] = deque()
        self.closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, prompt: Prompt) -> None:
        self._waiting.append(prompt)

    def command(self) -> tuple[str, str] | None:
        """The name and the rest of the command at the head; None if there is none."""
        head = self._waiting[0] if self._waiting and not self.closed else None
        typed = head is not None and head.source in TYPED and not head.literal
        return split_command(head.text) if head is not None and typed else None

    def prompt(self) -> Prompt | None:
        """Take the prompt at the head; None also if a command stands there."""
        return self.take() if self._waiting and not self.closed and self.command() is None else None

    def take(self) -> Prompt:
        return self._waiting.popleft()

    def clear(self) -> int:
        """Let everything go; how many."""
        count = len(self._waiting)
        self._waiting.clear()
        return count
