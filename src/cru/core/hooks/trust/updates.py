"""How far what a hook permits may reach: a project's hook gives nothing beyond its project, one that nobody has accepted gives nothing at
all, and both may always forbid (docs/decisions/0035)."""

from __future__ import annotations

from msgspec.structs import replace

from cru.core.events.answers import GrantScope, PermissionUpdate
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.result import HookResult

UNACCEPTED = "it permits more for later calls, which does not count: nobody has accepted this hook (`cru hooks review`)"
NARROWED = "a hook of a project permits and forbids in that project only, not everywhere"


def limit_updates(entry: HookEntry, result: HookResult, *, is_accepted: bool) -> HookResult:
    """The result with the updates that the entry may give, and what is told of the others."""
    updates, warnings = result.answer.updates, []
    if not updates:
        return result
    if not is_accepted:
        tightening = [update.tightening for update in updates]
        if tuple(tightening) != updates:
            warnings.append(UNACCEPTED)
        updates = tuple([replace(update, scope=GrantScope.SESSION) for update in tightening if update is not None])
    elif entry.of_project:
        narrowed = tuple([_within_project(update) for update in updates])
        if narrowed != updates:
            warnings.append(NARROWED)
        updates = narrowed
    text = "; ".join(filter(None, (result.warning, *warnings)))
    return replace(result, answer=replace(result.answer, updates=updates), warning=text)


def _within_project(update: PermissionUpdate) -> PermissionUpdate:
    return replace(update, scope=GrantScope.LOCAL) if update.scope is GrantScope.USER else update
