"""Which process a number means: a process id is given anew, so that it alone proves nothing later."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cru.core.base.process.descent import Root

BOOT = "/proc/sys/kernel/random/boot_id"


def process_identity(pid: int) -> str:
    """What only this process has: when it started, of which start of the machine; "" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return "" if os.path.isdir("/proc/self") else _ask_ps(pid)
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else f"{_boot()}.{fields[19].decode()}"


def is_of_this_boot(identity: str) -> bool:
    """Whether that process ran since the machine started; False where nobody can say."""
    boot = _boot()
    return bool(boot) and identity.startswith(f"{boot}.")


def open_pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the process exits, or -1 where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def ticks_now() -> int:
    """Of the clock that says when a process started; 0 where there is none."""
    return (
        int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        if hasattr(time, "CLOCK_BOOTTIME")
        else 0
    )


def end_process(pid: int, identity: str, grace: float = 2.0) -> bool:
    """End the leader of a session with all that it started: asked first, killed after the grace; False if it is gone already. It blocks."""
    if not identity or process_identity(pid) != identity:
        return False
    from cru.core.base.process.descent import Root, members  # most runs end no process in this way

    roots = Root(pid)
    signal_all(members(roots) or [-pid], signal.SIGTERM, signal.SIGCONT)
    deadline = time.monotonic() + grace
    while (alive := _alive(pid, roots)) and time.monotonic() < deadline:
        time.sleep(0.02)
    while alive:
        signal_all(alive, signal.SIGKILL)
        time.sleep(0.02)
        alive = _alive(pid, roots) if time.monotonic() < deadline + grace else []
    return True


def _alive(pid: int, root: Root) -> list[int]:
    from cru.core.base.process.descent import members  # see end_process

    running = members(root)
    if running is not None:
        return running
    return [-pid] if _ask_ps(pid) else []


def signal_all(pids: list[int], *numbers: signal.Signals) -> None:
    """Those that are there yet, and ours."""
    for pid in pids:
        for number in numbers:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def _boot() -> str:
    try:
        with open(BOOT, encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return ""


def _ask_ps(pid: int) -> str:
    """Where there is no /proc."""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "_".join(asked.stdout.split())
