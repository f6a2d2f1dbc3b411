"""What tests of a dialect start from: a configuration as text, an event made by hand, a run that was; and the real command with one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tests.kit import Call, HomeDir, Reply, cru, server
from tests.kit.run import Done

from cru.core.events.catalog import BY_TYPE
from cru.core.events.stamp import Event, Stamp
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource, Layer
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect, EventMapping
from cru.core.hooks.model.result import HookResult, HookRun


def about(path: Path = Path("/project"), *, mode: str = "ask", **more: Any) -> SessionFacts:
    given = {"cwd": path, "root": path, "env": {"PATH": "/usr/bin:/bin"}, **more}
    return SessionFacts(
        session_id="sess", context="main", folder=path / "context", home=path / ".cru", user_home=path, mode=lambda: mode,
        transcript=lambda: path / "transcript.jsonl", **given,
    )  # fmt: skip


def event(payload: Struct, **stamp: Any) -> Event:
    known: dict[str, Any] = {
        "session_id": "sess", "run_id": "run", "agent_id": "main", "parent_call_id": "", "depth": 0, "is_sub_agent": False,
        "dispatch_seq": 7, "parent_seq": 0, "timestamp": 0.0, "is_continuation": False, "source": "user", "purpose": "",
    }  # fmt: skip
    return Event(BY_TYPE[type(payload)], Stamp(**{**known, **stamp}), payload)


def source(dialect: str, text: str, name: str, layer: Layer = "user") -> HookSource:
    return HookSource(dialect, layer, Path(f"/{layer}/{name}"), text)


def parsed(
    dialect: Dialect, text: str | Mapping[str, Any], name: str, layer: Layer = "user"
) -> tuple[list[HookEntry], list[HookFileProblem]]:
    text = text if isinstance(text, str) else msgspec.json.encode(text).decode()
    file = dialect.parse(source(dialect.name, text, name, layer), about())
    return file.entries, file.problems


def moment(dialect: Dialect, name: str, at: Event) -> EventMapping | None:
    """The row of an event that hears this one."""
    rows = [row for row in dialect.events[name] if row.event == at.name]
    return next((row for row in rows if row.accepts is None or row.accepts(at, about())), None)


def said(
    dialect: Dialect, name: str, at: Event, run: HookRun | object, facts: SessionFacts | None = None
) -> HookResult:
    """What a run means; an object is printed with exit status 0."""
    row = moment(dialect, name, at)
    assert row is not None and row.answer is not None
    made = HookEntry(
        id="x", dialect=dialect.name, event=name, source=source(dialect.name, "", "x"), line=1, name="guard"
    )
    done = (
        run
        if isinstance(run, HookRun)
        else HookRun(0, run if isinstance(run, str) else msgspec.json.encode(run).decode())
    )
    return row.answer(made, at, done, facts or about())


def stdin(dialect: Dialect, name: str, at: Event, facts: SessionFacts | None = None) -> dict[str, Any]:
    row = moment(dialect, name, at)
    assert row is not None
    read: dict[str, Any] = msgspec.json.decode(dialect.stdin(row, at, facts or about()))
    return read


# the real command ----------------------------------------------------------------------------------------------------------------


def turn(
    here: HomeDir,
    *replies: Reply,
    config: str = "",
    mode: str = "trust",
    argv: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> tuple[Done, list[Any]]:
    """One prompt: how it ended, and the messages of the last request."""
    with server([*replies]) as model:
        here.configure(f'mode = "{mode}"\n{config}', model.url)
        done = cru(*argv, "go", home=here, env=env)
        last = model.requests[-1].body["messages"] if model.requests else []
    assert "Traceback" not in done.err, done
    return done, last


def calls(command: str) -> Reply:
    return Reply(calls=[Call("bash", {"command": command})])


def results(messages: list[Any]) -> list[str]:
    """What the model read of its calls."""
    return [message["content"] for message in messages if message["role"] == "tool"]
