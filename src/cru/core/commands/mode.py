"""/mode, and the key that goes from one mode to the next: what the model may do without asking."""

from __future__ import annotations

from cru.core.base.config.layers import PROJECT
from cru.core.commands.context import CommandContext
from cru.core.guard.rules.modes import MODE_DESCRIPTIONS, MODES, STRICTNESS, check_mode
from cru.core.turn.commands import CommandResult
from cru.core.turn.parts import Parts, SessionServices

CYCLE = ("ask", "auto", "plan")
"""What the key goes through; `trust` is chosen by its name only."""


async def mode(context: CommandContext, words: str) -> CommandResult:
    """Show it, or set it for this session. Raises UnknownMode."""
    parts = context.session.parts
    return CommandResult(_set(parts, words.strip()) if words.strip() else _describe(parts))


async def complete(_context: CommandContext, typed: str) -> list[str]:
    return [name for name in MODES if name.startswith(typed)]


def next_mode(parts: Parts) -> str:
    """Set the next mode of the cycle; what a person should know of it. The key goes no further than whoever else has set a mode allows."""
    now = parts.gate.mode
    limit, why = _limit(parts)
    at = CYCLE.index(now) if now in CYCLE else -1
    for step in range(1, len(CYCLE)):
        name = CYCLE[(at + step) % len(CYCLE)]
        if not limit or not _is_wider(name, limit):
            return _set(parts, name)
    return f"the mode stays `{now}`: {why}; `/mode NAME` sets another one all the same"


def _set(parts: Parts, name: str) -> str:
    check_mode(name)
    gate, why = parts.gate, _limit(parts)[1]
    was = gate.mode
    gate.set_mode(name)
    parts.services.face.mode = name
    now = gate.mode
    if now != name:
        return f"the mode stays `{now}`: the agent card allows no more"
    more = f" ({why})" if why and _is_wider(name, was) else ""
    return f"mode {name}: it {MODE_DESCRIPTIONS[name]}{more}"


def _describe(parts: Parts) -> str:
    now, width = parts.gate.mode, max(map(len, MODES))
    rows = [f"{'*' if name == now else ' '} {name:<{width}}  {MODE_DESCRIPTIONS[name]}" for name in MODES]
    return "\n".join([*rows, describe_sandbox(parts), f"because of: {_reason(parts)}"])


def describe_sandbox(parts: Parts) -> str:
    """Whether the sandbox is on."""
    if parts.services.sandbox.open is None:
        return "sandbox: off, commands may do all that you may (cru --sandbox)"
    if parts.gate.outside is None:
        return "sandbox: nothing confines commands here (cru doctor says why)"
    covered = " and what the project brings" if parts.services.sandbox.confine_project is not None else ""
    return f"sandbox: on, it confines commands of the model{covered}"


def _reason(parts: Parts) -> str:
    """Who has set the mode that holds."""
    why = _limit(parts)[1]
    if why and not why.endswith("says so"):
        return why
    if parts.services.face.mode == parts.gate.mode:
        return "you have set it in this session"
    return _origin(parts.services)


def _origin(services: SessionServices) -> str:
    settings = services.settings
    return settings.origin("mode") if settings is not None else "default"


def _limit(parts: Parts) -> tuple[str, str]:
    """The widest mode that the key may set, and who has said so; "" if nobody has."""
    gate, settings = parts.gate, parts.services.settings
    if gate.mode_holder:
        return gate.mode, f"{gate.mode_holder} has set it"
    configured = str(settings.as_dict().get("mode", "ask")) if settings is not None else gate.mode
    chosen = parts.services.face.mode or configured
    if _is_wider(chosen, gate.mode):
        return gate.mode, "a hook or the agent card has set it"
    if settings is not None and settings.layers("mode")[:1] == (PROJECT,):
        return configured, f"{settings.origin('mode')} says so"
    return "", ""


def _is_wider(name: str, other: str) -> bool:
    return STRICTNESS.index(name) > STRICTNESS.index(other)
