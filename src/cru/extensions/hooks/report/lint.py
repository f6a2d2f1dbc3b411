"""What is odd about hooks, told by reading alone (`cru hooks check`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.config.closest import did_you_mean
from cru.events.stamp import Event
from cru.extensions.hooks import synthetic_events
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.entry import LAYERS, HookEntry, HookFileProblem
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect, EventMapping
from cru.extensions.hooks.model.status import AWAITING_REVIEW, NEVER_RUNNING, Activation, EntryStatus
from cru.extensions.hooks.report import project_files, query, runnable

Level = Literal["broken", "odd", "waiting"]
UNCHECKED = (*NEVER_RUNNING, Activation.BROKEN, Activation.REFUSED, Activation.DISABLED)
"""Nobody waits for these to work."""
LONG = 1000.0
"""Seconds; a limit of as much was meant in milliseconds."""
CALLED = "tool:before_call"
ABOUT_TOOLS = ("tool:", "permission:", "output:")
WHOLE_SERVER = re.compile(r"mcp__[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")


ANCHORED = re.compile(r"\^\((?:\?:)?([^()]*)\)\$")
"""A list of names that stands for whole names."""


class Finding(Struct, frozen=True):
    """One thing to know.

    level: broken: something that cannot work; odd: probably not what was meant; waiting: for a person
    id: of the entry, "" if it is about a file
    """

    level: Level
    id: str
    where: str
    text: str
    hint: str = ""


def find_problems(inventory: HookInventory, tools: Iterable[str] = ()) -> list[Finding]:
    """Everything, in the order of the files. tools: names of tools beside those that every system has."""
    facts, problems = inventory.facts, inventory.loaded.problems
    findings = [
        Finding("odd", "", str(facts.home / "trust.json"), str(problem))
        for problem in inventory.trust.store.problems[:1]
    ]
    findings += [
        Finding("broken" if problem.loses_hooks else "odd", "", problem.where, problem.text, problem.hint)
        for problem in problems
    ]
    known_tools = tuple(dict.fromkeys((*query.own_tools(), *tools)))
    twins: dict[object, HookEntry] = {}
    for status in inventory.loaded.known:
        dialect = inventory.dialects[status.entry.dialect]
        findings += _check_state(status, dialect)
        if status.state not in UNCHECKED:
            findings += _check_runnable(status, dialect, facts)
            findings += _check_entry(status.entry, dialect, known_tools, problems)
            findings += _check_twin(status.entry, dialect, twins)
    return sort_by_place(findings)


def sort_by_place(findings: list[Finding]) -> list[Finding]:
    """By file, and in each by line."""
    files = list(dict.fromkeys(_place(finding)[0] for finding in findings))
    return sorted(findings, key=lambda finding: (files.index(_place(finding)[0]), _place(finding)[1]))


def _place(finding: Finding) -> tuple[str, int]:
    file, _, line = finding.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (finding.where, 0)


def _check_state(status: EntryStatus, dialect: Dialect) -> Iterator[Finding]:
    entry = status.entry
    if status.state is Activation.BROKEN:
        yield Finding("broken", entry.id, entry.where, status.why)
    elif status.state in NEVER_RUNNING and entry.event in dialect.events:
        yield Finding("odd", entry.id, entry.where, f"never runs here: {status.why}")
    elif status.state in AWAITING_REVIEW:
        text = status.detail if status.changed else "awaits that you accept it"
        yield Finding("waiting", entry.id, entry.where, text, "cru hooks review")


def _check_runnable(status: EntryStatus, dialect: Dialect, facts: SessionFacts) -> Iterator[Finding]:
    entry = status.entry
    level: Level = "odd" if status.state is Activation.NOT_ACCEPTED else "broken"
    for certain, text, hint in runnable.find_broken(entry, dialect.launch, facts):
        yield Finding(level if certain else "odd", entry.id, entry.where, text, hint)
    text, hint = project_files.find_project_file(entry, facts)
    if text:
        yield Finding("odd", entry.id, entry.where, text, hint)


def _check_twin(entry: HookEntry, dialect: Dialect, twins: dict[object, HookEntry]) -> Iterator[Finding]:
    """An entry that does what an earlier one does."""
    twin = twins.setdefault((entry.dialect, entry.event, entry.matcher, entry.identity), entry)
    if twin is not entry:
        is_no_less_trusted = LAYERS.index(twin.source.layer) <= LAYERS.index(entry.source.layer)
        outcome = "it runs once" if dialect.config.runs_equal_once and is_no_less_trusted else "both run"
        yield Finding("odd", entry.id, entry.where, f"the same as {twin.id} ({twin.where}); {outcome}")


# one entry --------------------------------------------------------------------------------------------------------------------------

Check = Callable[[HookEntry, Dialect, tuple[str, ...]], Iterator[tuple[str, str]]]


def _check_entry(
    entry: HookEntry, dialect: Dialect, tools: tuple[str, ...], problems: list[HookFileProblem]
) -> Iterator[Finding]:
    """What the reader of its file has said of a key is not said again."""
    known = {problem.key for problem in problems if problem.path == entry.source.path and problem.line == entry.line}
    for key, check in CHECKS.items():
        if key not in known:
            for text, hint in check(entry, dialect, tools):
                yield Finding("odd", entry.id, entry.where, text, hint)


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
    return any(dialect.matching.matcher_fits(entry, _event(event, subject), subject) for event, subject in targets)


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


def _check_timeout(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if entry.timeout >= LONG and not dialect.config.counts_milliseconds:
        hint = f"{entry.timeout / 1000:g} seconds?" if entry.timeout % 100 == 0 else ""
        yield (
            f"its `timeout` is {entry.timeout:g} seconds ({entry.timeout / 60:.0f} minutes); only Gemini counts milliseconds",
            hint,
        )


def _check_login(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if entry.kind == "command" and runnable.starts_login_shell(entry):
        yield "it starts a login shell: slow, and what the profile prints spoils the answer", "leave -l out"


CHECKS: Mapping[str, Check] = {
    "matcher": check_matcher, "if": check_condition, "timeout": _check_timeout, "login": _check_login, "async": check_async,
}  # fmt: skip
