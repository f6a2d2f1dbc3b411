"""Runs a test file in Python: its functions `test_…` without parameters, in order. What needs fixtures is for pytest."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cru.core.base.values.cancellation import from_outside
from cru.core.events.calling import describe_error
from cru.core.events.cancellable import run_cancellable
from cru.core.plugins.testing.report import TestFailure, TestReport, TestWait

LEAST = 0.05
"""Seconds of a wait that are worth a word, as in runner.lua."""
ELSEWHERE = "work beside the tests"
FIXTURES = "it has parameters, which pytest fills: run it with pytest"


class WaitRecorder:
    """Where the code of a plugin waits on the real clock, by the lines of its folder that called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._seconds: dict[str, float] = {}

    def note(self, seconds: float) -> None:
        """Called from within the wait."""
        if seconds >= LEAST:
            place = self._caller()
            self._seconds[place] = self._seconds.get(place, 0) + seconds

    def report(self) -> TestReport:
        return TestReport(waits=tuple(TestWait(place, seconds) for place, seconds in self._seconds.items()))

    def _caller(self) -> str:
        """As "file:line"."""
        frame = sys._getframe(1)
        while frame is not None:
            if Path(frame.f_code.co_filename).resolve().is_relative_to(self._folder):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]  # None above the outermost one
        return ELSEWHERE


async def run_python_file(file: Path) -> TestReport:
    """Whatever the code raises is a failure of its test, or of the file."""
    try:
        module = ModuleType(file.stem)
        module.__file__ = str(file.resolve())
        exec(compile(file.read_bytes(), str(file), "exec"), vars(module))
    except BaseException as raised:  # the boundary around a plugin's code: reported
        if from_outside(raised):
            raise
        return TestReport(failed=1, errors=(_failure("", file, raised),))
    report = TestReport()
    for name, function in list(vars(module).items()):
        if name.startswith("test_") and inspect.isfunction(function):
            report += await _run_test(name, function, file)
    return report


def find_stand_in(replaced: Mapping[str, object], name: str) -> Callable[..., Any] | None:
    """What a test has put at a name of `cru`, alone or with its family."""
    family, _, leaf = name.rpartition(".")
    value = replaced[name] if name in replaced else getattr(replaced.get(family), leaf, None)
    return value if callable(value) else None


async def _run_test(name: str, function: Callable[..., object], file: Path) -> TestReport:
    if inspect.signature(function).parameters:
        line = function.__code__.co_firstlineno
        return TestReport(failed=1, errors=(TestFailure(name, "", FIXTURES, str(file), line),))
    try:
        result = function()
        if inspect.isawaitable(result):
            await run_cancellable(result, lambda what, where: None)
    except BaseException as raised:  # as above
        if from_outside(raised):
            raise
        return TestReport(failed=1, errors=(_failure(name, file, raised),))
    return TestReport(passed=1)


def _failure(name: str, file: Path, raised: BaseException) -> TestFailure:
    """With the last line of the file itself on the way to the error."""
    if isinstance(raised, SyntaxError) and raised.filename == str(file):
        return TestFailure(name, "", describe_error(raised), str(file), raised.lineno or 0)
    frames = [frame for frame in traceback.extract_tb(raised.__traceback__) if frame.filename == str(file)]
    if not frames:
        return TestFailure(name, "", describe_error(raised), str(file))
    text = describe_error(raised)
    return TestFailure(
        name, "", text if str(raised) else f"{text}: {frames[-1].line}", str(file), frames[-1].lineno or 0
    )
