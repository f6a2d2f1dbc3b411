"""The tables as records. A case that expects nothing, and a difference that is none, are errors of the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parents[2] / "data" / "differential"
Mode = Literal["all", "ask"]


class CaseError(Exception):
    """A table is wrong."""


class ModelReply(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model answers to one request.

    text: what it writes
    tool: the tool that it calls, in the program's words
    input: the arguments of that call, in the program's words
    calls: several calls at once, each with `tool` and `input`
    status: an HTTP error in place of an answer
    """

    text: str = ""
    tool: str = ""
    input: dict[str, Any] = {}
    calls: tuple[ModelReply, ...] = ()
    status: int = 0


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """What is seen from outside. `…` in a text stands for anything (alone: but ""), $HOME and $PROJECT for the folders, null for
    what is not there.

    stdin: event → field (`tool_input.command`) → what a recording hook reads there; `Event#2` is its second firing
    env: event → variable → its value
    heard: the events that recording hooks heard, in their order
    count: event → how many recording hooks heard it
    requests: how many requests of the conversation the model got
    request: texts that the last of them has
    not_request: texts that the last of them has not
    ran: whether the project has a file `ran` afterwards
    files: path in the project → its text
    exit: the exit status of the last run
    shown: texts on standard output or standard error
    not_shown: texts on neither
    """

    stdin: dict[str, dict[str, Any]] = {}
    env: dict[str, dict[str, Any]] = {}
    heard: list[str] | None = None
    count: dict[str, int] = {}
    requests: int | None = None
    request: list[str] = []
    not_request: list[str] = []
    ran: bool | None = None
    files: dict[str, str | None] = {}
    exit: int | None = None
    shown: list[str] = []
    not_shown: list[str] = []


class Difference(Struct, frozen=True, forbid_unknown_fields=True):
    """Where cru differs.

    reason: why it is kept, one sentence or two for docs/hooks.md
    cru: the fields of the expectation that are others in cru
    """

    reason: str
    cru: dict[str, Any]


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """One fact about a program.

    id: its name in the table
    source: seen in the program (`seen`), read in its documents (`docs`) or in its code (`code`)
    about: one sentence
    settings: the user's file of hooks of that program
    files: other files, `~/…` or in the project: text, or JSON
    env: variables of the program
    cwd: the folder below the project that it is started in
    mode: `all`: every call is allowed; `ask`: calls need leave, and nobody is there to give it
    prompt: the first run
    prompts: further runs that go on with the same conversation
    script: what the model answers, over all runs
    expect: what the program does
    difference: what cru does otherwise
    unplayed: why the program itself cannot be played this case without a person; "" if it can
    """

    id: str
    source: Literal["seen", "docs", "code"]
    about: str
    expect: Expectation
    settings: dict[str, Any] | None = None
    files: dict[str, Any] = {}
    env: dict[str, str] = {}
    cwd: str = ""
    mode: Mode = "all"
    prompt: str = "go"
    prompts: tuple[str, ...] = ()
    script: tuple[ModelReply, ...] = (ModelReply("done"),)
    difference: Difference | None = None
    unplayed: str = ""

    @property
    def expect_of_cru(self) -> Expectation:
        if self.difference is None:
            return self.expect
        return msgspec.convert({**_asserted(self.expect), **self.difference.cru}, Expectation)


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """What was recorded of one program."""

    program: str
    version: str
    dialect: Literal["crush", "claude", "codex", "gemini"]
    cases: tuple[Case, ...]


def load(path: Path) -> Table:
    """A table; CaseError names the case that is wrong."""
    try:
        table = msgspec.json.decode(path.read_bytes(), type=Table)
    except msgspec.MsgspecError as error:
        raise CaseError(f"{path.name}: {error}") from None
    names: set[str] = set()
    for case in table.cases:
        wrong = _wrong(case) or ("there is another one of that name" if case.id in names else "")
        if wrong:
            raise CaseError(f"{path.name}: {case.id}: {wrong}")
        names.add(case.id)
    return table


def tables() -> list[Table]:
    return [load(path) for path in sorted(FOLDER.glob("*.json"))]


def cases() -> Iterator[tuple[Table, Case]]:
    return ((table, case) for table in tables() for case in table.cases)


def _wrong(case: Case) -> str:
    if not _asserted(case.expect):
        return "it expects nothing"
    if case.difference is None:
        return ""
    try:
        same = case.expect_of_cru == case.expect
    except msgspec.ValidationError as error:
        return f"difference.cru: {error}"
    return "its difference is none" if same else "" if case.difference.reason else "its difference has no reason"


def _asserted(expect: Expectation) -> dict[str, Any]:
    """The fields that say something: that nothing is heard does."""
    fields = msgspec.to_builtins(expect)
    return {
        name: value for name, value in fields.items() if value not in (None, {}, []) or (name, value) == ("heard", [])
    }
