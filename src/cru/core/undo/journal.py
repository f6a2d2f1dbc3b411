"""Files that /undo or /redo is about to change, on disk until it is done: the next start rolls back what a kill interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import read_regular
from cru.core.conversations import read_error, write_errors
from cru.core.revisions import RevisionError
from cru.core.revisions.records import ChangeOrigin, FileChange, decode_changes, encode_records, make_change
from cru.core.revisions.restore import Step, StepKind, apply, plan, summarize
from cru.core.turn import UndoRefused
from cru.core.turn.parts import Parts, SessionServices

JOURNAL = "undo.jsonl"
"""In the folder of the conversation."""


@contextmanager
def journal(parts: Parts, steps: Sequence[Step], origin: ChangeOrigin) -> Iterator[None]:
    """Keep the steps on disk while the block changes files and logs the anchor. What the files hold now is durable before the block, also
    what someone else wrote, so a power cut can be rolled back. Raises StoreFailed and StoreUnwritable before the block."""
    path = parts.store.folder / JOURNAL
    keeper = parts.services.changes.keeper()
    assert keeper is not None  # there are steps
    with keeper.store.writing():
        for step in steps:
            keeper.store.keep(step.file)
    parts.store.sync()
    # the anchor becomes the last entry of the log, so another last entry means that everything was done
    begun = replace(origin, prompt=parts.store.entries()[-1].id)
    changes = [make_change(step.file, step.current, step.target, begun) for step in steps]
    with write_errors(path):
        replace_file(path, encode_records(changes), keep_mode=False, follow=False)
    try:
        yield
    except UndoRefused:  # it names the files that could not be restored, and /undo goes on from there
        path.unlink()
        raise
    path.unlink()


def roll_back(parts: Parts) -> None:
    """Bring files back to how they were before an interrupted /undo or /redo, and warn. Raises StoreUnreadable."""
    path = parts.store.folder / JOURNAL
    try:
        changes, _ = decode_changes(read_regular(path))
    except OSError as error:
        raise read_error(path, error) from error
    entries = parts.store.entries()
    if changes and entries and entries[-1].id == changes[0].origin.prompt:
        try:
            text = _roll_back(parts.services, changes)
        except RevisionError as error:
            parts.bus.stream.warn(f"an interrupted {changes[0].origin.tool} could not be rolled back: {error.message}")
            return
        parts.bus.stream.warn(text)
    with write_errors(path):
        path.unlink()


def _roll_back(services: SessionServices, changes: Sequence[FileChange]) -> str:
    """Return what was done, for people. Raises RevisionError."""
    keeper = services.changes.keeper()
    assert keeper is not None  # the caller runs only where files are kept
    steps = plan(keeper.store, summarize(changes), backwards=True)
    origin = changes[0].origin
    result = apply(keeper.store, [step for step in steps if step.kind is StepKind.WRITE], origin)
    others = [step for step in steps if step.kind not in (StepKind.WRITE, StepKind.DONE)]
    left = [*result.failed, *(f"{step.file}: {step.why or 'changed by someone else since'}" for step in others)]
    restored = ", ".join(step.file for step in result.changed)
    done = f"these files are again as they were before it: {restored}" if restored else "it had changed no file"
    failed = f"; these are not: {'; '.join(left)}" if left else ""
    return (
        f"{origin.tool} was interrupted (cru was killed, or the disk failed); {done}{failed}; run {origin.tool} again"
    )
