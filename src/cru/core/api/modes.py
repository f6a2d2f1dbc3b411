"""`cru.modes`: modes of one's own. Each stands on `ask`, the built-in mode; its rules only decide what that would ask about, or refuse
what it would allow. Built in are ask (also called normal), auto, plan and trust."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from cru.core.api.arguments import options, table, text, texts
from cru.core.api.host import BadArgument, PluginSession, host
from cru.core.api.layers import Layers
from cru.core.api.tools import matching_names
from cru.core.base.files import glob
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import ToolBeforeCall, ToolsSelect
from cru.core.events.stamp import Event
from cru.core.guard.rules.modes import MODE_DESCRIPTIONS, MODES

ALIASES = {"normal": "ask"}
STANCES = ("ask", "allow", "deny")
_BASE = "ask"


class Mode(Struct, frozen=True):
    """A mode that a script defined. The lists hold rules `tool` or `tool:glob`.

    tools: globs of the tools that are offered; None: all
    default: what holds where no rule does: ask, allow or deny
    allow, deny, ask: rules; deny beats ask beats allow
    """

    name: str
    description: str = ""
    tools: tuple[str, ...] | None = None
    default: str = "ask"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


class _Modes(Struct):
    own: Layers
    current: str = ""


def get(name: str) -> dict[str, object] | None:
    """modes[NAME] -> {description, ...}, or nil.

    Example: cru.modes.plan.description --> "only reads"
    """
    mode = _session_modes(host().session).own.get(name)
    if mode is not None:
        rules = {"default": mode.default, "allow": list(mode.allow), "deny": list(mode.deny), "ask": list(mode.ask)}
        tools = "*" if mode.tools is None else list(mode.tools)
        return {"description": mode.description, "tools": tools, "permissions": rules}
    built_in = ALIASES.get(name, name)
    return {"description": MODE_DESCRIPTIONS[built_in], "tools": "*"} if built_in in MODES else None


def set_(name: str, definition: dict[str, object] | None = None) -> None:
    """modes[NAME] = {description, tools = "*"|{globs}, permissions = "ask"|"allow"|"deny"|{default, allow, deny, ask}}; nil removes it.
    The lists hold rules "tool" or "tool:glob"; deny beats ask beats allow. `get_session().mode = NAME` switches to it. Raises
    BadArgument.

    Example: pcall(function() cru.modes.review = {permissions="maybe"} end) --> false
    """
    where = f"cru.modes.{name}"
    session = host().session
    if name in MODES or name in ALIASES:
        raise BadArgument(f"{where}: a built-in mode cannot be changed", "choose another name")
    if definition is None:
        known = _session_modes(session)
        if known.own.remove(where, name) and known.current == name and name not in known.own:
            switch_mode(session, _BASE)
        return
    fields = options(where, definition, ("description", "tools", "permissions"))
    tools = fields.get("tools", "*")
    globs = None if tools == "*" else tuple(texts(where, "tools", tools))
    rules = fields.get("permissions", "ask")
    rules = {"default": rules} if isinstance(rules, str) else table(where, "permissions", rules)
    default = rules.get("default", "ask")
    if default not in STANCES:
        raise BadArgument(f"{where}: unknown permission `{default}`", f"it is {', '.join(STANCES)}")
    lists = {kind: tuple(texts(where, kind, rules.get(kind))) for kind in ("allow", "deny", "ask")}
    description = text(where, "description", fields.get("description", ""))
    known, here = _session_modes(session), host()
    known.own.set(here.plugin.name, name, Mode(name, description, globs, default, **lists))

    def take_back() -> None:
        known.own.drop(here.plugin.name)
        if known.current and known.current not in known.own:
            switch_mode(session, _BASE)

    here.own(take_back, "modes")


def current_mode(session: PluginSession) -> str:
    """The name of the mode that holds now."""
    return _session_modes(session).current or session.parts.gate.mode


def switch_mode(session: PluginSession, name: str, plugin: str = "") -> None:
    """Change the mode. plugin: who wants it, and holds it from then on. Raises UnknownMode."""
    known, gate = _session_modes(session), session.parts.gate
    holder = f"the plugin {plugin}" if plugin else ""
    if name in known.own:
        gate.set_mode(_BASE, holder or f"the mode {name}")
        known.current = name
    else:
        gate.set_mode(ALIASES.get(name, name), holder)
        known.current = ""


def _session_modes(session: PluginSession) -> _Modes:
    """The modes that scripts defined. The first look registers the two handlers that apply them."""

    def make() -> _Modes:
        modes, on = _Modes(Layers()), partial(session.parts.bus.registry.on, owner="cru", where="cru.modes")
        on(ToolsSelect, lambda event: _select_tools(session, modes, event))
        on(ToolBeforeCall, lambda event: _judge_call(session, modes, event), priority=1000)
        return modes

    return session.family_state("modes", make)


def _active_mode(session: PluginSession, modes: _Modes) -> Mode | None:
    """The mode of one's own that holds; a face may have changed the built-in mode since."""
    return modes.own.get(modes.current) if session.parts.gate.mode == _BASE else None


def _select_tools(session: PluginSession, modes: _Modes, event: Event[ToolsSelect]) -> Answer:
    mode = _active_mode(session, modes)
    if mode is None or mode.tools is None:
        return PASS
    return Answer(changes=(Change("tools", "set", matching_names(event.payload.tools, mode.tools)),))


def _judge_call(session: PluginSession, modes: _Modes, event: Event[ToolBeforeCall]) -> Answer:
    mode = _active_mode(session, modes)
    if mode is None:
        return PASS
    call = event.payload
    subject = _subject(session, call)
    label = f"{mode.name} mode"
    if _matches_rule(mode.deny, call.name, subject) or (
        mode.tools is not None and not matching_names([call.name], mode.tools)
    ):
        return Answer(decision="deny", reason=f"{label} refuses `{call.name}`")
    if _matches_rule(mode.ask, call.name, subject):
        return Answer(decision="ask", reason=f"{label} asks before `{call.name}`")
    if _matches_rule(mode.allow, call.name, subject) or mode.default == "allow":
        return Answer(decision="allow", reason=label)
    return Answer(decision="deny", reason=f"{label} refuses `{call.name}`") if mode.default == "deny" else PASS


def _subject(session: PluginSession, call: ToolBeforeCall) -> str:
    tool = session.parts.tools.find(call.name)
    try:
        return tool.subject(call.args) if tool is not None and call.valid else ""
    except (KeyError, TypeError, ValueError):
        return ""


def _matches_rule(rules: tuple[str, ...], name: str, subject: str) -> bool:
    for rule in rules:
        tool, colon, pattern = rule.partition(":")
        if matching_names([name], [tool]) and (not colon or glob.matches_text(glob.parse_glob(pattern), subject)):
            return True
    return False
