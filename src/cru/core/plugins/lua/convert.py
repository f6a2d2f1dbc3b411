"""Values between Lua and Python: bytes in MessagePack, so that no object of one language ever gets into the other.

| Lua | Python |
|---|---|
| nil, and `json.null` | None (None in a dict is an absent field; in a list it is `json.null`, so that the list keeps its length) |
| boolean, integer, float | bool, int, float: 1 stays 1, 1.0 stays 1.0; an int beyond 64 bits becomes a float |
| string | str; bytes that are not UTF-8 are kept as surrogate escapes (as in `os.fsdecode`), so that they survive both ways |
| table 1..n, or marked by `json.array` | list; every list comes with that mark, so that `[]` stays a list |
| other table | dict with str and int keys; a key of another type is an error |
| function | LuaFunction; a Python callable is a Lua function; each comes back as what it was |
| table with methods | Object |
| event | LazyDict: a field in it that is a table, or Lazy, becomes a real table when it is read |

An event that a function of Lua returns comes back as a dict of what differs from what was sent, and its `type`.

Deeper than 100 levels is an error, and so is a value that contains itself.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, msgpack

from cru.core.api.event_table.lazy import Lazy, LazyDict, is_big, raw_items
from cru.core.api.event_table.table import PlainShape, is_short
from cru.core.api.handlers import HandlerCall
from cru.core.api.host import NamespaceError, Object

STAMPED = ("is_continuation", "timestamp_ms")
"""What is sent of an event beside the fields of its shape."""
RAW, FUNCTION, TABLE, HOST, OBJECT, EVENT, SMALL, LAZY = range(1, 9)
"""The extension codes of pack.lua."""


class LuaError(NamespaceError):
    """Lua code failed.

    message: as Lua says it, the place first
    reason: the same without the place
    where: "file:line", or empty
    traceback: Lua's own
    original: the error object (a table is copied; None where it is no data)

    LuaError
    ├── LuaTooSlow      it ran or waited longer than it may
    └── LuaData         a value has no counterpart in the other language
    """

    def __init__(self, message: str, traceback: str = "", where: str = "", original: object = ...) -> None:
        super().__init__(message)
        self.traceback = traceback if _names_a_line(traceback) else ""
        self.where = where
        self.reason = message
        self.original = message if original is ... else original


def _names_a_line(traceback: str) -> bool:
    return any(not line.strip().startswith("[C]:") for line in traceback.splitlines()[1:])


class LuaTooSlow(LuaError):
    pass


class LuaData(LuaError):
    pass


class HostFunction:
    """A Python function as Lua calls it.

    dialog: it waits for a person, so its waiting is not limited
    least: how many arguments it must have
    """

    __slots__ = ("call", "dialog", "least")

    def __init__(self, call: Callable[..., object], dialog: bool = False) -> None:
        self.call = call
        self.dialog = dialog
        self.least = required_arguments(call)


def required_arguments(function: Callable[..., object]) -> int:
    """How many arguments must be given by position, as far as the function says it: in Lua those that are left out are nil."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return 0
    return int(code.co_argcount) - len(inner.__defaults__ or ()) - (inner is not function)


class WithNull(Struct, frozen=True):
    """A result in which null is to be read as `json.null`, not as nil."""

    value: Any


class LuaReference:
    """A Lua value that Python holds: equal only to itself, let go in Lua when it is dropped here. `place` is the "file:line" of a
    function's definition, where it came with it."""

    __slots__ = ("__weakref__", "_dropped", "crossings", "id", "place")
    code = TABLE

    def __init__(self, id: int, dropped: deque[tuple[int, int]]) -> None:
        self.id = id
        self.place = ""
        self.crossings = 0
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append((self.id, self.crossings))


class Converter:
    """The Python side of pack.lua.

    function, table: make the references to Lua's functions and tables
    hosts: values of Python that Lua holds, by their number
    """

    def __init__(self, function: Callable[[int], LuaReference], table: Callable[[int], LuaReference]) -> None:
        self.hosts: dict[int, Any] = {}
        self._last = 0
        self._make = {FUNCTION: function, TABLE: table}
        self._handles: WeakValueDictionary[int, LuaReference] = WeakValueDictionary()
        self._encoder = msgpack.Encoder(enc_hook=self._encode_object)
        self._events = msgpack.Encoder(enc_hook=self._encode_field)
        self._data = msgpack.Encoder()
        self._decoder = msgpack.Decoder(ext_hook=self._decode_object)

    def encode(self, *values: Any) -> bytes:
        """The values one after the other, as `values` of pack.lua reads them. Raises LuaData."""
        try:
            return b"".join([self._encode(value) for value in values])
        except RecursionError as error:
            raise LuaData("data nested too deeply, or a value that contains itself") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise LuaData(f"no data for Lua: {error}") from error

    def results(self, data: bytes) -> list[object]:
        """What Lua returned."""
        values: list[object] = self._decoder.decode(data)
        return values

    def arguments(self, data: bytes, least: int = 0) -> list[Any]:
        """What Lua gives to a Python function, with no None at the end beyond the `least` that must be given."""
        values = self.results(data)
        while len(values) > least and values[-1] is None:
            values.pop()
        return values + [None] * (least - len(values)) if len(values) < least else values

    def hold(self, value: object) -> int:
        """A number for a Python value, valid until Lua gives it back through `release`."""
        self._last += 1
        self.hosts[self._last] = value
        return self._last

    def release(self, numbers: bytes) -> None:
        for number in numbers.split():
            self.hosts.pop(int(number), None)

    def object_at(self, id: int) -> Any:
        """The object behind a proxy: of a handler's call it is the context."""
        value = self.hosts[id]
        return value.context if type(value) is HandlerCall else value

    def encode_event(self, call: HandlerCall, shape: PlainShape | None) -> tuple[int, bytes]:
        """(the number of the shape, the values of its fields in order), or (0, the whole table) where the event has none."""
        event = call.event
        payload, stamp = event.payload, event.stamp
        if shape is None or (shape.ident and not is_short(getattr(payload, shape.ident))):
            return 0, self._encode_with(self._events, call.table)
        values = [
            value
            if type(value := getattr(payload, field)) is bool or is_short(value)
            else self._later(value, is_big(value))
            for field in shape.fields
        ]
        values += (stamp.is_continuation, int(stamp.timestamp * 1000))
        return shape.number, self._encode_with(self._data, values)

    def _encode(self, value: object) -> bytes:
        if type(value) is LazyDict:
            data = self._encode_with(self._events, value)
            return _HEAD + self.hold(value).to_bytes(8, "big") + data
        return self._encode_with(self._encoder, value)

    def _encode_with(self, encoder: msgpack.Encoder, value: object) -> bytes:
        try:
            return encoder.encode(value)
        except (OverflowError, UnicodeEncodeError):
            return encoder.encode(_plain(value))

    def _encode_field(self, value: object) -> object:
        if type(value) is not Lazy:
            return self._encode_object(value)
        return self._later(value.small, value.small is None)

    def _later(self, value: object, big: bool) -> msgpack.Ext:
        """A field of an event: what is small goes along as bytes that Lua reads when it needs them; if it is no mere data, Lua asks
        for it like for what is big."""
        if not big:
            try:
                return msgpack.Ext(SMALL, self._data.encode(value))
            except (TypeError, ValueError, OverflowError, RecursionError):
                pass  # it is told when it is read
        return _LATER

    def _encode_object(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Object):
            return _extension(OBJECT, self.hold(value))
        if isinstance(value, LuaReference):
            return _extension(value.code, value.id)
        if kind is Lazy:
            return value.get()
        if kind is HostFunction:
            return _extension(HOST, self.hold(value))
        for base in (str, int, float):
            if isinstance(value, base):
                return base(value)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if callable(value) and not isinstance(value, type):
            return _extension(HOST, self.hold(HostFunction(value)))
        raise TypeError(f"{kind.__name__} has no counterpart in Lua")

    def _decode_object(self, code: int, data: memoryview) -> object:
        if code == RAW:
            return str(data, "utf-8", "surrogateescape")
        id = int.from_bytes(data[:8], "big")
        if code in (FUNCTION, TABLE):
            handle = self._handles.get(id)
            if handle is None:
                handle = self._handles[id] = self._make[code](id)
                handle.place = str(data[8:], "utf-8", "surrogateescape").lstrip("@=")
            handle.crossings += 1
            return handle
        value = self.object_at(id)
        return value.call if isinstance(value, HostFunction) else value


def _extension(code: int, id: int) -> msgpack.Ext:
    return msgpack.Ext(code, id.to_bytes(8, "big"))


def _plain(value: object) -> object:
    """The value with what msgspec refuses made bearable: integers beyond 64 bits, and text with surrogate escapes."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in raw_items(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape")
    return value


_HEAD = bytes((0xD7, EVENT))
_LATER = msgpack.Ext(LAZY, b"\0")
