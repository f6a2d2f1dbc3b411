"""Lua code beside the plugins of a session: a machine of its own with the whole namespace, and the host in whose name it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.core.api.host import HOST, Host, Plugin, PluginSession
from cru.core.plugins.lua.namespace import install
from cru.core.plugins.lua.runtime import LuaFunction, LuaVM, place_of


def new_machine(path: Iterable[str], print: Callable[[str], None], run_seconds: float) -> LuaVM:
    """A fresh machine that knows `cru` and finds modules in `path` ("folder/?.lua"). Raises LuaError without lupa."""
    vm = LuaVM(print=print, run_seconds=run_seconds)
    install(vm)
    vm.set_path(path)
    return vm


def search_path(folder: Path) -> list[str]:
    """Where the code of the plugin in this folder finds modules: its own helpers, then itself and its neighbours by name."""
    return [str(folder / "lua" / "?.lua"), str(folder.parent / "?.lua"), str(folder.parent / "?" / "init.lua")]


@contextmanager
def run_as(session: PluginSession, plugin: Plugin) -> Iterator[Host]:
    """Names of the namespace work within, in the name of this plugin."""
    host = Host(session, plugin)
    token = HOST.set(host)
    try:
        yield host
    finally:
        HOST.reset(token)


def unlisted_plugin(name: str, folder: Path) -> Plugin:
    """A plugin that was not found in any folder: what its functions register belongs to `name`."""
    return Plugin(name, folder, "lua", {}, _invoke, place_of)


async def cancel_tasks(session: PluginSession) -> None:
    """End what was left running."""
    tasks = list(session.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _invoke(function: Callable[..., object], *args: object) -> object:
    return function.start(*args) if isinstance(function, LuaFunction) else function(*args)
