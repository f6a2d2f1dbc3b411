"""Runs of `cru` that are about something else than its start: forked from a process that has loaded what runs load.

A forked run has its own session, streams, environment, folder, limits and exit status, as a started one has. CRU_TEST_REAL_START=1
starts every run for real; so does what the interpreter itself reads (a locale, PYTHON…), and a test marked `real_start`.
"""

from __future__ import annotations

import atexit
import marshal
import os
import pkgutil
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest
from tests.kit import fork_server
from tests.kit.home import home
from tests.kit.server import server
from tests.kit.steps import Reply

import cru

FORCED = "CRU_TEST_REAL_START" in os.environ
READ_AT_START = ("PYTHON", "LC_", "LANGUAGE", "LD_", "MALLOC_", "TZ", "COV")
"""Variables that the interpreter, its libraries or the measuring of coverage read when a process starts."""
FORKABLE = b"# forkable:"
LOADED_LATE = (
    "difflib", "jaq", "json", "lupa.lua54", "pyreqwest.client", "queue", "rich.markdown", "shlex", "tempfile", "tomlkit", "tomllib",
    "urllib.request", "yaml",
)  # fmt: skip
"""Modules of others that functions of cru import."""
LIMITS = tuple(sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}))
REPORT = """
import os, sys
def leave(code):
    modules = [name for name, module in sys.modules.items() if type(module).__name__ == "module" and name != "__main__"]
    os.write(int(news), ",".join(modules).encode())
    real(code)
news, real, os._exit = sys.argv.pop(1), os._exit, leave
from cru.faces.cli.main import main
main()
"""

_forces: list[bool] = [FORCED]


class RealStarts:
    """A plugin of pytest: in a test marked `real_start` every run starts for real."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        _forces.append(_forces[-1] or item.get_closest_marker("real_start") is not None)
        try:
            return (yield)
        finally:
            _forces.pop()


def may_fork(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a forked run would be as a started one. Another script than `cru` says so with FORKABLE: what it replaces is not kept by
    a module that is loaded already."""
    if _forces[-1] or env.get("LANG") != "C.UTF-8" or any(name.startswith(READ_AT_START) for name in env):
        return False
    return shutil.which("python3", path=env["PATH"]) == _beside("python3") and _is_forkable(argv[0])


def _is_forkable(path: str) -> bool:
    if path == _beside("cru"):
        return True
    with open(path, "rb") as file:
        return file.readline(256) == b"#!/usr/bin/env python3\n" and file.readline(256).startswith(FORKABLE)


@cache
def _beside(name: str) -> str:
    """A program of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(name))


def modules_to_load() -> str:
    """Those of a run with one answer and nothing else, in the order of their loading, then all that cru has and what it loads late."""
    own = [module.name for module in pkgutil.walk_packages(cru.__path__, "cru.")]
    return ",".join(dict.fromkeys([*_loaded_by_a_run(), *own, *LOADED_LATE]))


def _loaded_by_a_run() -> list[str]:
    with tempfile.TemporaryDirectory() as folder, server([Reply("hello")]) as model:
        here = home(Path(folder), url=model.url)
        read, write = os.pipe()
        with open(read, "rb") as news:
            try:
                done = subprocess.run(
                    [sys.executable, "-c", REPORT, str(write), "hello"],
                    env=here.env, cwd=here.project, pass_fds=(write,), stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                )  # fmt: skip
            finally:
                os.close(write)
            modules = news.read().decode()
    assert done.returncode == 0 and modules, done.stdout
    return modules.split(",")


class ForkServer:
    """The server of this process; started by its first run, and ended with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, str(theirs.fileno()), modules_to_load()],
                env={"PATH": os.defpath, "LANG": "C.UTF-8"}, cwd="/", pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._socket = ours
        atexit.register(self.close)

    def request(self, run: dict[str, Any], descriptors: Sequence[int]) -> None:
        data = marshal.dumps(run)
        with self._lock:
            socket.send_fds(self._socket, [len(data).to_bytes(8, "little")], descriptors)
            self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()


_starting = threading.Lock()
_server: list[ForkServer] = []


def running() -> ForkServer | None:
    """The server, if a run has started it."""
    return _server[0] if _server else None


def _fork_server() -> ForkServer:
    with _starting:
        if not _server:
            _server.append(ForkServer())
    return _server[0]


def processor_time() -> float:
    """Seconds of a processor that this process has taken, and the programs that it has waited for: those that were forked, too."""
    times = sum(os.times()[:4])
    server = running()
    if server is None:
        return times
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    of_children = int(fields[13]) + int(fields[14])  # ticks, in their programs and in the kernel
    return times + of_children / os.sysconf("SC_CLK_TCK")


class ForkedRun(subprocess.Popen[bytes]):
    """`subprocess.Popen` of a command that `may_fork`; always in a session of its own. Overrides what starts and awaits a child."""

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        preparation, cwd, env = rest[1], *rest[4:6]
        streams = rest[9:15]
        stdin, _, _, stdout, _, stderr = streams
        read, news = os.pipe()
        try:
            _fork_server().request(_request(args, cwd, env, preparation is not None), (stdin, stdout, stderr, news))
        finally:
            os.close(news)
            self._close_pipe_fds(*streams)  # type: ignore[attr-defined]
        self._news = read
        self.pid = self._next_news()
        self._child_created = True

    def _next_news(self) -> int:
        data = os.read(self._news, fork_server.NEWS_SIZE)
        if not data:
            os.close(self._news)
            raise RuntimeError("the fork server has ended; CRU_TEST_REAL_START=1 does without it")
        return int.from_bytes(data, "little")

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """As os.waitpid."""
        news = select.poll()
        news.register(self._news, select.POLLIN)
        if not news.poll(0 if flags else None):
            return 0, 0
        status = self._next_news()
        os.close(self._news)
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _request(argv: Sequence[str], cwd: Path, env: Mapping[str, str], takes_terminal: bool) -> dict[str, Any]:
    umask = os.umask(0)
    os.umask(umask)
    return {
        "argv": [os.fsdecode(word) for word in argv],
        "cwd": os.fsdecode(cwd),
        "env": {name: os.fsdecode(value) for name, value in env.items()},
        "umask": umask,
        "terminal": takes_terminal,
        "limits": {kind: resource.getrlimit(kind) for kind in LIMITS},
    }


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    takes_terminal: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, whose controlling terminal its input may be; forked if that makes no difference."""
    kind: type[subprocess.Popen[bytes]] = ForkedRun if may_fork(argv, env) else subprocess.Popen
    preparation = fork_server.take_terminal if takes_terminal else None
    with warnings.catch_warnings():
        # Python >= 3.12 warns of a fork beside the model server's thread; the child only replaces itself.
        warnings.simplefilter("ignore", DeprecationWarning)
        return kind(
            argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, preexec_fn=preparation
        )  # fmt: skip
