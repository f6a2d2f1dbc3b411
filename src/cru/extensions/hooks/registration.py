"""Puts the hooks that were read on the bus of a session, and tells a person what does not run."""

from __future__ import annotations

from collections.abc import Iterable

from cru.contexts.line_file import LineFile
from cru.extensions.hooks import HookSetup
from cru.extensions.hooks.dialects.transcript import Transcript
from cru.extensions.hooks.inventory import session_facts, take_inventory
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.notices import list_notices, require_all_running
from cru.extensions.hooks.session import SessionHooks


def register_hooks(setup: HookSetup, names: Iterable[str], hooks: SessionHooks | None) -> SessionHooks:
    """Read what there is of these dialects, and put it on the bus in place of what was there. Raises Untrusted (only with `strict`)."""
    parts, bus = setup.parts, setup.parts.bus
    facts = hooks.facts if hooks is not None else _facts_of(setup)
    inventory = take_inventory(names, facts, setup.options, setup.policy)
    if setup.strict:
        require_all_running(inventory.loaded)
    for notice in list_notices(inventory, setup.options, setup.policy):
        bus.stream.tell(notice)
    parts.gate.protect(inventory.trust.files(entry for entry in inventory.loaded.active() if entry.of_project))
    trust = None if setup.policy == "all" else inventory.trust
    if hooks is not None:
        hooks.replace(inventory.loaded, inventory.dialects, trust)
        return hooks
    log = LineFile(parts.store.folder / "hooks.jsonl", parts.store.record_limits, setup.redact)
    hooks = SessionHooks(inventory.loaded, inventory.dialects, facts, log, trust, setup.redact, setup.plugins)
    hooks.bind(parts)
    hooks.register(bus)
    parts.lifecycle.closing.append(hooks.close)
    return hooks


def _facts_of(setup: HookSetup) -> SessionFacts:
    parts = setup.parts
    store = parts.store
    facts = session_facts(setup.where, setup.options, store.folder, store.name, parts.bus.origin.session_id)
    facts.mode = lambda: parts.gate.mode
    facts.is_chat = lambda: parts.services.is_chat
    facts.transcript = Transcript(store, facts.cwd, facts.root, parts.bus.stream.warn)
    return facts
