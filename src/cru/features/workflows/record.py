"""Where a workflow stands: kept in the context under `fsm:NAME`, so that it survives restarts and kills."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct, field

from cru.core.api import state
from cru.core.api.host import HOST, Host

Status = Literal["running", "stopped", "done"]
By = Literal["agent", "user", "limit", "script"]
MAX_TRANSITIONS = 200
"""How many transitions are remembered."""


class Transition(Struct, frozen=True, rename={"from_": "from"}):
    """One move from state to state.

    from_: "" for the first one of a run
    at: Unix seconds
    """

    from_: str
    to: str
    at: float
    note: str = ""
    by: By = "agent"


class WorkflowRecord(Struct):
    """What is saved of a run.

    why: why it is not running
    legs, rounds: in this state
    total_legs, total_rounds: since it was started
    refused: what the guard said last, "" since the state was entered
    history: the last moves, the oldest first
    protected: path → digest of the files that the checks consist of, as they were at the start
    """

    state: str
    status: Status = "running"
    task: str = ""
    why: str = ""
    legs: int = 0
    rounds: int = 0
    total_legs: int = 0
    total_rounds: int = 0
    refused: str = ""
    history: list[Transition] = field(default_factory=list)
    protected: dict[str, str] = {}


def key(name: str) -> str:
    return state.WORKFLOW + name


def load_record(owner: Host, name: str) -> tuple[WorkflowRecord | None, str]:
    """The record, None if the workflow was never started here; and what is wrong with what was found ("" = nothing)."""
    token = HOST.set(owner)
    try:
        saved = state.get(key(name))
    finally:
        HOST.reset(token)
    return (None, "") if saved is None else _convert(saved)


def running_records(owner: Host) -> dict[str, WorkflowRecord]:
    """What is saved as running, by name, whoever defines it; what is not understood counts. Raises NamespaceError."""
    token = HOST.set(owner)
    try:
        saved = state.everything()
    finally:
        HOST.reset(token)
    mark = state.WORKFLOW
    records = {name.removeprefix(mark): _convert(value)[0] for name, value in saved.items() if name.startswith(mark)}
    return {name: value for name, value in records.items() if value.status == "running"}


def _convert(saved: object) -> tuple[WorkflowRecord, str]:
    try:
        return msgspec.convert(saved, WorkflowRecord), ""
    except msgspec.ValidationError as error:
        return WorkflowRecord(""), str(error)


def save_record(owner: Host, name: str, record: WorkflowRecord | None) -> None:
    """Write it, or take it away. Raises NamespaceError if that fails."""
    token = HOST.set(owner)
    try:
        state.set_(key(name), None if record is None else msgspec.to_builtins(record))
    finally:
        HOST.reset(token)
