"""`cru.emitter`: events between the parts of a plugin, apart from the bus. A listener that fails is reported, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

from msgspec import Struct

from cru.core.api.arguments import function, own, tostring, whole
from cru.core.api.callbacks import Callback, bind_callback
from cru.core.api.host import Host, Object, host


class _Listener(Struct, frozen=True):
    id: int
    call: Callback
    owner: str
    once: bool


class Emitter(Object):
    """Listeners by event. Ids count from 1 for each event and are never used again."""

    METHODS = ("on", "once", "off", "emit", "emit_async", "count", "unregister_owner", "off_all")

    def __init__(self, maker: str = "") -> None:
        self._maker = maker
        self._listeners: dict[str, dict[int, _Listener]] = {}
        self._last: dict[str, int] = {}

    def on(self, event: str, listener: Callable[..., object], owner: str | None = None) -> int:
        """Listen; gives the id for `off`. Raises BadArgument."""
        return self._add(event, listener, owner, once=False)

    def once(self, event: str, listener: Callable[..., object], owner: str | None = None) -> int:
        """Listen once; it is removed before it is called."""
        return self._add(event, listener, owner, once=True)

    def off(self, event: str, id: int) -> bool:
        """Stop listening; False if there was no such listener. Raises BadArgument if it belongs to another plugin, unless the emitter
        is the caller's."""
        number, name = whole("emitter:off", "id", id), tostring(event)
        entry = self._listeners.get(name, {}).get(number)
        if entry is None:
            return False
        self._check_owner("emitter:off", name, entry)
        return self._remove(name, number)

    async def emit(self, event: str, *args: object) -> None:
        """Call everybody who listens now, one after another."""
        name = tostring(event)
        for listener in list(self._listeners.get(name, {}).values()):
            if listener.id not in self._listeners.get(name, {}):
                continue  # an earlier listener removed it
            if listener.once:
                self._remove(name, listener.id)
            await listener.call.guarded(f"listener of {name}", *args)

    async def emit_async(self, event: str, *args: object) -> None:
        """The same as `emit`: it too returns after the last listener."""
        await self.emit(event, *args)

    def count(self, event: str) -> int:
        """How many listen."""
        return len(self._listeners.get(tostring(event), ()))

    def unregister_owner(self, owner: str) -> None:
        """Remove every listener that was registered with this owner. Raises BadArgument as `off` does."""
        for event, listeners in self._listeners.items():
            for listener in listeners.values():
                if listener.owner == owner:
                    self._check_owner("emitter:unregister_owner", event, listener)
        for event in list(self._listeners):
            self._keep(event, lambda listener: listener.owner != owner)

    def off_all(self, event: str | None = None) -> None:
        """Remove the listeners of one event, or all; of an emitter that the caller has not made, the caller's own."""
        caller = host().plugin.name
        for name in [tostring(event)] if event is not None else list(self._listeners):
            self._keep(name, lambda listener: caller not in (self._maker, listener.call.host.plugin.name))

    def _add(self, event: str, listener: Callable[..., object], owner: str | None, *, once: bool) -> int:
        name = tostring(event)
        function(f"emitter:{'once' if once else 'on'}", "fn", listener)
        self._last[name] = number = self._last.get(name, 0) + 1
        entry = _Listener(number, bind_callback(listener), owner if owner is not None else host().plugin.name, once)
        self._listeners.setdefault(name, {})[number] = entry
        _own_listeners(self, entry.call.host)
        return number

    def drop(self, plugin: str) -> None:
        """Remove every listener that a plugin registered, whatever owner it gave."""
        for event in list(self._listeners):
            self._keep(event, lambda listener: listener.call.host.plugin.name != plugin)

    def _remove(self, event: str, id: int) -> bool:
        listeners = self._listeners.get(event, {})
        is_there = listeners.pop(id, None) is not None
        if not listeners:
            self._listeners.pop(event, None)
        return is_there

    def _check_owner(self, where: str, event: str, listener: _Listener) -> None:
        if host().plugin.name != self._maker:
            own(where, f"listener {listener.id} of {event}", listener.call.host.plugin.name)

    def _keep(self, event: str, stays: Callable[[_Listener], bool]) -> None:
        listeners = {id: listener for id, listener in self._listeners.get(event, {}).items() if stays(listener)}
        if listeners:
            self._listeners[event] = listeners
        else:
            self._listeners.pop(event, None)


def _own_listeners(emitter: Emitter, here: Host) -> None:
    """Its listeners go with the plugin; the emitter itself may go before."""
    emitters = here.session.family_state("emitters", WeakSet[Emitter])
    emitters.add(emitter)

    def take_back() -> None:
        for other in list(emitters):
            other.drop(here.plugin.name)

    here.own(take_back, "listeners")


def new() -> Emitter:
    """emitter.new() -> an emitter: e:on(event, fn, owner?) -> id, e:once, e:off(event, id), e:emit(event, ...), e:emit_async,
    e:count(event), e:unregister_owner(owner), e:off_all(event?).

    Example: cru.emitter.new():on("saved", function() end) --> 1
    """
    return Emitter(host().plugin.name)


def global_() -> Emitter:
    """emitter.global() -> the one emitter that all plugins of the session share.

    Example: cru.emitter.global():count("nothing") --> 0
    """
    return host().session.family_state("emitter", Emitter)
