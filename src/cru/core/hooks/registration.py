"""Puts the hooks that were read on the bus of a session, and tells a person what does not run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cru.core.base.config.positions import shorten
from cru.core.base.values.visible import count, in_a_line
from cru.core.conversations.line_file import LineFile
from cru.core.events.stream import Notice
from cru.core.hooks import HookSetup
from cru.core.hooks.dialects import claude_folder
from cru.core.hooks.dialects.transcript import Transcript, link_path
from cru.core.hooks.foreign_settings import accept_settings, find_lost_rules
from cru.core.hooks.inventory import HookInventory, session_facts, take_inventory
from cru.core.hooks.lost_hooks import find_lost_hooks, require_none, untrusted
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, ProblemKind
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.notices import list_notices, waiting_status
from cru.core.hooks.report.powerless import find_powerless
from cru.core.hooks.session import SessionHooks
from cru.core.plugins.lost_guards import LostGuard
from cru.core.turn.parts import SessionServices

if TYPE_CHECKING:
    from cru.core.agents.record import TaskRecord


def register_hooks(setup: HookSetup, names: Iterable[str], hooks: SessionHooks | None) -> SessionHooks:
    """Read what there is of these dialects, and put it on the bus in place of what was there. Raises Untrusted (only with `strict`)."""
    parts, bus = setup.parts, setup.parts.bus
    facts = hooks.facts if hooks is not None else _facts_of(setup)
    inventory = take_inventory(names, facts, setup.options, setup.policy)
    if hooks is not None:
        _note_unreadable(hooks.loaded, inventory.loaded)
        _hold_on(setup, hooks.loaded, inventory)
        _hold_rules(setup, hooks.loaded, inventory.loaded)
    if setup.strict and (lost := find_lost_hooks(inventory, setup.options)):
        require_none(lost, _lost_plugins(setup))
    for notice in list_notices(inventory, setup.options, setup.policy):
        bus.stream.tell(notice)
    status = waiting_status(inventory)
    if status.text or (hooks is not None and hooks.loaded.of(Activation.UNTRUSTED)):
        bus.stream.tell(status)
    _take_settings(setup, inventory)
    parts.gate.protect(inventory.trust.files(entry for entry in inventory.loaded.active() if entry.of_project))
    trust = None if setup.policy == "all" else inventory.trust
    if hooks is not None:
        hooks.replace(inventory.loaded, inventory.dialects, trust)
        return hooks
    log = LineFile(parts.store.folder / "hooks.jsonl", parts.store.record_limits, setup.redact)
    hooks = SessionHooks(inventory.loaded, inventory.dialects, facts, log, trust, setup.redact, setup.plugins)
    hooks.is_strict = setup.strict
    hooks.bind(parts)
    hooks.register(bus)
    parts.services.lifecycle.opening.append(hooks.open)
    parts.services.lifecycle.closing.append(hooks.close)
    return hooks


def _lost_plugins(setup: HookSetup) -> list[LostGuard]:
    """Plugins that would not run either, as far as their files tell: who mends the one hears of the other."""
    if setup.plugins is None:
        return []
    from cru.core.hooks.report.plugins import check_plugins

    return check_plugins(setup.plugins.places, setup.parts.tools.names()).lost


def _take_settings(setup: HookSetup, inventory: HookInventory) -> None:
    """Rules and variables of other programs' settings, in place of those that held before."""
    everything = setup.policy == "all"
    dialects = frozenset(inventory.dialects if everything else setup.options.dialects)
    accepted = accept_settings(inventory.loaded.settings, inventory.trust.store, dialects, everything)
    setup.parts.gate.take_over(accepted.rules, accepted.folders)
    inventory.facts.settings_env = accepted.env
    for source in accepted.waiting:
        text = f"{source.path}: its `env`, allow rules and folders wait until you accept it: `cru trust`"
        setup.parts.bus.stream.tell(Notice("warning", in_a_line(text), "hooks"))


def _hold_on(setup: HookSetup, before: LoadedHooks, inventory: HookInventory) -> None:
    """A file of the user's that cannot be read any more, half written perhaps, does not end its hooks: they stay as they were. What a
    person took out of a file is gone, and told. (A project's hooks hold by what was accepted: trust/guard.py.)"""
    loaded = inventory.loaded
    broken = {problem.path for problem in loaded.problems if problem.kind is ProblemKind.WHOLE_FILE}
    known = {entry.entry.id for entry in loaded.known}
    lost = [entry for entry in before.active() if entry.id not in known and not entry.of_project]
    held = [entry for entry in lost if entry.source.path in broken]
    loaded.known += [EntryStatus(entry, Activation.ACTIVE) for entry in held]
    gone = [entry for entry in lost if entry.source.path not in broken]
    if setup.strict:
        _require_files(gone)
    stay = f"{count(len(held), 'hook')} of a file that cannot be read any more {'stays' if len(held) == 1 else 'stay'} as before"
    went = f"{count(len(gone), 'hook')} that {'was' if len(gone) == 1 else 'were'} active {'is' if len(gone) == 1 else 'are'} gone"
    for text, entries in ((stay, held), (went, gone)):
        if entries:
            listed = ", ".join(entry.label for entry in entries)
            setup.parts.bus.stream.tell(Notice("warning", in_a_line(f"{text}: {listed}"), "hooks"))


def _require_files(gone: list[HookEntry]) -> None:
    """Raises Untrusted if a file whose hooks were active is not there any more."""
    paths = dict.fromkeys(entry.source.path for entry in gone if not entry.source.path.exists())
    if paths:
        texts = [f"{path} is gone, and its hooks with it" for path in paths]
        raise untrusted(texts, "put it back, or end this session and begin again without it")


def _note_unreadable(before: LoadedHooks, now: LoadedHooks) -> None:
    """A file that guarded and is empty now is being written; a link to nowhere is a file that cannot be read."""
    guarding = [entry.source.path for entry in before.active() if not entry.of_project]
    guarding += [source.path for source, settings in before.settings if settings.rules.deny or settings.rules.ask]
    texts: dict[Path, str | None] = dict.fromkeys(guarding)
    texts |= {source.path: source.text for source in now.sources if source.path in texts}
    lost = {problem.path for problem in now.problems if problem.kind is ProblemKind.WHOLE_FILE}
    for path, text in texts.items():
        why = "it is empty" if text is not None and not text.strip() else ""
        if text is None and os.path.lexists(path):
            why = "it cannot be read"
        if why and path not in lost:
            now.problems.append(HookFileProblem(path, 0, why, kind=ProblemKind.WHOLE_FILE))


def _hold_rules(setup: HookSetup, before: LoadedHooks, now: LoadedHooks) -> None:
    """The same for rules that tighten, of the project too: they held without anybody's trust. Raises Untrusted (only with `strict`)."""
    unreadable = {problem.path for problem in now.problems if problem.kind is ProblemKind.WHOLE_FILE}
    broken = {problem.path for problem in now.problems if problem.leaves_out}
    lost = find_lost_rules(before.settings, now.settings, unreadable, broken)
    now.settings += lost.held
    held = [source for source, settings in lost.held if settings.rules.deny or settings.rules.ask]
    texts = [f"{source.path}: its rules stay as before, since it cannot be used as it is" for source in held]
    if setup.strict and lost.gone:
        raise untrusted([f"{text}: this rule is gone" for text in lost.gone], "put it back, or begin a new chat")
    texts += [f"{text}: this rule is gone" for text in lost.gone]
    for text in dict.fromkeys(texts):
        setup.parts.bus.stream.tell(Notice("warning", in_a_line(text), "hooks"))


def check_guards(setup: HookSetup, hooks: SessionHooks) -> None:
    """Tell which hooks cannot guard although they are active, now that all tools are there. Raises Untrusted (only with `strict`)."""
    parts = setup.parts
    lost = find_powerless(hooks.loaded, hooks.dialects, hooks.facts, parts.tools.names())
    if setup.strict:
        require_none(lost)
    for text in (*map(str, lost), *_how_to_require(hooks, {guard.owner for guard in lost})):
        parts.bus.stream.tell(Notice("warning", in_a_line(text), "hooks"))


def _how_to_require(hooks: SessionHooks, ids: Collection[str]) -> Iterator[str]:
    """Of guards that are lost and let pass what they should judge: how a person makes them a must."""
    open_guards = [
        entry for entry in hooks.loaded.active() if entry.id in ids and entry.on_error not in ("deny", "ask")
    ]
    if open_guards:
        words = dict.fromkeys(hooks.dialects[entry.dialect].config.must_hold for entry in open_guards)
        marks = " or ".join(f"`{word}`" for word in words if word)
        refuse = f"; to refuse what it should judge, put {marks} into its entry" if marks else ""
        yield f"the run goes on without {_name_some(open_guards)}{refuse}; to end the run instead, use `--strict-hooks`"


def _name_some(entries: Sequence[HookEntry], most: int = 3) -> str:
    """Return what people call these hooks: the first few, and how many more there are."""
    names = [f"hook {shorten(entry.label)}" for entry in entries[:most]]
    more = len(entries) - most
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _task_records(services: SessionServices) -> list[TaskRecord]:
    """Of the session, once there are some."""
    work = services.tasks.background
    if work is None:
        return []
    from cru.core.agents.sub_agents import AgentTasks

    return [task.record for task in work.manager.tasks.values()] if isinstance(work, AgentTasks) else []


def _facts_of(setup: HookSetup) -> SessionFacts:
    parts = setup.parts
    store = parts.store
    facts = session_facts(setup.where, setup.options, store.folder, store.name, parts.bus.origin.session_id)
    facts.mode = lambda: parts.gate.mode
    facts.tasks = lambda: _task_records(parts.services)
    facts.is_chat = lambda: parts.services.face.is_chat
    facts.warn = parts.bus.stream.warn
    config = claude_folder(setup.where)
    link = link_path(config, facts.cwd, store.session_id) if setup.options.link_transcripts else None
    facts.transcript = transcript = Transcript(store, facts.root, parts.bus.stream.warn, link)
    parts.services.lifecycle.closing.append(transcript.close)
    facts.entries = store.entries
    return facts
