"""The file format of the scripted model (docs/scripted-model.md): text → replies."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from cru.models.protocol import NoModel
from cru.values.messages import CallPart, End, Text, Thought, Usage


class ScriptedDelay(Struct, frozen=True):
    """Wait so many seconds before the next item."""

    seconds: float


class ScriptedFailure(Struct, frozen=True):
    """What a server says instead of a reply.

    status: of HTTP
    text: the body
    """

    status: int
    text: str


class ScriptedDrop(Struct, frozen=True):
    """The connection is lost here."""


Item: TypeAlias = Text | Thought | CallPart | ScriptedDelay | ScriptedFailure | ScriptedDrop


class ScriptedReply(Struct, frozen=True):
    """One reply.

    items: in order; calls get their ids when it is played
    end: the end, unless an item fails before
    """

    items: tuple[Item, ...] = ()
    end: End = End("")


class ModelScript(Struct, frozen=True):
    """A whole script.

    path: its file
    replies: in order
    loop: after the last reply comes the first
    by_order: replies are counted by requests of this process, not by the conversation
    """

    path: str
    replies: tuple[ScriptedReply, ...]
    loop: bool = False
    by_order: bool = False


ITEMS = ("think", "text", "call", "delay", "usage", "end", "error", "drop", "repeat")
HEADERS = ("loop", "by")


def load_script(path: Path) -> ModelScript:
    """Read a script. Raises NoModel that names file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoModel(f"cannot read the script {path}: {error}", "name it as scripted:PATH") from error
    return parse_script(text, str(path))


def parse_script(text: str, path: str) -> ModelScript:
    """Replies of a script's text; `path` is only for messages."""
    builder = _Builder(path)
    for number, line in enumerate(text.splitlines(), 1):
        builder.line(number, line)
    return builder.script()


class _Builder:
    def __init__(self, path: str) -> None:
        self._path = path
        self._number = 0
        self._replies: list[ScriptedReply] = []
        self._loop = self._by_order = False
        self._begin()

    def _begin(self) -> None:
        self._items: list[Item] = []
        self._usage, self._end, self._times, self._empty = Usage(), "", 1, True

    def line(self, number: int, line: str) -> None:
        self._number = number
        if not line.strip() or line.startswith("#"):
            return
        if line.rstrip() == "---":
            self._close()
            return
        key, colon, value = line.partition(":")
        if not colon or key not in (*ITEMS, *HEADERS):
            raise self._unknown(key)
        value = value.removeprefix(" ")
        if key in HEADERS:
            self._header(key, value.strip())
            return
        self._empty = False
        if key in ("text", "think"):
            text = _unescape(value)
            self._items.append(Text(text) if key == "text" else Thought(text))
        else:
            self._other(key, value.strip())

    def script(self) -> ModelScript:
        self._close()
        return ModelScript(self._path, tuple(self._replies), self._loop, self._by_order)

    def _close(self) -> None:
        if not self._empty:
            self._replies += [ScriptedReply(tuple(self._items), End(self._end, self._usage))] * self._times
        self._begin()

    def _header(self, key: str, value: str) -> None:
        if self._replies or not self._empty:
            raise self._wrong(f"`{key}:` belongs before the first reply")
        allowed = ("yes", "no") if key == "loop" else ("order", "conversation")
        if value not in allowed:
            raise self._wrong(f"`{key}:` is {' or '.join(allowed)}, not {value!r}")
        if key == "loop":
            self._loop = value == "yes"
        else:
            self._by_order = value == "order"

    def _other(self, key: str, value: str) -> None:
        match key:
            case "call":
                name, _, arguments = value.partition(" ")
                if not name:
                    raise self._wrong("`call:` needs a tool's name")
                self._items.append(CallPart(0, name=name, arguments=arguments.strip() or "{}"))
            case "delay":
                self._items.append(ScriptedDelay(self._seconds(value)))
            case "usage":
                self._usage = self._read_usage(value)
            case "end":
                self._end = value
            case "error":
                self._items.append(self._failure(value))
            case "drop":
                self._items.append(ScriptedDrop())
            case "repeat":
                if not value.isdigit() or value == "0":
                    raise self._wrong(f"`repeat:` needs a count from 1, not {value!r}")
                self._times = int(value)

    def _seconds(self, value: str) -> float:
        for unit, factor in (("ms", 0.001), ("s", 1.0), ("", 1.0)):
            number = value.removesuffix(unit).strip()
            if value.endswith(unit) and number.replace(".", "", 1).isdigit():
                return float(number) * factor
        raise self._wrong(f"`delay:` is like 50ms or 1.5s, not {value!r}")

    def _read_usage(self, value: str) -> Usage:
        fields: dict[str, float] = {}
        for pair in value.split():
            name, _, number = pair.partition("=")
            if name not in Usage.__struct_fields__ or not number.replace(".", "", 1).isdigit():
                raise self._wrong(f"`usage:` takes {', '.join(Usage.__struct_fields__)} as name=number, not {pair!r}")
            fields[name] = float(number)
        counts = {name: int(number) for name, number in fields.items() if name != "cost"}
        return Usage(**counts, cost=fields.get("cost", 0.0))

    def _failure(self, value: str) -> ScriptedFailure:
        status, _, text = value.partition(" ")
        if not (status.isdigit() and len(status) == 3):
            raise self._wrong(f"`error:` begins with a status such as 429, not {status!r}")
        return ScriptedFailure(int(status), text.strip())

    def _unknown(self, key: str) -> NoModel:
        name = key.strip()
        if name != key and name in (*ITEMS, *HEADERS):
            return self._wrong(f"there is a blank before `{name}:`", "an item begins its line")
        from cru.config.closest import closest

        near = closest(name, (*ITEMS, *HEADERS))
        return self._wrong(f"unknown item `{name[:40]}`", f"did you mean `{near}:`?" if near else "")

    def _wrong(self, what: str, hint: str = "") -> NoModel:
        return NoModel(
            f"{self._path}:{self._number}: {what}", hint or "the format is described in docs/scripted-model.md"
        )


_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        char = text[position]
        after = text[position + 1 : position + 2]
        if char == "\\" and after in _ESCAPES:
            out.append(_ESCAPES[after])
            position += 2
        else:
            out.append(char)
            position += 1
    return "".join(out)
