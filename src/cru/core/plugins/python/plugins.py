"""Plugins in Python: a file, a package or an installed module, executed afresh for each session."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isawaitable
from types import CodeType, ModuleType
from typing import Any, NoReturn

from cru.core.api.host import HOST, Host, NamespaceError, Plugin, call, host
from cru.core.api.python import NAMESPACE
from cru.core.base.values.cancellation import from_outside, running_task
from cru.core.base.values.errors import CruError
from cru.core.events import CancelledItself, EventError
from cru.core.events.calling import describe_error
from cru.core.events.cancellable import run_cancellable, taken_back
from cru.core.plugins import unknown_keys
from cru.core.plugins.commands import add_commands, start_services
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.effects import CODE
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.plugin_files import FileCopy
from cru.core.plugins.python.forks import leave_if_forked
from cru.core.plugins.python.stray_tasks import StrayTasks
from cru.core.plugins.tools import add_tools
from cru.core.plugins.views import add_views

PREFIX = "cru_plugin_"
MODULE_NAME = PREFIX + "{name}"
PUT_BACK = "the whole program needs them: they are put back"


class PluginRaised(NamespaceError):
    """A function of a plugin raised; the message names the plugin's own line."""


class PythonPlugins:
    """Runs Python plugins. `TOOLS`, `COMMANDS`, `SERVICES` and `VIEWS` of the module are as `tools`, `commands`, `services` and `views` of
    the table that a Lua plugin returns: name → {desc, params = [{name, type, desc?, optional?}], fn}. A top-level `setup(cru)` is
    called once a session with the whole namespace, and `teardown(cru)` before the plugin is unloaded."""

    def __init__(self) -> None:
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        self._guard = InterpreterGuard()

    def plugin(self, plugin: DiscoveredPlugin, config: Mapping[str, object]) -> Plugin:
        return Plugin(
            plugin.name, plugin.folder, "python", config, partial(_invoke, str(plugin.folder), self._guard), _where
        )

    async def load(self, plugin: DiscoveredPlugin, host: Host, _content: FileCopy) -> None:
        """Raises PluginFailed, whatever the plugin's code raised."""
        _keep_prints_apart(host)
        name = plugin.module or MODULE_NAME.format(name=plugin.name)
        _forget_module(name)
        host.own(lambda: _forget_module(name), CODE)
        StrayTasks.watch(host, plugin.files, plugin.folder)
        self._guard.remember()
        try:
            module = self._run(name, plugin)
            unknown_keys.check_plugin_table(host, _capital_tables(module), str.upper)
            add_tools(host, getattr(module, "TOOLS", None))
            add_commands(host, getattr(module, "COMMANDS", None))
            add_views(host, getattr(module, "VIEWS", None))
            if callable(getattr(module, "setup", None)):
                await call(partial(host.plugin.invoke, module.setup), NAMESPACE)
            await start_services(host, getattr(module, "SERVICES", None))
            if callable(getattr(module, "teardown", None)):
                host.plugin.leaving.append(partial(module.teardown, NAMESPACE))
            leave_if_forked()
        except PluginFailed:
            raise
        except PluginRaised as error:
            raise PluginFailed(describe_error(error)) from error.__cause__
        except EventError as error:
            raise PluginFailed(error.message, error.hint) from error
        except BaseException as error:  # the boundary around a plugin's code: reported with its place
            leave_if_forked(error)
            if _from_outside(error):
                raise
            place = _place_of_error(error, str(plugin.folder), str(plugin.files[0]) if plugin.files else name)
            raise PluginFailed(f"{place}: {describe_error(error)}") from error

    def _run(self, name: str, plugin: DiscoveredPlugin) -> ModuleType:
        """Its module. Raises what its code raises, and PluginFailed if it took away what is not its own."""
        count = len(sys.modules)
        try:
            module = import_module(name) if plugin.module else _run_module(name, plugin)
        finally:
            taken = self._guard.put_back(count)
        if taken:
            raise PluginFailed(f"{plugin.files[0] if plugin.files else name}: {taken}", PUT_BACK)
        return module


def _keep_prints_apart(here: Host) -> None:
    """Standard output is the answer's: the first print is told, and where it goes."""

    def tell() -> None:
        printing = HOST.get(None)
        owner = printing.plugin.name if printing is not None else ""
        who = f"the plugin {owner}" if owner else "a plugin"
        here.session.parts.bus.stream.warn(
            f"{who} prints: that goes to standard error, since standard output is the answer's", owner
        )

    divert = here.session.parts.services.face.divert_prints
    if divert is not None:
        divert(tell)


class _ModuleLoader(SourceFileLoader):
    """Neither reads nor writes bytecode: an edit within the same second counts, and a plugin's folder stays as it is."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Finder(MetaPathFinder):
    """Finds the modules of plugins that are packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(PREFIX) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ModuleLoader(fullname, spec.loader.path)
        return spec


def _run_module(name: str, plugin: DiscoveredPlugin) -> ModuleType:
    file = plugin.files[0]
    inside = [str(file.parent)] if file.name == "__init__.py" else None
    loader = _ModuleLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _capital_tables(module: ModuleType) -> dict[str, object]:
    """Its tables whose names are in capitals: those may be meant for cru."""
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, Mapping)}


def _forget_module(name: str) -> None:
    for old in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[old]


def _invoke(folder: str, guard: InterpreterGuard, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of a plugin. What it raises is told with the plugin's own line."""
    count = len(sys.modules)
    task = running_task()
    before = 0 if task is None else task.cancelling()
    try:
        result = function(*args)
        waits = result is not None and not isinstance(result, dict) and isawaitable(result)
    except BaseException as error:  # the boundary around a plugin's code: raised again with its place
        guard.put_back(count)
        leave_if_forked(error)
        if task is None or task.cancelling() == before:
            raise _failure(error, folder) from error
    else:
        if taken := guard.put_back(count):
            raise PluginRaised(f"{_where(function)}: {taken}", PUT_BACK)
        leave_if_forked()
        if task is None or task.cancelling() == before:
            return _await_result(folder, guard, result) if waits else result
    return _raise_cancelled(before, _where(function))


async def _await_result(folder: str, guard: InterpreterGuard, awaitable: Awaitable[object]) -> object:
    count = len(sys.modules)
    place = _where(awaitable)
    try:
        result: object = await run_cancellable(awaitable, partial(_warn_plugin, awaitable))
    except BaseException as error:  # as above
        guard.put_back(count)
        leave_if_forked(error)
        if _from_outside(error):
            raise
        raise _failure(error, folder, place) from error
    if taken := guard.put_back(count):
        raise PluginRaised(f"{place}: {taken}", PUT_BACK)
    leave_if_forked()
    return result


async def _raise_cancelled(before: int, place: str) -> NoReturn:
    await taken_back(before)
    error = CancelledItself()
    raise PluginRaised(f"{place}: {error.message}", error.hint)


def _warn_plugin(awaitable: object, text: str, where: str) -> None:
    here = host()
    who = f"{here.plugin.name} ({where or _where(awaitable)})"
    here.session.parts.bus.stream.warn(f"{who}: {text}", here.plugin.name)


def _from_outside(error: BaseException) -> bool:
    """Whether the work is being ended, rather than the plugin having raised this by hand. A KeyboardInterrupt is always the plugin's:
    either it raised it, or it is what hung when somebody pressed Ctrl-C."""
    return not isinstance(error, KeyboardInterrupt) and from_outside(error)


def _failure(error: BaseException, folder: str, otherwise: str = "") -> PluginRaised:
    place = _place_of_error(error, folder, otherwise)
    text, hint = (error.message, error.hint) if isinstance(error, CruError) else (describe_error(error), "")
    if isinstance(error, TypeError) and text.endswith("can't be used in 'await' expression"):
        hint = "what a name of cru that does not wait returns is not awaited; docs/namespace.md marks those that wait"
    return PluginRaised(f"{place}: {text}" if place else text, hint)


def _place_of_error(error: BaseException, folder: str, otherwise: str) -> str:
    """The last line of the plugin itself on the way to the error."""
    place, trace = otherwise, error.__traceback__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(folder):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _where(function: object) -> str:
    code = getattr(function, "__code__", None) or getattr(function, "cr_code", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


class InterpreterGuard:
    """What a plugin can remove from the whole process, as a rule by mistake: modules, without which nothing of cru can be loaded, and
    hooks for exceptions. They are put back, and the person sees what it was."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}
        self.remember()

    def remember(self) -> None:
        self._modules = dict(sys.modules)

    def put_back(self, count: int) -> str:
        """What was taken, in words; "" if nothing was. `count`: how many modules there were before the plugin's code ran."""
        if len(sys.modules) >= count and sys.excepthook is not None and threading.excepthook is not None:
            return ""
        lost = {name: module for name, module in self._modules.items() if name not in sys.modules}
        sys.modules.update(lost)
        texts = [f"{len(lost)} modules out of sys.modules ({next(iter(lost))} …)"] if lost else []
        for owner, name in ((sys, "excepthook"), (threading, "excepthook")):
            if getattr(owner, name) is None:
                setattr(owner, name, getattr(owner, f"__{name}__"))
                texts.append(f"{owner.__name__}.{name} away")
        return f"it took {' and '.join(texts)}" if texts else ""
