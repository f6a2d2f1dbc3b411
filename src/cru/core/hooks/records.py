"""What every hook did: one line a firing in the context's `hooks.jsonl`, and which hooks could not fire at all (docs/hooks.md).

Why a hook did not fire at an event stands in the journal, as of every other handler; so does what a hook answered. Lines are joined by
the run and the number of the dispatch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.events.answers import Answer
from cru.core.events.stamp import Event
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.model.status import Activation, EntryStatus
from cru.core.tools.secret_variables import masked

CANCELLED = "cancelled"
"""Why a hook failed that was running when the run was interrupted."""
SLOW_MS = 250.0
"""A hook of a tool event that takes longer is named."""
FILE = "hooks.jsonl"
RECORDED_BYTES = 1 << 20
"""Bytes of a payload or an output that are kept."""


class FiringRecord(Struct, frozen=True, omit_defaults=True, tag_field="k", tag="fired"):
    """One entry at one event. Texts are cut at 1 MiB.

    time: seconds since the epoch
    run, seq: the dispatch, as in the journal
    event: in the dialect's words
    ours: in cru's
    subject: what the event is about, such as a tool's name
    ms: wall-clock milliseconds
    exit: None if there is none; then `error` says why
    failed: why it counts as failed
    decision: none, allow, ask, deny or halt
    did: what else it gave: changed fields, context, inject, result
    note: what it says for the record
    beside: it ran beside the session
    cut: one of the texts was longer
    agent, agent_type: the sub-agent that raised it, "" of the main agent
    """

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
    agent: str = ""
    agent_type: str = ""


class LoadRecord(Struct, frozen=True, omit_defaults=True, tag_field="k", tag="found"):
    """What a session found when it read the configurations; from this line on the earlier one of the run is void.

    active: how many entries may run
    idle: id → (state, why) of every entry that cannot
    """

    time: float
    run: str
    active: int = 0
    idle: dict[str, tuple[str, str]] = {}


HookLogLine = FiringRecord | LoadRecord
encode = msgspec.json.Encoder(enc_hook=repr).encode


def make_firing(
    entry: HookEntry, name: str, event: Event, stdin: bytes, run: HookRun, result: HookResult
) -> FiringRecord:
    """The line of one firing; `name` is the event in the dialect's words."""
    payload, stamp, answer = event.payload, event.stamp, result.answer
    return FiringRecord(
        time=time.time(), run=stamp.run_id, seq=stamp.dispatch_seq, id=entry.id, event=name, ours=event.name, label=entry.label,
        where=entry.where, subject=str(getattr(payload, "name", "") or getattr(payload, "tool", "")),
        ms=run.ms, exit=run.exit, timed_out=run.timed_out, error=run.error, failed=result.failed,
        decision="halt" if answer.halt else answer.decision, reason=answer.reason, did=effects_of(answer), note=answer.note,
        to_user=result.to_user, warning=result.warning, beside=entry.asynchronous, stdin=stdin[:RECORDED_BYTES].decode("utf-8", "replace"),
        stdout=run.stdout[:RECORDED_BYTES], stderr=run.stderr[:RECORDED_BYTES],
        cut=max(len(stdin), len(run.stdout), len(run.stderr)) > RECORDED_BYTES or run.truncated,
        agent=stamp.agent_id if stamp.depth else "", agent_type=stamp.agent_type,
    )  # fmt: skip


def make_load(known: Iterable[EntryStatus], run: str) -> LoadRecord:
    """The line of one reading of the configurations."""
    statuses = list(known)
    idle: dict[str, tuple[str, str]] = {
        status.entry.id: (status.state, status.why) for status in statuses if status.state is not Activation.ACTIVE
    }
    return LoadRecord(time.time(), run, len(statuses) - len(idle), idle)


def effects_of(answer: Answer) -> tuple[str, ...]:
    """What an answer brings beside its decision, in a word each."""
    more = [name for name in ("context", "context_files", "inject", "outcome") if getattr(answer, name)]
    if answer.result is not None:
        more.append("result")
    if answer.updates:
        more.append("permission_updates")
    return (*dict.fromkeys(change.field for change in answer.changes), *more)


# reading ---------------------------------------------------------------------------------------------------------------------------


def read_lines(folder: Path, runs: Collection[str] = ()) -> Iterator[HookLogLine]:
    """What is recorded in a context, the newest first; with `runs`, only lines that name one of them. Lines torn by a kill, and those of
    other versions, are left out."""
    from cru.core.conversations.record_files import newest_first

    decoder = msgspec.json.Decoder(HookLogLine)
    for raw in newest_first(folder / FILE, runs):
        try:
            yield decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue


# showing ---------------------------------------------------------------------------------------------------------------------------


def masked_json(value: object) -> str:
    """Anything as JSON, every text in it masked."""
    return msgspec.json.encode(_masked(msgspec.to_builtins(value))).decode()


def _masked(value: object) -> object:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list | tuple) else value
