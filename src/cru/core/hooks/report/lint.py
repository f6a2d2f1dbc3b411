"""What is odd about hooks, told by reading alone (`cru hooks check`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.entry import LAYERS, HookEntry, HookFileProblem
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import NEVER_RUNNING, Activation, EntryStatus
from cru.core.hooks.report import project_files, query, runnable
from cru.core.hooks.report.matchers import check_async, check_condition, check_matcher
from cru.core.plugins.lost_guards import LossKind, LostGuard

Level = Literal["broken", "odd", "waiting"]
Area = Literal["hooks", "plugins", "settings", "permissions"]
UNCHECKED = (*NEVER_RUNNING, Activation.BROKEN, Activation.REFUSED, Activation.DISABLED)
"""Nobody waits for these to work."""
LONG = 1000.0
"""Seconds; a limit of as much was meant in milliseconds."""


class Finding(Struct, frozen=True):
    """One thing to know.

    level: broken: something that cannot work; odd: probably not what was meant; waiting: for a person
    id: of the entry, "" if it is about a file
    area: what it is about
    """

    level: Level
    id: str
    where: str
    text: str
    hint: str = ""
    area: Area = "hooks"


def finding_of(guard: LostGuard) -> Finding:
    """A lost guard, as it stands in a list of findings."""
    level: Level = "waiting" if guard.kind in (LossKind.AWAITING, LossKind.CHANGED) else "broken"
    hint = guard.hint or ("cru hooks review" if level == "waiting" else "")
    return Finding(level, guard.owner, guard.where, guard.text, hint)


def find_problems(inventory: HookInventory, lost: Sequence[LostGuard], tools: Iterable[str] = ()) -> list[Finding]:
    """The guards that are lost, and whatever else is broken or odd, in the order of the files. tools: names of tools beside those that
    every system has."""
    facts = inventory.facts
    findings = [finding_of(guard) for guard in lost]
    known = {(finding.where, finding.text) for finding in findings}
    others = [
        Finding("odd", "", str(facts.home / "trust.json"), str(problem))
        for problem in inventory.trust.store.problems[:1]
    ]
    others += _check_files(inventory.loaded.problems)
    others += _check_entries(inventory, frozenset(guard.owner for guard in lost), tools)
    return sort_by_place([*findings, *(finding for finding in others if (finding.where, finding.text) not in known)])


def _check_files(problems: list[HookFileProblem]) -> Iterator[Finding]:
    for problem in problems:
        level: Level = "broken" if problem.loses_hooks else "odd"
        yield Finding(level, "", problem.where, problem.text, problem.hint)


def _check_entries(inventory: HookInventory, lost: frozenset[str], tools: Iterable[str]) -> Iterator[Finding]:
    """lost: the ids of those that are known to do nothing."""
    known_tools = tuple(dict.fromkeys((*query.own_tools(), *tools)))
    twins: dict[object, HookEntry] = {}
    for status in inventory.loaded.known:
        entry, dialect = status.entry, inventory.dialects[status.entry.dialect]
        if status.state in NEVER_RUNNING and entry.event in dialect.events and entry.id not in lost:
            yield Finding("odd", entry.id, entry.where, f"never runs here: {status.why}")
        if status.state not in UNCHECKED:
            yield from _check_runnable(status, dialect, inventory.facts)
            yield from _check_entry(entry, dialect, known_tools, inventory.loaded.problems)
            yield from _check_twin(entry, dialect, twins)


def sort_by_place(findings: list[Finding]) -> list[Finding]:
    """By file, and in each by line."""
    files = list(dict.fromkeys(_place(finding)[0] for finding in findings))
    return sorted(findings, key=lambda finding: (files.index(_place(finding)[0]), _place(finding)[1]))


def _place(finding: Finding) -> tuple[str, int]:
    file, _, line = finding.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (finding.where, 0)


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
