"""The trace: what happened in each turn, and the recipe of every request (docs/turn.md).

Lines of `trace.jsonl`, told apart by `k`: leg, request, reply, fallback, states, waits, end. A recipe names log entries and spans; the text
of each span and each tool list is stored once, by hash, in `spans/`, until it has not been used for long (spans.py). So a request costs the
same few hundred bytes however long the conversation is, and can still be rebuilt to the byte.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import make_private_folder, write_all
from cru.core.base.values.messages import Message, Request, Span, ToolSpec
from cru.core.conversations import StoreUnwritable, write_errors
from cru.core.conversations.line_file import RecordLimits
from cru.core.models.protocol import RequestBody

if TYPE_CHECKING:
    from _hashlib import HASH
    from hashlib import sha256
else:
    # The interpreter's own SHA-256: loading OpenSSL takes longer at every start than hashing a megabyte of requests.
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:  # an interpreter built without it
        from hashlib import sha256

SWEEPING = "04"
"""A new span whose key is smaller, each 64th, makes room: so their bytes are bounded without being counted."""


class LineSink(Protocol):
    """Where trace lines go."""

    def write(self, lines: bytes) -> bool:
        """Whether what was there is put aside, and something that is older is gone."""
        ...


Wait: TypeAlias = tuple[float, str, str, str, int]
"""What the turn waited for: when that ended (Unix seconds), "tool" or "person", the name of the tool or the kind of the dialog, the outcome
("" = the tool's result is no error), milliseconds."""

KeptSpan: TypeAlias = tuple[str, str, str]
"""Name, origin and hash of a section."""


class RequestLine(Struct, frozen=True, omit_defaults=True, tag_field="k", tag="request"):
    """The recipe of one request. n counts within the turn; upto is the newest log entry it contains; spans are
    (name, origin, hash); messages is filled only if a handler changed them for this one request; sha is SHA-256 of the body; category is
    what was asked for, if not a model."""

    n: int
    turn: str
    round: int
    provider: str
    model: str
    upto: str
    spans: tuple[KeptSpan, ...]
    tools: str
    parameters: dict[str, Any]
    sha: str
    bytes: int
    time: float
    base_url: str = ""
    messages: tuple[Message, ...] | None = None
    changed_by: str = ""
    purpose: str = ""
    category: str = ""


class BodyHash:
    """SHA-256 of bodies. A body that begins with the very parts of the one before is read from its first new part on."""

    def __init__(self) -> None:
        self._known: list[tuple[bytes, HASH]] = []

    def hexdigest(self, parts: Sequence[bytes]) -> str:
        known = self._known
        same = next(
            (n for n, (old, new) in enumerate(zip(known, parts, strict=False)) if old[0] is not new), len(known)
        )
        del known[min(same, len(parts)) :]
        state = known[-1][1] if known else sha256()
        for part in parts[len(known) :]:
            state = state.copy()
            state.update(part)
            known.append((part, state))
        return state.hexdigest()


class Recorder:
    """Writes the trace of one context. Lines are held back until the next request or the leg's end, then go out at once. What cannot be
    written is missing there; `warn` is called once: a full disk must not end a turn because of its records.

    clock: Unix seconds
    waits: of the turn, not written yet; a list to append to, since a method would be one more on the path of each call
    """

    def __init__(
        self,
        lines: LineSink,
        folder: Path,
        redact: Callable[[bytes], bytes] | None,
        limits: RecordLimits,
        warn: Callable[[str], object],
    ) -> None:
        self._lines = lines
        self.clock = time.time
        self._warn: Callable[[str], object] | None = warn
        self._redact = redact
        self._limits = limits
        self._spans = folder / "spans"
        self._known: set[str] = set()  # spans that are on disk, and newer than this turn
        self._hash = BodyHash()
        self._held: list[bytes] = []
        self._system: tuple[tuple[Span, ...], tuple[KeptSpan, ...]] = ((), ())
        self._tools: tuple[tuple[ToolSpec, ...], str] = ((), "")
        self.waits: list[Wait] = []
        self._states: list[tuple[str, float]] = []
        self._count = 0
        self._turn = ""
        self.begin()

    def begin(self) -> None:
        """Start the clock of a leg; what followed the leg before belongs to that one."""
        if self._states:
            self.flush()
        self._started, self._began = time.perf_counter(), time.time()

    @property
    def turn(self) -> str:
        """The id of the turn that is recorded now."""
        return self._turn

    def leg(self, turn: str, ref: str, source: str, run: str) -> None:
        """A leg begins; a new turn id starts the count of requests again."""
        if turn != self._turn:
            self._turn, self._count = turn, 0
            self._known.clear()
        self._hold({"k": "leg", "v": 1, "turn": turn, "ref": ref, "source": source, "run": run, "time": self._began})

    def state(self, name: str) -> None:
        self._states.append((name, round((time.perf_counter() - self._started) * 1000, 2)))

    def request(self, request: Request, body: RequestBody, **facts: Any) -> int:
        """Write the recipe before the request goes out; returns its number in the turn."""
        self._count += 1
        line = RequestLine(
            n=self._count,
            turn=self._turn,
            model=request.model,
            spans=self._keep_system(request.system),
            tools=self._keep_tools(request.tools),
            parameters=request.parameters,
            sha=self._hash.hexdigest(body.parts),
            bytes=body.size,
            time=time.time(),
            **facts,
        )
        self._hold(line)
        self.flush()
        return self._count

    def person(self, started: float, kind: str, outcome: str) -> None:
        """Record a wait for a person's answer, from `started` to now."""
        now = self.clock()
        self.waits.append((now, "person", kind, outcome, round((now - started) * 1000)))

    def reply(self, n: int, **facts: Any) -> None:
        self._hold({"k": "reply", "n": n, "turn": self._turn, "time": time.time(), **facts})

    def fallback(self, **facts: Any) -> None:
        """A request failed, and another model is asked."""
        self._hold({"k": "fallback", "n": self._count, "turn": self._turn, "time": time.time(), **facts})

    def end(self, ref: str, cause: str, counts: dict[str, int], error: str = "") -> None:
        """The leg is over; everything held goes out."""
        now = time.time()
        self._hold(
            {"k": "end", "turn": self._turn, "time": now, "ref": ref, "cause": cause, "counts": counts, "error": error}
        )
        self.flush()

    def flush(self) -> None:
        if self._states:
            self._held.append(msgspec.json.encode({"k": "states", "turn": self._turn, "at": self._states}) + b"\n")
            self._states = []
        if self.waits:
            self._hold({"k": "waits", "turn": self._turn, "at": self.waits})
            self.waits = []
        if self._held:
            lines, self._held = b"".join(self._held), []
            try:
                if self._lines.write(lines):
                    self._sweep()
            except StoreUnwritable as error:
                self._report(error)

    def _hold(self, line: Any) -> None:
        self._held.append(msgspec.json.encode(line) + b"\n")

    def _keep_system(self, system: tuple[Span, ...]) -> tuple[KeptSpan, ...]:
        """Within a leg the system prompt is the same object, and is not read again."""
        if system is not self._system[0] or not self._known.issuperset([key for _, _, key in self._system[1]]):
            kept = tuple((span.name, span.origin, self._keep(span.text.encode())) for span in system)
            self._system = (system, kept)
        return self._system[1]

    def _keep_tools(self, tools: tuple[ToolSpec, ...]) -> str:
        if tools is not self._tools[0] or self._tools[1] not in self._known:
            self._tools = (tools, self._keep(msgspec.json.encode(tools)) if tools else "")
        return self._tools[1]

    def _keep(self, data: bytes) -> str:
        key = sha256(data).hexdigest()[:24]
        if key not in self._known:
            path = self._spans / key
            try:
                with write_errors(path):
                    if not _is_there(path):
                        self._store(path, data if self._redact is None else self._redact(data))
                        if key < SWEEPING:
                            self._sweep()
                    self._known.add(key)
            except StoreUnwritable as error:
                self._report(error)
        return key

    def _store(self, path: Path, data: bytes) -> None:
        part = path.with_name(f"{path.name}.{os.getpid()}")  # a kill must not leave half a span under its name
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        try:
            fd = os.open(part, flags, 0o600)
        except FileNotFoundError:
            make_private_folder(self._spans)
            fd = os.open(part, flags, 0o600)
        try:
            write_all(fd, data)
        finally:
            os.close(fd)
        os.replace(part, path)

    def _sweep(self) -> None:
        from cru.core.turn.spans import sweep_spans

        with write_errors(self._spans):
            sweep_spans(self._spans, self._limits)

    def _report(self, error: StoreUnwritable) -> None:
        """Warn the first time that the trace cannot be written."""
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(f"the trace cannot be written: {error}")


def _is_there(path: Path) -> bool:
    """Whether the file is there; if so, it is used now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except PermissionError:
        pass  # another user's: it is there all the same
    return True
