"""A machine around a project: what lies outside of it, and must look the same afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.guard.sandbox.escapes import SECRET
from tests.kit import HomeDir

SECRETS = (".ssh/id_rsa", ".aws/credentials", ".netrc")
GUARDS = (".cru", ".codex", ".gemini", "crush.json", ".crush.json", ".envrc", ".mcp.json", ".vscode", ".husky")


class Surroundings:
    """A home with secrets, a project under git, a folder beside it, a process and servers. Not in /tmp, which the sandbox has itself."""

    def __init__(self, folder: Path) -> None:
        self.here = HomeDir(folder / "home", folder / "project")
        self.here.sandbox = ""
        self.out = folder / "out"
        self.temporary = folder / "temporary"
        self.before: dict[str, object] = {}
        for path in (
            self.temporary,
            self.here.path,
            self.here.project,
            self.out,
            self.here.cru,
            self.here.project / ".claude",
        ):
            path.mkdir()
        for name in SECRETS:
            file = self.here.path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(SECRET)
        (self.here.path / ".profile").write_text("old")
        (self.here.cru / "keys.json").write_text(f'{{"none": "{SECRET}"}}')
        (self.out / "kept").write_text("old")
        (self.here.project / ".claude" / "settings.json").write_text("{}")
        subprocess.run(["git", "init", "-q", str(self.here.project)], check=True, env=self.here.env)
        self.process = subprocess.Popen(["sleep", "600"], env={**self.here.env, "SECRET": SECRET})
        self.server = socket.create_server(("127.0.0.1", 0))
        self.abstract = folder.name
        self.socket_file = (
            f"/tmp/{folder.name}.sock"  # the name of a process comes again, and a killed run leaves its file
        )
        self.unix = [self._listen(f"\0{self.abstract}"), self._listen(self.socket_file)]

    def _listen(self, address: str) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen()
        return server

    def fill(self, command: str) -> str:
        values = {
            "out": self.out, "home": self.here.path, "cru": self.here.cru, "pid": self.process.pid,
            "port": self.server.getsockname()[1], "abstract": self.abstract, "socket": self.socket_file,
            "scratch": f"/tmp/{self.abstract}",
        }  # fmt: skip
        for name, value in values.items():
            command = command.replace(f"{{{name}}}", str(value))
        return command

    def outside(self) -> dict[str, object]:
        """All that no command may change; cru's own records change by themselves."""
        git, root = self.here.project / ".git", self.here.project
        watched = [
            *_below(self.out),
            *_below(self.here.path, leave_out=".cru"),
            *_below(git / "hooks"),
            *_below(root / ".claude"),
        ]
        watched += [git / "config", git / "config.worktree", git / "commondir", *(root / name for name in GUARDS)]
        watched += [self.here.cru / "config.toml", self.here.cru / "plugins", self.here.cru / "keys.json"]
        watched += [Path(place, f"cru-escape-{self.process.pid}") for place in ("/tmp", "/var/tmp", "/dev/shm")]
        return {str(path): _state(path) for path in watched}

    def was_reached(self) -> bool:
        """Whether anybody has connected to a server here."""
        for server in (self.server, *self.unix):
            server.setblocking(False)
            try:
                server.accept()[0].close()
            except BlockingIOError:
                continue
            return True
        return False

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for server in (self.server, *self.unix):
            server.close()
        os.unlink(self.socket_file)


def _below(folder: Path, leave_out: str = "") -> list[Path]:
    return [folder, *(path for path in sorted(folder.rglob("*")) if leave_out not in path.relative_to(folder).parts)]


def snapshot(paths: list[Path]) -> dict[str, object]:
    """How these files, and those below these folders, are now."""
    return {str(path): _state(path) for top in paths for path in (_below(top) if top.is_dir() else [top])}


def _state(path: Path) -> object:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.exists():
        return None
    return (
        path.stat().st_mode,
        path.stat().st_nlink if path.is_file() else 0,
        path.read_bytes() if path.is_file() else "folder",
    )


@pytest.fixture
def surroundings() -> Iterator[Surroundings]:
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="cru-test-"))
    around = Surroundings(folder)
    try:
        yield around
    finally:
        around.close()
        shutil.rmtree(folder)
