"""Everything that stands in files with hooks, and whether it may run: which dialects there are, what trust says; nothing is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.hooks import HookLocations, HookOptions, SessionHookOptions
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.discovery import HookPolicy
from cru.core.hooks.loader import load_hooks, read_sources
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import LoadedHooks, LoadPolicy, MissingHook
from cru.core.hooks.trust.missing import find_missing, list_project_files, note_missing
from cru.core.hooks.trust.store import HookTrust
from cru.core.models.providers import secret_names


class HookInventory(Struct):
    """Everything there is for somebody who stands here.

    trust: what a person has said about it
    missing: what was accepted and is not there as it was; also what others stand in the place of
    """

    loaded: LoadedHooks
    dialects: Mapping[str, Dialect]
    trust: HookTrust
    facts: SessionFacts
    missing: list[MissingHook] = []


def take_inventory(
    names: Iterable[str] | None, facts: SessionFacts, options: HookOptions, policy: HookPolicy = "trusted"
) -> HookInventory:
    """Read the files of these dialects, or of all; nothing is run."""
    dialects = load_dialects(names)
    trust = HookTrust(TrustStore(facts.home / "trust.json"), facts)
    everything = policy == "all"
    load_policy = LoadPolicy(
        accepted=frozenset(dialects if everything else options.dialects),
        disabled=frozenset(options.disabled),
        by_project=options.by_project if isinstance(options, SessionHookOptions) else frozenset(),
        is_trusted=(lambda entry: True) if everything else trust.is_trusted,
        is_refused=trust.is_refused,
        describe_change=trust.describe_change,
        digest=trust.digest,
    )
    files = list_project_files(dialects.values(), facts)
    sources, problems = read_sources(dialects.values(), facts)
    loaded = load_hooks(sources, dialects, load_policy, facts)
    loaded.problems[:0] = problems
    if everything:
        loaded.unaccepted = frozenset(entry.id for entry in loaded.active() if not _is_accepted(entry, trust, options))
    missing = find_missing(loaded, files, trust.judgements())
    note_missing(loaded, missing)
    return HookInventory(loaded, dialects, trust, facts, missing)


def _is_accepted(entry: HookEntry, trust: HookTrust, options: HookOptions) -> bool:
    """Whether it would run without `--hooks=all`."""
    return trust.is_trusted(entry) if entry.of_project else entry.source.own or entry.dialect in options.dialects


def session_facts(
    where: HookLocations, options: HookOptions, folder: Path, context: str = "", session_id: str = ""
) -> SessionFacts:
    """The facts of a session, as far as they do not change; `folder` is that of its context."""
    own = {"CRU_CONTEXT": context, "CRU_HOME": str(where.home), "CRU_PROJECT_ROOT": str(where.root)}
    return SessionFacts(
        session_id=session_id, context=context, folder=folder, cwd=where.cwd, root=where.root, home=where.home,
        user_home=where.user_home, env={**where.env, **own}, mode=lambda: "ask", transcript=lambda: folder / "context.jsonl",
        secret_names=secret_names(where.env, options.env_pass),
    )  # fmt: skip
