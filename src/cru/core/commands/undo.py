"""/undo, /redo and /diff."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cru.core.base.files import is_inside
from cru.core.base.values.visible import visible
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.guard.rules.gate import PermissionSubject
from cru.core.revisions.diff import diff_summary
from cru.core.revisions.restore import summarize
from cru.core.revisions.store import RevisionStore
from cru.core.turn.commands import CommandResult
from cru.core.turn.parts import Parts, SessionServices, Workplace
from cru.core.undo.turns import (
    UndoPlan,
    UndoReport,
    carry_out,
    changes_of,
    plan_redo,
    plan_undo,
    refuse_blocked,
    refuse_conflicts,
    settle_changes,
    turn_starts,
)

LEAVE = "--leave"
MOST_DIFF = 200_000
"""Characters that /diff shows."""
MOST_FILES = 20


async def undo(context: CommandContext, words: str) -> CommandResult:
    """Take the last turns back. Raises BadCommand, NothingToUndo, UndoRefused, RevisionError."""
    leave, rest = _take_leave(words)
    count = _number(rest, "/undo", 1)
    parts = context.session.parts
    await settle_changes(parts.services)
    return await _carry_out(parts, plan_undo(parts, count), leave)


async def redo(context: CommandContext, words: str) -> CommandResult:
    """Bring the last undo's turns again. Raises as `undo` does."""
    leave, rest = _take_leave(words)
    if rest:
        raise BadCommand(f"/redo does not know {rest!r}", f"/redo, or /redo {LEAVE}")
    parts = context.session.parts
    await settle_changes(parts.services)
    return await _carry_out(parts, plan_redo(parts), leave)


def _take_leave(words: str) -> tuple[bool, str]:
    rest = words.split()
    return LEAVE in rest, " ".join(word for word in rest if word != LEAVE)


def _number(text: str, command: str, default: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadCommand(f"{command} needs a number of turns, not {text!r}", f"`{command} 2` means the last two turns")
    return int(text)


async def _carry_out(parts: Parts, planned: UndoPlan, leave: bool) -> CommandResult:
    if not leave:
        refuse_blocked(planned)
    overwrite = bool(planned.conflicts) and not leave and await _may_overwrite(parts, planned)
    return CommandResult(_render(carry_out(parts, planned, overwrite=overwrite), parts))


async def _may_overwrite(parts: Parts, planned: UndoPlan) -> bool:
    """Whether a person says so. Raises UndoRefused if they do not, or nobody is there."""
    store = _store(parts.services)
    diffs = [
        diff_summary(store, change, _name(parts.place, step.file))
        for step in planned.conflicts
        for change in step.foreign
    ]
    subject = PermissionSubject(
        planned.kind, "write", ", ".join(_name(parts.place, step.file) for step in planned.conflicts),
        f"changed by someone else: y overwrites that (it stays in `cru history`), n does nothing; /{planned.kind} {LEAVE} leaves "
        "these files as they are",
        preview="\n".join(filter(None, diffs)),
    )  # fmt: skip
    reply = await parts.services.face.asker.ask(subject)
    if reply is None or reply.choice == "no":
        refuse_conflicts(planned)
    return True


def _render(report: UndoReport, parts: Parts) -> str:
    planned = report.plan
    count = len(planned.prompts)
    verb = "taken back" if planned.kind == "undo" else "here again"
    quoted = ", ".join(f"“{visible(text)}”" for text in planned.prompts[-3:])
    lines = [f"{'1 turn is' if count == 1 else f'{count} turns are'} {verb}: {'… ' if count > 3 else ''}{quoted}"]
    if report.restored:
        lines.append(f"files: {_names(parts, report.restored)}")
    if report.left:
        lines.append(f"left as they are, since someone else changed them: {_names(parts, report.left)}")
    lost = [f"{_name(parts.place, step.file)} ({step.why})" for step in planned.steps if step.why]
    if lost:
        lines.append(f"not {verb}: {', '.join(lost)}")
    lines += planned.unkept
    lines.append("/redo brings it again, until the next prompt" if planned.kind == "undo" else "/undo takes it back")
    return "\n".join(lines)


def _names(parts: Parts, files: Iterable[str]) -> str:
    names = [_name(parts.place, file) for file in files]
    more = f" and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
    return ", ".join(names[:MOST_FILES]) + more


def _name(place: Workplace, file: str) -> str:
    """Below the project without its folder."""
    root = os.path.realpath(place.root)
    return visible(os.path.relpath(file, root) if is_inside(file, root) else file)


def _store(services: SessionServices) -> RevisionStore:
    keeper = services.changes.keeper()
    assert keeper is not None  # there are changes
    return keeper.store


async def diff(context: CommandContext, words: str) -> CommandResult:
    """What the last turn changed in files, or the last N turns, or all that the model sees. Raises BadCommand, RevisionError."""
    parts = context.session.parts
    await settle_changes(parts.services)
    entries = list(parts.store.visible())
    starts = turn_starts(entries)
    count = len(starts) if words.strip() == "all" else _number(words.strip(), "/diff", 1)
    first = starts[-min(count, len(starts))] if starts else len(entries)
    changes = changes_of(parts, entries[first:])
    diffs = (
        [diff_summary(_store(parts.services), entry, _name(parts.place, entry.file)) for entry in summarize(changes)]
        if changes
        else []
    )
    text = "\n".join(filter(None, diffs))
    if not text:
        return CommandResult(f"no file was changed in {'this turn' if count == 1 else 'these turns'}")
    return CommandResult(
        text if len(text) <= MOST_DIFF else f"{text[:MOST_DIFF]}\n… {len(text) - MOST_DIFF:,} more characters"
    )
