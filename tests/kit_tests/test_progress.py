"""One line a failure, none for what passes; and who is to blame when a worker dies or something is left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import progress
from tests.kit.processes import is_running

ROOT = Path(progress.__file__).parents[2]
CONFTEST = """
from tests.kit import leaks
from tests.kit.leaks import Leaks
from tests.kit.brief_reports import BriefReports
from tests.kit.progress import Progress
def pytest_configure(config):
    leaks.GRACE = 0.2
    config.pluginmanager.register(BriefReports(), "cru-brief-reports")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(), "cru-progress")
    config.pluginmanager.register(Leaks(), "cru-leaks")
"""
LEFT = {
    "descriptor": "os.open('/dev/null', os.O_RDONLY)",
    "socket": "kept.append(socket.socket())",
    "thread": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "process": "kept.append(subprocess.Popen(['sleep', '60']))",
    "process far away": "subprocess.run(['setsid', '-f', 'sleep', '60'], env={**os.environ, 'HOME': str(tmp_path)})",
    "temporary file": "tempfile.mkdtemp()",
    "task": """loop = asyncio.new_event_loop()
    kept.append(loop.create_task(asyncio.sleep(60)))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()""",
}
IMPORTS = "import asyncio, os, socket, subprocess, tempfile, threading\n"


def run(folder: Path, tests: str, *options: str, conftest: str = "") -> list[str]:
    (folder / "conftest.py").write_text(CONFTEST + conftest)
    (folder / "test_x.py").write_text(f"kept = []\n{tests}")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -ra --tb=short\nconsole_output_style = classic\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", *options]
    env = {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(folder),
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_what_passes_prints_nothing_and_what_fails_one_line(tmp_path: Path) -> None:
    text = "x" * 60
    lines = run(tmp_path, f"def test_a(): pass\ndef test_b(): assert 1 == 2, '{text}'\ndef test_c(): pass\n")
    assert [line for line in lines if line.startswith("FAILED")] == [
        "FAILED test_x.py::test_b",
        f"FAILED test_x.py::test_b - AssertionError: {text}",
    ]
    assert lines[0] == "FAILED test_x.py::test_b" and not any(line.startswith(".") for line in lines)


@pytest.fixture(scope="module")
def blamed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines about tests each of which leaves something behind, with one before and after it that does not."""
    tests = IMPORTS + "def test_before(): pass\n"
    for number, code in enumerate(LEFT.values()):
        tests += f"def test_leaves_{number}(tmp_path):\n    {code}\ndef test_after_{number}(): pass\n"
    return [
        line
        for line in run(tmp_path_factory.mktemp("left"), tests)
        if line.startswith(("FAILED", "ERROR", "DEAD")) and " - " in line
    ]


@pytest.mark.parametrize(("number", "kind"), list(enumerate(LEFT)), ids=LEFT)
def test_who_leaves_something_behind_fails_by_its_name_and_nobody_else(
    blamed: list[str], number: int, kind: str
) -> None:
    assert len(blamed) == len(LEFT), blamed
    (line,) = [
        line for line in blamed if line.startswith(f"ERROR test_x.py::test_leaves_{number} - Failed: left behind: ")
    ]
    assert {"socket": "descriptor"}.get(kind, kind.split()[0]) in line
    if "process" in kind:
        assert not is_running(int(re.findall(r"process ([0-9]+)", line)[0]))


def test_who_tidies_up_passes(tmp_path: Path) -> None:
    tests = (
        "import subprocess, tempfile\ndef test_tidy():\n    with tempfile.TemporaryFile(): subprocess.run(['true'])\n"
    )
    assert any("1 passed" in line for line in run(tmp_path, tests))


def test_a_test_that_fails_need_not_be_tidy(tmp_path: Path) -> None:
    lines = run(
        tmp_path,
        "import os\ndef test_fails():\n    os.open('/dev/null', 0); assert False, 'why'\ndef test_after(): pass\n",
    )
    assert [line for line in lines if line.startswith(("FAILED", "ERROR"))] == [
        "FAILED test_x.py::test_fails",
        "FAILED test_x.py::test_fails - AssertionError: why",
    ]


def test_a_dead_worker_is_named_with_what_it_had_run(tmp_path: Path) -> None:
    tests = "import os\ndef test_suspect(): pass\ndef test_dies(): os._exit(3)\n"
    lines = run(tmp_path, tests, "-n", "1", "--max-worker-restart=0")
    (dead,) = [line for line in lines if line.startswith("DEAD: ")]
    assert dead.endswith("the last one first: test_x.py::test_suspect")
    assert any(line.startswith("FAILED test_x.py::test_dies - worker 'gw0' crashed while running") for line in lines), (
        lines
    )


OUTCOMES = """
import pytest
@pytest.fixture
def broken(): raise ValueError("setup")
@pytest.fixture
def untidy():
    yield
    raise ValueError("teardown")
def test_passes(): pass
def test_fails(): assert not "call"
def test_is_skipped(): pytest.skip("why")
@pytest.mark.skip(reason="whole")
def test_is_skipped_whole(): pass
@pytest.mark.xfail
def test_expected(): assert False
def test_cannot_begin(broken): pass
def test_cannot_end(untidy): pass
"""
COUNTED = "1 failed, 2 passed, 2 skipped, 1 xfailed, 2 errors"
"""A test of which the end fails has passed, and is an error besides."""


@pytest.mark.parametrize("options", [(), ("--durations=1",)], ids=["brief", "all"])
def test_a_worker_tells_every_outcome(tmp_path: Path, options: tuple[str, ...]) -> None:
    messages = tmp_path / "messages"
    count = f"""
def pytest_runtest_logreport(report):
    with open({str(messages)!r}, "a") as file:
        file.write(f"{{report.nodeid.partition('::')[2]}} {{report.when}}\\n" if hasattr(report, "node") else "")
"""
    lines = run(tmp_path, OUTCOMES, "-n", "1", *options, conftest=count)
    assert lines[-1].startswith(COUNTED), lines
    reports = [line for line in messages.read_text().splitlines() if line.startswith("test_passes")]
    assert len(reports) == 3 if options else reports == ["test_passes call"]


MANY = """
import pytest
@pytest.mark.parametrize("n", range(300))
def test_many(n):
    if n % 100 == 99: pytest.skip("no printer")
    if n == 150: pytest.skip("no sun")
    assert n != 200
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_long_run_shows_its_progress_and_ends_with_one_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    lines = run(tmp_path, MANY, *options)
    steps = [line for line in lines if re.fullmatch(r"[0-9]+ of 300 tests(, 1 failed)?, [0-9]+ s", line)]
    assert len(steps) == 10
    assert re.fullmatch(r"295 passed, 1 failed, 4 skipped \(3 no printer, 1 no sun\) in [0-9]+ s", lines[-1]), lines
