"""What every hook did: one line a firing in the context's `hooks.jsonl`, and which hooks could not fire at all (docs/hooks.md).

Why a hook did not fire at an event stands in the journal, as of every other handler; so does what a hook answered. Lines are joined by
the run and the number of the dispatch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.events.answers import Answer
from cru.events.stamp import Event
from cru.extensions.hooks.loader import EntryStatus
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.values.masking import masked

FILE = "hooks.jsonl"
MOST = 1 << 20
"""Bytes of a payload or an output that are kept."""


class FiringRecord(Struct, frozen=True, omit_defaults=True, tag_field="k", tag="fired"):
    """One entry at one event. run, seq: the dispatch, as in the journal · event: in the dialect's words, ours: in cru's · subject: what
    the event is about, a tool's name · exit: None if there is none · failed: why it counts as failed, `error` why it has no exit
    status · decision: none, allow, ask, deny or halt · note: what it says for the record · did: what else it gave (changed fields,
    context, inject, result) · beside: it ran beside the session · texts are cut at 1 MiB, `cut` says so."""

    time: float
    run: str
    seq: int
    id: str
    event: str
    ours: str
    label: str
    where: str
    subject: str = ""
    ms: float = 0.0
    exit: int | None = None
    timed_out: bool = False
    error: str = ""
    failed: str = ""
    decision: str = "none"
    reason: str = ""
    did: tuple[str, ...] = ()
    note: str = ""
    to_user: str = ""
    warning: str = ""
    beside: bool = False
    stdin: str = ""
    stdout: str = ""
    stderr: str = ""
    cut: bool = False


class LoadRecord(Struct, frozen=True, omit_defaults=True, tag_field="k", tag="found"):
    """What a session found when it read the configurations. idle: id → (state, why) of every entry that cannot fire in it; from this
    line on the earlier one of the run is void."""

    time: float
    run: str
    active: int = 0
    idle: dict[str, tuple[str, str]] = {}


HookLogLine = FiringRecord | LoadRecord
encode = msgspec.json.Encoder(enc_hook=repr).encode


def make_firing(
    entry: HookEntry, name: str, event: Event, stdin: bytes, run: CommandResult, said: HookResult
) -> FiringRecord:
    """The line of one firing; `name` is the event in the dialect's words."""
    payload, stamp, answer = event.payload, event.stamp, said.answer
    return FiringRecord(
        time=time.time(), run=stamp.run_id, seq=stamp.dispatch_seq, id=entry.id, event=name, ours=event.name, label=entry.label,
        where=entry.where, subject=str(getattr(payload, "name", "") or getattr(payload, "tool", "")),
        ms=run.ms, exit=run.exit, timed_out=run.timed_out, error=run.error, failed=said.failed,
        decision="halt" if answer.halt else answer.decision, reason=answer.reason, did=effects_of(answer), note=answer.note,
        to_user=said.to_user, warning=said.warning, beside=entry.asynchronous, stdin=_text(stdin),
        stdout=run.stdout[:MOST], stderr=run.stderr[:MOST],
        cut=max(len(stdin), len(run.stdout), len(run.stderr)) > MOST or run.truncated,
    )  # fmt: skip


def make_load(known: Iterable[EntryStatus], run: str) -> LoadRecord:
    """The line of one reading of the configurations."""
    states = list(known)
    idle: dict[str, tuple[str, str]] = {one.entry.id: (one.state, one.why) for one in states if one.state != "active"}
    return LoadRecord(time.time(), run, len(states) - len(idle), idle)


def effects_of(answer: Answer) -> tuple[str, ...]:
    """What an answer brings beside its decision, in a word each."""
    more = [name for name in ("context", "context_files", "inject") if getattr(answer, name)]
    if answer.result is not None:
        more.append("result")
    return (*dict.fromkeys(change.field for change in answer.changes), *more)


def _text(data: bytes) -> str:
    return data[:MOST].decode("utf-8", "replace")


# reading ---------------------------------------------------------------------------------------------------------------------------


def newest_first(folder: Path, name: str = FILE) -> Iterator[bytes]:
    """The lines of such a file and of its rotated ones, the newest first."""
    number = 0
    while True:
        try:
            data = (folder / (f"{name}.{number}" if number else name)).read_bytes()
        except FileNotFoundError:
            return
        yield from reversed(data.splitlines())
        number += 1


def read_lines(folder: Path) -> Iterator[HookLogLine]:
    """What is recorded in a context, the newest first. Lines torn by a kill, and those of other versions, are left out."""
    decoder = msgspec.json.Decoder(HookLogLine)
    for raw in newest_first(folder):
        try:
            yield decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeError):
            continue


# showing ---------------------------------------------------------------------------------------------------------------------------


def masked_json(value: Any) -> str:
    """Anything as JSON, every text in it masked."""
    return msgspec.json.encode(_masked(msgspec.to_builtins(value))).decode()


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {key: _masked(one) for key, one in value.items()}
    return [_masked(one) for one in value] if isinstance(value, list | tuple) else value
