"""What was typed in the chat before."""

from __future__ import annotations

import os
from contextlib import suppress

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


class _PromptHistory(FileHistory):
    """What cannot be written is kept in memory, as all of it is: no reason to refuse what was typed."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def open_history(path: str) -> History:
    """Private, and only kept in memory if the file cannot be written."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return _PromptHistory(path)
