"""What a hook gives or takes, taken over by the gate (docs/decisions/answers.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.events.answers import GrantKind, PermissionUpdate, UpdateKind
from cru.core.guard import PermissionsError
from cru.core.guard.rules.modes import MODE_DESCRIPTIONS, STRICTNESS, check_mode

if TYPE_CHECKING:
    from cru.core.guard.rules.gate import Gate


def take_update(gate: Gate, update: PermissionUpdate) -> list[str]:
    """What a person should know of it, a line each; nothing if nothing changes."""
    try:
        if update.kind is UpdateKind.MODE:
            return [text for name in update.items for text in _take_mode(gate, name)]
        texts = gate.grants.update(update)
    except PermissionsError as error:
        return [f"what it permits or forbids from now on is not kept: {error}"]
    if update.kind is not UpdateKind.REMOVE or update.grant is GrantKind.FOLDER:
        return texts
    rules = gate.rules_of(update.grant)
    staying = [rule for rule in rules if rule.text in update.items]
    return texts + [f"`{rule.text}` stays: it is a rule of {rule.source}" for rule in staying]


def _take_mode(gate: Gate, name: str) -> list[str]:
    """A hook tightens, or goes from `ask` to `auto`, but for a sub-agent; where a plugin holds the mode it does neither."""
    now = gate.mode
    check_mode(name)
    if gate.mode_holder:
        return [f"the mode stays, since {gate.mode_holder} has set it"]
    if name == now:
        return []
    is_wider = STRICTNESS.index(name) > STRICTNESS.index(now)
    if is_wider and (gate.is_narrowed or (now, name) != ("ask", "auto")):
        return [f"the mode stays `{now}`: a hook may not set `{name}` in its place"]
    gate.set_mode(name)
    return [f"sets the mode `{name}` for this session: it {MODE_DESCRIPTIONS[name]}"]
