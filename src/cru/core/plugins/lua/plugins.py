"""Plugins in Lua: run their files, keep their functions, register what their annotations and tables say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cru.core.api.handlers import HandlerCall
from cru.core.api.host import HOST, Host, Plugin, Values, call, note_call
from cru.core.api.on import register_handler
from cru.core.base.files import MAX_BYTES
from cru.core.base.files.regular import read_regular
from cru.core.events.stream import Notice
from cru.core.plugins import unknown_keys
from cru.core.plugins.commands import add_command, add_commands, start_services
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.effects import CODE
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.lua.annotations import FENNEL, LUA, LuaAnnotation, needs_module, parse_annotations
from cru.core.plugins.lua.fennel import SUFFIX, FennelCompiler, FennelPlace
from cru.core.plugins.lua.namespace import install
from cru.core.plugins.lua.runtime import ENVIRONMENT, LOAD, OWN, LuaFunction, LuaVM, place_of
from cru.core.plugins.plugin_files import FileCopy
from cru.core.plugins.tools import add_tool, add_tools
from cru.core.plugins.views import add_handler, add_view, add_views
from cru.core.turn.parts import Parts

RUN_FIELDS = ("on_error", "scope")
SPEC = ("tools", "commands", "services", "views", "setup", "on_load", "on_unload")
"""The fields that are read of the table that a file returns."""


class LuaPlugins:
    """One machine for all plugins of a session tree, started with the first of them. What each has in it is in plugins.lua."""

    def __init__(self, folders: list[str], parts: Parts, fennel: FennelPlace) -> None:
        self.fennel = fennel
        self._stream = parts.bus.stream
        self.vm = LuaVM(print=self._print, owner=_calling_plugin)
        install(self.vm)
        self.vm.set_path([f"{folder}/{shape}" for folder in folders for shape in ("?.lua", "?/init.lua")])
        scopes = self.vm.load(Path(__file__).with_suffix(".lua").read_text("utf-8"), "=[cru plugins]")
        builtins = [self.vm.builtin(number) for number in (OWN, ENVIRONMENT, LOAD)]
        self._scope_functions: dict[str, LuaFunction] = self.vm.start(scopes, *builtins)[0]  # type: ignore[index]  # it never waits

    def plugin(self, plugin: DiscoveredPlugin, config: Mapping[str, object]) -> Plugin:
        name = plugin.name

        async def include(path: Path, source: str) -> object:
            return await self._call_scope("include", name, str(path), source)

        return Plugin(name, plugin.folder, "lua", config, self._invoke, place_of, handle=self._handle, include=include)

    async def load(self, plugin: DiscoveredPlugin, host: Host, content: FileCopy) -> None:
        """Run the files of a plugin and register what they declare. Raises LuaError and PluginFailed."""
        name = plugin.name
        host.own(lambda: self._call_scope("close", name), CODE)
        specs: list[Mapping[str, Any]] = []
        is_published = False
        for path in content:
            self.vm.names.add(str(path), str(plugin.edited(path)))
        try:
            compiler = FennelCompiler(self.fennel)
            for module, lua, file in compiler.helpers(plugin.folder, content):
                await self._preload(plugin, module, lua, file)
            for file in plugin.files:
                specs += await self._run_file(file, plugin, host, content, compiler)
            is_published = not specs  # nothing ran behind the files
        finally:
            if not is_published:
                await self._call_scope("publish", name)
        for spec in specs:
            await start_services(host, spec.get("services"))
        host.plugin.leaving += [spec["on_unload"] for spec in specs if isinstance(spec.get("on_unload"), LuaFunction)]

    async def _call_scope(self, function: str, *args: Any) -> Any:
        values = await self.vm.run(self._scope_functions[function], *args)
        return values[0] if values else None

    async def _preload(self, plugin: DiscoveredPlugin, module: str, lua: str, file: Path) -> None:
        """Let `require` of this plugin find a module in Fennel."""
        arguments = plugin.name, _module_path(plugin), module, lua, str(file)
        is_loaded, *rest = await self.vm.run(self._scope_functions["preload"], *arguments)
        if not is_loaded:
            raise PluginFailed(f"{file}: {rest[0]}")

    async def _run_file(
        self, file: Path, plugin: DiscoveredPlugin, host: Host, content: FileCopy, compiler: FennelCompiler
    ) -> list[Mapping[str, object]]:
        """Run it; the description that it returned, if it did. Of several files each has globals of its own before the plugin's."""
        code = content[file] if file in content else read_regular(file, MAX_BYTES)
        source = code.decode()
        is_fennel = file.suffix == SUFFIX
        annotations = parse_annotations(source, FENNEL if is_fennel else LUA)
        shown = plugin.edited(file)
        for line, text, hint in annotations.problems:
            raise PluginFailed(f"{shown}:{line}: {text}", hint)
        for line, text, hint in annotations.unknown:
            host.problem(f"{shown}:{line}: {text}{hint and f'; {hint}'}")
        if is_fennel:
            source = compiler.compile(code, file)
            code = source.encode()
        stem = plugin.name if file.stem == "init" else file.stem
        names = f"{stem};{_dotted_name(plugin, file)}"
        alone, module = len(plugin.files) == 1, not is_fennel and needs_module(source)
        place = _module_path(plugin), str(file), names
        compiled, *rest = await self.vm.run(self._scope_functions["run"], plugin.name, *place, source, alone, module)
        if not compiled:
            self.vm.load(code, f"@{file}")  # raises what is wrong, with its line
            raise PluginFailed(f"{shown}: {rest[0]}")
        (returned,) = rest
        for annotation in annotations.annotations:
            await self._register_annotation(annotation, file, host)
        if not returned:
            return []
        spec, kinds = await self.vm.run(self._scope_functions["spec"], plugin.name, str(file), SPEC)
        unknown_keys.check_plugin_table(host, kinds)
        add_tools(host, spec.get("tools"))
        add_commands(host, spec.get("commands"))
        add_views(host, spec.get("views"))
        if isinstance(spec.get("setup"), LuaFunction):
            await call(spec["setup"], dict(host.plugin.config))
        if isinstance(spec.get("on_load"), LuaFunction):
            await call(spec["on_load"])
        return [spec]

    async def _register_annotation(self, annotation: LuaAnnotation, file: Path, host: Host) -> None:
        function = await self._call_scope("find", host.plugin.name, str(file), annotation.function)
        where = self.vm.names.restore(f"{file}:{annotation.line}")
        if not isinstance(function, LuaFunction):
            why = "a local function cannot be reached" if annotation.local else "the file defines no such function"
            raise PluginFailed(
                f"{where}: @{annotation.kind} {annotation.function}: {why}", "make it global, or return it in M"
            )
        name = annotation.fields.get("name") or annotation.function.rpartition(".")[2]
        description = annotation.fields.get("desc") or annotation.text
        if annotation.kind == "handler":
            self._register_handler(annotation, function, where)
        elif annotation.kind == "tool":
            add_tool(host, name, description, annotation.params, function)
        elif annotation.kind == "command":
            add_command(host, name, description, annotation.fields.get("hint", ""), annotation.params, function)
        elif annotation.kind == "view":
            add_view(host, name, description, function)
        elif annotation.kind == "view.handler":
            add_handler(host, name, function)
        else:
            raise PluginFailed(f"{where}: @{annotation.kind} is not available yet")

    def _register_handler(self, annotation: LuaAnnotation, function: LuaFunction, where: str) -> None:
        event = annotation.fields.get("event", "")
        if not event:
            raise PluginFailed(f"{where}: @handler has no event", '@handler event="turn:complete" priority=10')
        options: dict[str, object] = {key: annotation.fields[key] for key in RUN_FIELDS if key in annotation.fields}
        pattern = annotation.fields.get("pattern", "*")
        if pattern != "*":
            options["pattern"] = pattern
        priority = annotation.fields.get("priority", "100")
        if not priority.lstrip("-").isdigit():
            raise PluginFailed(f"{where}: priority must be a whole number, not {priority}")
        register_handler(event, function, {**options, "priority": int(priority), "where": where}, annotation.function)

    def _print(self, text: str) -> None:
        """What a plugin prints is for the person, as a toast is: a notice of level "info" would be shown only with -v."""
        note_call()
        self._stream.tell(Notice("warning", text.rstrip("\n"), _calling_plugin() or "lua"))

    def _invoke(self, function: Callable[..., object], *args: object) -> object:
        """Call without a task: the value at once, or something to await if the function waits."""
        if not isinstance(function, LuaFunction):
            return function(*args)
        outcome = self.vm.start(function, *args)
        return _first(outcome) if isinstance(outcome, tuple) else _await_first(outcome)

    def _handle(self, function: Callable[..., object], call: HandlerCall) -> object:
        if not isinstance(function, LuaFunction):
            return function(call.context, call.table)
        outcome = self.vm.start_handler(function, call)
        return _answer(outcome) if isinstance(outcome, tuple) else _await_answer(outcome)


def _calling_plugin() -> str:
    here = HOST.get(None)
    return "" if here is None else here.plugin.name


def _first(values: tuple[object, ...]) -> object:
    return values[0] if values else None


def _answer(values: tuple[object, ...]) -> object:
    """What a handler returned; with what stands behind a nil or false: that is how Lua says that something failed, and why."""
    if len(values) > 1 and (values[0] is None or values[0] is False) and values[1] is not None:
        return Values(values[:2])
    return values[0] if values else None


async def _await_answer(outcome: Any) -> Any:
    return _answer(await outcome)


async def _await_first(outcome: Any) -> Any:
    return _first(await outcome)


def _dotted_name(plugin: DiscoveredPlugin, file: Path) -> str:
    """Return the name of a file for `require` from the folder of all plugins on: `agents.workflows.loop` of agents/workflows/loop.lua."""
    parts = file.with_suffix("").relative_to(plugin.folder).parts if file.is_relative_to(plugin.folder) else ()
    return ".".join((plugin.name, *parts))


def _module_path(plugin: DiscoveredPlugin) -> str:
    """Where `require` of a plugin looks first; a plugin that is one file has no folder of its own."""
    if plugin.manifest is None and plugin.folder.name != plugin.name:
        return ""
    folder = plugin.folder / "lua"
    return f"{folder}/?.lua;{folder}/?/init.lua" if folder.is_dir() else ""
