"""Find plugins that can have no effect, from their source alone: nothing in it refers to cru. plugins/effects.py reports the same of a
plugin that has run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.effects import describe_idle, is_used
from cru.core.plugins.plugin_files import FileCopy, copy_of

LUA_WORDS = re.compile(
    rb"\b(?:cru|crucible|require|print|load|dofile|loadfile|_G|_ENV|package|http|fs|shell|oq|paths|graph|mcp|inspect|ask|popup|ui)\b|@"
)
PYTHON_WORDS = re.compile(rb"\b(?:cru|TOOLS|COMMANDS|SERVICES|setup|exec|eval|__import__|importlib)\b")
IMPORTED = re.compile(rb"^[ \t\f]*(?:from|import)\s+([\w.]+)", re.MULTILINE)
TOP_RETURN = re.compile(rb"^return\b|\bend\b(?!.*\bend\b).*\breturn\b", re.MULTILINE | re.DOTALL)


def find_idle_plugins(plugins: Iterable[DiscoveredPlugin]) -> Iterator[tuple[DiscoveredPlugin, str]]:
    """(plugin, what is wrong) of each that cannot have an effect and that no other plugin uses."""
    copies = [(plugin, copy_of(plugin)) for plugin in plugins]
    for plugin, copy in copies:
        if _can_do_nothing(plugin, copy) and not is_used(plugin, copies):
            yield plugin, describe_idle(plugin, copy)


def _can_do_nothing(plugin: DiscoveredPlugin, copy: FileCopy) -> bool:
    if plugin.kind == "executable" or plugin.module or not all(file in copy for file in plugin.files):
        return False
    if plugin.kind == "python":
        return not any(map(_reaches_out_of_python, copy.values()))
    return not any(file.suffix != ".lua" or _reaches_out_of_lua(content) for file, content in copy.items())


def _reaches_out_of_python(source: bytes) -> bool:
    tops = {name.partition(b".")[0].decode() for name in IMPORTED.findall(source)}
    return PYTHON_WORDS.search(source) is not None or not tops <= sys.stdlib_module_names


def _reaches_out_of_lua(source: bytes) -> bool:
    """Also by the table that it returns; a `return` within a function is none of the file's."""
    returns = b"return" in source and (b"function" not in source or TOP_RETURN.search(source) is not None)
    return LUA_WORDS.search(source) is not None or returns
