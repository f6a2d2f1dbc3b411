"""Guards: may this state be left? Whatever goes wrong while asking means no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from cru.core.api.arguments import lua_type, tostring
from cru.core.api.callbacks import error_value, report_failure
from cru.core.base.values.cancellation import check
from cru.core.turn.check_command import run_check
from cru.core.turn.parts import Parts
from cru.features.workflows.definition import Guard

_ASKING: ContextVar[list[Guard]] = ContextVar("cru_fsm_guard")


def inside_guard() -> bool:
    """Whether this runs inside a guard: what that does is not the agent's doing, so the state's tools do not bind it."""
    return bool(_ASKING.get(()))


async def check_guard(
    guard: Guard, facts: dict[str, Any], parts: Parts, emit: Callable[[str], None] | None = None
) -> str:
    """ "" if the state may be left, else why not. `about` is what a function gets. Raises CancelledError if it was interrupted, whatever
    the guard made of that."""
    open = [guard]  # emptied at the end: what the guard leaves running is no guard any more
    token = _ASKING.set(open)
    try:
        why = await (
            _call_function(guard, facts)
            if guard.call is not None
            else run_check(guard.shell, guard.timeout, parts, emit)
        )
    finally:
        open.clear()
        _ASKING.reset(token)
    check()
    return why


async def _call_function(guard: Guard, facts: dict[str, object]) -> str:
    callback = guard.call
    assert callback is not None
    deadline = asyncio.get_running_loop().time() + guard.timeout
    try:
        async with asyncio.timeout_at(deadline) as clock:
            verdict = await callback.call(facts)
    except TimeoutError as error:
        return _timeout_reason(guard) if clock.expired() else _failure_reason(guard, error)
    except Exception as error:  # noqa: BLE001  the boundary around code of an extension: reported
        return _failure_reason(guard, error)
    if asyncio.get_running_loop().time() > deadline:  # it never waited, so that nobody could end it
        return _timeout_reason(guard)
    passed, why = verdict[:2] if isinstance(verdict, tuple) and len(verdict) > 1 else (verdict, None)
    if passed is True:
        return ""
    if passed is False:
        return "its check did not pass" if why is None else tostring(why)
    return f"the check gave {lua_type(passed)} where true or false is wanted, so it did not pass"


def _timeout_reason(guard: Guard) -> str:
    return f"the check took longer than {guard.timeout:g} s and was ended, so it did not pass"


def _failure_reason(guard: Guard, error: Exception) -> str:
    assert guard.call is not None
    report_failure(guard.call.host, error, "exit of a workflow's state")
    return f"the check itself failed, so it did not pass: {error_value(error)}"
