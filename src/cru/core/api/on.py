"""`cru.on`, `cru.once`, `cru.off`: listening to events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cru.core.api.arguments import own, whole
from cru.core.api.event_table import table
from cru.core.api.handlers import PluginHandler
from cru.core.api.host import BadArgument, Host, host
from cru.core.base.config.closest import closest, did_you_mean
from cru.core.events import EventError
from cru.core.events.registry import find

F = TypeVar("F", bound=Callable[..., Any])
FORGET = 256
NO_LIMIT = 86_400.0
OPTIONS = ("pattern", "priority", "on_error", "scope", "name", "once", "hold")


def on(event: str, first: Any = None, second: Any = None, **named: Any) -> Any:
    """on(event, function, {priority=100, pattern="glob"}?) -> id; the table may also come before the function. A name that is no
    event is warned about, with the closest one, and taken as an event of one's own (`ctx:emit`). In Python options may be keywords,
    `on(event, function, pattern="bash")`, and it is a decorator too: `@on("turn:complete")`, `@on("tool:before_call", pattern="bash")`.

    Example: cru.on("turn:complete", function(ctx, event) return nil end) > 0 --> true
    """
    return _register(event, first, second, named, once=False)


def once(event: str, first: Any = None, second: Any = None, **named: Any) -> Any:
    """once(event, function, options?) -> id: as `on`, for one call.

    Example: cru.once("session:started", function() end) > 0 --> true
    """
    return _register(event, first, second, named, once=True)


def off(id: int) -> bool:
    """off(id) -> true if the handler was there. Raises BadArgument if it belongs to another plugin.

    Example: cru.off(12345) --> false
    """
    number, here = whole("cru.off", "id", id), host()
    registry, several = here.session.parts.bus.registry, _grouped_handlers(here)
    ids = several.get(number, [number])
    for owner in filter(None, map(registry.owner, ids)):
        own("cru.off", f"handler {number}", owner)
    several.pop(number, None)
    return any([registry.off(handler) for handler in ids])


def register_handler(event: str, function: Callable[..., Any], options: dict[str, Any], label: str = "") -> int:
    """Register a function for every event of ours that the name stands for; the id of the first."""
    here = host()
    where = options.pop("where", "") or here.plugin.where(function)
    name = str(options.pop("name", "") or label or where)
    priority = _read_priority(options.get("priority", 100))
    handler = PluginHandler(here, event, function, priority, name)
    fields = {**options, "priority": priority, "where": where}
    if here.plugin.dialect == "lua":
        fields["limit"] = NO_LIMIT  # the machine has its own, which stands still while a dialog is open
    ids = []
    for target, pattern in _target_events(event, where):
        narrowed = {**fields, "pattern": pattern} if pattern else fields
        try:
            ids.append(here.listen(target, handler, **narrowed))
        except EventError as error:
            raise BadArgument(error.message, error.hint) from error
    if len(ids) > 1:
        _grouped_handlers(here)[ids[0]] = ids
    return ids[0]


def _grouped_handlers(here: Host) -> dict[int, list[int]]:
    """The handlers behind an id that stands for more than one; now and then without those that are gone."""
    groups = here.session.family_state("handlers", dict[int, list[int]])
    if len(groups) % FORGET == FORGET - 1:
        registry = here.session.parts.bus.registry
        for id in [id for id, ids in groups.items() if not any(map(registry.has, ids))]:
            del groups[id]
    return groups


def _register(event: str, first: object, second: object, named: dict[str, object], once: bool) -> object:
    if not isinstance(event, str):
        raise BadArgument(
            "cru.on: the first argument is the name of an event", 'cru.on("turn:complete", function(ctx, event) … end)'
        )
    function, options = (first, second) if callable(first) else (second, first)
    if not callable(function) and (second is not None or host().plugin.dialect != "python"):
        raise BadArgument(f"cru.on({event!r}): there is no function", "cru.on(event, function, options)")
    if options is not None and not isinstance(options, dict):
        raise BadArgument(f"cru.on({event!r}): options must be a table")
    fields = {**(options or {}), **named}
    for key in fields:
        if key not in OPTIONS:
            raise BadArgument(f"cru.on({event!r}): unknown option `{key}`", did_you_mean(key, OPTIONS))
    fields["once"] = once or bool(fields.get("once"))
    if not callable(function):
        return _decorator(event, fields)
    return register_handler(event, function, fields)


def _decorator(event: str, options: dict[str, object]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        register_handler(event, function, dict(options))
        return function

    return decorate


def _target_events(event: str, where: str) -> list[tuple[str, str]]:
    """Our events behind a name; for an event of one's own, the row of those, narrowed to the name."""
    alias = table.alias_of(event)
    if alias.never:  # no problem of the plugin: strict hooks would refuse it, and a script may emit the name
        here = host()
        text = f"{here.plugin.name}: {where}: `{event}` never fires: {alias.never}"
        here.session.parts.bus.stream.warn(text, here.plugin.name)
        return [("custom", _literal_pattern(event))]
    targets = []
    for name in alias.events:
        try:
            find(name)
        except EventError:
            _warn_unknown(event, where)
            return [("custom", _literal_pattern(event))]
        targets.append((name, ""))
    return targets


def _warn_unknown(event: str, where: str) -> None:
    near = closest(event, table.known_events())
    here = host()
    hint = f"; did you mean `{near}`?" if near else "."
    if near or ":" not in event:
        here.problem(f"{where}: `{event}` is no event of cru{hint} It is heard only if a script emits it.")


def _literal_pattern(name: str) -> str:
    """A pattern that matches just this name."""
    return "".join(f"\\{c}" if c in "*?[]{}\\" else c for c in name)


def _read_priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArgument(f"cru.on: priority must be a number, not {value!r}")
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise BadArgument(f"cru.on: priority must be finite, not {value}") from error
