"""Commands in a sandbox that is made for them, without the command `cru` around it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Sequence

from tests.core.guard.sandbox.conftest import Surroundings

from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.confinement import SessionSandbox


def run(
    around: Surroundings,
    commands: Sequence[str],
    warn: Callable[[str], None] = lambda text: None,
    settings: SandboxSettings = SandboxSettings(),
) -> list[tuple[str, list[str]]]:
    """Run commands in one sandbox; return for each what it printed, and what was quarantined."""
    here = around.here
    places = PathRoots(str(here.project), str(here.cru), str(here.path))
    env = {**here.env, "PATH": f"{here.env['PATH']}:{backend_path(os.environ)}", "TMPDIR": str(around.temporary)}

    async def play() -> list[tuple[str, list[str]]]:
        sandbox, results = SessionSandbox(settings, env, warn), []
        for command in commands:
            confined = await sandbox.confine(places, ("/bin/sh", "-c", command))
            assert confined is not None
            done = subprocess.run(
                confined.argv, pass_fds=confined.descriptors, env=here.env, cwd=here.project,
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )  # fmt: skip
            results.append((f"{done.returncode} {done.stdout}{done.stderr}", confined.settle()))
        await sandbox.close()
        return results

    return asyncio.run(play())
