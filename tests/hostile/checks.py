"""What must hold after a run with a hostile guest, whatever that did."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.kit import Done, HomeDir, cru, wait_until
from tests.kit.processes import is_running

LONGEST_MESSAGE = 40_000
"""Characters on standard error: a message has at most 8,000, each of which may be shown as four."""
DEFECTS = ("Traceback", "Exception ignored", "never retrieved", "never awaited", "Task was destroyed")


def check_messages(done: Done, codes: tuple[int, ...], passed_on: int = 0, *, may_be_defect: bool = False) -> None:
    """The exit status is one of these, and what was said is short and clean. passed_on: bytes of standard error that a program may have
    said itself."""
    assert done.code in codes, done
    assert may_be_defect or [word for word in DEFECTS if word in done.err + done.out] == [], done
    assert len(done.err) < LONGEST_MESSAGE + passed_on, (len(done.err), done.err[:2000])
    if done.code == 1 and not may_be_defect:
        assert done.err.startswith("cru: ") or "\ncru: " in done.err, done


def check_log(home: HomeDir, prompts: list[str]) -> None:
    """Every line is an entry, these prompts are there, and each call has its result."""
    entries = home.log()
    said = [e["content"] for e in entries if e["entry_type"] == "message" and e.get("role") == "user"]
    assert [text for text in said if text in ("hello", "again")] == prompts
    calls = [e["tool_call_id"] for e in entries if e["entry_type"] == "tool_call"]
    assert sorted(calls) == sorted(e["tool_call_id"] for e in entries if e["entry_type"] == "tool_result")


def started(home: HomeDir) -> list[int]:
    """The processes that the guest told of."""
    file = home.path.parent / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def check_processes(home: HomeDir) -> None:
    """What the guest started has ended."""
    wait_until(lambda: not any(map(is_running, started(home))), what="the guest's processes to end")


def check_files(home: HomeDir) -> None:
    """No half-written or temporary file, and no pipe or device, lies in cru's home."""
    left = [
        str(path) for path in home.cru.rglob("*") if path.name.endswith((".tmp", "~")) or path.name.startswith(".tmp")
    ]
    assert left == []


def check_next_run(home: HomeDir) -> Done:
    """Without the guest the next run works, at once and on the same context."""
    done = cru("again", home=home)
    assert (done.code, done.out) == (0, "all is well\n"), done
    check_messages(done, (0,))
    return done


def is_json_lines(path: Path) -> bool:
    return all(json.loads(line) for line in path.read_bytes().splitlines()) if path.exists() else True


def kill_started(home: HomeDir) -> None:
    for pid in started(home):
        if is_running(pid):
            os.kill(pid, 9)
