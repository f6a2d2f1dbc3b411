"""Reading every configuration, and deciding of each entry whether it may run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from cru.config.closest import did_you_mean
from cru.extensions.hooks.discovery import MAX_CONFIG_BYTES
from cru.extensions.hooks.errors import NoEntry
from cru.extensions.hooks.model.entry import RUNNING, HookEntry, HookFileProblem, HookSource, number_entries, too_long
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect
from cru.extensions.hooks.parsing.reading import has_nul

State = Literal[
    "active", "disabled", "untrusted", "refused", "not accepted", "broken", "not available yet", "no moment"
]
NOBODY = "nobody has accepted it yet"
WAITING: tuple[State, ...] = ("untrusted", "not accepted")


class MissingHook(Struct, frozen=True):
    """A hook of the project that a person accepted and that nobody ended. file: where it stood · label: what people called it · key: of its
    definition, "" in older records · off: it stands there still, switched off in a file of the project."""

    file: str
    label: str
    key: str
    off: bool = False

    @property
    def why(self) -> str:
        return f"accepted earlier, {'switched off' if self.off else 'gone or changed'} in {self.file}"


class EntryStatus(Struct):
    """One entry that was found, and whether it runs. changed: a person had accepted it as it was before."""

    entry: HookEntry
    state: State
    why: str = ""
    changed: bool = False


class LoadedHooks(Struct):
    """Everything that was found, in order, and what is odd about it. sources: the files that were read · lost: what a person had accepted
    of the project's files and that is not there as it was."""

    known: list[EntryStatus] = field(default_factory=list)
    problems: list[HookFileProblem] = field(default_factory=list)
    sources: list[HookSource] = field(default_factory=list)
    lost: list[MissingHook] = field(default_factory=list)

    def active(self) -> list[HookEntry]:
        return [one.entry for one in self.known if one.state == "active"]

    def waiting(self) -> list[HookEntry]:
        """Those that await a person's trust."""
        return [one.entry for one in self.known if one.state in WAITING]

    def of(self, *states: State) -> list[EntryStatus]:
        return [one for one in self.known if one.state in states]

    def find(self, word: str) -> EntryStatus:
        """The entry of an id, or of the beginning of one, with or without the dialect's name. Raises NoEntry."""
        ids = {one.entry.id: one for one in self.known}
        if word in ids:
            return ids[word]
        begins = [
            one for id, one in ids.items() if word and (id.startswith(word) or id.partition("-")[2].startswith(word))
        ]
        if len(begins) == 1:
            return begins[0]
        if begins:
            raise NoEntry(f"{word} may be {' or '.join(one.entry.id for one in begins)}", "type more of it")
        raise NoEntry(
            f"there is no hook {word}", did_you_mean(word, ids) or "`cru hooks list` shows those that are there"
        )


def read_sources(dialects: Iterable[Dialect], about: SessionFacts) -> tuple[list[HookSource], list[HookFileProblem]]:
    """Every configuration file that is there, in order of dialect and layer; one that is in two places (the home folder as project)
    belongs to the first."""
    from cru.files.regular import read_regular

    found: list[HookSource] = []
    problems: list[HookFileProblem] = []
    for dialect in dialects:
        taken: set[str] = set()
        for layer, path in dialect.places(about):
            real = os.path.realpath(path)
            if real in taken:
                continue
            taken.add(real)
            try:
                text = read_regular(path, MAX_CONFIG_BYTES).decode()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except UnicodeDecodeError:
                problems.append(HookFileProblem(path, 0, "not UTF-8", "save the file as UTF-8", fatal=True))
                continue
            except OSError as error:
                problems.append(HookFileProblem(path, 0, f"cannot be read: {error.strerror or error}", fatal=True))
                continue
            found.append(HookSource(dialect.name, layer, path, text, own=dialect.name == "cru"))
    return found, problems


class LoadPolicy(Struct, frozen=True):
    """What decides whether an entry may run. accepted: dialects whose user files a person has accepted · disabled: ids · by_project: ids
    that a project leaves out, which counts for its own entries only · is_trusted is asked only about what the project brings,
    is_refused about other programs' files too · changed: of what is not trusted, how it differs from what was accepted, "" if nothing
    was · digest: what is written behind its id to say which content was seen."""

    accepted: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    by_project: frozenset[str] = frozenset()
    is_trusted: Callable[[HookEntry], bool] = lambda entry: False
    is_refused: Callable[[HookEntry], bool] = lambda entry: False
    changed: Callable[[HookEntry], str] = lambda entry: ""
    digest: Callable[[HookEntry], str] = lambda entry: ""


def load_hooks(given: Sequence[HookSource], dialects: Mapping[str, Dialect], policy: LoadPolicy) -> LoadedHooks:
    """Entries of all sources, each with its state."""
    loaded = LoadedHooks(sources=list(given))
    everything: list[HookEntry] = []
    for source in given:
        entries, problems = _parsed(dialects[source.dialect], source)
        loaded.problems += problems
        everything += entries
    loaded.known = [_judged(entry, dialects[entry.dialect], policy) for entry in number_entries(everything)]
    return loaded


def _parsed(dialect: Dialect, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
    try:
        return dialect.parse(source)
    except Exception as error:  # noqa: BLE001 a boundary: the file is a stranger's, and a start must survive whatever is in it
        why = f"this file cannot be read by cru: {type(error).__name__}: {error}"
        return [], [HookFileProblem(source.path, 0, why, fatal=True)]


def _judged(entry: HookEntry, dialect: Dialect, policy: LoadPolicy) -> EntryStatus:
    problem = entry.problem or ("a text in it has a NUL character" if has_nul(entry.definition) else too_long(entry))
    if problem:
        return EntryStatus(entry, "broken", problem)
    if entry.kind not in RUNNING:
        return EntryStatus(entry, "not available yet", f"handlers of type {entry.kind} are not available yet")
    moments = dialect.events.get(entry.event, ())
    if not any(moment.event for moment in moments):
        later = next(
            (moment.unavailable for moment in moments if moment.unavailable), f"cru has no moment for {entry.event}"
        )
        return EntryStatus(entry, "no moment", later)
    if not entry.enabled:
        return EntryStatus(entry, "disabled", "in its own file")
    if _is_disabled(entry, policy):
        return EntryStatus(entry, "disabled", "`cru hooks enable` brings it back")
    return _leave(entry, policy)


def _is_disabled(entry: HookEntry, policy: LoadPolicy) -> bool:
    """By its id, with or without the number that an id which two entries share has got."""
    left_out = policy.disabled | (policy.by_project if entry.source.layer == "project" else frozenset())
    return not left_out.isdisjoint({entry.id, "-".join(entry.id.split("-")[:2])})


def _leave(entry: HookEntry, policy: LoadPolicy) -> EntryStatus:
    """Whether a person has said that it may run; nobody is asked about cru's own user files."""
    foreign = not entry.of_project and entry.dialect not in policy.accepted
    if entry.source.own and not entry.of_project:
        return EntryStatus(entry, "active")
    if policy.is_refused(entry):
        word = entry.dialect if foreign else f"{entry.id}@{policy.digest(entry)}"
        return EntryStatus(entry, "refused", f"`cru hooks review --trust {word}` takes that back")
    if foreign:
        return EntryStatus(entry, "not accepted", "`cru hooks review`")
    if not entry.of_project or policy.is_trusted(entry):
        return EntryStatus(entry, "active")
    changed = policy.changed(entry)
    return EntryStatus(entry, "untrusted", f"{changed or NOBODY}: `cru hooks review`", bool(changed))
