"""Runs the test files of a plugin: each of Lua in a fresh machine, with the globals of runner.lua and mocks.lua (docs/plugin-tests.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from cru.engine.parts import Parts
from cru.extensions.lua.convert import LuaError
from cru.extensions.lua.runtime import LuaFunction, LuaVM
from cru.extensions.testing.machine import cancel_tasks, new_machine, run_as, search_path, unlisted_plugin
from cru.extensions.testing.report import TestFailure, TestReport
from cru.namespace.host import Plugin, PluginSession

ENDING = "_test.lua"
PYTHON = "test_*.py"
RUN_SECONDS = 10.0
"""Lua's own run time in one file."""


def files_of(folder: Path) -> list[Path]:
    """`tests/*_test.lua` and `tests/test_*.py`, then `*_test.lua` in the folder itself, each sorted by name."""
    tests = folder / "tests"
    files = [*sorted(tests.glob(f"*{ENDING}")), *sorted(tests.glob(PYTHON)), *sorted(folder.glob(f"*{ENDING}"))]
    return [path for path in files if path.is_file()]


async def run_file(file: Path, folder: Path, parts: Parts, home: Path, print: Callable[[str], None]) -> TestReport:
    """Run one test file of the plugin in `folder`, in this session; `print` takes what it prints."""
    session, plugin = PluginSession(parts, home), unlisted_plugin(folder.name, folder)
    is_python = file.suffix == ".py"
    if is_python:
        plugin.dialect = "python"
    with run_as(session, plugin):
        try:
            if is_python:
                from cru.extensions.testing import python_tests

                return await python_tests.run_python_file(file)
            return await _run(file, plugin, print)
        except LuaError as error:
            path, _, line = error.where.rpartition(":")
            problem = TestFailure("", "", error.reason, path or str(file), int(line) if line.isdigit() else 0)
            return TestReport(failed=1, errors=(problem,))
        except (OSError, UnicodeDecodeError) as error:
            return TestReport(failed=1, errors=(TestFailure(error=str(error), file=str(file)),))
        finally:
            await cancel_tasks(session)
            parts.bus.registry.drop_owner(folder.name)


async def _run(file: Path, plugin: Plugin, print: Callable[[str], None]) -> TestReport:
    vm = new_machine(search_path(plugin.folder), print, RUN_SECONDS)
    everywhere = vm.globals
    runner, _ = [await vm.run(_own_chunk(vm, name)) for name in ("runner", "mocks")]
    stand_in, waited = runner[0]["stand_in"], runner[0]["waited"]
    plugin.stand_in = lambda name: vm.start(stand_in, name)[0]  # type: ignore[index]  # it never waits
    await vm.run(vm.load(file.read_text("utf-8"), f"@{file}", everywhere))
    (report,) = await vm.run(vm.load("return run_tests()", "=[cru tests run]", everywhere))
    try:
        waits = (await vm.run(waited))[0] or []
        return msgspec.convert({**report, "errors": report["errors"] or [], "waits": waits}, TestReport)
    except (msgspec.ValidationError, TypeError, KeyError) as error:
        raise LuaError(f"run_tests() gives no report: {error}", where=str(file)) from error


def _own_chunk(vm: LuaVM, name: str) -> LuaFunction:
    """One of the Lua files beside this one."""
    source = Path(__file__).with_name(f"{name}.lua").read_bytes()
    return vm.load(source, f"=[cru tests {name}]", vm.globals)
