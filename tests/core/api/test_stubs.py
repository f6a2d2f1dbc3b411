"""Types for editors: every name is there, in both languages, and they are what the functions say."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.kit import HomeDir, cru

from cru.core.api.names import CONSTANTS, INDEXED, NAMES
from cru.core.api.stubs import lua_definitions, python_stub
from cru.core.command_table import load_target
from cru.core.events.catalog import CATALOG


def python_names(tree: ast.Module) -> set[str]:
    """Every whole name of the stub, callable families included."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: set[str] = set()

    def collect(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                found.add(before + node.name.removesuffix("_"))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "__call__":
                found.add(before.removesuffix("."))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name, kind = before + node.target.id, ast.unparse(node.annotation)
                if kind in classes:
                    collect(classes[kind].body, f"{name}.")
                elif name != "__version__":
                    found.add(name)

    collect(tree.body, "")
    return found


def test_the_stub_has_every_name_and_waits_where_the_function_does() -> None:
    tree = ast.parse(python_stub())
    assert python_names(tree) == {*NAMES, *CONSTANTS}
    waiting = [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]
    assert {"exec", "compact"} <= {node.name for node in waiting} and "set_status" not in {n.name for n in waiting}


def test_lua_runs_the_definitions_and_finds_every_name() -> None:
    lua = import_module("lupa.lua54").LuaRuntime()
    lua.execute(lua_definitions())
    for name in NAMES:
        kind = lua.eval(f"type(cru.{name})" if name != "log" else "type(cru.log)")
        assert kind == ("table" if name in ("log", "shell", "schedule") else "function"), name
    assert lua.eval("crucible == cru") and all(lua.eval(f"type(cru.{name})") == "table" for name in INDEXED)


def test_events_are_offered_where_a_function_takes_one() -> None:
    stub, definitions = python_stub(), lua_definitions()
    assert all(f'"{row.name}"' in stub and f'---| "{row.name}"' in definitions for row in CATALOG)
    assert "def on(event: Event | str," in stub and "---@param event cru.Event|string" in definitions


def test_documentation_and_examples_are_in_both() -> None:
    said = "fs.read(path)"
    example = next(line for line in (load_target(NAMES["fs.read"]).__doc__ or "").splitlines() if "Example:" in line)
    for text in (python_stub(), lua_definitions()):
        assert said in text and example.strip().removeprefix("Example: ")[:20] in text


PLUGIN = """\
from cru import config, fs, log, on, shell, tools, vault
import cru

async def names() -> list[str]:
    await shell.exec("ls")
    log("info", "x")
    print(log.levels, config["x"], tools.list(), cru.json.encode({}))
    return await vault.backlinks("Home.md")

on("turn:complete", lambda ctx, event: None)
fs.read(WRONG)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("argument", "code"), [('"notes.txt"', 0), ("3", 1)])
def test_mypy_finds_a_wrong_argument_and_nothing_else(home: HomeDir, argument: str, code: int) -> None:
    assert cru("plugin", "types", home=home).code == 0
    (home.project / "plugin.py").write_text(PLUGIN.replace("WRONG", argument))
    words = [
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir=/dev/null",
        "plugin.py",
        "typings/cru/__init__.pyi",
    ]
    env = {**home.env, "MYPYPATH": "typings"}
    done = subprocess.run([sys.executable, *words], cwd=home.project, env=env, capture_output=True, text=True)
    assert done.returncode == code and done.stdout.count("error:") == code, done.stdout + done.stderr


def test_files_are_made_anew_and_those_of_others_stay(home: HomeDir) -> None:
    done = cru("plugin", "types", "there", home=home)
    stub, definitions = (home.project / "there" / "typings" / name for name in ("cru/__init__.pyi", "cru.lua"))
    assert done.code == 0 and str(Path("there/typings/cru.lua")) in done.out, done
    assert definitions.read_text().startswith("---@meta cru\n") and "def read(" in stub.read_text()
    stub.write_text("mine\n")
    refused = cru("plugin", "types", "there", home=home)
    assert refused.code == 1 and "was not made by cru" in refused.err and stub.read_text() == "mine\n"
    stub.unlink()
    definitions.write_text("---@meta cru\n-- made by `cru plugin types`; make it anew after an update of cru\nold\n")
    assert cru("plugin", "types", "there", home=home).code == 0 and "old\n" not in definitions.read_text()[:200]
