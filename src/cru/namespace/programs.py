"""Starting programs for plugins, and ending them with all that they started."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cru.events.scope import check
from cru.namespace.host import NamespaceError
from cru.process.descent import MARK, mark, members
from cru.process.running import RUNNING

GRACE = 2.0
PIECE = 64 << 10
"""Bytes that are read at a time."""
_MARKS: dict[int, str] = {}


async def start(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], *, stdin: int = DEVNULL, stdout: int, stderr: int | None
) -> Process:
    """The child, in a session of its own. The last three as of `asyncio.create_subprocess_exec`. A cancellation waits until it is
    there: only then can all of it be ended. Raises NamespaceError."""
    check()
    carried = mark(env)
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env={**env, MARK: carried},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    )
    starting.add_done_callback(partial(_noted, carried))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await end(starting.result())
        raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NamespaceError(f"cannot start {argv[0]}: {why}") from error


async def end(process: Process, grace: float = GRACE) -> None:
    """Nothing of a child that still runs is left behind, nor its pipes. It has `grace` seconds to end what it started in other groups."""
    transport: Any = getattr(process, "_transport")  # noqa: B009  asyncio has no other way to its pipes
    try:
        if process.returncode is None:
            try:
                await _asked(process, grace)
            finally:
                _signal(process.pid, signal.SIGKILL)
    finally:
        transport.close()
        RUNNING.pop(process.pid, None)
        _MARKS.pop(process.pid, None)
    await process.wait()


async def _asked(process: Process, grace: float) -> None:
    """Its `wait` would wait for its pipes, too, which nobody may read any more."""
    _signal(process.pid, signal.SIGTERM)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    while process.returncode is None and loop.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _noted(carried: str, starting: asyncio.Task[Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        pid = starting.result().pid
        _MARKS[pid] = carried
        RUNNING[pid] = partial(_signal, pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    """To the group at once, and to what moved into another."""
    for one in (-pid, *(members(pid, _MARKS.get(pid, ""), alone=True) or ())):
        try:
            os.kill(one, number)
        except (ProcessLookupError, PermissionError):
            pass
