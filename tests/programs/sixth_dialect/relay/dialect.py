"""Relay's hooks as one record.

    {"hooks": [{"on": "about_to_run", "only": "terminal", "run": "./guard.sh"}]}

A command reads what it is about in JSON. It prints `veto WHY` to forbid the call, `instead {…}` to change its arguments, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cru.core.hooks.dialects.relay import FOOTPRINT

from cru.core.events.answers import Answer, Change
from cru.core.events.stamp import Event
from cru.core.hooks.model.entry import HookEntry, HookSource, ProblemKind
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import (
    ArgumentMapping,
    ConfigFormat,
    Dialect,
    EventMapping,
    LaunchRules,
    Matching,
    ParsedFile,
    ToolMapping,
)
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.reading import Reading, canonical_definition, describe_mistyped, typed_value

TOOLS = ToolMapping(
    tools={"bash": ("terminal",), "write": ("save",)},
    arguments={"bash": {"command": ArgumentMapping("line")}},
)
KEYS: dict[str, type] = {"on": str, "only": str, "run": str}


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    reading = Reading(source)
    hooks = reading.typed(reading.value, "hooks", list, [], kind=ProblemKind.PART)
    entries = [_entry(reading, number, hook) for number, hook in enumerate(hooks)]
    return ParsedFile([entry for entry in entries if entry is not None], reading.problems)


def _entry(reading: Reading, number: int, hook: object) -> HookEntry | None:
    """Read one hook, whatever it is: an exception would cost the whole file. An event that Relay does not have is reported by cru."""
    line = reading.line("hooks", number)
    if not isinstance(hook, dict):
        reading.wrong("a hook must be an object", line=line, kind=ProblemKind.PART)
        return None
    text, values = canonical_definition(hook), {key: typed_value(hook, key, str, "") for key in KEYS}
    return HookEntry(
        id=reading.id(values["on"], text), dialect="relay", event=values["on"], source=reading.source, line=line,
        command=values["run"], matcher=values["only"], definition=text,
        problem=describe_mistyped(hook, KEYS) or ("" if values["on"] else "`on` is missing"),
    )  # fmt: skip


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    return entry.matcher in ("", *TOOLS.names(subject))


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    tool = common.tool_name(event)
    args = TOOLS.to_foreign(tool, common.tool_arguments(event), facts.root)
    return common.to_json_line({"on": mapping.name, "tool": TOOLS.foreign_name(tool), "with": args})


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str]:
    return {"RELAY_EVENT": mapping.name}


def _answer(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    word, _, rest = run.stdout.strip().partition(" ")
    if word == "veto":
        return HookResult(Answer(decision="deny", reason=rest))
    if word == "instead":
        value, wrong = common.parse_json(rest)
        change = Change("args", "merge", TOOLS.to_own(common.tool_name(event), value or {}))
        return HookResult(failed=wrong) if wrong else HookResult(Answer(changes=(change,)))
    return common.failed_result(run) if run.exit else HookResult()


DIALECT = Dialect(
    name="relay",
    footprint=FOOTPRINT,
    events={
        "about_to_run": (EventMapping("about_to_run", "tool:before_call", subject=common.tool_name, answer=_answer),),
        "moon_rises": (EventMapping("moon_rises", unavailable="cru does not look at the sky"),),
    },
    config=ConfigFormat(read=_read),
    matching=Matching(matcher_fits=_matcher_fits),
    stdin=_stdin,
    extra_environment=_environment,
    tools=TOOLS,
    launch=LaunchRules(shells={"posix": ("sh", "bash"), "windows": ("git-bash",)}, variables={"RELAY_ROOT": "root"}),
)
