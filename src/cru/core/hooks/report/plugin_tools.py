"""The tools that plugins bring, read from their source without running it: what a pattern, a matcher or a rule may be meant for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cru.core.base.files.regular import read_regular
from cru.core.plugins.discovery.files import DiscoveredPlugin

ANNOTATED = re.compile(
    r"^[ \t]*(?:--+|;+)[ \t]*@tool\b([^\n]*)\n((?:[ \t]*(?:--+|;+)[^\n]*\n|[ \t\r]*\n)*)([^\n]*)", re.MULTILINE
)
NAME_FIELD = re.compile(r"""\bname\s*=\s*["']?([\w.-]+)""")
FUNCTION = re.compile(
    r"""(?:function\s+|\((?:fn|defn|lambda|λ)\s+)(?:[\w.]*[.:])?([\w-]+)|(?<!\w)([A-Za-z_]\w*)\s*=\s*function"""
)
LUA_TABLE = re.compile(r"""\btools\b["'\]]*\s*=?\s*\{|:tools\s*\{|\btools\s*[.\[]\s*["']?(\w+)["']?\s*\]?\s*=[^=]""")
LUA_KEY = re.compile(r"""(?:\[\s*["']([\w.-]+)["']\s*\]|(?<![\w-])([A-Za-z_][\w-]*))\s*=|:([\w-]+)\s*\{""")
SCHEMA_NAME = re.compile(r"""["']name["']\s*[:,=]\s*["']([\w.-]+)["']""")
TOOLS = "TOOLS"


def read_tool_names(plugins: Iterable[DiscoveredPlugin]) -> list[str]:
    """The names of tools that these plugins seem to register. A program names its tools when it is run; its text may, too."""
    names: dict[str, None] = {}
    for plugin in plugins:
        if plugin.kind == "executable":
            names[plugin.name] = None
        for file in plugin.files:
            names.update(dict.fromkeys(_read_file(plugin.kind, file)))
    return list(names)


def _read_file(kind: str, file: Path) -> Iterator[str]:
    try:
        source = read_regular(file).decode("utf-8", "replace")
        if kind == "python":
            yield from _python_tools(ast.parse(source))
            return
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # told by those who check the plugin itself
        return
    yield from _lua_tools(source) if kind == "lua" else SCHEMA_NAME.findall(source)


def _lua_tools(source: str) -> Iterator[str]:
    """Of annotations, and the keys of tables called `tools`."""
    for match in ANNOTATED.finditer(source):
        fields = NAME_FIELD.search(match[1])
        function = FUNCTION.search(match[3])
        if fields is not None:
            yield fields[1]
        elif function is not None:
            yield function[1] or function[2]
    for table in LUA_TABLE.finditer(source):
        if table[1]:
            yield table[1]
        else:
            yield from _keys(source, table.end())


def _keys(source: str, start: int) -> Iterator[str]:
    """The keys of a table that is open at this place, without those of the tables in it."""
    depth, at = 1, start
    while depth and at < len(source):
        match = LUA_KEY.match(source, at) if depth == 1 else None
        if match is not None:
            yield match[1] or match[2] or match[3]
            at = match.end() - match[0].endswith("{")
            continue
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        at = _behind_string(source, at) if source[at] in "\"'" else at + 1
        if at < len(source) and source[at - 1].isalnum():
            at = re.compile(r"\w*").match(source, at).end()  # type: ignore[union-attr]  # it fits nothing, too


def _behind_string(source: str, at: int) -> int:
    match = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""").match(source, at)
    return match.end() if match is not None else at + 1


def _python_tools(tree: ast.Module) -> Iterator[str]:
    """The keys of `TOOLS`, wherever it is bound or changed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id == TOOLS:
                    yield from _texts(node.value)
                elif isinstance(target, ast.Subscript) and _is_tools(target.value):
                    yield from _texts(target.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_tools(node.func.value):
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)
            for argument in node.args:
                yield from _texts(argument)


def _is_tools(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == TOOLS


def _texts(node: ast.expr | None) -> Iterator[str]:
    """The keys of a table as it is written; of anything else all texts in it."""
    if isinstance(node, ast.Dict):
        keys = [key for key in node.keys if key is not None]
        yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    elif node is not None:
        constants = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
        yield from (part.value for part in constants if isinstance(part.value, str))
