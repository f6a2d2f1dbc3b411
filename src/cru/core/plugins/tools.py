"""Tools that plugins bring, whatever their language."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import isawaitable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, UnsetType

from cru.core.api.host import HOST, Host, NamespaceError, Object
from cru.core.api.log import shown
from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.cancellation import from_outside
from cru.core.base.values.messages import ToolSpec
from cru.core.events.calling import describe_error
from cru.core.events.stream import ToolDrew
from cru.core.plugins import unknown_keys
from cru.core.plugins.errors import PluginFailed
from cru.core.tools.arguments import decode_object
from cru.core.tools.protocol import Access, ArgumentError, Kind, ToolContext, ToolError, ToolResult

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "object": (dict,), "array": (list,),
}  # fmt: skip
SCHEMA_TYPES = {name: name for name in PYTHON_TYPES if name != "array"} | {"table": "object"}
"""Type words of plugins → those of JSON Schema; every other word means anything."""
TOOL_KEYS = ("desc", "params", "fn")
PARAMETER_KEYS = ("name", "type", "desc", "optional")


class Parameter(Struct, frozen=True):
    """One parameter of a tool or a command; `schema` is its JSON Schema."""

    name: str
    schema: dict[str, Any]
    required: bool = True


def make_parameter(name: str, kind: str, description: str, optional: bool = False) -> Parameter:
    """Of a type word: string, number, integer, boolean, table, object, any, array<T>, {T}; with ? behind it, it may be left out."""
    schema = _schema(kind.rstrip("?"))
    return Parameter(
        name, {**schema, "description": description} if description else schema, not (optional or kind.endswith("?"))
    )


def _schema(kind: str) -> dict[str, object]:
    array = re.match(r"^array<(\w+)>$|^\{(\w+)\}$", kind)
    if array:
        return {"type": "array", "items": _schema(array[1] or array[2])}
    return {"type": SCHEMA_TYPES[kind]} if kind in SCHEMA_TYPES else {}


def read_parameters(host: Host, what: str, specs: Any) -> tuple[Parameter, ...]:
    """Of a list of {name, type?, desc?, optional?}. Raises PluginFailed."""
    parameters = []
    for spec in specs or ():
        if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
            raise PluginFailed(
                f"{what}: every parameter is a table with a name", '{name = "path", type = "string", desc = "…"}'
            )
        unknown_keys.check_entry(host, f"{what}, parameter {spec['name']}", spec, PARAMETER_KEYS)
        kind, description = str(spec.get("type") or "any"), str(spec.get("desc") or "")
        unknown_keys.check_type_word(
            host, f"{what}, parameter {spec['name']}", kind.rstrip("?"), (*PYTHON_TYPES, *SCHEMA_TYPES, "any")
        )
        parameters.append(make_parameter(spec["name"], kind, description, bool(spec.get("optional"))))
    return tuple(parameters)


class SpecEntry(NamedTuple):
    """One entry of a plugin's `tools`, `commands` or `services`.

    name: its key
    label: what it is called in messages
    description: its `desc`
    function: its `fn`
    spec: the whole table
    """

    name: str
    label: str
    description: str
    function: Callable[..., Any]
    spec: Mapping[str, Any]


def spec_entries(host: Host, family: str, raw: object, known: Collection[str]) -> Iterator[SpecEntry]:
    """Yield the entries of a plugin's table name → table; a function stands for a table with only `fn`. Unknown keys are reported, and an
    entry without a function is reported and left out. Raises PluginFailed."""
    if not raw:
        return
    if not isinstance(raw, Mapping) or not all(isinstance(spec, Mapping) or callable(spec) for spec in raw.values()):
        raise PluginFailed(f"`{family}` must be a table of tables: name = {{desc, …, fn}}")
    for name in sorted(raw, key=str):
        spec, label = {"fn": raw[name]} if callable(raw[name]) else raw[name], f"the {family.removesuffix('s')} {name}"
        unknown_keys.check_entry(host, label, spec, known)
        if callable(spec.get("fn")):
            yield SpecEntry(str(name), label, str(spec.get("desc") or ""), spec["fn"], spec)
        else:
            host.problem(f"{label} is left out: it has no function `fn`")


def add_tools(host: Host, tools: object) -> None:
    """The tools of a plugin's table: name → {desc, params, fn}. Raises PluginFailed."""
    for entry in spec_entries(host, "tools", tools, TOOL_KEYS):
        parameters = read_parameters(host, entry.label, entry.spec.get("params"))
        add_tool(host, entry.name, entry.description, parameters, entry.function)


def add_tool(
    host: Host, name: str, description: str, params: tuple[Parameter, ...], function: Callable[..., Any]
) -> None:
    """Offer a function to the model. A name that is taken stays with whom it belongs to, and the plugin is told."""
    schema = {
        "type": "object",
        "properties": {p.name: p.schema for p in params},
        "required": [p.name for p in params if p.required],
        "additionalProperties": False,
    }
    tools = host.session.parts.tools
    problem = tools.add(PluginTool(host, name, description, schema, function))
    if problem:
        host.problem(problem)
        return
    host.own(lambda: tools.drop_source(host.plugin.name), "tools")


class PluginTool:
    """A function of a plugin as a tool. It gets one table of arguments; a table with `error` in it is a failure."""

    kind: Kind = "tool"
    parallel = False
    hidden = False

    def __init__(
        self, host: Host, name: str, description: str, schema: dict[str, object], function: Callable[..., object]
    ) -> None:
        self.spec = ToolSpec(name, description, schema)
        self.source = host.plugin.name
        self._host = host
        self._function = function

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        """Raises ArgumentError that names the field and why."""
        fields = decode_object(arguments)
        known: Mapping[str, Any] = self.spec.parameters["properties"]
        for name in self.spec.parameters["required"]:
            if name not in fields:
                raise ArgumentError(f"`{name}`: is missing")
        for name, value in fields.items():
            if name not in known:
                raise ArgumentError(f"`{name}`: unknown; {did_you_mean(name, known)}".rstrip("; "))
            _check_type(name, value, known[name].get("type", ""))
        return fields

    def subject(self, args: Mapping[str, object]) -> str:
        return ""

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
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
        try:
            if isinstance(value, Object) and value.as_text() is not None:
                return self._draw(value, running.call_id)
            return _to_result(value)
        except BaseException as raised:  # the boundary around an object of a plugin that is looked at
            if from_outside(raised):
                raise
            raise ToolError(f"what it returned cannot be read: {describe_error(raised)}") from raised

    def _draw(self, node: Object, call_id: str) -> ToolResult:
        """A view of `cru.oil`: the model gets its plain text."""
        text, view = shown(node)
        if not isinstance(view, UnsetType):
            self._host.session.parts.bus.stream.tell(ToolDrew(call_id, text, view))
        return ToolResult(text)


def _plain(value: object) -> object:
    text = value.as_text() if isinstance(value, Object) else None
    return repr(value) if text is None else text


def _to_result(value: object) -> ToolResult:
    if isinstance(value, Mapping) and value.get("error"):
        return ToolResult(str(value["error"]), is_error=True)
    return ToolResult(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_plain).decode())


def _check_type(name: str, value: object, kind: str) -> None:
    expected = PYTHON_TYPES.get(kind)
    if expected and (not isinstance(value, expected) or (isinstance(value, bool) and kind != "boolean")):
        raise ArgumentError(f"`{name}`: expected {kind}, got {type(value).__name__}")
