"""What a person is told when a session has read its hooks: what does not run and why, and what runs although nobody has accepted it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cru.events.stream import Notice
from cru.extensions.hooks import HookOptions, SessionHookOptions
from cru.extensions.hooks.discovery import HookPolicy
from cru.extensions.hooks.errors import Untrusted
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.entry import HookFileProblem, ProblemKind
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.status import (
    AWAITING_REVIEW,
    NEVER_RUNNING,
    REVIEW,
    Activation,
    EntryStatus,
    LoadedHooks,
)
from cru.values.visible import visible

SHOWN = 5
"""What is wrong in a file is told so often at the start of a session."""
LINE = 500
"""Characters of a line that is told."""


def require_all_running(inventory: HookInventory, options: HookOptions) -> None:
    """Raises Untrusted if anything awaits a person, is broken or is not understood."""
    loaded = inventory.loaded
    waiting = []
    for status in loaded.of(*AWAITING_REVIEW):
        why = f" ({status.why})" if status.changed else ""
        entry = status.entry
        waiting.append((entry.source.path, f"{entry.where}: {entry.label}: {status.state}{why}"))
    waiting += [(Path(missing.file), f"{missing.label}: {missing.why}") for missing in loaded.missing]
    broken = [
        *_broken(loaded),
        *_unavailable(inventory, options),
        *((problem.path, str(problem)) for problem in _losses(loaded)),
    ]
    lines = _limit_by_file(waiting, "cru hooks list") + _limit_by_file(broken, "cru hooks check")
    if lines:
        steps = [f"{REVIEW} shows what awaits trust"] if waiting else []
        steps += ["`cru hooks check` says what is wrong in the files"] if broken else []
        raise untrusted(lines, "; ".join(steps))


def untrusted(lines: list[str], hint: str) -> Untrusted:
    """What ends a run with --strict-hooks."""
    listed = "\n".join(f"  {line}" for line in lines)
    return Untrusted(f"--strict-hooks: not every hook that is there can run:\n{listed}", hint)


def list_notices(inventory: HookInventory, options: HookOptions, policy: HookPolicy) -> list[Notice]:
    loaded = inventory.loaded
    texts = [str(problem) for problem in inventory.trust.store.problems[:1]]
    reported = (*_losses(loaded), *_oddities(loaded), *_ignored(loaded, options))
    problems = [(problem.path, str(problem)) for problem in reported]
    texts += _limit_by_file([*problems, *_broken(loaded), *_unavailable(inventory, options)], "cru hooks check")
    texts += options.ignored if isinstance(options, SessionHookOptions) else ()
    texts += _awaiting_trust(loaded)
    not_accepted = Counter(status.entry.source.path for status in loaded.of(Activation.NOT_ACCEPTED))
    texts += [
        f"{_short(path, inventory.facts)} has {count(number, 'hook')}, off: {REVIEW}"
        for path, number in not_accepted.items()
    ]
    if policy == "all":
        texts += _unaccepted(inventory, options)
    notices = [Notice("warning", in_a_line(text), "hooks") for text in texts]
    never = len(loaded.of(*NEVER_RUNNING))
    if never:
        text = f"{count(never, 'hook')} never {'runs' if never == 1 else 'run'} here: `cru hooks list`"
        notices.append(Notice("info", text))
    return notices


def _awaiting_trust(loaded: LoadedHooks) -> list[str]:
    """First what was trusted as it was before, since people may rely on it."""
    waiting = loaded.of(Activation.UNTRUSTED)
    changed = [status for status in waiting if status.changed]
    texts = []
    if changed:
        have = "has changed and does" if len(changed) == 1 else "have changed and do"
        listed = "; ".join(f"{status.entry.label}: {status.detail}" for status in changed[:SHOWN])
        texts.append(f"{count(len(changed), 'project hook')} that you trusted {have} not run: {REVIEW} ({listed})")
    if loaded.missing:
        have = "has changed or is" if len(loaded.missing) == 1 else "have changed or are"
        listed = "; ".join(f"{missing.label}: {missing.why}" for missing in loaded.missing[:SHOWN])
        hooks = f"{count(len(loaded.missing), 'project hook')} that you trusted {have} switched off"
        texts.append(f"{hooks}: {REVIEW} ({listed})")
    new = len(waiting) - len(changed)
    if new:
        texts.append(f"{count(new, 'project hook')} {'awaits' if new == 1 else 'await'} trust: {REVIEW}")
    return texts


def _oddities(loaded: LoadedHooks) -> list[HookFileProblem]:
    """What is odd in files that are used."""
    used = {entry.source.path for entry in loaded.active()}
    return [problem for problem in loaded.problems if problem.path in used and problem.kind is ProblemKind.ODDITY]


def _ignored(loaded: LoadedHooks, options: HookOptions) -> list[HookFileProblem]:
    """What would widen and has no effect, in the project's files and in those whose program a person has accepted."""
    open_files = {
        source.path for source in loaded.sources if source.layer == "project" or source.dialect in options.dialects
    }
    return [p for p in loaded.problems if p.kind is ProblemKind.IGNORED and p.path in open_files]


def _losses(loaded: LoadedHooks) -> list[HookFileProblem]:
    """Files and parts of files that are left out; another program's file that is off is its own affair."""
    off = {status.entry.source.path for status in loaded.of(Activation.NOT_ACCEPTED)}
    return [
        problem
        for problem in loaded.problems
        if problem.kind is ProblemKind.WHOLE_FILE or (problem.loses_hooks and problem.path not in off)
    ]


def _broken(loaded: LoadedHooks) -> list[tuple[Path, str]]:
    return [
        (status.entry.source.path, f"{status.entry.where}: the hook is left out: {status.why}")
        for status in loaded.of(Activation.BROKEN)
    ]


def _unavailable(inventory: HookInventory, options: HookOptions) -> list[tuple[Path, str]]:
    """Hooks that cru cannot run, at events where they could refuse something."""
    return [
        (
            status.entry.source.path,
            f"{status.entry.where}: this guard does not run: {status.why} (to do without: `cru hooks disable {status.entry.id}`)",
        )
        for status in unavailable_guards(inventory, options)
    ]


def unavailable_guards(inventory: HookInventory, options: HookOptions) -> list[EntryStatus]:
    """Hooks that cru cannot run, at events where they could refuse something."""
    return [
        status
        for status in inventory.loaded.of(*NEVER_RUNNING)
        if (entry := status.entry).enabled
        and inventory.dialects[entry.dialect].can_refuse(entry)
        and (entry.of_project or entry.source.own or entry.dialect in options.dialects)
    ]


def _limit_by_file(texts: list[tuple[Path, str]], command: str) -> list[str]:
    """The first few of each file, each on one line; of the others only how many there are, and the command that shows them."""
    by_file: dict[Path, list[str]] = {}
    for path, text in texts:
        by_file.setdefault(path, []).append(text)
    lines: list[str] = []
    for path, of_file in by_file.items():
        lines += [in_a_line(text) for text in of_file[:SHOWN]]
        if len(of_file) > SHOWN:
            lines.append(in_a_line(f"{path}: and {len(of_file) - SHOWN} more: `{command}`"))
    return lines


def _unaccepted(inventory: HookInventory, options: HookOptions) -> list[str]:
    running = [
        entry
        for entry in inventory.loaded.active()
        if (entry.of_project and not inventory.trust.is_trusted(entry))
        or (not entry.of_project and not entry.source.own and entry.dialect not in options.dialects)
    ]
    if not running:
        return []
    listed = ", ".join(in_a_line(entry.label) for entry in running)
    return [f"--hooks=all: {count(len(running), 'hook')} that nobody has accepted may run: {listed}"]


def in_a_line(text: str) -> str:
    """A stranger's words as one line that a terminal shows as it is."""
    plain = visible(text[: LINE + 1])
    return plain if len(text) <= LINE and len(plain) <= LINE else plain[: LINE - 1] + "…"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(path: Path, facts: SessionFacts) -> str:
    return f"~/{path.relative_to(facts.user_home)}" if path.is_relative_to(facts.user_home) else str(path)
