"""Runs the test files of a plugin: each in a fresh machine, with the globals of runner.lua and mocks.lua (docs/plugin-tests.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.engine.parts import Parts
from cru.extensions.lua.convert import LuaError
from cru.extensions.testing.guest import close, guest, hosted, machine, search_path
from cru.namespace.host import Session

ENDING = "_test.lua"
RUN_SECONDS = 10.0
"""Lua's own run time in one file."""


class Problem(Struct, frozen=True):
    """A test that failed. `suite` is "outer / inner"; `file` is empty and `line` 0 where nothing says the place."""

    name: str = ""
    suite: str = ""
    error: str = ""
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """As "file:line", as far as it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Report(Struct, frozen=True):
    """What `run_tests()` gives. A file that cannot be run counts as one failed test."""

    passed: int = 0
    failed: int = 0
    pending: int = 0
    errors: tuple[Problem, ...] = ()

    def __add__(self, other: Report) -> Report:
        return Report(
            self.passed + other.passed,
            self.failed + other.failed,
            self.pending + other.pending,
            self.errors + other.errors,
        )


def files_of(folder: Path) -> list[Path]:
    """`tests/*_test.lua`, then those in the folder itself, each sorted by name."""
    return [path for place in (folder / "tests", folder) for path in sorted(place.glob(f"*{ENDING}")) if path.is_file()]


async def run_file(file: Path, folder: Path, parts: Parts, home: Path, print: Callable[[str], None]) -> Report:
    """Run one test file of the plugin in `folder`, in this session; `print` takes what it prints."""
    session = Session(parts, home)
    with hosted(session, guest(folder.name, folder)):
        try:
            return await _run(file, folder, print)
        except LuaError as error:
            path, _, line = error.where.rpartition(":")
            problem = Problem("", "", _placeless(error), path or str(file), int(line) if line.isdigit() else 0)
            return Report(failed=1, errors=(problem,))
        except (OSError, UnicodeDecodeError) as error:
            return Report(failed=1, errors=(Problem(error=str(error), file=str(file)),))
        finally:
            await close(session)
            parts.bus.registry.drop_owner(folder.name)


def _placeless(error: LuaError) -> str:
    """The message without its place, of which Lua shows the end only if it is long."""
    place, mark, rest = error.message.partition(": ")
    return rest if mark and error.where.endswith(place.removeprefix("...")) else error.message


async def _run(file: Path, folder: Path, print: Callable[[str], None]) -> Report:
    vm = machine(search_path(folder), print, RUN_SECONDS)
    everywhere = vm.globals
    for name in ("runner", "mocks"):
        source = Path(__file__).with_name(f"{name}.lua").read_bytes()
        await vm.run(vm.load(source, f"=[cru tests {name}]", everywhere))
    await vm.run(vm.load(file.read_text("utf-8"), f"@{file}", everywhere))
    (found,) = await vm.run(vm.load("return run_tests()", "=[cru tests run]", everywhere))
    try:
        return msgspec.convert({**found, "errors": found["errors"] or []}, Report)
    except (msgspec.ValidationError, TypeError, KeyError) as error:
        raise LuaError(f"run_tests() gives no report: {error}", where=str(file)) from error
