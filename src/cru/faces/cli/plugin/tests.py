"""`cru plugin test`: the tests of a plugin, each file in a session and a home of its own (docs/plugin-tests.md)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cru.core.compose import Start
from cru.core.plugins.lua.fennel import FennelPlace
from cru.core.plugins.testing.report import TestReport
from cru.core.plugins.testing.runner import files_of, run_file
from cru.faces.cli.console import printable, say, show, write
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed
from cru.faces.cli.plugin.plugins import find_fennel, find_plugins, unknown_plugin
from cru.faces.cli.run_options import home_path, working_directory
from cru.faces.cli.session_run import open_session, say_notice


def run_tests(parsed: Parsed, plugin: str) -> int:
    """Run the tests of a plugin, named by its folder or its name, and print how they went. Raises UnknownPlugin."""
    folder = _folder(parsed, plugin)
    report = run_interruptible(_run_files(folder, find_fennel(parsed)))
    for problem in report.errors:
        show(f"failed: {' / '.join(part for part in (problem.suite, problem.name) if part) or 'the file itself'}")
        place = f"{problem.where}: " if problem.where else ""
        show(f"  {place}{printable(problem.error)}".replace("\n", "\n  "))
    for waiting in report.waits:
        say(
            f"cru: {waiting.where} waits {waiting.seconds:g} s on the real clock\n  put a function in the place of cru.timer.sleep"
        )
    if not report.passed + report.failed + report.pending:
        say(
            f"cru: no tests found in {folder}\n  describe and it in tests/NAME_test.lua, or functions test_… in tests/test_NAME.py"
        )
    show(f"{report.passed} passed, {report.failed} failed, {report.pending} pending")
    return 0 if not report.failed and report.passed + report.pending else 1


async def _run_files(folder: Path, fennel: FennelPlace) -> TestReport:
    report = TestReport()
    for file in files_of(folder):
        report += await _run_file(file, folder, fennel)
    return report


async def _run_file(file: Path, folder: Path, fennel: FennelPlace) -> TestReport:
    """No test sees or changes anybody's conversations."""
    here = working_directory()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    with tempfile.TemporaryDirectory(prefix="cru-test-") as home:
        start = Start(Path(home), "default", dict(os.environ), here, folder, hooks="none")
        async with open_session(start, say_notice) as built:
            return await run_file(shown, folder, built.session.parts, Path(home), write, fennel)


def _folder(parsed: Parsed, plugin: str) -> Path:
    """By path, or by the name that `cru plugin list` shows."""
    for folder in (working_directory() / plugin, home_path(parsed) / "plugins" / plugin):
        if folder.is_dir():
            return Path(os.path.abspath(folder))
    plugins = find_plugins(parsed)
    for candidate in plugins:
        if candidate.name == plugin:
            return candidate.folder
    raise unknown_plugin(plugin, [candidate.name for candidate in plugins])
