"""Guards: may this state be left? Whatever goes wrong while asking means no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from cru.core.api.arguments import lua_type, tostring
from cru.core.api.callbacks import error_value, report_failure
from cru.core.base.files.search_path import find_program, own_path
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.confined import PreparedCommand, describe_put_aside, run_confined
from cru.core.base.process.run import run_program
from cru.core.base.values.cancellation import check
from cru.core.base.values.errors import CruError
from cru.core.turn.parts import Parts
from cru.features.workflows.definition import Guard

_ASKING: ContextVar[list[Guard]] = ContextVar("cru_fsm_guard")

TAIL_LINES, TAIL_CHARACTERS = 40, 4000


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
        why = await (_call_function(guard, facts) if guard.call is not None else _run_shell(guard, parts, emit))
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


async def _run_shell(guard: Guard, parts: Parts, emit: Callable[[str], None] | None) -> str:
    """As a command of the model runs, which may have written what it starts: in the sandbox, without keys, and not where nothing may
    be changed."""
    if parts.gate.mode == "plan":
        return f"`{guard.shell}` is not run in plan mode, which only reads, so it did not pass"

    async def confine(argv: tuple[str, ...]) -> PreparedCommand | None:
        confine = parts.tool_services.commands.confine
        return None if confine is None else await confine(argv, False)

    shell = find_program("bash", own_path(parts.place.env.get("PATH", ""), str(parts.place.root))) or "/bin/sh"
    program = Program(
        (shell, "-c", f" {guard.shell}"), parts.place.root, parts.place.secrets.without(parts.place.env), is_marked=True
    )
    output = TextCapture(emit)
    try:
        done = await run_confined(confine, program, lambda program: run_program(program, guard.timeout, output))
    except (CruError, OSError) as error:
        return f"`{guard.shell}` could not be run, so it did not pass: {error}"
    status = done.ended.exit_status
    if status == 0 and not done.ended.timed_out:
        return ""
    how = _describe_end(guard, status, done.ended.timed_out)
    notes = "".join(f"\n[{note}]" for note in (describe_put_aside(done.put_aside), done.why) if note)
    return f"`{guard.shell}` {how}:\n{_tail(done.ended.output)}{notes}"


def _describe_end(guard: Guard, status: int, timed_out: bool) -> str:
    return f"ran longer than {guard.timeout:g} s and was ended" if timed_out else f"failed ({_status_text(status)})"


def _status_text(code: int) -> str:
    return f"exit status {code}" if code > 0 else f"ended by signal {-code}"


def _tail(output: str) -> str:
    """The end of the output, where the reason mostly stands."""
    lines = output.rstrip().splitlines()
    tail = "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    return f"…\n{tail}" if len(tail) < len("\n".join(lines)) else tail or "(no output)"
