"""What writes the generated parts of docs/hooks.md: the dialects' own tables as Markdown.

The tables show what a hook can do at an event because the dialect is tried: it reads every sample of an output (SAMPLES, OUTPUTS, FIELDS),
and the answers that it returns are kept as far as the event's row in the catalog lets them count.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from json import dumps
from pathlib import Path
from typing import Any

from cru.core.base.values.errors import CruError
from cru.core.events.answers import Answer
from cru.core.events.catalog import BY_NAME, CATALOG, EventRow
from cru.core.events.stamp import Event
from cru.core.hooks import synthetic_events
from cru.core.hooks.dialects import foreign_names, load_dialects
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import ArgumentMapping, Dialect, EventMapping
from cru.core.hooks.model.result import HookRun
from cru.core.hooks.report.query import own_tools

GIVEN: dict[str, dict[str, Any]] = {
    "tool:before_call": {"name": "bash", "args": {"command": "true"}},
    "permission:requested": {"tool": "bash", "args": {"command": "true"}},
    "tool:completed": {"name": "bash", "args": {"command": "true"}, "result": "x"},
    "tool:failed": {"name": "bash", "args": {"command": "true"}},
    "message:before_send": {"messages": [{"role": "user", "content": "hello"}]},
    "tools:select": {"tools": ["bash", "read"]},
}
"""What the events are about that the outputs are tried on."""
FIELDS: tuple[dict[str, Any], ...] = (
    {"permissionDecision": "allow"},
    {"permissionDecision": "deny", "permissionDecisionReason": "no"},
    {"permissionDecision": "ask"},
    {"permissionDecision": "allow", "updatedInput": {"command": "ls"}},
    {"decision": {"behavior": "allow"}},
    {"decision": {"behavior": "deny", "message": "no"}},
    {"additionalContext": "read this"},
    {"initialUserMessage": "begin"},
    {"updatedToolOutput": "another"},
    {"tool_input": {"command": "ls"}},
    {"llm_request": {"model": "b", "messages": [{"role": "user", "content": "other"}], "config": {"temperature": 1}}},
    {"toolConfig": {"allowedFunctionNames": ["read_file"]}},
)
OUTPUTS: tuple[dict[str, Any], ...] = (
    {"decision": "allow"}, {"decision": "ask", "reason": "look"}, {"decision": "deny", "reason": "no"},
    {"decision": "block", "reason": "no"}, {"continue": False, "stopReason": "no"}, {"halt": True}, {"context": "read this"},
    {"updated_input": {"command": "ls"}}, {"updated_prompt": "other"}, {"updated_output": "other"}, {"inject": "go on"},
    {"result": "allow"}, {"outcome": "gave_up"},
)  # fmt: skip
SAMPLES = (HookRun(2, stderr="no"), HookRun(49, stderr="no"), HookRun(0, stdout="some text"))
"""Runs that are tried beside the JSON outputs above. A dialect that reads other outputs or exit statuses adds samples of them here."""
ONLY_LOOK = {
    ("claude", "StopFailure"), ("codex", "PreModelRequest"), ("codex", "notify"), ("gemini", "Notification"), ("gemini", "PreCompress"),
}  # fmt: skip
"""Events of dialects whose hooks have no say, although cru lets other hooks have one at that point."""
ASKED = (("tool:before_call", "ask"), ("tool:before_call", "allow"), ("permission:requested", "allow"))
WORDS = ("halt", "deny", "ask", "allow", "answer", "rewrite", "context", "go on", "outcome")


def places() -> str:
    """Where each dialect's files lie, lowest layer first."""
    rows = ["| dialect | the system's and yours | the project's |", "|---|---|---|"]
    about, dialects = _about(Path("/state")), load_dialects()
    for name, dialect in dialects.items():
        cells: dict[str, list[str]] = {"user": [], "project": []}
        for layer, path in dialect.places(about):
            shown = f"`{str(path).replace('/project/', '').replace('/home/you', '~')}`"
            cells["project" if layer == "project" else "user"].append(shown)
        rows.append(f"| {name} | {_list(cells['user'])} | {_list(cells['project'])} |")
    return "\n".join(rows)


def moments() -> str:
    """Our events, and what hooks of each dialect can do there."""
    dialects = load_dialects()
    rows = ["| event of cru | " + " | ".join(dialects) + " |", "|---" * (len(dialects) + 1) + "|"]
    with tempfile.TemporaryDirectory() as folder:
        about = _about(Path(folder))
        for row in CATALOG:
            if not row.live:
                continue
            cells = []
            for dialect in dialects.values():
                found = [moment for all_ in dialect.events.values() for moment in all_ if moment.event == row.name]
                own = [moment for moment in found if dialect.name != "cru" or moment.name == row.name]
                cells.append(_list(_cell(dialect, moment, row, about) for moment in own))
            rows.append(f"| `{row.name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def synonyms() -> str:
    """Names of other systems that entries of cru's own may use."""
    from cru.core.hooks.dialects.cru.dialect import SYNONYMS

    rows = ["| name | event |", "|---|---|"]
    for name, (event, only) in SYNONYMS.items():
        later = "" if BY_NAME[event].live else " (not available yet)"
        rows.append(f"| `{name}` | `{event}`{f' ({_list(only)})' if only else ''}{later} |")
    return "\n".join(rows)


def without_moment() -> str:
    """Events of other systems that never fire here, and why."""
    rows = ["| event | dialect | why it never fires |", "|---|---|---|"]
    whys: dict[tuple[str, str], list[str]] = {}
    for name, dialect in load_dialects(foreign_names()).items():
        for event, all_ in dialect.events.items():
            if not any(moment.event for moment in all_):
                whys.setdefault((name, all_[0].unavailable), []).append(f"`{event}`")
    rows += [f"| {_list(events)} | {name} | {why} |" for (name, why), events in whys.items()]
    return "\n".join(rows)


def tools() -> str:
    """Names of tools. The first is what scripts read, matchers know all of them and ours."""
    foreign = load_dialects(foreign_names())
    rows = ["| cru | " + " | ".join(foreign) + " |", "|---" * (len(foreign) + 1) + "|"]
    for tool in own_tools():
        names = (_list(f"`{name}`" for name in dialect.tools.tools.get(tool, ())) for dialect in foreign.values())
        rows.append(f"| `{tool}` | " + " | ".join(names) + " |")
    return "\n".join(rows)


def arguments() -> str:
    """Arguments that have other names or units elsewhere, and those that are left out of what comes back."""
    rows = ["| dialect | tool | ours → theirs | given back in vain |", "|---|---|---|---|"]
    for name, dialect in load_dialects(foreign_names()).items():
        for tool in own_tools():
            mappings = dialect.tools.arguments.get(tool, {})
            renamed = [f"`{argument}` → {_argument(mapping)}" for argument, mapping in mappings.items()]
            dropped = [f"`{argument}`" for argument in dialect.tools.dropped.get(tool, ())]
            if renamed or dropped:
                rows.append(f"| {name} | `{tool}` | {_list(renamed)} | {_list(dropped)} |")
    return "\n".join(rows)


def shells() -> str:
    """Which shell runs a dialect's commands: the first that is there."""
    rows = ["| dialect | Linux, macOS | Windows |", "|---|---|---|"]
    for name, dialect in load_dialects().items():
        shells = dialect.launch.shells
        rows.append(f"| {name} | {_list(shells['posix'])} | {_list(shells['windows'])} |")
    return "\n".join(rows)


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)


def _argument(mapping: ArgumentMapping) -> str:
    """Its name there; a number that is another one there says which."""
    probe = 60
    changed = "" if mapping.to_foreign(probe) == probe else f" ({probe} → {mapping.to_foreign(probe)})"
    return f"`{mapping.name}`{changed}"


def _about(folder: Path) -> SessionFacts:
    home, root = Path("/home/you"), Path("/project")
    return SessionFacts(
        "session", "default", folder, root, root, home / ".cru", home, {}, lambda: "ask", lambda: folder / "transcript.jsonl",
        is_chat=lambda: False,
    )  # fmt: skip


def _cell(dialect: Dialect, moment: EventMapping, row: EventRow, about: SessionFacts) -> str:
    """The dialect's event with what its hooks can do there."""
    said: set[str] = set()
    entry, event = _tried(dialect, moment)
    for run in _runs(moment.name, row):
        about.prompt_states.clear()
        assert moment.answer is not None
        result = moment.answer(entry, event, run, about)
        said |= set(_verbs(result.answer, row))
        if result.deferred:
            said.add("context")  # where the event has no place for it, it goes into the next request
    if not said and _can_do_more(row) and (dialect.name, moment.name) not in ONLY_LOOK:
        raise CruError(
            f"no sample of an output does anything at `{moment.name}` of the dialect {dialect.name}",
            "add what its hooks print to SAMPLES in tests/kit/hook_tables.py, or the event to ONLY_LOOK if they have no say",
        )
    able = _list(word for word in WORDS if word in said) or "look"
    return able if dialect.name == "cru" else f"`{moment.name}`: {able}"


def _can_do_more(row: EventRow) -> bool:
    """Whether anything that a hook answers at an event counts."""
    return row.kind != "observe" or bool(row.writable or row.context or row.inject or row.result)


def judged(dialect: str, exit: int, stderr: str, folder: Path) -> str:
    """What an exit status means before a call: halt, deny, failed or none."""
    [known] = load_dialects([dialect]).values()
    moment = next(row for rows in known.events.values() for row in rows if row.event == "tool:before_call")
    assert moment.answer is not None
    entry, event = _tried(known, moment)
    said = moment.answer(entry, event, HookRun(exit, stderr=stderr), _about(folder))
    return "failed" if said.failed else "halt" if said.answer.halt else said.answer.decision


def _tried(dialect: Dialect, moment: EventMapping) -> tuple[HookEntry, Event]:
    """A hook for this moment, and an event that it hears."""
    source = HookSource(dialect.name, "user", Path("x"), "")
    entry = HookEntry(id="x", dialect=dialect.name, event=moment.name, source=source, line=1, command="x")
    return entry, synthetic_events.make_event(
        moment.event, synthetic_events.make_payload(moment.event, GIVEN.get(moment.event, {}))
    )


def _runs(name: str, row: EventRow) -> Iterator[HookRun]:
    yield from SAMPLES
    changes = tuple({"changes": {field: None}} for field in row.writable)
    yield from (HookRun(0, stdout=dumps(one)) for one in (*OUTPUTS, *changes))
    for one in FIELDS:
        yield HookRun(0, stdout=dumps({"hookSpecificOutput": {"hookEventName": name, **one}}))


def _verbs(answer: Answer, row: EventRow) -> Iterator[str]:
    """What of an answer counts on this event."""
    if answer.halt and row.kind != "observe":
        yield "halt"
    elif answer.decision == "deny" and row.kind == "gate":
        yield "deny"
    elif (row.name, answer.decision) in ASKED:
        yield answer.decision
    if any(change.field in row.writable for change in answer.changes):
        yield "rewrite"
    if answer.context and row.context:
        yield "context"
    if answer.inject is not None and row.inject:
        yield "go on"
    if answer.outcome is not None and row.outcome:
        yield "outcome"
    if answer.result is not None and row.result:
        yield "allow" if row.name == "permission:requested" else "answer"
