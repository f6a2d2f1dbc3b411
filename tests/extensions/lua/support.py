"""One machine, and a short way to run a chunk in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cru.extensions.lua.convert import LuaError
from cru.extensions.lua.runtime import LuaVM


def run(vm: LuaVM, source: str, *args: Any) -> Any:
    """What the chunk returns: one value, or a tuple of several."""
    results = asyncio.run(vm.run(vm.load(source, "@test.lua"), *args))
    return results[0] if len(results) == 1 else results


def failure(vm: LuaVM, source: str, *args: Any) -> LuaError:
    with pytest.raises(LuaError) as caught:
        run(vm, source, *args)
    return caught.value
