"""Plugins that are programs, in any language: their schemas are their registration, their tools and hooks are runs of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cru.engine.parts import Parts
from cru.events.payloads import InteractionCompleted, InteractionRequested
from cru.extensions.discover import Found
from cru.extensions.errors import PluginFailed
from cru.extensions.executables.executable import ERAS, HOOK_SECONDS, TOOL_SECONDS, Executable
from cru.extensions.executables.process import Where
from cru.extensions.executables.schemas import Cache, Known, known_of
from cru.extensions.executables.tools import ExecutableTool
from cru.namespace.host import Host, Plugin


class Executables:
    """The language of plugins that are programs. `all` gives every plugin there is: at a cold start the schemas of all that are not known
    yet are asked for at the same time."""

    def __init__(self, parts: Parts, home: Path, all: Callable[[], list[Found]]) -> None:
        self._parts = parts
        self._home = home
        self._all = all
        self._cache = Cache(home)
        self._failed: dict[Path, PluginFailed] | None = None

    def plugin(self, found: Found, config: Mapping[str, Any]) -> Plugin:
        return Plugin(found.name, found.folder, "executable", config)

    async def load(self, found: Found, host: Host) -> None:
        """Register its tools and its hooks. Raises PluginFailed."""
        executable = await self._executable(found, host.plugin.config)
        for text in executable.problems:
            host.problem(text)
        where = self._where(found.name)
        tools = host.session.parts.tools
        for schema in executable.tools:
            problem = tools.add(ExecutableTool(executable, schema, where))
            if problem:
                host.problem(problem)
        host.own(lambda: tools.drop(found.name), "tools")
        if any(schema.hooks for schema in executable.tools):
            from cru.extensions.executables.hooks import register

            register(host, executable, where)

    def _where(self, name: str) -> Where:
        parts = self._parts
        lend = getattr(parts.services.get("dialogs"), "lend", None)
        return Where(
            _here(parts.root), parts.root, self._home, parts.env, parts.store.name,
            lambda text: parts.bus.stream.warn(text, name),
            bool(parts.services.get("verbose")),
            None if lend is None else lambda group: _lent(parts, name, lend, group),
        )  # fmt: skip

    async def _executable(self, found: Found, config: Mapping[str, Any]) -> Executable:
        """Raises PluginFailed."""
        path = _program(found)
        try:
            known = self._cache.of(path)
        except OSError as error:
            raise PluginFailed(f"{path} cannot be read: {error.strerror}") from error
        if known is None:
            known = await self._ask(path)
        era = config.get("era", known.era)
        if era not in ERAS:
            from cru.config.closest import did_you_mean

            hint = did_you_mean(str(era), ERAS) or f"one of: {', '.join(ERAS)}"
            raise PluginFailed(f"[plugins.{found.name}] era: there is no generation {era!r}", hint)
        timeout = _seconds(found.name, config, "timeout", TOOL_SECONDS)
        hook_timeout = _seconds(found.name, config, "hook_timeout", HOOK_SECONDS)
        return Executable(found.name, path, era, known.tools, timeout, hook_timeout, known.problems)

    async def _ask(self, path: Path) -> Known:
        """Its schema, asked for anew. Raises PluginFailed."""
        if self._failed is None:  # the first one: ask them all
            others = (_program(found) for found in self._all() if found.kind == "executable" and found.loadable)
            answers = await self._ask_all({path, *filter(self._unknown, others)})
        else:
            failed = self._failed.pop(path, None)
            answers = {path: failed} if failed is not None else await self._ask_all({path})
        known = answers[path]
        if isinstance(known, PluginFailed):
            raise known
        return known

    async def _ask_all(self, paths: set[Path]) -> dict[Path, Known | PluginFailed]:
        """At the same time; those of others that failed are kept until these are loaded."""
        answers: dict[Path, Known | PluginFailed] = {}

        async def ask(path: Path) -> None:
            try:
                answers[path] = await known_of(path, self._where(path.name))
            except PluginFailed as error:
                answers[path] = error

        async with asyncio.TaskGroup() as group:
            for path in paths:
                group.create_task(ask(path))
        self._cache.keep({path: known for path, known in answers.items() if isinstance(known, Known)})
        if self._failed is None:
            self._failed = {path: error for path, error in answers.items() if isinstance(error, PluginFailed)}
        return answers

    def _unknown(self, path: Path) -> bool:
        try:
            return self._cache.of(path) is None
        except OSError:
            return False  # gone; who loads it says so


@asynccontextmanager
async def _lent(parts: Parts, name: str, lend: Any, group: int) -> AsyncIterator[None]:
    """The terminal for a process group, as a dialog like any other: the face is silent meanwhile."""
    from cru.contexts.entries import new_id

    dialog = new_id()
    await parts.bus.dispatch(InteractionRequested(dialog, "terminal", name))
    try:
        async with lend(group):
            yield
    finally:
        await parts.bus.dispatch(InteractionCompleted(dialog, "terminal", "answered"))


def _program(found: Found) -> Path:
    return Path(os.path.realpath(found.files[0]))


def _here(otherwise: Path) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return otherwise


def _seconds(name: str, config: Mapping[str, Any], key: str, default: float) -> float:
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86400:
        raise PluginFailed(f"[plugins.{name}] {key} must be a number of seconds, at most 86400", f"{key} = {default:g}")
    return float(value)
