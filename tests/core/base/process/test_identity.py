"""Which process a number means."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit import wait_until
from tests.kit.processes import is_running

from cru.core.base.process.descent import end_process
from cru.core.base.process.marks import process_identity


def test_a_process_is_itself_until_it_is_gone() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    identity = process_identity(child.pid)
    assert identity and identity == process_identity(child.pid)
    assert identity != process_identity(os.getpid())
    child.kill()
    wait_until(lambda: process_identity(child.pid) == "")
    child.wait()
    assert process_identity(child.pid) == ""


def test_it_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    source = "trap '' TERM; sleep 60 & echo $! >>pids; echo $$ >>pids; while :; do sleep 0.05; done"
    child = subprocess.Popen(["sh", "-c", source], cwd=tmp_path, start_new_session=True)
    pids = tmp_path / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    assert end_process(child.pid, process_identity(child.pid), grace=0.2)
    child.wait()
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


def test_another_process_that_has_its_number_now_is_left_alone() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    assert not end_process(child.pid, "12345678.1")
    assert not end_process(child.pid, "")
    assert child.poll() is None
    child.kill()
    child.wait()
