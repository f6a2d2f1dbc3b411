"""One machine, and a short way to run a chunk in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.kit.waiting import wait_until

from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.runtime import LuaVM
from cru.faces.cli.event_loop import WatchedEventLoop


def run(vm: LuaVM, source: str, *args: Any) -> Any:
    """What the chunk returns: one value, or a tuple of several. Nothing that it started is left unreaped."""
    loop = WatchedEventLoop()
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            results = runner.run(vm.run(vm.load(source, "@test.lua"), *args))
    finally:
        assert not loop.children
    return results[0] if len(results) == 1 else results


def failure(vm: LuaVM, source: str, *args: Any) -> LuaError:
    with pytest.raises(LuaError) as caught:
        run(vm, source, *args)
    return caught.value


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until_gone(pid: int) -> None:
    wait_until(lambda: gone(pid), what=f"the end of {pid}")
