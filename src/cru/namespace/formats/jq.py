"""The jq language, through jaq. A filter is pure: it sees its input and nothing of this process."""

from __future__ import annotations

import re

from cru.namespace.formats.bounded import run_bounded
from cru.namespace.host import BadArgument, NotAvailable

# Builtins that would show the environment, write to the terminal, or end the process.
_PRELUDE = (
    "def env: {}; def debug: .; def debug(f): .; def stderr: .; def input: empty; def inputs: empty; "
    'def halt: error("halt is not available"); def halt(f): halt; def halt_error: halt; def halt_error(f): halt; '
)
# An endless recursion in a function of the filter's own would overflow the stack, and end the process.
_DEFINITION = re.compile(r"(?<![.$@\w])def(?=[\s#])")
# So would a filter that is nested without end, while it is compiled.
LONGEST, OPEN = 16_384, 200
# A path always ends, soon; any other filter may go on for ever.
_PATH = re.compile(r"\s*(\.|(\.[A-Za-z_]\w*|\.?\[-?\d+\]|\.?\[\])+)\s*", re.ASCII)
SMALL = 64 << 10


def query(where: str, text: bytes, code: str) -> list[object]:
    """Every result of the filter for one JSON text. Raises BadArgument, also for what takes longer than 5 s or needs more than 1 GiB;
    NotAvailable without the library."""
    try:
        import jaq
    except ImportError as error:
        raise NotAvailable("jq filters are not available: jaq-rs is not installed", "pip install jaq-rs") from error
    if _DEFINITION.search(code):
        raise BadArgument(f"{where}: a filter cannot define functions", "write the filter without `def`")
    if len(code) > LONGEST or sum(map(code.count, "([{")) > OPEN:
        raise BadArgument(f"{where}: the filter is too long", f"at most {LONGEST} characters and {OPEN} brackets")

    def run() -> list[object]:
        try:
            return jaq.compile(_PRELUDE + code, ["ENV"]).run(text, text=True, vars={"ENV": {}})
        except jaq.JaqError as error:
            raise BadArgument(f"{where}: {_line(str(error))}") from error

    if len(text) <= SMALL and _PATH.fullmatch(code):
        return run()
    return run_bounded(where, run)


def _line(message: str) -> str:
    """The first line, and the last that points at the place; the drawing between them shows the prelude."""
    return message.strip().splitlines()[0].removeprefix("Error: ") if message.strip() else "the filter failed"
