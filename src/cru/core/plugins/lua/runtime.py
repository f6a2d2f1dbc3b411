"""The Lua 5.4 machine of a session tree.

Everything of an extension runs in a coroutine of its own, under a limit of run time, of waiting and of memory. What cannot be
interrupted is one call of C: those that compute are bounded (library.lua, patterns.lua), those that would wait are calls of Python
(pipes.lua) or refused (`io.open` of a pipe).
The machine belongs to one thread: the one of the event loop.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from cru.core.api.event_table.table import plain_shape
from cru.core.api.handlers import HandlerCall
from cru.core.api.host import Values
from cru.core.plugins.lua.convert import FUNCTION, STAMPED, Converter, HostFunction, LuaData, LuaError, LuaReference
from cru.core.plugins.lua.driver import SPARE, Driver, HostCallbacks
from cru.core.plugins.lua.file_names import FileNames
from cru.core.plugins.lua.memory import MemoryShares, not_enough

LOAD, HOLD, COPY, GET, SET, OPEN, ENVIRONMENT, GLOBALS, WHERE, PATH, INSTALL, SHAPE, OWN = range(1, 14)
"""The builtins of boot.lua, in its order."""


class LuaFunction(LuaReference):
    """A function of Lua: `await function(1, 2)` gives what it returns (None, one value, or Values). Equal only to itself."""

    __slots__ = ("vm",)
    code = FUNCTION

    def __init__(self, id: int, vm: LuaVM) -> None:
        super().__init__(id, vm.dropped)
        self.vm = vm

    async def __call__(self, *args: object) -> object:
        return _single(await self.vm.run(self, *args))

    def start(self, *args: Any) -> Any:
        """Call it now: what it returns, or, if it waits, something to await for that."""
        outcome = self.vm.start(self, *args)
        return _single(outcome) if isinstance(outcome, tuple) else _await_single(outcome)

    async def detached(self, *args: Any) -> Any:
        """Call it as work that may go on for ever: waiting is not limited, and each stretch between two waits has the whole run time."""
        return _single(await self.vm.run_detached(self, *args))

    @property
    def where(self) -> str:
        """The "file:line" of its definition."""
        if not self.place:
            source, line = self.vm.call_builtin(WHERE, self)
            self.place = f"{source.lstrip('@=')}:{line}"
        return self.vm.names.restore(self.place)


class LuaTable(LuaReference):
    """A table of Lua, by reference: the environment of a chunk, or what a chunk returned."""

    __slots__ = ("vm",)

    def __init__(self, id: int, vm: LuaVM) -> None:
        super().__init__(id, vm.dropped)
        self.vm = vm

    def get(self, key: str | int) -> Any:
        """The value under the key (metatables are not asked): tables are copied, functions are LuaFunction."""
        return self.vm.call_builtin(GET, self, key)[0]

    def open(self, key: str | int) -> LuaTable | None:
        """The table under the key, by reference; None if there is none."""
        table: LuaTable | None = self.vm.call_builtin(OPEN, self, key)[0]
        return table

    def set(self, key: str | int, value: object) -> None:
        self.vm.call_builtin(SET, self, key, value)


class LuaVM:
    """One machine. Raises LuaError without lupa.

    memory_mb: what one plugin may hold, in MiB
    total_mb: what all of them may hold
    run_seconds: its own run time in one call
    wait_seconds: waiting in one call (not counted while a dialog is open)
    print: takes what Lua prints; default: standard error
    owner: whose a call is that is made now, "" for the machine's own
    """

    def __init__(
        self,
        *,
        memory_mb: int = 256,
        total_mb: int = 1024,
        run_seconds: float = 1.0,
        wait_seconds: float = 60.0,
        print: Callable[[str], None] | None = None,
        owner: Callable[[], str] = lambda: "",
    ) -> None:
        self.run_seconds = run_seconds
        self.wait_seconds = wait_seconds
        self.dropped: deque[tuple[int, int]] = deque()
        this = weakref.proxy(self)  # Lua holds the callbacks: what it holds must not hold the machine
        self.converter = Converter(lambda id: LuaFunction(id, this.strong()), lambda id: LuaTable(id, this.strong()))
        self._lua = _new_lua(memory_mb << 20)
        self._memory = MemoryShares(self._lua, memory_mb << 20, total_mb << 20)
        self._owner = owner
        callbacks = HostCallbacks(self.converter, lambda size: bool(this.has_memory(size)), print or _to_standard_error)
        *entries, self._release, self._close = _boot(self._lua, callbacks)
        self.names = FileNames()
        self._driver = Driver(callbacks, self._memory, self.names.restore, *entries)
        self._shapes: set[int] = set()

    def __del__(self) -> None:
        """No finalizer of an extension may call Python while the machine goes."""
        if hasattr(self, "_close"):
            self._close()

    def load(self, source: str | bytes, chunkname: str, env: dict[str, object] | LuaTable | None = None) -> LuaFunction:
        """The function of a text chunk. `chunkname` is "@file" (or the name in messages after "="); `env` holds its globals, behind
        which the machine's lie; default: fresh ones. Raises LuaError with file and line."""
        if not isinstance(env, LuaTable):
            env = self.environment(env)
        if chunkname[:1] not in ("@", "="):
            chunkname = f"@{chunkname}"
        if chunkname[0] == "@":
            self.names.add(chunkname[1:], chunkname[1:])
        try:
            function: LuaFunction = self.call_builtin(LOAD, source, chunkname, env)[0]
        except LuaError as error:  # Lua shortens the name of the file in its message
            line = error.where.rpartition(":")[2]
            error.where = self.names.restore(f"{chunkname[1:]}:{line}" if line.isdigit() else chunkname[1:])
            raise
        return function

    async def run(self, function: LuaFunction, *args: Any) -> tuple[Any, ...]:
        """Call it, and wait for what it returns. Makes no task. Raises LuaError."""
        outcome = self.start(function, *args)
        return outcome if isinstance(outcome, tuple) else await outcome

    async def run_detached(self, function: LuaFunction, *args: object) -> tuple[object, ...]:
        """`run` for work that may go on for ever: see LuaFunction.detached."""
        outcome = self._begin(function.id, args, None)
        return outcome if isinstance(outcome, tuple) else await outcome

    def start(self, function: LuaFunction, *args: Any) -> tuple[Any, ...] | Awaitable[tuple[Any, ...]]:
        """Call it now: what it returns, or, if it waits, something to await for that. Raises LuaError."""
        outcome: tuple[object, ...] | Awaitable[tuple[object, ...]] = self._begin(function.id, args, self.wait_seconds)
        return outcome

    def call_builtin(self, builtin: int, *args: Any) -> tuple[Any, ...]:
        """A builtin of boot.lua; they never wait."""
        outcome: tuple[object, ...] = self._begin(builtin, args, 0.0)
        return outcome or (None,)

    def builtin(self, number: int) -> LuaFunction:
        """A builtin of boot.lua, for functions of Lua to call."""
        return LuaFunction(number, self)

    def table(self, value: object) -> LuaTable:
        """A new table in Lua, with a copy of this list or dict."""
        table = self.call_builtin(HOLD, value)[0]
        if not isinstance(table, LuaTable):
            raise LuaData(f"{type(value).__name__} makes no table")
        return table

    def environment(self, seed: dict[str, object] | None = None, within: LuaTable | None = None) -> LuaTable:
        """Globals for chunks: what they set lands here, what they do not find is looked up in those `within`, default: the machine's."""
        table: LuaTable = self.call_builtin(ENVIRONMENT, seed or {}, within)[0]
        return table

    def own_globals(self) -> LuaTable:
        """Globals that share nothing that can be changed with any other: copies of the library and of what was installed."""
        table: LuaTable = self.call_builtin(OWN)[0]
        return table

    def to_python(self, value: Any) -> Any:
        """A copy of a table as list or dict; anything else as it is."""
        return self.call_builtin(COPY, value)[0] if isinstance(value, LuaTable) else value

    def set_global(self, name: str, value: object) -> None:
        self.globals.set(name, value)

    @property
    def globals(self) -> LuaTable:
        """The globals that all chunks share."""
        table: LuaTable = self.call_builtin(GLOBALS)[0]
        return table

    def set_path(self, templates: Iterable[str]) -> None:
        """Where `require` looks: "folder/?.lua", in this order."""
        self.call_builtin(PATH, ";".join(templates))

    def strong(self) -> LuaVM:
        return self

    def memory_used(self) -> int:
        """Bytes that Lua holds now."""
        return int(self._lua.get_memory_used())

    def has_memory(self, size: int) -> bool:
        """Whether `size` bytes can be pushed. A push that fails outside of a protected call would end the process."""
        return self._memory.has_room(self._owner(), 2 * size + SPARE)

    def start_handler(self, function: LuaFunction, call: HandlerCall) -> tuple[Any, ...] | Awaitable[tuple[Any, ...]]:
        """`start` for a handler: it gets the context and the event of this call."""
        shape = None if call.added else plain_shape(call.name, type(call.event.payload))
        if shape is not None and shape.number not in self._shapes:
            self.call_builtin(SHAPE, shape.number, (*shape.fields, *STAMPED), shape.name, shape.ident)
            self._shapes.add(shape.number)
        number, data = self.converter.encode_event(call, shape)
        owner = self._owner()
        self._prepare(len(data), owner)
        args = (function.id, self.converter.hold(call), number, data)
        outcome: tuple[Any, ...] | Awaitable[tuple[Any, ...]] = self._driver.begin_handler(
            self.run_seconds, self.wait_seconds, owner, args
        )
        return outcome

    def _begin(self, ref: int, args: tuple[Any, ...], wait: float | None) -> Any:
        data = self.converter.encode(*args)
        owner = self._owner()
        self._prepare(len(data), owner)
        return self._driver.begin(ref, data, self.run_seconds, wait, owner)

    def _prepare(self, size: int, owner: str) -> None:
        """Let go of what Python dropped; raises LuaError if `size` bytes cannot be pushed."""
        while self.dropped:
            self._release(*self.dropped.popleft())
        if not self._memory.has_room(owner, 2 * size + SPARE):
            raise not_enough(self._memory.share)


def place_of(function: Callable[..., object]) -> str:
    """The "file:line" of a function's definition, "" for one that is not Lua's."""
    return function.where if isinstance(function, LuaFunction) else ""


def _single(results: tuple[object, ...]) -> object:
    """What a Python function would have returned."""
    if len(results) > 1:
        return Values(results)
    return results[0] if results else None


async def _await_single(outcome: Awaitable[tuple[object, ...]]) -> object:
    return _single(await outcome)


def _new_lua(cap: int) -> Any:
    """A bare Lua 5.4. No object of Python that gets into it lets anything be read from it."""
    import importlib

    try:
        lupa = importlib.import_module("lupa.lua54")
    except ImportError as error:
        raise LuaError("Lua extensions need the package lupa 2.8 or newer: pip install lupa") from error
    return lupa.LuaRuntime(
        encoding=None,
        source_encoding="utf-8",
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        attribute_handlers=(_deny_attribute, _deny_attribute),
        max_memory=cap,
    )


def _boot(lua: Any, host: HostCallbacks) -> Any:
    """Load the files beside this one: what boot.lua returns."""
    chunks = {}
    for name in ("boot", "pack", "events", "patterns", "library", "pipes", "names", "sandbox"):
        with open(os.path.join(os.path.dirname(__file__), name + ".lua"), encoding="utf-8") as file:
            chunks[name] = file.read()
    callbacks: dict[bytes, Any] = {name.encode(): function for name, function in host.as_table().items()}
    callbacks[b"execute"] = host.converter.hold(HostFunction(lambda command: _pipes().execute(command)))
    callbacks[b"popen"] = host.converter.hold(HostFunction(lambda command, mode: _pipes().popen(command, mode)))
    texts = {name.encode(): text.encode() for name, text in chunks.items()}
    return lua.compile(chunks["boot"], name=b"=[cru boot]", mode=b"t")(lua.table_from(callbacks), lua.table_from(texts))


def _pipes() -> Any:
    from cru.core.plugins.lua import pipes

    return pipes


def _deny_attribute(*_: object) -> Any:
    raise AttributeError("access denied")


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text)
