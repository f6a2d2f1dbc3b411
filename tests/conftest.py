"""What every test may use, and what no test may see: this user's home, keys, proxies and settings."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from tests.kit import HomeDir, short
from tests.kit import home as new_home
from tests.kit.brief_reports import BriefReports
from tests.kit.counts import Counts
from tests.kit.databases import databases, fleet, url  # noqa: F401  # fixtures
from tests.kit.forked import RealStarts
from tests.kit.leaks import Leaks
from tests.kit.progress import Progress
from tests.kit.sandbox import SandboxTests
from tests.kit.short import Short

FOREIGN = ("CRU_", "CHIBI_", "CRUSH_", "CLAUDE_", "CODEX_", "GEMINI_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "XDG_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
RANDOM = "CRU_TEST_RANDOM"
"""A variable: properties are tried with other values in each run (`make soak`); without it always with the same ones."""
SHORT_EXAMPLES = 30
"""Values that a short run tries of each property, where the test does not say how many."""
MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""Bytes: what a run of all tests needs of a file system in memory, several times."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(short.OPTION, action="store_true", help="leave out slow tests and most cases of large tables")


def pytest_configure(config: pytest.Config) -> None:
    use_memory()
    # what pytest makes of a module of tests is kept, whatever the shell says: else each worker does it anew in each run
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # in the background of a script, or under nohup, they are ignored, and children could not hear them either
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    # a busy machine is slow at times; what keeps a processor busy is limited by Counts
    hypothesis.settings.register_profile(
        "cru",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=RANDOM not in os.environ,
        max_examples=SHORT_EXAMPLES if config.getoption(short.OPTION) else 100,
    )
    hypothesis.settings.load_profile("cru")
    config.pluginmanager.register(Counts(), "cru-counts")
    config.pluginmanager.register(RealStarts(), "cru-real-starts")
    config.pluginmanager.register(Leaks(), "cru-leaks")
    config.pluginmanager.register(Short(), "cru-short")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(), "cru-progress")
    config.pluginmanager.register(SandboxTests(), "cru-sandbox")
    config.pluginmanager.register(BriefReports(), "cru-brief-reports")


def use_memory() -> None:
    """The folders of tests are in memory, where programs can be run and there is room: a disk makes the tests wait for each fsync."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return
    memory = os.statvfs(MEMORY)
    if not memory.f_flag & os.ST_NOEXEC and memory.f_bavail * memory.f_frsize >= ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """For tests within the process: an empty HOME, and no variable that would change what `cru` does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(FOREIGN) or name.upper() in PROXIES:
                patch.delenv(name)
        patch.setenv("HOME", str(session.config._tmp_path_factory.mktemp("nobody")))  # type: ignore[attr-defined]
        return (yield)


@pytest.fixture
def home(tmp_path: Path) -> HomeDir:
    """A fresh home and project folder; `home.configure(url=model.url)` connects it to a server."""
    return new_home(tmp_path)
