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
from cru.namespace.python import NAMESPACE

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
