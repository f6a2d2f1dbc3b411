"""Reading every configuration, and deciding of each entry whether it may run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.regular import read_regular
from cru.core.hooks import MAX_CONFIG_BYTES, MAX_CONFIG_TABLES, MAX_CONFIG_VALUES
from cru.core.hooks.discovery import is_dead_link
from cru.core.hooks.model.entry import (
    RUNNING,
    HookEntry,
    HookFileProblem,
    HookSource,
    ProblemKind,
    number_entries,
    too_long,
)
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect, ForeignSettings, ParsedFile
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks, LoadPolicy
from cru.core.hooks.parsing.reading import has_nul

NO_SETTINGS = ForeignSettings()


def read_sources(dialects: Iterable[Dialect], facts: SessionFacts) -> tuple[list[HookSource], list[HookFileProblem]]:
    """Every configuration file that is there, in order of dialect and layer; one that is in two places (the home folder as project)
    belongs to the first."""
    sources: list[HookSource] = []
    problems: list[HookFileProblem] = []
    for dialect in dialects:
        seen: set[str] = set()
        for layer, path in dialect.places(facts):
            real = os.path.realpath(path)
            if real in seen:
                continue
            seen.add(real)
            try:
                text = read_regular(path, MAX_CONFIG_BYTES).decode()
            except (FileNotFoundError, NotADirectoryError):
                if text := _describe_link(path):
                    problems.append(HookFileProblem(path, 0, text, kind=ProblemKind.WHOLE_FILE))
                continue
            except UnicodeDecodeError:
                problems.append(HookFileProblem(path, 0, "not UTF-8", "save the file as UTF-8", ProblemKind.WHOLE_FILE))
                continue
            except OSError as error:
                text = f"cannot be read: {error.strerror or error}"
                problems.append(HookFileProblem(path, 0, text, kind=ProblemKind.WHOLE_FILE))
                continue
            if reason := _why_too_large(text):
                problems.append(
                    HookFileProblem(path, 0, reason, "split it, or take out what is no hook", ProblemKind.WHOLE_FILE)
                )
                continue
            sources.append(HookSource(dialect.name, layer, path, text, own=dialect.footprint.own))
    return sources, problems


def _why_too_large(text: str) -> str:
    """Why a file would take too long to read although it is short enough, "" if it would not."""
    if text.count("{") + text.count("[") > MAX_CONFIG_TABLES:
        return f"it holds more than {MAX_CONFIG_TABLES:,} tables and lists"
    if text.count(",") + text.count("\n") > MAX_CONFIG_VALUES:
        return f"it holds more than {MAX_CONFIG_VALUES:,} values"
    return ""


def _describe_link(path: Path) -> str:
    """Why a file is not there although somebody meant it to be, "" if nobody did."""
    if path.is_symlink():
        return f"it is a link to {os.readlink(path)}, which is not there"
    if is_dead_link(path.parent):
        return f"its folder is a link to {os.readlink(path.parent)}, which is not there"
    return ""


def load_hooks(
    sources: Sequence[HookSource], dialects: Mapping[str, Dialect], policy: LoadPolicy, facts: SessionFacts
) -> LoadedHooks:
    """Entries of all sources, each with its state."""
    loaded = LoadedHooks(sources=list(sources))
    entries: list[HookEntry] = []
    files: dict[str, list[ParsedFile]] = {}
    for source in sources:
        below = files.setdefault(source.dialect, [])
        file = _parse(dialects[source.dialect], source, facts, below)
        below.append(file)
        loaded.problems += file.problems
        loaded.problems += _find_unknown_events(dialects[source.dialect], file)
        entries += file.entries
        if file.settings != NO_SETTINGS:
            loaded.settings.append((source, file.settings))
    loaded.known = [_decide_status(entry, dialects[entry.dialect], policy) for entry in number_entries(entries)]
    return loaded


def _parse(dialect: Dialect, source: HookSource, facts: SessionFacts, below: Sequence[ParsedFile]) -> ParsedFile:
    try:
        return dialect.parse(source, facts, below)
    except Exception as error:  # noqa: BLE001 a boundary: the file is a stranger's, and a start must survive whatever is in it
        text = f"this file cannot be read by cru: {type(error).__name__}: {error}"
        return ParsedFile([], [HookFileProblem(source.path, 0, text, kind=ProblemKind.WHOLE_FILE)])


def _find_unknown_events(dialect: Dialect, file: ParsedFile) -> list[HookFileProblem]:
    """Return a problem for each event of a file that its dialect does not have, at the first hook that names it. A hook with a problem of
    its own is reported anyway."""
    first = {
        entry.event: entry
        for entry in reversed(file.entries)
        if entry.event not in dialect.events and not entry.problem
    }
    problems = []
    for event, entry in reversed(first.items()):
        text, hint = f"{dialect.name} has no event {event}, so this never runs", did_you_mean(event, dialect.events)
        kind = ProblemKind.PART if hint else ProblemKind.UNKNOWN_EVENT
        problems.append(HookFileProblem(entry.source.path, entry.line, text, hint, kind))
    return problems


def _decide_status(entry: HookEntry, dialect: Dialect, policy: LoadPolicy) -> EntryStatus:
    problem = entry.problem or ("a text in it has a NUL character" if has_nul(entry.definition) else too_long(entry))
    if entry.kind in RUNNING and not "".join((entry.command, *(entry.args or ()))).strip() and not problem:
        problem = f"its `{entry.kind}` is blank, so it would do nothing"
    if problem:
        return EntryStatus(entry, Activation.BROKEN, problem)
    if entry.kind not in RUNNING:
        return EntryStatus(entry, Activation.DISABLED if policy.disables(entry) else Activation.UNAVAILABLE)
    mappings = dialect.events.get(entry.event, ())
    if not any(mapping.event for mapping in mappings):
        reason = next(
            (mapping.unavailable for mapping in mappings if mapping.unavailable), f"cru has no moment for {entry.event}"
        )
        return EntryStatus(entry, Activation.DISABLED if policy.disables(entry) else Activation.NO_EVENT, reason)
    if not entry.enabled or policy.disables(entry):
        return EntryStatus(entry, Activation.DISABLED)
    return _decide_trust(entry, policy)


def _decide_trust(entry: HookEntry, policy: LoadPolicy) -> EntryStatus:
    """Whether a person has said that it may run; nobody is asked about cru's own user files."""
    is_foreign = not entry.of_project and entry.dialect not in policy.accepted
    if entry.source.own and not entry.of_project:
        return EntryStatus(entry, Activation.ACTIVE)
    if policy.is_refused(entry):
        name = entry.dialect if is_foreign else f"{entry.id}@{policy.digest(entry)}"
        return EntryStatus(entry, Activation.REFUSED, name)
    if is_foreign:
        return EntryStatus(entry, Activation.NOT_ACCEPTED)
    if not entry.of_project or policy.is_trusted(entry):
        return EntryStatus(entry, Activation.ACTIVE)
    change = policy.describe_change(entry)
    return EntryStatus(entry, Activation.UNTRUSTED, change, changed=change != "")
