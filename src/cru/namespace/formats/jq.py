"""The jq language, through jaq. A filter is pure: it sees its input and nothing of this process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cru.namespace import plain_data
from cru.namespace.formats.bounded import run_bounded
from cru.namespace.host import BadArgument

if TYPE_CHECKING:
    import jaq

# Builtins that would show the environment, write to the terminal, or end the process.
_PRELUDE = (
    "def env: {}; def debug: .; def debug(f): .; def stderr: .; def input: empty; def inputs: empty; "
    'def halt: error("halt is not available"); def halt(f): halt; def halt_error: halt; def halt_error(f): halt; '
)
# A filter that is nested without end would overflow the stack, and end the process, while it is compiled.
LONGEST, OPEN = 16_384, 200
# A path always ends, soon; any other filter may go on for ever, or recurse until the stack is full.
_PATH = re.compile(r"\s*(\.|(\.[A-Za-z_]\w*|\.?\[-?\d+\]|\.?\[\])+)\s*", re.ASCII)
SMALL = 64 << 10


class BadFilter(BadArgument):
    """Not a filter; the hint is a drawing that points at the place, if there is one."""

    code = 3


def query(where: str, text: bytes, code: str) -> list[object]:
    """Every result of the filter for one JSON text. Raises BadArgument, also for what takes longer than 5 s or needs more than 1 GiB, and
    for a result that is no data: NaN, bytes, a key that is no text."""

    def run() -> list[object]:
        import jaq

        try:
            results = compile_filter(where, code).run(text, text=True, vars={"ENV": {}})
        except jaq.JaqError as error:
            raise BadArgument(f"{where}: {_line(error)}") from error
        plain_data.check(where, results)
        return results

    if len(text) <= SMALL and _PATH.fullmatch(code):
        return run()
    return run_bounded(where, run)


def compile_filter(where: str, code: str, names: Sequence[str] = ()) -> jaq.Filter:
    """The filter, for `run` and `text` with a value for `$ENV` and for each variable of these names. Raises BadFilter."""
    import jaq

    if len(code) > LONGEST or sum(map(code.count, "([{")) > OPEN:
        raise BadFilter(f"{where}: the filter is too long", f"at most {LONGEST} characters and {OPEN} brackets")
    variables = ["ENV", *names]
    try:
        return jaq.compile(_PRELUDE + code, variables)
    except jaq.CompileError as error:
        raise BadFilter(f"{where}: {_line(error)}", _drawing(code, variables)) from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].removeprefix("Error: ") or "the filter failed"


def _drawing(code: str, variables: list[str]) -> str:
    """Where the mistake is, drawn below the filter alone; "" if it is none without the prelude."""
    import jaq

    try:
        jaq.compile(code, variables)
    except jaq.CompileError as error:
        return str(error).strip().partition("\n")[2]
    return ""
