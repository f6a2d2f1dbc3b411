"""A Postgres server of its own for a test, on a free port of the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"


def programs() -> Path | None:
    """The folder of the server's programs, None if it is not installed."""
    known = shutil.which("initdb")
    if known:
        return Path(known).parent
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


class PostgresServer:
    """It can be stopped, as by a crash, and started again."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder, self._binaries = folder, binaries
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        # the server refuses to run as root
        self._user = USER if os.geteuid() == 0 else None
        if self._user:
            owner = pwd.getpwnam(self._user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._run(
            "initdb", "-D", str(folder / "data"), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--no-locale"
        )

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._control("start", "-w", "-l", str(self._folder / "log"), "-o", options)

    def crash(self) -> None:
        self._control("stop", "-m", "immediate")

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), *words)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *words], user=self._user, cwd=self._folder, env={"PATH": os.defpath, "LANG": "C"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server that runs. `programs()` says whether there can be one."""
    binaries = programs()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="cru-postgres-", dir="/tmp"))  # no test's own: it lives longer
    try:
        server = PostgresServer(folder, binaries)
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.crash()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
