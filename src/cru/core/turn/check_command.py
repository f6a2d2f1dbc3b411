"""Commands that check something by their exit status: the exit of a workflow's state, and `[verify]`."""

from __future__ import annotations

from collections.abc import Callable

from cru.core.base.files.search_path import find_program, own_path
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.confined import PreparedCommand, describe_put_aside, run_confined
from cru.core.base.process.run import run_program
from cru.core.base.values.errors import CruError
from cru.core.turn.parts import Parts

TAIL_LINES, TAIL_CHARACTERS = 40, 4000


async def run_check(command: str, seconds: float, parts: Parts, emit: Callable[[str], None] | None = None) -> str:
    """Run a command that says by its exit status whether something holds. Return "" if it does, else why not, with the end of the output.

    It runs as a command of the model does, which may have written what it starts: in the sandbox, without keys, and not in plan mode.
    seconds: it may take; emit: gets the output as it comes
    """
    if parts.gate.mode == "plan":
        return f"`{command}` is not run in plan mode, which only reads, so it did not pass"

    async def confine(argv: tuple[str, ...]) -> PreparedCommand | None:
        confine = parts.tool_services.commands.confine
        return None if confine is None else await confine(argv, False)

    shell = find_program("bash", own_path(parts.place.env.get("PATH", ""), str(parts.place.root))) or "/bin/sh"
    program = Program(
        (shell, "-c", f" {command}"), parts.place.root, parts.place.secrets.without(parts.place.env), is_marked=True
    )
    output = TextCapture(emit)
    try:
        done = await run_confined(confine, program, lambda program: run_program(program, seconds, output))
    except (CruError, OSError) as error:
        return f"`{command}` could not be run, so it did not pass: {error}"
    status = done.ended.exit_status
    if status == 0 and not done.ended.timed_out:
        return ""
    how = _describe_end(seconds, status, done.ended.timed_out)
    notes = "".join(f"\n[{note}]" for note in (describe_put_aside(done.put_aside), done.why) if note)
    return f"`{command}` {how}:\n{_tail(done.ended.output)}{notes}"


def _describe_end(seconds: float, status: int, timed_out: bool) -> str:
    return f"ran longer than {seconds:g} s and was ended" if timed_out else f"failed ({_status_text(status)})"


def _status_text(code: int) -> str:
    return f"exit status {code}" if code > 0 else f"ended by signal {-code}"


def _tail(output: str) -> str:
    """Return the end of the output, where the reason usually is."""
    lines = output.rstrip().splitlines()
    tail = "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    return f"…\n{tail}" if len(tail) < len("\n".join(lines)) else tail or "(no output)"
