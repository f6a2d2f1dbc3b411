"""What a person is told when a session has read its hooks: what does not run and why, and what runs although nobody has accepted it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cru.core.base.values.visible import SHOWN, count, in_a_line, limit_by_file
from cru.core.events.stream import Notice, StatusChanged
from cru.core.hooks import HookOptions, SessionHookOptions
from cru.core.hooks.discovery import HookPolicy
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.lost_hooks import find_left_out
from cru.core.hooks.model.entry import HookFileProblem, ProblemKind
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.status import NEVER_RUNNING, REVIEW, Activation, LoadedHooks


def list_notices(inventory: HookInventory, options: HookOptions, policy: HookPolicy) -> list[Notice]:
    loaded = inventory.loaded
    texts = [str(problem) for problem in inventory.trust.store.problems[:1]]
    problems = [(guard.file, str(guard)) for guard in find_left_out(inventory, options)]
    problems += [(str(p.path), str(p)) for p in (*_oddities(loaded), *_ignored(loaded, options))]
    texts += limit_by_file(problems, "cru hooks check")
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


def waiting_status(inventory: HookInventory) -> StatusChanged:
    """How many hooks of the project await trust, for as long as they do."""
    waiting = len(inventory.loaded.of(Activation.UNTRUSTED))
    text = f"{count(waiting, 'hook')} {'awaits' if waiting == 1 else 'await'} trust" if waiting else ""
    return StatusChanged("hooks", "trust", text, "warn")


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


def _unaccepted(inventory: HookInventory, options: HookOptions) -> list[str]:
    loaded = inventory.loaded
    running = [entry for entry in loaded.active() if entry.id in loaded.unaccepted]
    if not running:
        return []
    listed = ", ".join(in_a_line(entry.label) for entry in running)
    return [f"--hooks=all: {count(len(running), 'hook')} that nobody has accepted may run: {listed}"]


def _short(path: Path, facts: SessionFacts) -> str:
    return f"~/{path.relative_to(facts.user_home)}" if path.is_relative_to(facts.user_home) else str(path)
