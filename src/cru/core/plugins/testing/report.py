"""What came of a plugin's tests."""

from __future__ import annotations

from msgspec import Struct


class TestFailure(Struct, frozen=True):
    """A test that failed.

    suite: "outer / inner"
    file, line: empty and 0 where nothing says the place
    """

    name: str = ""
    suite: str = ""
    error: str = ""
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """As "file:line", as far as it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file


class TestWait(Struct, frozen=True):
    """A place that waited on the real clock.

    where: as "file:line"
    seconds: in all
    """

    where: str
    seconds: float


class TestReport(Struct, frozen=True):
    """What `run_tests()` gives. A file that cannot be run counts as one failed test."""

    passed: int = 0
    failed: int = 0
    pending: int = 0
    errors: tuple[TestFailure, ...] = ()
    waits: tuple[TestWait, ...] = ()

    def __add__(self, other: TestReport) -> TestReport:
        return TestReport(
            self.passed + other.passed,
            self.failed + other.failed,
            self.pending + other.pending,
            self.errors + other.errors,
            self.waits + other.waits,
        )
