"""The jq language, through jaq. A filter is pure: it sees its input and nothing of this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from cru.core.api import plain_data
from cru.core.api.host import BadArgument
from cru.core.base.process.forked import WorkEnded, WorkFailed, run_in_fork

if TYPE_CHECKING:
    import jaq

# Builtins that would show the environment, write to the terminal, or end the process.
_WITHHELD = (
    "def env: {}; def debug: .; def debug(f): .; def stderr: .; def input: empty; def inputs: empty; "
    'def halt: error("halt is not available"); def halt(f): halt; def halt_error: halt; def halt_error(f): halt; '
)
# Builtins that jaq does not have, or that differ from jq's (docs/oq.md lists what still differs). jaq's `del` moves the last key of an
# object to the place of the deleted one, deletes several indices one after another, and fails where a path ends early.
_LIKE_JQ = r"""
def _at($n): if . < 0 then . + $n else . end | floor;
def _range($n): [(.start // 0 | _at($n)), (.end // $n | _at($n))] | map([0, ([., $n] | min)] | max);
def _places($n): .[0] as $k | if ($k | type) == "number" then [[$k | _at($n)] + .[1:]]
  elif ($k | type) != "object" then error("cannot delete field \($k | tojson) of an array")
  elif length == 1 then ($k | _range($n)) as [$i, $j] | [range($i; $j) | [.]]
  else [[($k | _range($n))[0] + .[1]] + .[2:]] end;
def _by_key: group_by(.[0]) | map({key: .[0][0] | tostring, value: map(.[1:])}) | from_entries;
def _del($paths): if . == null or $paths == [] then .
  elif ($paths | length) == 1 and type == "object" and ($paths[0][0] | type) == "string" then $paths[0] as $path | $path[0] as $k
    | if has($k) | not then . elif $path[1:] == [] then with_entries(select(.key != $k)) else .[$k] |= _del([$path[1:]]) end
  elif type == "object" then (if all($paths[]; .[0] | type == "string") then $paths | _by_key
      else error("cannot index object with number") end) as $by
    | with_entries($by[.key] as $p | if $p == null then . elif any($p[]; . == []) then empty else .value |= _del($p) end)
  elif type == "array" then . as $all | length as $n | ([$paths[] | _places($n)[]] | _by_key) as $by
    | [range($n) | . as $i | $by[tostring] as $p | $all[$i] | if $p == null then . elif any($p[]; . == []) then empty else _del($p) end]
  else error("cannot delete from \(type)") end;
def delpaths($paths): if any($paths[]; . == []) then null else _del($paths) end;
def del(f): delpaths([path(f)]);
def leaf_paths: paths(scalars);
def IN(f): any(f == .; .);
def IN(f; g): any(f == g; .);
def INDEX(f; g): reduce f as $row ({}; .[$row | g | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def _join($by): join($by);
def join($by): map(if . == null then "" elif type == "array" or type == "object" then error("cannot join \(type)") else . end) | _join($by);
def scan($re; $flags): match($re; "g" + $flags) | if .captures == [] then .string else [.captures[].string] end;
def scan($re): scan($re; "");
def _ltrim($x): ltrimstr($x);
def ltrimstr($x): if [., $x | type == "string"] | all then _ltrim($x) else . end;
def _rtrim($x): rtrimstr($x);
def rtrimstr($x): if [., $x | type == "string"] | all then _rtrim($x) else . end;
"""
_PRELUDE = _WITHHELD + " ".join(_LIKE_JQ.split("\n"))
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


T = TypeVar("T")


def run_bounded(where: str, work: Callable[[], T]) -> T:
    """Do it in a process of its own, whose time and memory are limited. Raises BadArgument."""
    try:
        return run_in_fork(work)
    except WorkFailed as error:
        raise BadArgument(error.message, error.hint) from error
    except WorkEnded as error:
        raise BadArgument(f"{where}: {error.message}") from error
