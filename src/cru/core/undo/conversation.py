"""A conversation as its turns, also those that were taken back; and forking it behind one of them (docs/decisions/conversations.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from cru.core.base.values.messages import ANCHOR, MESSAGE, Entry
from cru.core.conversations.entries import REDO, REDOES, UNDO, anchor_keeps, role_of
from cru.core.conversations.forks import ForkOrigin, create_fork
from cru.core.conversations.store import ContextStore
from cru.core.turn import NoSuchTurn
from cru.core.undo.turns import is_beginning

COMPACTION = "compaction"
WORDS = 200
"""Characters that are kept of a prompt."""


class TurnState(StrEnum):
    """What became of a turn: the model sees it; /undo took it back; a summary stands for it; /clear put it aside."""

    THERE = "there"
    UNDONE = "undone"
    COMPACTED = "compacted"
    CLEARED = "cleared"


class ConversationTurn(Struct):
    """One turn.

    number: from 1, in the order in which they were asked, with those that were taken back
    prompt: the id of the entry that it begins with
    words: the beginning of what was asked
    at: Unix seconds
    undo: the anchor that took it back
    """

    number: int
    prompt: str
    words: str
    at: int
    state: TurnState = TurnState.THERE
    undo: str = ""


class ForkReport(Struct, frozen=True):
    """A fork that was made. name: its own; turn: the last one that it has; problems: of the log, for people"""

    name: str
    turn: int
    problems: tuple[str, ...] = ()


def begins_turn(entry: Entry) -> bool:
    return entry.entry_type == MESSAGE and role_of(entry) == "user" and is_beginning(entry.metadata.get("source"))


def list_turns(entries: Iterable[Entry]) -> list[ConversationTurn]:
    """The turns among all entries of a log, the oldest first."""
    turns: list[ConversationTurn] = []
    for entry in entries:
        if begins_turn(entry):
            words = " ".join(entry.content[: WORDS * 4].split())[:WORDS]
            turns.append(ConversationTurn(len(turns) + 1, entry.id, words, entry.timestamp))
        elif (keep := anchor_keeps(entry)) is not None:
            _apply(entry, set(keep), turns)
    return turns


def _apply(anchor: Entry, keep: set[str], turns: list[ConversationTurn]) -> None:
    kind = _kind(anchor)
    for turn in turns:
        if kind == REDO and turn.undo == anchor.metadata.get(REDOES) and turn.prompt in keep:
            turn.state, turn.undo = TurnState.THERE, ""
        elif kind == UNDO and turn.state is TurnState.THERE and turn.prompt not in keep:
            turn.state, turn.undo = TurnState.UNDONE, anchor.id
        elif kind not in (UNDO, REDO) and turn.state is TurnState.THERE and turn.prompt not in keep:
            turn.state = TurnState.COMPACTED if kind == COMPACTION else TurnState.CLEARED


def _kind(anchor: Entry) -> str:
    return str(anchor.metadata.get("kind")) if anchor.entry_type == ANCHOR else anchor.entry_type


def fork(store: ContextStore, turn: int | None, name: str = "") -> ForkReport:
    """A new context with all up to that turn and with it (None = all); `name` "": one after this context. Who calls it holds the lock.
    Nothing of the context itself is changed. Raises NoSuchTurn, BadName, NameTaken, StoreUnwritable, StoreUnreadable."""
    entries = list(store.everything())
    problems = tuple(problem.text(store.folder) for problem in store.refresh())
    turns = list_turns(entries)
    last = len(turns) if turn is None else turn
    if not 1 <= last <= len(turns):
        hint = f"it has the turns 1 to {len(turns)}; /tree shows them" if turns else "ask something first"
        raise NoSuchTurn(
            f"{store.name} has no turn {last}" if turns else f"{store.name} has no turn to fork from", hint
        )
    origin = ForkOrigin(store.session_id, store.name, last, turns[last - 1].prompt)
    copied = entries if turn is None else up_to_turn(entries, last)
    home = store.folder.parent.parent
    copy = create_fork(home, store.folder, name, origin, copied, is_whole=turn is None or last == len(turns))
    return ForkReport(copy, last, problems)


def up_to_turn(entries: Iterable[Entry], number: int) -> Iterator[Entry]:
    """The entries up to the end of a turn, as if nothing had come after it: what took it back or put it aside does not count."""
    behind: list[Entry] = []  # anchors that may stand behind the turn
    for entry in entries:
        begins, is_anchor = begins_turn(entry), anchor_keeps(entry) is not None
        number -= begins
        if number < 0 or (number == 0 and is_anchor and _kind(entry) != COMPACTION):
            return
        if number == 0 and is_anchor:
            behind.append(entry)
            continue
        yield from behind
        behind.clear()
        yield entry
