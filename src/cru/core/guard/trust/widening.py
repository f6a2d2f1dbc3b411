"""Which settings of a project let more happen than before: what a person looks at first when asked to trust it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

Path = tuple[str, ...]


class Widening(Struct, frozen=True):
    """One setting that lets more happen.

    path: its key
    value: as the file has it
    effect: what it does, in words
    """

    path: Path
    value: object
    effect: str


def _always(value: object) -> bool:
    return True


SERVER = "decides who gets your prompts, and with them your key"
CODE = "runs code of that folder"
PROGRAM = "starts a program with your rights; the files that it runs are not looked at, now or when they change"
# A pattern of keys ("*": any name) → what it does, and when.
TABLE: dict[Path, tuple[str, Callable[[object], bool]]] = {
    ("mode",): ("the model acts without asking you", lambda value: value in ("auto", "trust")),
    ("permissions", "allow"): ("is done without asking you", bool),
    ("model",): (SERVER, _always),
    ("base_url",): (SERVER, _always),
    ("models",): (SERVER, _always),
    ("api",): (SERVER, _always),
    ("api_key",): ("is sent in the place of your key", _always),
    ("runtimepath",): (CODE, bool),
    ("lua", "fennel"): ("decides what the code of your plugins in Fennel is turned into", bool),
    ("discipline", "use"): ("decides how long the model may go on by itself", bool),
    ("plugins", "*", "enabled"): ("switches a plugin on or off, one of yours too", _always),
    ("mcp", "servers", "*", "command"): (PROGRAM, _always),
    ("mcp", "servers", "*", "args"): (PROGRAM, bool),
    ("mcp", "servers", "*", "env"): (PROGRAM, bool),
    ("mcp", "servers", "*", "url"): ("gets what the model writes to it, and answers what the model reads", _always),
    ("mcp", "servers", "*", "trust_read_only"): ("is used without asking you where the server calls it harmless", bool),
    ("hooks", "dialects"): ("runs the hooks of other programs in your own files", bool),
    ("max_nested_runs",): ("lets runs start one another more deeply", _always),
    ("fuel",): ("decides how long the model may go on by itself", _always),
    ("max_continuations",): ("decides how long the model may go on by itself", _always),
    ("max_idle_rounds",): ("decides how long the model may go on by itself", _always),
    ("verify", "command"): ("runs in the sandbox at the end of turns that changed files", bool),
}


def find_widening(data: Mapping[str, object], limits: Mapping[str, int] = MappingProxyType({})) -> Iterator[Widening]:
    """The settings of a file that let more happen, in the order of the table. limits: numbers that hold without it; one that is not above
    them narrows (0 is no limit)."""
    for pattern, (effect, applies) in TABLE.items():
        for path, value in _find(data, pattern):
            if applies(value) and not (isinstance(value, int) and 0 < value <= limits.get(path[0], 0)):
                yield Widening(path, value, effect)


def _find(data: Mapping[str, object], pattern: Path, path: Path = ()) -> Iterator[tuple[Path, object]]:
    head, *rest = pattern
    for name in (*data,) if head == "*" else (head,):
        if name not in data:
            continue
        value = data[name]
        if not rest:
            yield (*path, name), value
        elif isinstance(value, Mapping):
            yield from _find(value, tuple(rest), (*path, name))
