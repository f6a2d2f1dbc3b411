"""Plugins in Lua: run their files, keep their functions, register what their annotations and tables say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cru.engine.parts import Parts
from cru.events.stream import Notice
from cru.extensions.discover import Found
from cru.extensions.errors import PluginFailed
from cru.extensions.lua import annotations as notes
from cru.extensions.lua.annotations import Annotation, Param
from cru.extensions.lua.bridge import install
from cru.extensions.lua.convert import HostFunction
from cru.extensions.lua.runtime import LuaFunction, LuaVM
from cru.extensions.tools import PluginTool
from cru.namespace.host import Host, Plugin, call
from cru.namespace.names import NAMES
from cru.namespace.on import register

# Keeps every file's environment and what it returned, so that functions can be found by the path that an annotation stands above.
KEEPER = """
local type, next, rawget, ipairs, loaded = type, next, rawget, ipairs, package.loaded
local gmatch, match = string.gmatch, string.match
local kept = {}
local function run(chunk, file, stem, env)
  local result = chunk()
  kept[file] = { env = env, result = result }
  if result == nil and type(rawget(env, "M")) == "table" and next(env.M) ~= nil then result = env.M end
  if result ~= nil then loaded[stem] = result end
  return type(result)
end
local function find(file, path)
  local it = kept[file]
  local value = it.env
  for part in gmatch(path, "[^.:]+") do value = type(value) == "table" and value[part] or nil end
  if value ~= nil then return value end
  local rest = match(path, "^[^.:]+[.:](.+)$") or path
  value = it.result
  for part in gmatch(rest, "[^.:]+") do value = type(value) == "table" and value[part] or nil end
  return value
end
local function spec(file)
  local result, said = kept[file].result, {}
  if type(result) ~= "table" then return nil end
  for _, key in ipairs { "tools", "commands", "setup", "on_load" } do said[key] = rawget(result, key) end
  return said
end
return { run = run, find = find, spec = spec }
"""
RUN_FIELDS = ("on_error", "scope")


class LuaPlugins:
    """One machine for all plugins of a session tree, started with the first of them."""

    def __init__(self, folders: list[tuple[str, Path]], parts: Parts) -> None:
        stream = parts.bus.stream
        self.vm = LuaVM(print=lambda text: stream.tell(Notice("info", text.rstrip("\n"), "lua")))
        install(self.vm, {name: f"cru.namespace.{target}" for name, target in NAMES.items()})
        self._search = [str(folder / shape) for _, folder in folders for shape in ("?.lua", "?/init.lua")]
        self._keeper: dict[str, LuaFunction] = {}

    def plugin(self, found: Found, config: Mapping[str, Any]) -> Plugin:
        return Plugin(found.name, found.folder, "lua", config, self._invoke, _where)

    async def load(self, found: Found, host: Host) -> None:
        """Run the files of a plugin and register what they declare. Raises LuaError and PluginFailed."""
        if not self._keeper:
            self._keeper = (await self.vm.run(self.vm.load(KEEPER, "=[cru plugins]")))[0]
        own = [str(found.folder / "lua" / "?.lua")] if found.files[0].name == "init.lua" else []
        self.vm.set_path([*own, *self._search])
        for file in found.files:
            await self._file(file, found, host)

    async def _file(self, file: Path, found: Found, host: Host) -> None:
        source = file.read_text("utf-8")
        said = notes.parse(source)
        for line, text, hint in said.problems:
            raise PluginFailed(f"{file}:{line}: {text}", hint)
        env = self.vm.environment({"M": {}} if notes.needs_module(source) else None)
        chunk = self.vm.load(source.encode(), f"@{file}", env)
        stem = found.name if file.name == "init.lua" else file.stem
        await self.vm.run(self._keeper["run"], chunk, str(file), stem, env)
        for annotation in said.annotations:
            await self._annotated(annotation, file, host)
        await self._spec(file, host)

    async def _annotated(self, annotation: Annotation, file: Path, host: Host) -> None:
        function = (await self.vm.run(self._keeper["find"], str(file), annotation.function))[0]
        where = f"{file}:{annotation.line}"
        if not isinstance(function, LuaFunction):
            why = "a local function cannot be reached" if annotation.local else "the file defines no such function"
            raise PluginFailed(
                f"{where}: @{annotation.kind} {annotation.function}: {why}", "make it global, or return it in M"
            )
        if annotation.kind == "handler":
            self._handler(annotation, function, where)
        elif annotation.kind == "tool":
            name = annotation.fields.get("name") or annotation.function.rpartition(".")[2]
            about = annotation.fields.get("desc") or annotation.text
            _add_tool(host, name, about, annotation.params, function)
        else:
            raise PluginFailed(f"{where}: @{annotation.kind} is not available yet")

    def _handler(self, annotation: Annotation, function: LuaFunction, where: str) -> None:
        event = annotation.fields.get("event", "")
        if not event:
            raise PluginFailed(f"{where}: @handler has no event", '@handler event="turn:complete" priority=10')
        options: dict[str, Any] = {key: annotation.fields[key] for key in RUN_FIELDS if key in annotation.fields}
        pattern = annotation.fields.get("pattern", "*")
        if pattern != "*":
            options["pattern"] = pattern
        priority = annotation.fields.get("priority", "100")
        if not priority.lstrip("-").isdigit():
            raise PluginFailed(f"{where}: priority must be a whole number, not {priority}")
        register(event, function, {**options, "priority": int(priority), "where": where}, annotation.function)

    async def _spec(self, file: Path, host: Host) -> None:
        """The table that a file returned, as far as it is a plugin's description."""
        spec = (await self.vm.run(self._keeper["spec"], str(file)))[0]
        if not isinstance(spec, Mapping):
            return
        for name, tool in (spec.get("tools") or {}).items():
            if isinstance(tool, Mapping) and isinstance(tool.get("fn"), LuaFunction):
                params = tuple(_param(p) for p in tool.get("params") or ())
                _add_tool(host, str(name), str(tool.get("desc") or ""), params, tool["fn"])
        if isinstance(spec.get("setup"), LuaFunction):
            await call(spec["setup"], dict(host.plugin.config))
        if isinstance(spec.get("on_load"), LuaFunction):
            await call(spec["on_load"])

    def _invoke(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call without a task: the value at once, or something to await if the function waits."""
        if not isinstance(function, LuaFunction):
            return function(*args)
        outcome = self.vm.call_soon_ok(function, *args)
        return _first(outcome) if isinstance(outcome, tuple) else _awaited(outcome)


def _first(values: tuple[Any, ...]) -> Any:
    return values[0] if values else None


async def _awaited(outcome: Any) -> Any:
    return _first(await outcome)


def _where(function: Callable[..., Any]) -> str:
    if isinstance(function, HostFunction) or not isinstance(function, LuaFunction):
        return ""
    return function.where


def _param(said: Mapping[str, Any]) -> Param:
    schema = notes.schema(str(said.get("type") or "any").rstrip("?"))
    about = str(said.get("desc") or "")
    optional = bool(said.get("optional")) or str(said.get("type") or "").endswith("?")
    return Param(str(said.get("name")), {**schema, "description": about} if about else schema, not optional)


def _add_tool(host: Host, name: str, about: str, params: tuple[Param, ...], function: Callable[..., Any]) -> None:
    schema = {
        "type": "object",
        "properties": {p.name: p.schema for p in params},
        "required": [p.name for p in params if p.required],
        "additionalProperties": False,
    }
    host.session.parts.tools.add(PluginTool(host, name, about, schema, function))
