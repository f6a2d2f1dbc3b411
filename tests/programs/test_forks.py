"""Plugins in Python that fork: the child is a process of its own, and neither holds what cru holds nor runs any of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import Call, Done, Hang, HomeDir, Reply, cru, server, start
from tests.kit.waiting import wait_until

HEAD = "import multiprocessing, os, subprocess, sys, time\nfrom cru import on\n"
CHILD = """
def child():
    open('child', 'w').write(str(os.getpid()))
    time.sleep(60)
"""
ROADS = {
    "os.fork": "def begin():\n    if os.fork() == 0:\n        child()\n        os._exit(0)\n",
    "os.fork in a thread": (
        "import threading\ndef forked():\n    if os.fork() == 0:\n        child()\n        os._exit(0)\n"
        "def begin():\n    thread = threading.Thread(target=forked)\n    thread.start()\n    thread.join()\n"
    ),
    "multiprocessing": "def begin():\n    multiprocessing.Process(target=child).start()\n",
    "a program with all descriptors": (
        "def begin():\n    shell = subprocess.Popen(['sleep', '60'], close_fds=False)\n"
        "    open('child', 'w').write(str(shell.pid))\n"
    ),
}
WAITS = "def wait():\n    while not os.path.exists('child') or not open('child').read():\n        time.sleep(0.005)\n"
HANDLER = "@on('message:received')\ndef handler(ctx, event):\n    begin()\n    wait()\n"


def plugin(home: HomeDir, source: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "forking.py").write_text(HEAD + source)


def child_of(home: HomeDir) -> int:
    path = home.project / "child"
    wait_until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


@pytest.fixture
def ends_the_child(home: HomeDir) -> Iterator[None]:
    yield
    if (home.project / "child").exists():
        os.kill(child_of(home), signal.SIGKILL)


@pytest.mark.sample(2)
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kills", [False, True], ids=["ends", "is killed"])
@pytest.mark.usefixtures("ends_the_child")
def test_it_does_not_hold_the_context(home: HomeDir, road: str, kills: bool) -> None:
    plugin(home, CHILD + ROADS[road] + WAITS + HANDLER)
    with server([Hang("so far") if kills else Reply("fine"), Reply("again")]) as model:
        home.configure(url=model.url)
        with start("hello", home=home) as run:
            if kills:
                run.wait_for("so far")
                run.kill()
            assert run.wait().code == (-signal.SIGKILL if kills else 0)
            os.kill(child_of(home), 0)
            (home.cru / "plugins" / "forking.py").unlink()
            assert_free(home, cru("again", home=home))


def assert_free(home: HomeDir, again: Done) -> None:
    assert (again.code, again.out) == (0, "again\n"), again.err
    removed = cru("-D", "default", home=home)
    assert (removed.code, removed.out) == (0, "Deleted default\n"), removed.err


@pytest.mark.parametrize("end", ["", "    sys.exit(0)\n", "    raise ValueError\n"], ids=["returns", "exits", "raises"])
@pytest.mark.parametrize("is_async", [False, True])
def test_nothing_of_cru_runs_twice(home: HomeDir, end: str, is_async: bool) -> None:
    body = "{0}def handler(ctx, event):\n    if os.fork():\n        os.wait()\n        return\n    open('child', 'a').write('x')\n{1}"
    source = body.format("async " if is_async else "", end)
    plugin(home, "@on('message:received')\n" + source)
    with server([Reply("fine"), Reply("never")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home)
    assert (run.code, run.out) == (0, "fine\n") and "Traceback" not in run.err
    assert len(model.requests) == 1
    assert (home.project / "child").read_text() == "x"
    assert [entry["entry_type"] for entry in home.log()].count("message") == 2


def test_a_child_that_waits_as_cru_does_ends(home: HomeDir) -> None:
    source = (
        "import asyncio\n@on('message:received')\nasync def handler(ctx, event):\n    future = asyncio.get_running_loop().create_future()\n"
        "    pid = os.fork()\n    if pid == 0:\n        await future\n    open('status', 'w').write(str(os.waitpid(pid, 0)[1]))\n"
    )
    plugin(home, source)
    with server([Reply("fine"), Reply("never")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home)
    assert (run.code, run.out, len(model.requests)) == (0, "fine\n", 1)
    assert (home.project / "status").read_text() == "256", "it ended with 1"


def test_what_ends_the_child_does_not_end_the_run(home: HomeDir) -> None:
    source = CHILD + (
        "@on('message:received')\ndef handler(ctx, event):\n    process = multiprocessing.Process(target=child)\n"
        "    process.start()\n    wait()\n    process.terminate()\n    process.join()\n"
        "    open('status', 'w').write(str(process.exitcode))\n"
    )
    plugin(home, WAITS + source)
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, timeout=20)
    assert (run.code, run.out) == (0, "fine\n"), run.err
    assert (home.project / "status").read_text() == "-15"


LISTS = "ls -l /proc/self/fd | awk '/->/ {print $9}' >&2; ls -l /proc/$$/fd >descriptors"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="seen by way of /proc")
def test_tools_and_hooks_inherit_the_three_streams_only(home: HomeDir) -> None:
    hook = f'[[hooks.entries]]\nevent = "tool:called"\ncommand = "{LISTS.split("; ")[1]}_of_the_hook; true"\n'
    program = home.cru / "plugins" / "listing"
    program.parent.mkdir(parents=True)
    schema = '{"name":"listing","description":"x","parameters":{"type":"object","properties":{}}}'
    program.write_text(
        f"#!/bin/sh\nif [ \"$1\" = --schema ]; then echo '{schema}'; exit; fi\nls -l /proc/$$/fd >descriptors_of_the_program\n"
    )
    program.chmod(0o755)
    with server([Reply(calls=[Call("bash", {"command": LISTS}), Call("listing")]), Reply("fine")]) as model:
        home.configure(hook, url=model.url)
        run = cru("-t", "--hooks", "all", "hello", home=home)
    assert run.out == "fine\n", run.err
    for name in ("descriptors", "descriptors_of_the_hook", "descriptors_of_the_program"):
        lines = (home.project / name).read_text().splitlines()[1:]
        numbers = [int(line.split()[8]) for line in lines if "/proc/" not in line.partition("->")[2]]
        assert [number for number in numbers if number < 10] == [0, 1, 2], lines
        assert not any("socket:" in line or "/contexts/" in line for line in lines), lines
