"""Runs Lua calls, handlers and functions of plugins alike: the Python side of boot.lua. A handler comes here from api/handlers.py.

A call is one coroutine in Lua. A Python function that must wait makes it yield; whoever awaits the call awaits that function, then
resumes it. A call that never waits never touches asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from msgspec import Struct

from cru.core.api.event_table.lazy import resolve_lazy
from cru.core.api.handlers import HandlerCall
from cru.core.api.host import Object, Values
from cru.core.base.files.regular import blocking_reason
from cru.core.base.values.cancellation import is_interrupted, is_over
from cru.core.base.values.errors import CruError
from cru.core.plugins.lua.convert import Converter, HostFunction, LuaError, LuaTooSlow, WithNull, required_arguments
from cru.core.plugins.lua.memory import MemoryShares, not_enough

DONE, WAITING, FAILED = range(3)
VALUES, NOTHING, WAIT, ERROR, STOP, NULLS, METHOD, MEMORY = range(8)
"""How a run comes back, and how a call of Python is answered: the numbers of boot.lua."""

EXPECTED = (CruError, OSError, ValueError, TypeError)
DEEPEST = 30
HOST_SECONDS = 10.0
"""Seconds that one call may spend in functions of `cru` without a wait, beside its own run time."""
SPARE = 256 << 10
"""Bytes of Lua memory that must be free before anything is pushed: a push that fails would end the process."""


class LuaFailure(NamedTuple):
    """How boot.lua says that a run failed.

    message: with the place before it
    trace: Lua's own traceback
    where: "file:line", empty if nothing tells it
    reason: the message without its place
    is_host_error: a function of Python raised it
    original: the packed error object, None if it is no data
    """

    message: bytes
    trace: bytes
    where: bytes
    reason: bytes
    is_host_error: bool
    original: bytes | None = None


class LuaCall(Struct):
    """One run of a Lua function.

    full: seconds of run time at the start
    wait: seconds of waiting that are left; None: no limit, and each stretch between two waits has the whole run time
    budget: seconds of run time that are left, on a processor: on a busy machine a call takes longer, and runs no longer
    longest: the seconds of waiting at the start
    owner: whose it is
    deadline: when the run time is over, while it runs
    latest: when it would be on an idle machine; what somebody has interrupted does not run on then
    host: seconds that functions of `cru` may still take beside the run time
    awaiting: what it waits for
    dialog: whether that waits for a person, so that it is not limited
    is_overdue: it was ended because it ran too long
    fatal: what ends it, however Lua goes on
    cause: what a function of Python raised last
    """

    id: int
    full: float
    wait: float | None
    budget: float
    longest: float
    owner: str
    deadline: float = 0.0
    latest: float = 0.0
    host: float = HOST_SECONDS
    awaiting: Any = None
    dialog: bool = False
    is_overdue: bool = False
    fatal: BaseException | None = None
    cause: BaseException | None = None


class HostCallbacks:
    """What Lua may call in Python. Its methods never raise: an exception that crosses Lua's frames is an object of Python in Lua."""

    def __init__(self, converter: Converter, has_memory: Callable[[int], bool], write: Callable[[str], None]) -> None:
        self.converter = converter
        self.current: LuaCall | None = None
        self.depth = 0
        self._has_memory = has_memory
        self._write = write

    def as_table(self) -> dict[str, Callable[..., object]]:
        return {
            "call": self.call,
            "method": self.method,
            "read": self.read,
            "assign": self.assign,
            "fetch": self.fetch,
            "release": self.converter.release,
            "forget": self.forget,
            "expired": self.expired,
            "write": self.write,
            "check_file": self.check_file,
        }

    def expired(self) -> bytes | None:
        """Whether the run must end now, and why."""
        call = self.current
        if call is None:
            return b"a finalizer ran too long"
        if call.fatal is not None:
            return b"the program stopped this call"
        if thread_time() <= call.deadline and not (perf_counter() > call.latest and is_interrupted()):
            return None
        call.is_overdue = True
        return b"ran longer than %g s" % call.full

    def write(self, text: bytes) -> None:
        try:
            self._write(text.decode("utf-8", "replace"))
        except BaseException as error:  # noqa: BLE001  nothing may be raised through Lua's frames
            self._stop(error)

    def check_file(self, name: bytes) -> bytes | None:
        """Why the file must not be opened, None if it may."""
        try:
            why = blocking_reason(name.partition(b"\0")[0])
            return b"%s: %s" % (name, why.encode()) if why else None
        except BaseException as error:  # noqa: BLE001  nothing may be raised through Lua's frames
            self._stop(error)
            return b"the program stopped this call"

    def forget(self) -> None:
        """The call cannot wait here: drop what it would wait for."""
        if self.current is not None:
            _close_awaiting(self.current)

    def call(self, id: int, data: bytes) -> object:
        return self._answer(self._call, id, data)

    def method(self, id: int, name: bytes, data: bytes) -> object:
        return self._answer(self._method, id, name.decode(), data)

    def read(self, id: int, data: bytes) -> object:
        return self._answer(self._read, id, data)

    def assign(self, id: int, data: bytes) -> object:
        return self._answer(self._assign, id, data)

    def fetch(self, id: int, key: bytes) -> object:
        return self._answer(self._fetch, id, key.decode())

    def reply(self, value: object) -> object:
        """A result, as Lua reads it: a number, or a number and bytes."""
        if value is None:
            return NOTHING
        tag = VALUES
        if isinstance(value, WithNull):
            tag, data = NULLS, self.converter.encode(value.value)
        elif isinstance(value, Values):
            data = self.converter.encode(*value)
        else:
            data = self.converter.encode(value)
        return (tag, data) if self._has_memory(len(data)) else MEMORY

    def failed(self, error: BaseException) -> object:
        """An error, as Lua reads it. What nobody foresaw is named with its type."""
        if self.current is not None:
            self.current.cause = error
        as_it_was = isinstance(error, LuaError)
        if isinstance(error, LuaError):
            value = error.original
        elif isinstance(error, CruError):
            value = f"{error.message} ({error.hint})" if error.hint else error.message
        elif isinstance(error, EXPECTED):
            value = str(error) or type(error).__name__
        else:
            value = f"{type(error).__name__}: {error}"
        data = self.converter.encode(value, as_it_was)
        return (ERROR, data) if self._has_memory(len(data)) else MEMORY

    def _answer(self, function: Callable[..., object], *args: object) -> object:
        """Time in Python is not the extension's own, up to a limit."""
        call, begun = self.current, thread_time()
        try:
            return self._reply_or_wait(function(*args))
        except Exception as error:  # noqa: BLE001  reported to Lua, where it is an ordinary error
            return self.failed(error)
        except BaseException as error:  # noqa: BLE001  raised again when Lua has come back
            return self._stop(error)
        finally:
            if call is not None:
                spent = min(thread_time() - begun, call.host)
                call.host -= spent
                call.deadline += spent

    def _reply_or_wait(self, value: Any) -> Any:
        if hasattr(type(value), "__await__"):
            if self.current is None:
                value.close()
                raise LuaError("this call waits, which is not possible in a finalizer")
            self.current.awaiting = value
            return WAIT
        return value if type(value) is _Method else self.reply(value)

    def _stop(self, error: BaseException) -> int:
        if self.current is not None:
            self.current.fatal = error
        return STOP

    def _call(self, id: int, data: bytes) -> object:
        function: HostFunction = self.converter.hosts[id]
        if self.current is not None:
            self.current.dialog = function.dialog
        return function.call(*self.converter.arguments(data, function.least))

    def _method(self, id: int, name: str, data: bytes) -> object:
        target: Object = self.converter.object_at(id)
        if name not in target.METHODS:
            raise LuaError(f"{type(target).__name__} has no method {name}")
        if self.current is not None:
            self.current.dialog = False
        method = getattr(target, name)
        return method(*self.converter.arguments(data, required_arguments(method)))

    def _fetch(self, id: int, key: str) -> object:
        """A field of an event; each table that Lua makes of it is its own."""
        holder = self.converter.hosts[id]
        return resolve_lazy(dict.get(holder.table if type(holder) is HandlerCall else holder, key))

    def _read(self, id: int, data: bytes) -> object:
        target, name = self.converter.object_at(id), self.converter.arguments(data)[0]
        if name in target.METHODS:
            return _Method((METHOD, name.encode()))
        if name in target.FIELDS:
            return getattr(target, name)
        getter = getattr(type(target), "__getitem__", None) or getattr(type(target), "__getattr__", None)
        return getter(target, name) if getter is not None else None

    def _assign(self, id: int, data: bytes) -> Any:
        name, value = [*self.converter.arguments(data), None][:2]
        target = self.converter.object_at(id)
        kind = type(target)
        own = "__setattr__" in vars(kind)
        if own or (name in target.FIELDS and getattr(getattr(kind, name, None), "fset", None) is not None):
            setattr(target, name, value)
        elif hasattr(kind, "__setitem__"):
            target[name] = value
        else:
            raise LuaError(f"{kind.__name__} has no field {name} that can be assigned")


class _Method(tuple[object, ...]):
    """An answer that is ready."""


class Driver:
    """Starts calls, and sees them through. `start`, `handle`, `go_on` and `cancel` are the functions of boot.lua."""

    def __init__(
        self, callbacks: HostCallbacks, memory: MemoryShares, rename: Callable[[str], str], *functions: Any
    ) -> None:
        """rename: names files in messages as people know them; functions: start, handle, go_on and cancel."""
        self.callbacks = callbacks
        self._memory, self._rename = memory, rename
        self._start, self._handle, self._go_on, self._cancel = functions
        self._last = 0

    def begin(self, ref: int, data: bytes, budget: float, wait: float | None, owner: str) -> object:
        """Run until the end or the first wait: the results as a tuple, or something to await for them. Raises LuaError."""
        return self._run(budget, wait, owner, self._start, (ref, data))

    def begin_handler(self, budget: float, wait: float, owner: str, args: tuple[int, int, int, bytes]) -> Any:
        """The same for a handler: `args` are the function, and the numbers of the call and of its event's shape before the data."""
        return self._run(budget, wait, owner, self._handle, args)

    def _run(self, budget: float, wait: float | None, owner: str, function: Any, args: tuple[object, ...]) -> object:
        self._last += 1
        call = LuaCall(self._last, budget, wait, budget, wait or 0.0, owner)
        outcome = self._enter(call, function, *args)
        return self._wait(call) if outcome[0] == WAITING else self._results(outcome[1])

    def _results(self, data: bytes | None) -> tuple[object, ...]:
        return () if data is None else tuple(self.callbacks.converter.results(data))

    async def _wait(self, call: LuaCall) -> tuple[object, ...]:
        try:
            while True:
                answer = await self._await_reply(call)
                outcome = self._enter(call, self._go_on, *(answer if isinstance(answer, tuple) else (answer,)))
                if outcome[0] != WAITING:
                    return self._results(outcome[1])
        except BaseException:
            call.budget = call.full
            self._enter(call, self._cancel)
            raise

    async def _await_reply(self, call: LuaCall) -> object:
        """What the awaited function returned or raised, as Lua reads it."""
        awaiting, call.awaiting = call.awaiting, None
        try:
            return self.callbacks.reply(await self._await_in_time(call, awaiting))
        except LuaTooSlow as error:
            if error is call.fatal:
                raise
            return self._failed(call, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling() or is_over():
                raise
            return self._failed(call, LuaError(f"cancelled {error}".strip()))
        except Exception as error:  # noqa: BLE001  reported to Lua, where it is an ordinary error
            return self._failed(call, error)

    async def _await_in_time(self, call: LuaCall, awaiting: Any) -> Any:
        if call.wait is None or call.dialog:
            return await awaiting
        begun = perf_counter()
        try:
            async with asyncio.timeout(max(call.wait, 0)) as clock:
                return await awaiting
        except TimeoutError as error:
            if not clock.expired():
                raise  # the function's own
            call.fatal = LuaTooSlow(f"waited longer than {call.longest:g} s")
            raise call.fatal from error
        finally:
            call.wait -= perf_counter() - begun

    def _failed(self, call: LuaCall, error: Exception) -> object:
        call.cause = error
        return self.callbacks.failed(error)

    def _enter(self, call: LuaCall, function: Any, *args: Any) -> Any:
        """One stretch of Lua, under the time limit: (DONE, bytes) or (WAITING, None). Raises what it failed with."""
        callbacks = self.callbacks
        if callbacks.depth >= DEEPEST:
            raise LuaError(f"Lua and Python call each other more than {DEEPEST} times deep")
        outer, callbacks.current = callbacks.current, call
        callbacks.depth += 1
        memory = self._memory
        if memory.owner != call.owner:
            memory.switch(call.owner)
        if call.wait is None:
            call.budget, call.host = call.full, HOST_SECONDS
        call.deadline, call.latest = thread_time() + call.budget, perf_counter() + call.budget
        try:
            outcome = function(call.id, *args)
        except Exception as error:  # of lupa: the driver itself failed, for want of memory or of readable data
            text = str(error).partition("\n")[0]
            raise (LuaError(text) if text else not_enough(self._memory.share)) from error
        finally:
            if outer is not None and memory.owner != outer.owner:
                memory.switch(outer.owner)
            call.budget = call.deadline - thread_time()
            callbacks.current = outer
            callbacks.depth -= 1
        if outcome is None or outcome[0] == WAITING:
            return outcome
        _close_awaiting(call)
        if call.fatal is not None and function is not self._cancel:
            raise call.fatal
        if outcome[0] == FAILED:
            raise self._make_error(call, LuaFailure(*outcome[1:]))
        return outcome

    def _make_error(self, call: LuaCall, failure: LuaFailure) -> LuaError:
        trace, *parts = (failure.trace, failure.message, failure.reason, failure.where)
        lines = [line for line in self._rename(_text(trace)).splitlines() if "[cru " not in line]
        original = None if failure.original is None else self.callbacks.converter.results(failure.original)[0]
        kind = LuaTooSlow if call.is_overdue else LuaError
        message, reason, where = (self._rename(_text(part)) for part in parts)
        if not reason.strip():
            reason = "an error without a message"
            message = f"{where}: {reason}" if where else reason
        error = kind(message, "\n".join(lines), where, original)
        error.reason = reason
        if failure.is_host_error:
            error.__cause__ = call.cause
        return error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _close_awaiting(call: LuaCall) -> None:
    """Close what the call would have waited for: nobody will."""
    awaiting, call.awaiting = call.awaiting, None
    if awaiting is not None and hasattr(awaiting, "close"):
        awaiting.close()
