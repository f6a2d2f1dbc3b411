"""Tools that plugins bring, whatever their language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any

import msgspec

from cru.namespace.host import HOST, Host, NamespaceError
from cru.tools.protocol import Access, ArgumentError, Kind, Result, Running, ToolError
from cru.values.messages import ToolSpec

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "object": (dict,), "array": (list,),
}  # fmt: skip


class PluginTool:
    """A function of a plugin as a tool. It gets one table of arguments; a table with `error` in it is a failure."""

    kind: Kind = "tool"
    parallel = False
    hidden = False

    def __init__(self, host: Host, name: str, about: str, schema: dict[str, Any], function: Callable[..., Any]) -> None:
        self.spec = ToolSpec(name, about, schema)
        self.source = host.plugin.name
        self._host = host
        self._function = function

    def check(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Raises ArgumentError that names the field and why."""
        try:
            given = msgspec.json.decode(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
        except msgspec.DecodeError as error:
            raise ArgumentError(f"not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ArgumentError("the arguments must be an object")
        known: Mapping[str, Any] = self.spec.parameters["properties"]
        for name in self.spec.parameters["required"]:
            if name not in given:
                raise ArgumentError(f"`{name}`: is missing")
        for name, value in given.items():
            if name not in known:
                from cru.config.closest import did_you_mean

                raise ArgumentError(f"`{name}`: unknown; {did_you_mean(name, known)}".rstrip("; "))
            _check_type(name, value, known[name].get("type", ""))
        return given

    def subject(self, args: Mapping[str, Any]) -> str:
        return ""

    def paths(self, args: Mapping[str, Any]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, Any], running: Running) -> Result:
        """Call the plugin's function in its name. Raises ToolError."""
        token = HOST.set(self._host)
        try:
            value = self._host.plugin.invoke(self._function, args)
            if isawaitable(value):
                value = await value
        except NamespaceError as error:
            raise ToolError(error.message) from error
        finally:
            HOST.reset(token)
        if isinstance(value, Mapping) and value.get("error"):
            return Result(str(value["error"]), is_error=True)
        return Result(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode())


def _check_type(name: str, value: Any, kind: str) -> None:
    wanted = TYPES.get(kind)
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "boolean")):
        raise ArgumentError(f"`{name}`: expected {kind}, got {type(value).__name__}")
