"""Taking turns back and bringing them again: messages and files together (docs/undo.md, docs/decisions/undo.md). Nothing is erased."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Literal

from msgspec import Struct

from cru.core.base.values.messages import MESSAGE, Entry
from cru.core.conversations.entries import REDO, REDOES, UNDO
from cru.core.conversations.store import ContextStore
from cru.core.revisions.records import ChangedBy, CommandLook, FileChange
from cru.core.revisions.restore import RestoreResult, Step, StepKind, apply, plan, summarize
from cru.core.revisions.store import RevisionStore
from cru.core.turn import NothingToUndo, UndoRefused, history
from cru.core.turn.parts import Parts, SessionServices
from cru.core.turn.turn import CONTINUATION_SOURCES, PromptSource
from cru.core.undo.journal import journal
from cru.core.undo.unkept_calls import find_unkept

BEGINNINGS: tuple[PromptSource, ...] = ("user", "queue", "command", "inbox", "task")
"""Sources of prompts with which a turn begins."""
SHOWN = 60


class UndoPlan(Struct, frozen=True):
    """What an undo or a redo would do.

    prompts: what was asked in these turns, the oldest first
    keep: ids of the entries that the model sees afterwards
    redoes: of a redo: the anchor of the undo
    steps: one a file
    unkept: what was done and cannot be taken back, for people
    """

    kind: Literal["undo", "redo"]
    prompts: tuple[str, ...]
    keep: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    redoes: str = ""
    unkept: tuple[str, ...] = ()

    def of(self, kind: StepKind) -> list[Step]:
        return [step for step in self.steps if step.kind is kind]

    @property
    def conflicts(self) -> list[Step]:
        """Files that someone else changed, since or between the changes."""
        return self.of(StepKind.CHANGED)


class UndoReport(Struct, frozen=True):
    """What was done. restored, left: files"""

    plan: UndoPlan
    restored: tuple[str, ...]
    left: tuple[str, ...]


def turn_starts(entries: Sequence[Entry]) -> list[int]:
    """Where turns begin: at prompts that are no continuations."""
    return [
        at
        for at, entry in enumerate(entries)
        if entry.entry_type == MESSAGE and entry.role == "user" and is_beginning(entry.metadata.get("source"))
    ]


def is_beginning(source: object) -> bool:
    """Whether a turn begins with a prompt of that source."""
    return source is None or (source in BEGINNINGS and source not in CONTINUATION_SOURCES)


async def settle_changes(services: SessionServices) -> None:
    """Wait until it is known what the last command changed."""
    if (keeper := services.changes.known) is not None:
        await keeper.settle()


def plan_undo(parts: Parts, count: int = 1) -> UndoPlan:
    """The last turns, each from its prompt on. Raises NothingToUndo, UndoRefused, RevisionError."""
    store = parts.store
    entries = list(store.visible())
    starts = turn_starts(entries)
    if not starts:
        raise NothingToUndo(
            f"{store.name} has no turn to take back",
            "what was compacted or cleared stays; `cru history FILE` has files",
        )
    _refuse_while_running(parts.services)
    first = starts[-min(count, len(starts))]
    gone = entries[first:]
    changes = changes_of(parts, gone)
    steps = tuple(plan(_revisions(parts.services), summarize(changes), backwards=True)) if changes else ()
    keep = tuple(entry.id for entry in entries[:first])
    return UndoPlan(
        "undo", _prompts(gone), keep, steps, unkept=tuple(find_unkept(parts, gone, changes, looks_of(parts, gone)))
    )


def plan_redo(parts: Parts) -> UndoPlan:
    """What the last undo took back, as long as nothing was asked since. Raises NothingToUndo, UndoRefused, RevisionError."""
    store = parts.store
    anchor = next(iter(reversed(store.undone())), None)
    if anchor is None:
        raise NothingToUndo(
            f"{store.name} has nothing to bring again", "/redo takes back an /undo, until the next prompt"
        )
    _refuse_while_running(parts.services)
    before = store.undone()[anchor]
    seen = {entry.id for entry in store.visible()}
    back = [entry for entry in before if entry.id not in seen]
    if not back:
        raise NothingToUndo(f"{store.name} has nothing to bring again", "its lines are in the archive")
    changes = changes_of(parts, back)
    steps = tuple(plan(_revisions(parts.services), summarize(changes), backwards=False)) if changes else ()
    keep = tuple(entry.id for entry in before)
    return UndoPlan("redo", _prompts(back), keep, steps, anchor)


def carry_out(parts: Parts, planned: UndoPlan, *, overwrite: bool = False) -> UndoReport:
    """Restore the files, then log the anchor. The next start rolls back what a kill in between leaves. Files that someone else changed stay
    as they are, unless `overwrite`. Raises UndoRefused if a file could not be restored; the conversation then stays as it is."""
    steps = planned.of(StepKind.WRITE) + (planned.conflicts if overwrite else [])
    by = ChangedBy.UNDO if planned.kind == "undo" else ChangedBy.REDO
    origin = parts.services.changes.origin(parts, by, f"/{planned.kind}")
    with journal(parts, steps, origin) if steps else nullcontext():
        result = apply(_revisions(parts.services), steps, origin) if steps else RestoreResult((), ())
        if result.failed:
            raise UndoRefused(
                f"the conversation stays as it is: {'; '.join(result.failed)}",
                f"{len(result.changed)} other files were brought back; mend this, then /{planned.kind} does the rest",
            )
        parts.services.changes.prompt = ""  # what a script does now is of no turn
        parts.store.sync()  # a power cut must not leave the conversation without the turn and the files with it
        anchor(parts.store, planned)
        parts.store.sync()
    parts.history = history.project(parts.store.entries(), parts.store.visible())
    return UndoReport(
        planned,
        tuple(step.file for step in steps),
        tuple(step.file for step in planned.conflicts if not overwrite),
    )


def anchor(store: ContextStore, planned: UndoPlan) -> None:
    """The step that counts for the conversation."""
    if planned.kind == "undo":
        store.anchor(UNDO, store.summary(), planned.keep)
    else:
        store.anchor(REDO, store.summary(), planned.keep, {REDOES: planned.redoes})


def refuse_blocked(planned: UndoPlan) -> None:
    """Refuse a plan that would bring back only one half of a move. Raises UndoRefused."""
    if blocked := planned.of(StepKind.BLOCKED):
        names = ", ".join(f"{step.file} ({step.why})" for step in blocked)
        raise UndoRefused(
            f"files cannot be brought back, so nothing was done: {names}",
            f"move away what is in the way, then /{planned.kind} again; /{planned.kind} --leave does the rest without these files",
        )


def refuse_conflicts(planned: UndoPlan) -> None:
    """Refuse a plan with conflicts where no one can be asked. Raises UndoRefused."""
    refuse_blocked(planned)
    if planned.conflicts:
        names = ", ".join(f"{step.file}{_when(step)}" for step in planned.conflicts)
        raise UndoRefused(
            f"changed by someone else, so nothing was done: {names}",
            f"/{planned.kind} --leave leaves these files as they are; in the chat /{planned.kind} shows what was changed, and asks",
        )


def _when(step: Step) -> str:
    """Return when someone else changed it, unless that was since the last turn."""
    return "" if step.foreign[0].start is step.expected else " (between the changes that would be taken back)"


def changes_of(parts: Parts, entries: Iterable[Entry]) -> list[FileChange]:
    """What the legs changed whose prompts are among these entries, the oldest first. Raises RevisionError."""
    if parts.services.changes.make is None:
        return []
    ids = {entry.id for entry in entries}
    return [
        change
        for change in _revisions(parts.services).changes()
        if change.origin.session == parts.store.session_id
        and change.origin.prompt in ids
        and change.origin.by in (ChangedBy.TOOL, ChangedBy.COMMAND)
    ]


def looks_of(parts: Parts, entries: Iterable[Entry]) -> list[CommandLook]:
    """What was found out behind commands of these legs. Raises RevisionError."""
    if parts.services.changes.make is None:
        return []
    ids, session = {entry.id for entry in entries}, parts.store.session_id
    return [
        look
        for look in _revisions(parts.services).looks()
        if look.origin.session == session and look.origin.prompt in ids
    ]


def _revisions(services: SessionServices) -> RevisionStore:
    keeper = services.changes.keeper()
    assert keeper is not None  # there are changes
    return keeper.store


def _refuse_while_running(services: SessionServices) -> None:
    """Raises UndoRefused."""
    work = services.tasks.background
    keeper = services.changes.known
    if keeper is not None and keeper.is_looking:
        raise UndoRefused("what a command changed is being looked at", "try again in a moment")
    running = work.running_agents() if work is not None else ()
    if running:
        raise UndoRefused(
            f"sub-agents are at work and may change files: {', '.join(running)}",
            "wait for them, or end them with /tasks cancel ID",
        )


def _prompts(entries: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(_first_words(entries[at].content) for at in turn_starts(entries))


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"


def undone_turns(store: ContextStore) -> Iterator[tuple[str, ...]]:
    """The prompts of each undo that may be redone, the last undo first."""
    seen = {entry.id for entry in store.visible()}
    for before in reversed(list(store.undone().values())):
        yield _prompts([entry for entry in before if entry.id not in seen])
        seen |= {entry.id for entry in before}
