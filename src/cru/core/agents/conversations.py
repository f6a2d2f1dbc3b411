"""Conversations of scripts with sub-agents (`cru.sessions`): what is kept of each beside its log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.agents import FOLDER
from cru.core.agents.cards import AgentCard
from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file
from cru.core.conversations.entries import new_id
from cru.core.guard.rules.modes import stricter

RECORD = "session.json"


class ConversationState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class ConversationRecord(Struct, kw_only=True, omit_defaults=True):
    """One conversation; it is kept in the folder of the task that its messages are.

    type: what its script calls it
    agent: the name of its card; the next five say where it differs from that
    tools: globs of those that it may call, of what the card allows; None: all of these
    created, used: seconds since 1970
    parent: the id of the conversation that it was copied from
    """

    id: str = field(default_factory=lambda: new_id()[:8])
    type: str = "chat"
    agent: str = "general"
    model: str = ""
    temperature: float | None = None
    system_prompt: str = ""
    mode: str = ""
    tools: tuple[str, ...] | None = None
    state: ConversationState = ConversationState.ACTIVE
    created: float = field(default_factory=time.time)
    used: float = field(default_factory=time.time)
    parent: str = ""
    version: int = 1

    def card(self, card: AgentCard) -> AgentCard:
        """Its card, with what is said of it here; nothing becomes looser."""
        modes = [mode for mode in (card.mode, self.mode) if mode]
        return replace(
            card,
            prompt=self.system_prompt or card.prompt,
            temperature=card.temperature if self.temperature is None else self.temperature,
            mode=stricter(*modes) if len(modes) == 2 else "".join(modes),
        )


def write_conversation(folder: Path, record: ConversationRecord) -> None:
    """Raises OSError."""
    replace_file(folder / RECORD, msgspec.json.encode(record), keep_mode=False, make_folders=True)


def read_conversation(folder: Path) -> ConversationRecord | None:
    """None if there is none, or it cannot be read."""
    try:
        record = read_json(folder / RECORD, ConversationRecord)
    except (OSError, msgspec.DecodeError):
        return None
    record.id = folder.name  # whatever the file says: it may be a copy
    return record


def read_conversations(context: Path) -> Iterator[ConversationRecord]:
    """Those of a context, the oldest first."""
    try:
        folders = [Path(entry.path) for entry in os.scandir(context / FOLDER) if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return
    records = [record for folder in folders if (record := read_conversation(folder)) is not None]
    yield from sorted(records, key=lambda record: record.created)
