"""What `cru hooks check` reads out of the source of plugins that it does not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cru.core.hooks.report.idle_plugins import find_idle_plugins
from cru.core.hooks.report.modules import find_missing_imports, find_missing_requires
from cru.core.hooks.report.plugin_tools import read_tool_names
from cru.core.hooks.report.registrations import read_lua_registrations, read_python_registrations
from cru.core.plugins.discovery.files import DiscoveredPlugin, Kind

# source → (event, names of options)
LUA_CALLS = {
    'cru.on("a:b", f, { pattern = "x", priority = 5 })': [("a:b", ("pattern", "priority"))],
    'cru.on("a:b", { pattern = "{x,y}" }, function(ctx) return { cancel = true } end)': [("a:b", ("pattern",))],
    'cru.on("a:b", function(ctx, event)\n  notify(event, { progress = 1 })\nend)': [("a:b", ())],
    'cru.on("a:b", function() return { cancel = true } end)': [("a:b", ())],
    'cru.on("a:b", f)\nlocal function g() h(x, { other = 1 }) end': [("a:b", ())],
    'cru.on("a:b", function() return f("end, { x = 1 })") end, {\n  patern = "(x",\n})': [("a:b", ("patern",))],
    '-- cru.on("a:b", f, { patern = 1 })\ncru.once("c", f)': [("c", ())],
    '--[[\ncru.on("a:b", f)\n]] cru.on("c", function() --[==[ ) ]==] end, { hold = true })': [("c", ("hold",))],
    'cru.on("a:b", wrap({ x = 1 }))': [("a:b", ())],
    'cru.on("a:b", f, { pattern = "a = b, c = d" })': [("a:b", ("pattern",))],
}


@pytest.mark.parametrize("source", LUA_CALLS)
def test_registrations_in_lua(source: str) -> None:
    read = [(call.fields["event"], call.options) for call in read_lua_registrations(source)]
    assert read == LUA_CALLS[source]


def test_registrations_in_python() -> None:
    source = "import cru\nfrom cru import on as o\no('a', f, {'patern': 'x'})\ncru.once('b', f, priority=3)\nother.on('c', x=1)\n"
    calls = [(call.fields["event"], call.options) for call in read_python_registrations(ast.parse(source))]
    assert calls == [("a", ("patern",)), ("b", ("priority",))]


# kind, source → names of tools
TOOLS: list[tuple[Kind, str, list[str]]] = [
    ("lua", "--- Weather.\n-- @tool\nfunction weather() end\n", ["weather"]),
    ("lua", '-- @tool name="rain" desc="x"\n-- @param a string\n\nfunction M.weather() end\n', ["rain"]),
    ("lua", "-- @tool\nM.snow = function() end\n", ["snow"]),
    ("lua", 'return { tools = { sun = { desc = "tools = {no}", fn = f }, ["w-ind"] = { params = { x = {} } } } }', ["sun", "w-ind"]),
    ("lua", "M.tools = {\n  a = { fn = function() local b = 1 end },\n}\nM.tools.c = {}\n", ["a", "c"]),
    ("lua", 'cru.on("tool:before_call", f, { pattern = "bsh" })', []),
    ("python", "TOOLS = {'a': {'desc': 'b'}, 'c': {}}\n", ["a", "c"]),
    ("python", "TOOLS: dict = {}\nTOOLS['a'] = {'desc': 'b'}\nTOOLS.update(d=1)\n", ["a", "d"]),
    ("python", "OTHER = {'a': 1}\n", []),
    ("python", "def (:", []),
    ("executable", '#!/bin/sh\necho \'{"name": "guard_tool", "description": "d"}\'\n', ["guard", "guard_tool"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "source", "names"), TOOLS)
def test_tools_that_a_plugin_brings(tmp_path: Path, kind: Kind, source: str, names: list[str]) -> None:
    file = tmp_path / "guard"
    file.write_text(source)
    assert read_tool_names([DiscoveredPlugin("guard", kind, (file,), tmp_path)]) == names


IMPORTS = {
    "import os, nosuch_a.b": ["nosuch_a"],
    "from nosuch_b import x": ["nosuch_b"],
    "from cru import on\nfrom json import loads\nimport cru_plugin_other": [],
    "try:\n    import nosuch_c\nexcept ImportError:\n    pass": [],
    "def f():\n    import nosuch_d": [],
    "import sys\nif sys.platform == 'x':\n    import nosuch_e": [],
}


@pytest.mark.parametrize("source", IMPORTS)
def test_imports_that_are_missing(source: str) -> None:
    missing = list(find_missing_imports(ast.parse(source), Path("guard.py")))
    assert [text.rpartition("'")[0].rpartition("'")[2] for _, text in missing] == IMPORTS[source]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("from cru import nothing_such", "there is no cru.nothing_such"),
        ("from cru import on, tool", "there is no cru.tool; did you mean `tools`?"),
        ("from cru import on, tools, fs, config, __version__", ""),
        ("def f():\n    from cru import nothing_such", ""),
    ],
)
def test_names_that_cru_does_not_have(source: str, text: str) -> None:
    assert [each for _, each in find_missing_imports(ast.parse(source), Path("guard.py"))] == ([text] if text else [])


REQUIRES = {
    'local a = require("nosuch")': ["nosuch"],
    "require 'nosuch.part'": ["nosuch.part"],
    'local json, f = require("json"), require "graph"': [],
    'local here, other = require("here.sub"), 1': [],
    'local offered = require("offered")': [],
    'local ok = pcall(require, "nosuch")': [],
    'local f = function()\n  local x = require("nosuch")\nend': [],
}


@pytest.mark.parametrize("source", REQUIRES)
def test_requires_that_are_missing(tmp_path: Path, source: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "sub.lua").write_text("")
    missing = [text for _, text in find_missing_requires(source, [str(tmp_path)], frozenset({"offered"}))]
    assert missing == [f"there is no module {name}" for name in REQUIRES[source]]


IDLE: dict[tuple[Kind, str], bool] = {
    ("lua", ""): True,
    ("lua", "local function f() return 1 end"): True,
    ("lua", "local M = {} function M.f() end return M"): False,
    ("lua", "return {tools = {}}"): False,
    ("lua", "-- @tool\nfunction f() end"): False,
    ("lua", "x = os.time()"): True,
    ("python", "import re\ndef guard(ctx, event): ..."): True,
    ("python", "import mine\n"): False,
    ("python", "from cru import on\n"): False,
    ("python", "def setup(cru): ...\n"): False,
}


@pytest.mark.parametrize(("kind", "source"), IDLE)
def test_plugins_that_can_do_nothing(tmp_path: Path, kind: Kind, source: str) -> None:
    file = tmp_path / f"guard.{'py' if kind == 'python' else 'lua'}"
    file.write_text(source)
    assert bool(list(find_idle_plugins([DiscoveredPlugin("guard", kind, (file,), tmp_path)]))) == IDLE[kind, source]
