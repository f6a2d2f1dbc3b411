"""`cru.get_session`, `cru.defaults`, the two hooks at the ends of a session, and the hook that adds headers to its model requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cru.core.api import modes, plain_data
from cru.core.api.arguments import function, number, options, text, whole
from cru.core.api.callbacks import bind_callback
from cru.core.api.host import BadArgument, NamespaceError, Object, PluginSession, host
from cru.core.api.layers import Layers
from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.messages import Span
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import SessionEnded, SystemPromptBuild
from cru.core.events.stamp import Event
from cru.core.guard.rules.gate import NoAsker

_DEFAULTS = "defaults"
KNOBS = ("system_prompt", "temperature", "max_tokens", "thinking_budget")
FIXED = ("id", "workspace", "isolation", "model", "interactive")


class UnknownProperty(BadArgument, AttributeError):
    """A session has no property of this name."""


class SessionObject(Object):
    """A session as scripts see it: id, workspace, isolation, model and interactive are fixed; the others may be assigned."""

    METHODS = ("set_variable", "get_variable", "mark_first_message_sent")
    FIELDS = (*FIXED, "mode", *KNOBS)

    def __init__(self, session: PluginSession) -> None:
        object.__setattr__(self, "_session", session)

    def __getattr__(self, name: str) -> Any:
        session: PluginSession = object.__getattribute__(self, "_session")
        if name in KNOBS:
            return _knob(session, name)
        if name == "mode":
            return modes.current_mode(session)
        if name not in FIXED:
            raise _unknown_property(name)
        return _fixed_property(session, name)

    def __setattr__(self, name: str, value: object) -> None:
        session: PluginSession = object.__getattribute__(self, "_session")
        if name == "mode":
            modes.switch_mode(session, text("session.mode", "mode", value), host().plugin.name)
        elif name in KNOBS:
            _set_knob(session, name, value)
        elif name in FIXED:
            raise BadArgument(f"session.{name} cannot be assigned")
        else:
            raise _unknown_property(name)

    def set_variable(self, key: str, value: object = None) -> None:
        """Keep a JSON value for this run of the session; nil removes it."""
        plain_data.encode("session:set_variable", value)
        _variables(self._session)[text("session:set_variable", "key", key)] = value

    def get_variable(self, key: str) -> object:
        """A value that was kept, or nil."""
        return _variables(self._session).get(text("session:get_variable", "key", key))

    def mark_first_message_sent(self) -> None:
        """Accepted; nothing here depends on it."""


def get_session() -> SessionObject:
    """get_session() -> the session: s.id, s.workspace, s.isolation, s.model, s.interactive (whether a person sits at a terminal);
    assignable s.mode, s.temperature (0 to 2), s.max_tokens, s.thinking_budget, s.system_prompt; s:set_variable(key, value),
    s:get_variable(key). Unknown properties raise.

    Example: cru.get_session().workspace == cru.paths.workspace() --> true
    """
    return SessionObject(host().session)


def get_default(name: str) -> object:
    """defaults[NAME] -> what was assigned to it in this session, or nil; system_prompt is never nil: `cru.defaults.system_prompt .. TEXT`
    adds to what holds without an assignment.

    Example: cru.defaults.temperature --> nil
    """
    return _knob(host().session, _check_knob(name))


def set_default(name: str, value: object = None) -> None:
    """defaults[NAME] = value: system_prompt, temperature (0 to 2), max_tokens (more than 0), thinking_budget; nil takes it back. It
    holds from the next request of this session on, system_prompt from the next prompt on. Raises BadArgument.

    Example: pcall(function() cru.defaults.temperature = 3 end) --> false
    """
    _set_knob(host().session, _check_knob(name), value)


def on_session_start(work: Callable[[Any], Any], opts: dict[str, Any] | None = None) -> int:
    """on_session_start(fn(session), {required}?) -> id. Called when the session opens; with required = true an error of fn is reported
    as an error.

    Example: cru.on_session_start(function(session) end) > 0 --> true
    """
    where = "cru.on_session_start"
    listener = bind_callback(function(where, "fn", work))
    required = bool(options(where, opts, ("required",)).get("required"))

    async def started(_event: Event) -> Answer:
        if required:
            await listener.call(SessionObject(listener.host.session))
        else:
            await listener.guarded("on_session_start", SessionObject(listener.host.session))
        return PASS

    return _listen("session:started", started, where)


def on_session_end(work: Callable[[Any], Any]) -> int:
    """on_session_end(fn({reason, session_id})) -> id. Called when the session closes.

    Example: cru.on_session_end(function(info) end) > 0 --> true
    """
    where = "cru.on_session_end"
    listener = bind_callback(function(where, "fn", work))

    async def ended(event: Event[SessionEnded]) -> Answer:
        reason = event.payload.reason
        await listener.guarded(
            "on_session_end", {"reason": reason, "session_id": listener.host.session.parts.store.session_id}
        )
        return PASS

    return _listen("session:ended", ended, where)


def _listen(event: str, work: Any, where: str) -> int:
    return host().listen(event, work, where=where)


def _fixed_property(session: PluginSession, name: str) -> object:
    if name == "id":
        return session.parts.store.session_id
    if name == "workspace":
        return str(session.parts.place.root)
    if name == "isolation":
        return None
    if name == "interactive":
        return not isinstance(session.parts.services.face.asker, NoAsker)
    settings = session.parts.services.settings
    return settings.as_dict().get("model") if settings is not None else None


def _variables(session: PluginSession) -> dict[str, object]:
    return session.family_state("variables", dict[str, object])


def _knobs(session: PluginSession) -> Layers:
    """What was assigned. The first look registers the two handlers that make it so."""

    def make() -> Layers:
        knobs, on = Layers(), partial(session.parts.bus.registry.on, owner="cru", where="cru.defaults", priority=0)
        on("message:before_send", lambda _event: _parameters(knobs))
        on(SystemPromptBuild, lambda event: _prompt(knobs, event))
        return knobs

    return session.family_state(_DEFAULTS, make)


def _knob(session: PluginSession, name: str) -> object:
    """Return what was assigned; without an assignment, the text of the base section for system_prompt, None for the others."""
    knobs = _knobs(session)
    if name in knobs or name != "system_prompt":
        return knobs.get(name)
    return next((span.text for span in session.parts.prompt.sections() if span.name == "base"), "")


def _parameters(knobs: Layers) -> Answer:
    parameters: dict[str, object] = {name: knobs.get(name) for name in ("temperature", "max_tokens") if name in knobs}
    if "thinking_budget" in knobs:
        parameters["reasoning"] = {"max_tokens": knobs.get("thinking_budget")}
    return Answer(changes=(Change("parameters", "merge", parameters),)) if parameters else PASS


def _prompt(knobs: Layers, event: Event[SystemPromptBuild]) -> Answer:
    """The base section is replaced, all others stay."""
    if "system_prompt" not in knobs:
        return PASS
    own = Span("base", "cru.defaults", knobs.get("system_prompt"))
    return Answer(
        changes=(
            Change(
                "sections", "set", [own, *(section for section in event.payload.sections if section.name != "base")]
            ),
        )
    )


def _set_knob(session: PluginSession, name: str, value: object) -> None:
    where = f"cru.defaults.{name}"
    if value is None:
        _knobs(session).remove(where, name)
        return
    if name == "system_prompt":
        text(where, "value", value)
    elif name == "temperature":
        if number(where, "value", value, 0) > 2:
            raise BadArgument(f"{where}: value must be at most 2, got {value}")
    else:
        value = whole(where, "value", value, 1 if name == "max_tokens" else 0)
    here, knobs = host(), _knobs(session)
    knobs.set(here.plugin.name, name, value)
    here.own(lambda: knobs.drop(here.plugin.name), _DEFAULTS)


def _check_knob(name: str) -> str:
    if name in KNOBS:
        return name
    raise BadArgument(f"cru.defaults: unknown name `{name}`", did_you_mean(str(name), KNOBS))


def _unknown_property(name: str) -> UnknownProperty:
    return UnknownProperty(f"session: unknown property `{name}`", did_you_mean(name, SessionObject.FIELDS))


def on_provider_auth(work: Callable[..., object]) -> None:
    """on_provider_auth(fn({provider, model}) -> {NAME = value} | {headers = {NAME = value}} | nil). Asked before each request to
    a provider: the headers are added to it, in the place of others of the same name. If fn fails, the request is not made.
    Raises BadArgument.

    Example: cru.on_provider_auth(function(about) return {["x-team"] = "core"} end) --> nil
    """
    where = "cru.on_provider_auth"
    listener = bind_callback(function(where, "fn", work))
    here = host()
    owner = here.plugin.name

    async def headers(provider: str, model: str) -> Mapping[str, str]:
        answered = await listener.call({"provider": provider, "model": model})
        if isinstance(answered, Mapping) and isinstance(answered.get("headers"), Mapping):
            answered = answered["headers"]
        if answered is None:
            return {}
        if not isinstance(answered, Mapping) or not all(
            isinstance(part, str) for pair in answered.items() for part in pair
        ):
            raise NamespaceError(f"{where}: {owner} gave no table of headers", 'return { authorization = "Bearer …" }')
        return {name.lower(): value for name, value in answered.items()}

    listeners = here.session.parts.models.auth
    listeners.append(headers)
    here.own(lambda: listeners.remove(headers))
