"""Entries in Lua and Python: functions that run in the session, with the tables and answers that handlers of plugins have.

Each is a handler in its own right: it sees what the handlers before it changed, and runs before the commands of its priority. Its code is
loaded when it is first called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cru.engine.parts import Parts
from cru.events import registry
from cru.events.answers import PASS, Answer, add
from cru.events.calling import described, finish, in_thread
from cru.events.stamp import Event
from cru.extensions.discovery.files import DiscoveredPlugin
from cru.extensions.hooks import records
from cru.extensions.hooks.dialects.cru.config import is_lua_file
from cru.extensions.hooks.errors import HookError
from cru.extensions.hooks.model.code import lua as lua_source
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.mapping import Dialect, EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.run import returned
from cru.extensions.hooks.run.command import CANCELLED, CommandHook, failed
from cru.extensions.hooks.trust.guard import deny_answer
from cru.namespace.handlers import PluginHandler
from cru.namespace.host import HOST, Host, Plugin, PluginSession
from cru.namespace.on import NO_LIMIT

if TYPE_CHECKING:
    from cru.extensions.hooks.session import Hooks
    from cru.extensions.lua.plugins import LuaPlugins
    from cru.extensions.manager import Extensions
    from cru.extensions.python.plugins import PythonPlugins


class BadFunction(HookError):
    """The code of an entry cannot be used."""


class Changed(BadFunction):
    """It is not what a person has trusted any more."""


class FunctionHook(CommandHook):
    """A function of an entry, as the bus calls it. What it raises goes to the bus, which denies where a handler's failure denies."""

    copies = True

    def __init__(self, entry: HookEntry, dialect: Dialect, moment: EventMapping, hooks: Hooks) -> None:
        super().__init__(entry, dialect, moment, hooks)
        self._function: registry.Handler | None = None
        self._returned: dict[int, HookResult] = {}  # by dispatch

    async def __call__(self, event: Event) -> Answer:
        started, said = perf_counter(), HookResult(failed=CANCELLED)
        try:
            unmatched = self._unmatched.pop(event.stamp.dispatch_seq, "")
            if unmatched:
                raise BadFunction(unmatched)
            function = await self._ready()
            with self._waiting():
                answer = await (
                    in_thread(function, event) if function.thread else finish(function, function.call(event))
                )
            read = self._returned.pop(event.stamp.dispatch_seq, HookResult())
            said = self._hooks.without_keys(replace(read, answer=answer))
            if said.failed and not answer.stops:
                raise BadFunction(said.failed)
            if said.failed:
                said = failed(self._entry, event, said)
        except Exception as raised:
            told = described(raised)
            said = self._hooks.without_keys(HookResult(failed=told))
            if isinstance(raised, Changed):
                said = replace(said, answer=deny_answer(self._entry, event) or PASS)
            if self._entry.on_error in ("deny", "ask") or said.answer.stops:
                said = failed(self._entry, event, said)
            else:
                said = self._denied_by_bus(event, said)
                if said.failed == told:
                    raise
                raise BadFunction(said.failed) from None
        finally:
            run = CommandResult(None if said.failed else 0, ms=(perf_counter() - started) * 1000, error=said.failed)
            self._hooks.record(records.make_firing(self._entry, self._moment.name, event, b"", run, said))
        self._tell(said)
        return said.answer

    def _denied_by_bus(self, event: Event, said: HookResult) -> HookResult:
        """What a failure that goes to the bus means, for the record."""
        denies = event.row.kind == "gate" and event.row.fails == "deny" and not self._entry.on_error
        return replace(said, answer=Answer(decision="deny", reason=said.failed, note="error")) if denies else said

    def _tell(self, said: HookResult) -> None:
        if said.to_user:
            self._hooks.tell(self._entry, said.to_user)
        if said.warning:
            self._hooks.warn(self._entry, said.warning)

    async def _ready(self) -> registry.Handler:
        """Its function, loaded when it is first called. Plain code in Python gets a thread, since nothing else could end it."""
        entry, parts = self._entry, self._hooks.parts
        why = self._hooks.changed(entry)
        if why:
            raise Changed(why)
        if self._function is None:
            if entry.of_project:
                for name in self._hooks.about.secret_names:
                    os.environ.pop(name, None)
            if self._hooks.languages is None:
                self._hooks.languages = Languages(parts, self._hooks.about.home, self._hooks.plugins)
            languages = self._hooks.languages
            plugin, function = await languages.function(entry)
            handler = _Function(self._returned, Host(languages.session, plugin), self._moment.event, function, entry)
            plain = entry.kind == "python" and not iscoroutinefunction(function)
            self._function = registry.Handler(
                0, self._moment.event, handler, owner(entry), limit=limit(entry), thread=plain
            )
        return self._function


class _Function(PluginHandler):
    """A function as a plugin's handler, whose return value may be in the words of commands, too. `read` keeps what else it said."""

    def __init__(
        self, read: dict[int, HookResult], host: Host, name: str, function: Callable[..., Any], entry: HookEntry
    ) -> None:
        super().__init__(host, name, function, entry.priority, entry.label)
        self._read = read

    def _answer(self, event: Event, result: Any, sent: Mapping[str, Any]) -> Answer:
        if isinstance(result, Answer):
            return result
        if not isinstance(result, Mapping):
            raise BadFunction(
                f"returned {type(result).__name__} {str(result)[:40]!r}; a table or nothing is understood"
            )
        rest, said = returned.split(self._name, event.row, result, sent)
        answer = add(super()._answer(event, rest, sent), said.answer)
        self._read[event.stamp.dispatch_seq] = said
        return answer


class Languages(Struct):
    """What runs the functions of a session's entries: the machines of its plugins, if it has any, else their own."""

    parts: Parts
    home: Path
    plugins: Extensions | None = None
    _session: PluginSession | None = None
    _lua: LuaPlugins | None = None
    _python: PythonPlugins | None = None
    _modules: dict[tuple[str, int, int], str] = field(default_factory=dict)

    @property
    def session(self) -> PluginSession:
        if self.plugins is not None and self.plugins.session is not None:
            return self.plugins.session
        if self._session is None:
            self._session = PluginSession(self.parts, self.home)
        return self._session

    async def function(self, entry: HookEntry) -> tuple[Plugin, Callable[..., Any]]:
        """The function of an entry, and the plugin in whose name it runs. Raises CruError with the place, OSError if there is no file."""
        return await (self._of_lua(entry) if entry.kind == "lua" else self._of_python(entry))

    async def _of_lua(self, entry: HookEntry) -> tuple[Plugin, Callable[..., Any]]:
        from cru.extensions.lua.plugins import LuaPlugins
        from cru.extensions.lua.runtime import LuaFunction

        if self._lua is None:
            known = self.plugins.languages.get("lua") if self.plugins is not None else None
            self._lua = known if isinstance(known, LuaPlugins) else LuaPlugins([], self.parts)
        name, vm, path = owner(entry), self._lua.vm, entry.command
        is_file = is_lua_file(path)
        code, chunk_name = lua_source(entry)
        plugin = self._lua.plugin(_found(name, "lua", Path(path) if is_file else entry.source.path), {})
        token = HOST.set(Host(self.session, plugin))
        try:
            chunk = vm.load(code.encode(), chunk_name, vm.environment())
            values = await vm.run(chunk)
        finally:
            HOST.reset(token)
        if not values or not isinstance(values[0], LuaFunction):
            raise BadFunction(f"{path} returns no function", "return function(ctx, event) … end")
        return plugin, values[0]

    async def _of_python(self, entry: HookEntry) -> tuple[Plugin, Callable[..., Any]]:
        from cru.extensions.python.plugins import PythonPlugins

        self._python = self._python or PythonPlugins()
        file, _, wanted = entry.command.rpartition(":")
        found = _found(owner(entry), "python", Path(file))
        plugin = self._python.plugin(found, {})
        module = sys.modules[await self._module(self._python, file)]
        function = getattr(module, wanted, None)
        if not callable(function):
            from cru.config.closest import did_you_mean

            known = [name for name, value in vars(module).items() if callable(value)]
            raise BadFunction(f"{file} has no function {wanted}", did_you_mean(wanted, known))
        return plugin, function

    async def _module(self, python: PythonPlugins, file: str) -> str:
        """The name of the file's module; several entries of one file share it, a changed file is another one."""
        from cru.extensions.python.plugins import PRIVATE

        about = Path(file).stat()
        key = (file, about.st_mtime_ns, about.st_size)
        if key not in self._modules:
            found = _found(f"hook_{sha256(repr(key).encode()).hexdigest()[:12]}", "python", Path(file))
            host = Host(self.session, python.plugin(found, {}))
            token = HOST.set(host)
            try:
                await python.load(found, host)
            finally:
                HOST.reset(token)
            self._modules[key] = PRIVATE.format(name=found.name)
        return self._modules[key]


def _found(name: str, kind: Literal["lua", "python"], file: Path) -> DiscoveredPlugin:
    return DiscoveredPlugin(name, kind, (file,), file.parent)


def owner(entry: HookEntry) -> str:
    """Who registers an entry's handlers, for messages and the journal."""
    return f"hook {entry.id}"


def limit(entry: HookEntry) -> float:
    """Seconds of waiting. Lua has a limit of its own, which stands still while a dialog is open."""
    return NO_LIMIT if entry.kind == "lua" else float(entry.timeout)
