"""Hooks that meet nothing, or nothing in time: a matcher or `if` that fits no tool, a guard that nobody waits for. Each check gives what is
wrong and the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.events.stamp import Event
from cru.core.hooks import synthetic_events
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.mapping import Dialect, EventMapping

CALLED = "tool:before_call"
ABOUT_TOOLS = ("tool:", "permission:", "output:")
WHOLE_SERVER = re.compile(r"mcp__[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")
ANCHORED = re.compile(r"\^\((?:\?:)?([^()]*)\)\$")
"""A list of names that stands for whole names."""


def check_matcher(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    mappings = [mapping for mapping in dialect.events[entry.event] if mapping.event]
    matcher = entry.matcher
    if not matcher or matcher == "*":
        return
    if all(mapping.subject is None for mapping in mappings):
        yield f"its matcher `{matcher}` has no effect on {entry.event}", ""
        return
    targets = _targets(mappings, tools)
    if not targets or _fits_any(entry, dialect, targets):
        yield from _check_names(entry, dialect, targets)
    elif "mcp" not in matcher:
        yield f"its matcher `{matcher}` fits nothing that cru has", _suggest(matcher, dialect, targets)
    elif _names_whole_server(matcher) and not _fits_any(entry, dialect, [(CALLED, f"{matcher}__anything")]):
        yield f"`{matcher}` is the exact name of a tool here", f"{matcher}__.* fits all tools of the server"


def _names_whole_server(matcher: str) -> bool:
    return WHOLE_SERVER.fullmatch(matcher) is not None and matcher.count("__") == 1


def _targets(mappings: list[EventMapping], tools: tuple[str, ...]) -> list[tuple[str, str]]:
    """(event, subject) of everything that a matcher can meet; nothing if that is no closed list."""
    targets: list[tuple[str, str]] = []
    for mapping in mappings:
        is_about_tools = not mapping.subjects and mapping.event.startswith(ABOUT_TOOLS)
        subjects = tools if is_about_tools else mapping.subjects
        if not subjects:
            return []
        targets += [(CALLED if is_about_tools else mapping.event, subject) for subject in subjects]
    return targets


def _fits_any(entry: HookEntry, dialect: Dialect, targets: list[tuple[str, str]]) -> bool:
    return any(dialect.may_fit(entry, _event(event, subject), subject) for event, subject in targets)


def _event(event: str, subject: str) -> Event:
    if event == CALLED:
        return synthetic_events.make_call(subject)
    return synthetic_events.make_event(event, synthetic_events.make_payload(event, {}))


def _check_names(entry: HookEntry, dialect: Dialect, targets: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Of a list of names each one must fit something."""
    bare = ANCHORED.fullmatch(entry.matcher)
    words = [word.strip() for word in re.split(r"[|,]", bare[1] if bare else entry.matcher)]
    if len(words) < 2 or not targets or not all(re.fullmatch(r"\w+", word) for word in words):
        return
    for word in words:
        matcher = f"^{word}$" if bare else word
        if not word.startswith("mcp") and not _fits_any(replace(entry, matcher=matcher), dialect, targets):
            yield f"`{word}` in its matcher fits nothing that cru has", _suggest(word, dialect, targets)


def _suggest(word: str, dialect: Dialect, targets: list[tuple[str, str]]) -> str:
    known = [
        name for event, subject in targets for name in (dialect.tools.names(subject) if event == CALLED else (subject,))
    ]
    name, opened, _ = word.strip("^$").partition("(")
    if opened and name in known:
        return f"a rule belongs into `if`, beside the matcher `{name}`"
    return did_you_mean(word.strip("^$()"), known)


def check_condition(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not entry.condition:
        return
    events = [mapping.event for mapping in dialect.events[entry.event]]
    if not any(event.startswith(ABOUT_TOOLS) for event in events):
        yield f"`if` works on events of tools only, so this never runs on {entry.event}", "leave `if` out"
        return
    known = (*dialect.matching.condition_words, *(name for tool in tools for name in dialect.tools.names(tool)))
    name = re.split(r"[:(]", entry.condition)[0].strip()
    if name not in known and "*" not in name and not name.startswith("mcp"):
        yield f"`if` names `{name}`, which is no tool of cru's, so this never runs", did_you_mean(name, known)


def check_async(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not entry.asynchronous:
        return
    effect = ""
    if entry.on_error in ("deny", "ask"):
        effect = "`on_error` has no effect"
    elif dialect.can_refuse(entry):
        effect = f"it can forbid nothing on {entry.event}"
    if effect:
        yield f"nobody waits for it (`async`), so {effect}", "a guard must not be `async`"
