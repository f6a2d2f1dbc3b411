"""Processes on this machine: which of them come of a test, and whether one still runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ticks(pid: int) -> int:
    """Return for how many hundredths of a second a process has kept a processor busy."""
    return sum(int(number) for number in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])


def carriers(text: bytes, known: set[str]) -> set[int]:
    """Those with this text in their environment, wherever they moved. `known` are the names in /proc that are looked at no more: not those
    without any, as a process has none for the moment in which it becomes another program."""
    names = set(os.listdir("/proc"))
    known &= names
    new = names - known
    environments = {name: _environment(name) for name in new if name.isdigit()}
    carrying = {name for name, environment in environments.items() if text in environment}
    known |= {name for name in new - carrying if environments.get(name) != b""}
    return set(map(int, carrying))


def kill_all(pids: set[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended


def _environment(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""  # it has ended, or is somebody else's
