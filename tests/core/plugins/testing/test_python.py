"""`cru plugin test` with tests in Python."""

from __future__ import annotations

from tests.kit import HomeDir, cru


def test_tests_in_python_are_run_and_their_failures_have_a_place(home: HomeDir) -> None:
    folder = home.cru / "plugins" / "snake" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(
        "import asyncio, sys\ndef test_fine():\n    pass\nasync def test_waits():\n    await asyncio.sleep(0)\n    assert 1 == 2\n"
        "def test_ends():\n    sys.exit(3)\ndef test_fixture(tmp_path):\n    pass\n"
    )
    (folder / "test_b.py").write_text("x = = 1\n")
    run = cru("plugin", "test", "snake", home=home)
    assert run.code == 1 and run.out.endswith("1 passed, 4 failed, 0 pending\n") and "Traceback" not in run.err
    for told in (
        "test_waits",
        "test_a.py:6: AssertionError: assert 1 == 2",
        "test_a.py:8: SystemExit: 3",
        "run it with pytest",
    ):
        assert told in run.out
    assert "test_b.py:1: SyntaxError" in run.out


REPLACING = """import time
from unittest.mock import patch
import cru
from cru import timer, retry, ratelimit, shell
from cru.core.api.python import NAMESPACE

waits = []
def fails():
    raise ValueError("no")

async def tried():
    waits.clear()
    try:
        await cru.retry(fails, {"max_retries": 2, "base_delay": 600, "max_delay": 600, "jitter": False})
    except ValueError:
        pass
    return waits

async def test_a_function_of_a_family():
    timer.sleep = waits.append
    assert await tried() == [600, 600] and cru.timer.sleep == NAMESPACE.timer.sleep == waits.append
    bucket = ratelimit.new({"capacity": 1, "interval": 600})
    await bucket.acquire()
    await bucket.acquire()
    assert waits[2:] and waits[-1] > 599
    del timer.sleep
    assert timer.sleep.__name__ == "sleep"

async def test_with_mock():
    with patch("cru.timer.sleep", waits.append):
        assert len(await tried()) == 2
    assert timer.sleep.__name__ == "sleep"

async def test_a_whole_family():
    class Timer:
        async def sleep(self, seconds):
            waits.append(seconds)
    cru.timer = Timer()
    assert len(await tried()) == 2 and isinstance(NAMESPACE.timer, Timer)
    del cru.timer

def test_names_of_the_package():
    NAMESPACE.toast = len
    cru.shell = cru.notify = "mine"
    assert cru.toast is len and cru.shell == NAMESPACE.shell == NAMESPACE.notify == "mine"

def test_what_is_no_name():
    try:
        timer.slep = len
    except AttributeError as error:
        assert "slep" in str(error)
    else:
        assert False
"""
AFTER = "import cru\ndef test_a():\n    assert callable(cru.toast) and cru.toast is not len and cru.shell != 'mine'\n"


def test_what_a_test_in_python_puts_at_names_of_cru_is_used_and_is_gone_with_the_file(home: HomeDir) -> None:
    folder = home.cru / "plugins" / "snake" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(REPLACING)
    (folder / "test_b.py").write_text(AFTER)
    run = cru("plugin", "test", "snake", home=home)
    assert (run.code, run.out) == (0, "6 passed, 0 failed, 0 pending\n"), run.out


WAITING = """
import cru
from cru import timer

async def test_sleeps():
    for _ in range(2):
        await timer.sleep(0.05)

async def test_retries():
    calls = []
    def fail():
        calls.append(1)
        if len(calls) == 1:
            raise ValueError
    await cru.retry(fail, {"base_delay": 0.06, "jitter": False})

async def test_hardly_and_not_at_all():
    await timer.sleep(0.001)
    timer.sleep = print
    timer.sleep(5)
    del timer.sleep
    await timer.sleep(0.07)
"""


def test_a_line_in_python_that_waits_on_the_real_clock_is_named(home: HomeDir) -> None:
    folder = home.cru / "plugins" / "snake" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(WAITING)
    run = cru("plugin", "test", "snake", home=home)
    assert (run.code, run.out.splitlines()[-1]) == (0, "3 passed, 0 failed, 0 pending"), run.out
    waits = [line.partition("test_a.py:")[2] for line in run.err.splitlines() if "on the real clock" in line]
    assert waits == [f"{line} s on the real clock" for line in ("7 waits 0.1", "15 waits 0.06", "22 waits 0.07")]
