"""What is odd about hooks, told by reading alone (`cru hooks check`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.config.closest import did_you_mean
from cru.events.catalog import BY_NAME
from cru.events.stamp import Event
from cru.extensions.hooks import synthetic_events
from cru.extensions.hooks.loader import WAITING, EntryStatus
from cru.extensions.hooks.model import tool_names
from cru.extensions.hooks.model.entry import LAYERS, HookEntry, HookFileProblem
from cru.extensions.hooks.model.mapping import Dialect, EventMapping
from cru.extensions.hooks.report import project_files, runnable
from cru.extensions.hooks.setup import HookInventory
from cru.permissions.modes import KINDS

Level = Literal["broken", "odd", "waiting"]
LONG = 1000.0
"""Seconds; a limit of as much was meant in milliseconds."""
ABOUT_TOOLS = ("tool:", "permission:", "output:")
# What matchers of other events can look at, where that is a closed list.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "session:started": ("startup", "resume", "clear", "compact"),
    "context:overflow": ("manual", "auto"),
    "context:cleared": ("clear",),
    "session:compacted": ("manual", "auto", "compact"),
    "session:ended": ("exit", "clear", "resume", "logout", "prompt_input_exit", "other"),
    "context:clearing": ("clear",),
    "interaction:requested": ("permission_prompt", "elicitation_dialog"),
    "turn:complete": (
        "done", "cancelled", "halted", "interrupted", "error", "authentication_failed", "billing_error", "rate_limit", "overloaded",
        "server_error", "invalid_request", "unknown",
    ),
    "session:idle": ("idle_prompt",),
}  # fmt: skip
WHOLE_SERVER = re.compile(r"mcp__[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")


class Finding(Struct, frozen=True):
    """One thing to know. broken: something that cannot work; odd: probably not what was meant; waiting: for a person. id: of the entry,
    "" if it is about a file."""

    level: Level
    id: str
    where: str
    text: str
    hint: str = ""


def find_problems(found: HookInventory, tools: Iterable[str] = ()) -> list[Finding]:
    """Everything, in the order of the files. tools: names of tools beside those that every system has."""
    problems = found.loaded.problems
    made = [
        Finding("odd", "", str(found.about.home / "trust.json"), text)
        for text in map(str, found.trust.store.problems[:1])
    ]
    made += [_of_problem(one) for one in problems]
    known_tools = tuple(dict.fromkeys((*tool_names.TOOLS, *tools)))
    first: dict[object, EntryStatus] = {}
    for one in found.loaded.known:
        entry, dialect = one.entry, found.dialects[one.entry.dialect]
        made += list(_of_state(one, dialect, problems))
        if one.state in ("broken", "no moment", "not available yet", "refused", "disabled"):
            continue
        level: Level = "odd" if one.state == "not accepted" else "broken"
        for certain, text, hint in runnable.broken(entry, found.about):
            made.append(Finding(level if certain else "odd", entry.id, entry.where, text, hint))
        text, hint = project_files.odd(entry, found.about)
        if text:
            made.append(Finding("odd", entry.id, entry.where, text, hint))
        for text, hint in _oddities(entry, dialect, known_tools, problems):
            made.append(Finding("odd", entry.id, entry.where, text, hint))
        made += list(_of_twin(one, dialect, first))
    return _in_order(made)


def _in_order(made: list[Finding]) -> list[Finding]:
    """By file, and in each by line."""
    files = list(dict.fromkeys(_place(one)[0] for one in made))
    return sorted(made, key=lambda one: (files.index(_place(one)[0]), _place(one)[1]))


def _place(one: Finding) -> tuple[str, int]:
    file, _, line = one.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (one.where, 0)


def _of_problem(one: HookFileProblem) -> Finding:
    where = f"{one.path}:{one.line}" if one.line else str(one.path)
    return Finding(
        "broken" if one.fatal or one.void or one.text.startswith("there is no event") else "odd",
        "",
        where,
        one.text,
        one.hint,
    )


def _of_state(one: EntryStatus, dialect: Dialect, problems: list[HookFileProblem]) -> Iterator[Finding]:
    entry = one.entry
    if one.state == "broken":
        yield Finding("broken", entry.id, entry.where, one.why)
    elif one.state == "no moment" and entry.event not in dialect.events:
        hint = did_you_mean(entry.event, dialect.events)
        yield Finding(
            "broken", entry.id, entry.where, f"{dialect.name} has no event {entry.event}, so this never runs", hint
        )
    elif one.state in ("no moment", "not available yet"):
        yield Finding("odd", entry.id, entry.where, f"never runs here: {one.why}")
    elif one.state in WAITING:
        text = one.why.partition(": `")[0] if one.changed else "awaits that you accept it"
        yield Finding("waiting", entry.id, entry.where, text, "cru hooks review")


def _of_twin(one: EntryStatus, dialect: Dialect, first: dict[object, EntryStatus]) -> Iterator[Finding]:
    """An entry that does what an earlier one does."""
    entry = one.entry
    key = (entry.dialect, entry.event, entry.matcher, entry.identity)
    twin = first.setdefault(key, one)
    if twin is not one:
        stands_in = dialect.runs_equal_once and LAYERS.index(twin.entry.source.layer) <= LAYERS.index(
            entry.source.layer
        )
        what = "it runs once" if stands_in else "both run"
        yield Finding("odd", entry.id, entry.where, f"the same as {twin.entry.id} ({twin.entry.where}); {what}")


# one entry --------------------------------------------------------------------------------------------------------------------------

Check = Callable[[HookEntry, Dialect, tuple[str, ...]], Iterator[tuple[str, str]]]


def _oddities(
    entry: HookEntry, dialect: Dialect, tools: tuple[str, ...], problems: list[HookFileProblem]
) -> Iterator[tuple[str, str]]:
    told = " ".join(one.text for one in problems if one.path == entry.source.path and one.line == entry.line)
    for word, check in CHECKS.items():
        if f"`{word}`" not in told and f"a {word}" not in told:
            yield from check(entry, dialect, tools)


def _matcher(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    moments = [moment for moment in dialect.events[entry.event] if moment.event]
    if not entry.matcher or entry.matcher == "*":
        return
    if all(moment.subject is None for moment in moments):
        yield f"its matcher `{entry.matcher}` has no effect on {entry.event}", ""
        return
    possible = _possible(moments, tools)
    if not possible or _fits(entry, dialect, possible):
        yield from _parts(entry, dialect, possible)
        return
    if "mcp" in entry.matcher:
        if WHOLE_SERVER.fullmatch(entry.matcher) and entry.matcher.count("__") == 1 and not _fits_mcp(entry, dialect):
            yield (
                f"`{entry.matcher}` is the exact name of a tool here",
                f"{entry.matcher}__.* fits all tools of the server",
            )
        return
    yield f"its matcher `{entry.matcher}` fits nothing that cru has", _meant(entry.matcher, entry, possible)


def _possible(moments: list[EventMapping], tools: tuple[str, ...]) -> list[tuple[str, str]]:
    """(event, subject) of everything that a matcher can meet; nothing if that is no closed list."""
    found: list[tuple[str, str]] = []
    for moment in moments:
        subjects = tools if moment.event.startswith(ABOUT_TOOLS) else SUBJECTS.get(moment.event, ())
        if not subjects:
            return []
        found += [(moment.event, subject) for subject in subjects]
    return found


def _fits(entry: HookEntry, dialect: Dialect, possible: list[tuple[str, str]]) -> bool:
    bare = replace(entry, condition="")
    return any(dialect.matches(bare, _event(event, subject), subject) for event, subject in possible)


def _event(event: str, subject: str) -> Event:
    about_tools = event.startswith(ABOUT_TOOLS)
    return (
        synthetic_events.make_call(subject)
        if about_tools
        else synthetic_events.make_event(event, synthetic_events.make_payload(event, {}))
    )


def _fits_mcp(entry: HookEntry, dialect: Dialect) -> bool:
    tool = f"{entry.matcher}__anything"
    return dialect.matches(replace(entry, condition=""), synthetic_events.make_call(tool), tool)


def _parts(entry: HookEntry, dialect: Dialect, possible: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Of a list of names each one must fit something."""
    words = [word.strip() for word in re.split(r"[|,]", entry.matcher)]
    if len(words) < 2 or not possible or not all(re.fullmatch(r"\w+", word) for word in words):
        return
    for word in words:
        if not word.startswith("mcp") and not _fits(replace(entry, matcher=word), dialect, possible):
            yield f"`{word}` in its matcher fits nothing that cru has", _meant(word, entry, possible)


def _meant(word: str, entry: HookEntry, possible: list[tuple[str, str]]) -> str:
    known = [name for event, subject in possible for name in _called(event, subject, entry.dialect)]
    return did_you_mean(word.strip("^$()"), known)


def _called(event: str, subject: str, dialect: str) -> tuple[str, ...]:
    return tool_names.names(dialect, subject) if event.startswith(ABOUT_TOOLS) else (subject,)


def _condition(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not entry.condition:
        return
    moments = [moment.event for moment in dialect.events[entry.event] if moment.event]
    if not any(event.startswith(ABOUT_TOOLS) for event in moments):
        yield f"`if` works on events of tools only, so this never runs on {entry.event}", "leave `if` out"
        return
    kinds = KINDS if entry.dialect == "cru" else ()
    known = (*kinds, *(name for tool in tools for name in tool_names.names(entry.dialect, tool)))
    name = re.split(r"[:(]", entry.condition)[0].strip()
    if name not in known and "*" not in name and not name.startswith("mcp"):
        yield f"`if` names `{name}`, which is no tool of cru's, so this never runs", did_you_mean(name, known)


def _beside(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    gates = [moment for moment in dialect.events[entry.event] if moment.event and BY_NAME[moment.event].kind == "gate"]
    if entry.asynchronous and (entry.on_error in ("deny", "ask") or gates):
        what = (
            "`on_error` has no effect"
            if entry.on_error in ("deny", "ask")
            else f"it can forbid nothing on {entry.event}"
        )
        yield f"nobody waits for it (`async`), so {what}", "a guard must not be `async`"


def _seconds(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if entry.timeout >= LONG and dialect.name != "gemini":
        hint = f"{entry.timeout / 1000:g} seconds?" if entry.timeout % 100 == 0 else ""
        yield (
            f"its `timeout` is {entry.timeout:g} seconds ({entry.timeout / 60:.0f} minutes); only Gemini counts milliseconds",
            hint,
        )


def _login(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if entry.kind == "command" and runnable.login(entry):
        yield "it starts a login shell: slow, and what the profile prints spoils the answer", "leave -l out"


CHECKS: Mapping[str, Check] = {
    "matcher": _matcher, "if": _condition, "timeout": _seconds, "login": _login, "async": _beside,
}  # fmt: skip
