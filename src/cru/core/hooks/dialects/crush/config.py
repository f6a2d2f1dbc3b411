"""The `hooks` of a crush.json: event → a flat list of entries."""

from __future__ import annotations

import re
from typing import Any

from cru.core.base.config.closest import closest
from cru.core.hooks.dialects.crush.regex import to_python
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource, ProblemKind
from cru.core.hooks.model.mapping import ParsedFile
from cru.core.hooks.parsing.bounded_regex import LONGEST, check_regex
from cru.core.hooks.parsing.reading import (
    WORDS,
    Reading,
    canonical_definition,
    is_guarding,
    parse_seconds,
)

TIMEOUT = 30
CANONICAL = {"pretooluse": "PreToolUse", "userpromptsubmit": "UserPromptSubmit"}
KEYS: dict[str, type] = {"name": str, "matcher": str, "command": str, "timeout": int, "include_sub_agents": bool}
SCRIPTS = ("crushrc", ".crushrc")
_HOOK_COMMAND = re.compile(r"^[ \t]*hook[ \t]+(?:add|remove|rm)\b", re.MULTILINE)


def canonical(event: str) -> str:
    """Crush's own spelling of an event, however it is written; the text itself if it is none of its events."""
    return CANONICAL.get(event.replace("_", "").lower(), event)


def read_entries(source: HookSource) -> ParsedFile:
    """All entries, those under the canonical spelling of an event before its other spellings. One that is invalid makes the file void,
    as in Crush."""
    if source.path.name in SCRIPTS:
        return ParsedFile([], _script(source))
    reading = Reading(source, comments=True)
    reading.report_misplaced_events(CANONICAL.values())
    hooks = reading.typed(reading.value, "hooks", dict, {}, kind=ProblemKind.PART)
    entries: list[HookEntry] = []
    for event in sorted(hooks, key=lambda name: (name != canonical(name),)):
        for index, value in enumerate(reading.typed(hooks, event, list, [], "hooks", kind=ProblemKind.PART)):
            entry = _entry(reading, event, index, value)
            if entry is not None:
                entries.append(entry)
    if any(problem.kind is ProblemKind.WHOLE_FILE for problem in reading.problems):
        entries = []
    return ParsedFile(entries, reading.problems)


def _script(source: HookSource) -> list[HookFileProblem]:
    """crushrc is a program in Bash, and is not run; only one that has to do with hooks is worth a word."""
    match = _HOOK_COMMAND.search(source.text)
    if match is None:
        return []
    line = source.text.count("\n", 0, match.start()) + 1
    return [
        HookFileProblem(
            source.path, line, "hooks of a crushrc do not run here", "write them into crush.json", ProblemKind.PART
        )
    ]


def _entry(reading: Reading, event: str, index: int, value: Any) -> HookEntry | None:
    at = ("hooks", event, index)
    line = reading.line(*at)
    where = f"hook {event}[{index}]"
    wrong, hint = _wrong(value)
    if wrong:
        reading.wrong(f"{where}: {wrong}", hint, line=line, kind=ProblemKind.WHOLE_FILE)
        return None
    matcher = value.get("matcher") or ""
    name = canonical(event)
    for text, hint, key in _remarks(value, name, matcher):
        guards = key not in KEYS and key != "" and is_guarding(key)
        kind = ProblemKind.PART if guards else ProblemKind.ODDITY
        reading.wrong(f"{where}: {text}", hint, line=line, kind=kind, key=key)
    timeout = value.get("timeout") or 0
    definition = canonical_definition(value)
    return HookEntry(
        id=reading.id(name, definition), dialect="crush", event=name, source=reading.source, line=line,
        name=value.get("name") or "", command=value["command"], matcher=matcher, timeout=parse_seconds(timeout) or TIMEOUT,
        include_sub_agents=bool(value.get("include_sub_agents")), definition=definition,
    )  # fmt: skip


def _wrong(value: Any) -> tuple[str, str]:
    """What makes Crush refuse an entry, and what helps. A matcher that cannot be used never turns into one that fits everything."""
    if not isinstance(value, dict):
        return "command is required", ""
    for key, kind in KEYS.items():
        if value.get(key) is not None and type(value[key]) is not kind:
            return f"`{key}` must be {WORDS[kind]}", ""
    if not (value.get("command") or "").strip():
        hint = "entries of crush.json are flat; the nested form belongs into .claude/settings.json"
        return "command is required", hint if "hooks" in value else ""
    matcher = value.get("matcher") or ""
    bad = check_regex(to_python(matcher)[0] if len(matcher) <= LONGEST else matcher)
    return (f'invalid matcher regex "{matcher}": {bad}', "") if bad else ("", "")


def _remarks(value: dict[str, object], event: str, matcher: str) -> list[tuple[str, str, str]]:
    """(text, hint, key) of what a person will want to know of an entry that works."""
    remarks: list[tuple[str, str, str]] = []
    for key in value:
        if key not in KEYS:
            near = closest(key, KEYS)
            hint = f"did you mean `{near}`?" if near else f"known: {', '.join(KEYS)}"
            remarks.append((f"unknown key `{key}`", hint, key))
    if to_python(matcher)[1]:
        remarks.append((f"Crush itself would refuse the matcher {matcher}: its expressions are RE2", "", ""))
    if event == "UserPromptSubmit" and matcher:
        remarks.append((f"a matcher has no effect on {event}", "", "matcher"))
    return remarks
