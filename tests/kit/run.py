"""Run the installed `cru` as a user does: its console script, another process, another home."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from msgspec import Struct
from tests.kit.forked import run_process
from tests.kit.home import HomeDir
from tests.kit.processes import carriers, kill_all
from tests.kit.waiting import PATIENCE


class Done(Struct, frozen=True):
    """How a run ended; code is negative if a signal ended it."""

    code: int
    out: str
    err: str


def program() -> Path:
    """The console script of the environment that runs the tests."""
    path = Path(sys.executable).with_name("cru")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install the checkout with `pip install -e '.[dev]'`")
    return path


class Started:
    """A running `cru`. Leave its `with` block and nothing of its process group is left; of one that was killed, nothing at all."""

    def __init__(self, argv: list[str], home: HomeDir, env: Mapping[str, str], cwd: Path, stdin: int) -> None:
        self._home = home
        self._is_killed = False
        number = len(list(home.path.parent.glob("run-*.out")))
        self._files = [home.path.parent / f"run-{number}.{kind}" for kind in ("out", "err")]
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._popen = run_process(argv, cwd=cwd, env=env, stdin=stdin, stdout=out, stderr=err)

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _signal_group(self.pid, signal.SIGKILL)
        self._popen.wait()
        if self._is_killed:
            kill_all(carriers(f"HOME={self._home.path}\0".encode(), {str(os.getpid())}))
        if self._popen.stdin:
            self._popen.stdin.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return self._files[0].read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._files[1].read_text(errors="replace")

    def kill(self) -> None:
        """kill -9 of the process itself; its children live on, as they would, to the end of the block."""
        self._is_killed = True
        self._popen.kill()

    def interrupt(self) -> None:
        """SIGINT to the process group, as Ctrl-C on a terminal."""
        _signal_group(self.pid, signal.SIGINT)

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def write(self, text: str) -> None:
        """Type into its standard input (only if started with stdin=True)."""
        assert self._popen.stdin is not None, "start(..., stdin=True) to write"
        self._popen.stdin.write(text.encode())
        self._popen.stdin.flush()

    def has_read_all(self) -> bool:
        """Whether nothing of what was written waits in the pipe."""
        assert self._popen.stdin is not None, "start(..., stdin=True) to write"
        waiting = array("i", [0])
        fcntl.ioctl(self._popen.stdin.fileno(), termios.FIONREAD, waiting)
        return waiting[0] == 0

    def end_input(self) -> None:
        assert self._popen.stdin is not None, "start(..., stdin=True) to write"
        self._popen.stdin.close()

    def wait(self, timeout: float = PATIENCE) -> Done:
        """Wait for the end; an AssertionError with what was printed if it does not come."""
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s\nout: {self.out}\nerr: {self.err}") from None
        return Done(code, self.out, self.err)

    def wait_for(self, text: str, timeout: float = PATIENCE) -> None:
        """Wait until the text stands in its output."""
        end = time.monotonic() + timeout
        while text not in self.out + self.err:
            if not self.alive or time.monotonic() > end:
                raise AssertionError(f"no {text!r} in\nout: {self.out}\nerr: {self.err}")
            time.sleep(0.005)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


def start(
    *argv: str,
    home: HomeDir,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bool = False,
    script: Path | None = None,
) -> Started:
    """Start `cru` and go on; use it in a `with` block. Standard input is /dev/null, or a pipe for `write`."""
    command = [str(script or program()), *argv]
    environ = {**home.env, **(env or {})}
    return Started(command, home, environ, cwd or home.project, subprocess.PIPE if stdin else subprocess.DEVNULL)


def cru(
    *argv: str,
    home: HomeDir,
    input: bytes | str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = PATIENCE,
    script: Path | None = None,
) -> Done:
    """Run `cru` to its end. `input` reaches its standard input through a pipe, None is /dev/null; `script`: another program."""
    popen = run_process(
        [str(script or program()), *argv],
        cwd=cwd or home.project,
        env={**home.env, **(env or {})},
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = popen.communicate(input.encode() if isinstance(input, str) else input, timeout)
    except subprocess.TimeoutExpired:
        _signal_group(popen.pid, signal.SIGKILL)
        out, err = popen.communicate()
        late = f"cru {' '.join(argv)}: still running after {timeout} s"
        raise AssertionError(
            f"{late}\nout: {out.decode(errors='replace')}\nerr: {err.decode(errors='replace')}"
        ) from None
    return Done(popen.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def trust_project(home: HomeDir, cwd: Path | None = None) -> Done:
    """Accept a project as a person does without a terminal: look, then say so; what both printed."""
    shown = cru("trust", "--show", home=home, cwd=cwd)
    assert shown.code == 0, shown
    accepted = cru("trust", "--yes", shown.out.rpartition("--yes ")[2].strip(), home=home, cwd=cwd)
    assert accepted.code == 0, accepted
    return Done(0, shown.out + accepted.out, shown.err + accepted.err)
