"""Runs the test files of a plugin: each of Lua or Fennel in a fresh machine, with runner.lua and mocks.lua (docs/plugin-tests.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from cru.core.api.host import Plugin, PluginSession
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.fennel import SUFFIX, FennelCompiler, FennelPlace, module_names
from cru.core.plugins.lua.runtime import LuaFunction, LuaVM
from cru.core.plugins.testing import python_tests
from cru.core.plugins.testing.machine import cancel_tasks, new_machine, run_as, search_path, unlisted_plugin
from cru.core.plugins.testing.report import TestFailure, TestReport
from cru.core.turn.parts import Parts

ENDINGS = ("_test.lua", "_test.fnl")
PYTHON = "test_*.py"
PRELOAD = "local name, chunk = ... package.preload[name] = chunk"
RUN_SECONDS = 10.0
"""Lua's own run time in one file."""


def files_of(folder: Path) -> list[Path]:
    """`tests/*_test.lua` (or `.fnl`) and `tests/test_*.py`, then `*_test.lua` in the folder itself, each sorted by name."""
    tests = folder / "tests"
    patterns = [(place, f"*{ending}") for place in (tests, folder) for ending in ENDINGS]
    patterns.insert(len(ENDINGS), (tests, PYTHON))
    files = [file for place, pattern in patterns for file in sorted(place.glob(pattern))]
    return [path for path in files if path.is_file()]


async def run_file(
    file: Path, folder: Path, parts: Parts, home: Path, print: Callable[[str], None], fennel: FennelPlace | None = None
) -> TestReport:
    """Run one test file of the plugin in `folder`, in this session; `print` takes what it prints. fennel: where its compiler is."""
    session, plugin = PluginSession(parts, home), unlisted_plugin(folder.name, folder)
    is_python = file.suffix == ".py"
    if is_python:
        plugin.dialect = "python"
    with run_as(session, plugin):
        try:
            if is_python:
                plugin.replaced = {}
                plugin.stand_in = partial(python_tests.find_stand_in, plugin.replaced)
                recorder = python_tests.WaitRecorder(folder)
                plugin.on_wait = recorder.note
                return await python_tests.run_python_file(file) + recorder.report()
            return await _run(file, plugin, print, FennelCompiler(fennel or FennelPlace("", home)))
        except LuaError as error:
            path, _, line = error.where.rpartition(":")
            problem = TestFailure("", "", error.reason, path or str(file), int(line) if line.isdigit() else 0)
            return TestReport(failed=1, errors=(problem,))
        except (OSError, UnicodeDecodeError, PluginFailed) as error:
            return TestReport(failed=1, errors=(TestFailure(error=str(error), file=str(file)),))
        finally:
            await cancel_tasks(session)
            parts.bus.registry.drop_owner(folder.name)


async def _run(file: Path, plugin: Plugin, print: Callable[[str], None], compiler: FennelCompiler) -> TestReport:
    vm = new_machine(search_path(plugin.folder), print, RUN_SECONDS)
    everywhere = vm.globals
    runner, _ = [await vm.run(_own_chunk(vm, name)) for name in ("runner", "mocks")]
    stand_in, waited = runner[0]["stand_in"], runner[0]["waited"]
    plugin.stand_in = lambda name: vm.start(stand_in, name)[0]  # type: ignore[index]  # it never waits
    await _preload_fennel(vm, plugin.folder, compiler)
    code = file.read_bytes()
    source = compiler.compile(code, file) if file.suffix == SUFFIX else code.decode()
    await vm.run(vm.load("test_mocks.setup()", "=[cru tests mocks]", everywhere))
    await vm.run(vm.load(source, f"@{file}", everywhere))
    (report,) = await vm.run(vm.load("return run_tests()", "=[cru tests run]", everywhere))
    try:
        waits = (await vm.run(waited))[0] or []
        return msgspec.convert({**report, "errors": report["errors"] or [], "waits": waits}, TestReport)
    except (msgspec.ValidationError, TypeError, KeyError) as error:
        raise LuaError(f"run_tests() gives no report: {error}", where=str(file)) from error


async def _preload_fennel(vm: LuaVM, folder: Path, compiler: FennelCompiler) -> None:
    """Let `require` find the plugin by its name, and its helpers, if they are in Fennel."""
    mains = [file for file in (folder / f"init{SUFFIX}", folder.with_suffix(SUFFIX)) if file.is_file()]
    helpers = folder / "lua"
    modules = [
        *((folder.name, file) for file in mains[:1]),
        *module_names(helpers, sorted(helpers.rglob(f"*{SUFFIX}"))),
    ]
    for name, file in modules:
        chunk = vm.load(compiler.compile(file.read_bytes(), file), f"@{file}", vm.globals)
        await vm.run(vm.load(PRELOAD, "=[cru tests preload]", vm.globals), name, chunk)


def _own_chunk(vm: LuaVM, name: str) -> LuaFunction:
    """One of the Lua files beside this one."""
    source = Path(__file__).with_name(f"{name}.lua").read_bytes()
    return vm.load(source, f"=[cru tests {name}]", vm.globals)
