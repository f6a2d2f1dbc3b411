"""Server-sent events from bytes. A chunk may end anywhere: in a line, in a character, between CR and LF."""

from __future__ import annotations

from cru.models.failures import MOST_EVENT_BYTES, MOST_LINE_BYTES, too_long

_BOM = b"\xef\xbb\xbf"
_LINE_COST = 48  # bytes of memory that an empty line takes


class SseDecoder:
    """Turns chunks into the data of whole events. Comments (keep-alives), `event:`, `id:` and `retry:` lines are dropped: the
    JSON inside says what it is. Several data lines of one event are joined by a newline. A line of more than 32 MiB and an
    event of more than 256 MiB raise BrokenReply."""

    def __init__(self) -> None:
        self._rest = bytearray()  # a line whose end has not come
        self._data: list[bytes] = []
        self._size = 0  # of the event so far, with what a line costs
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes."""
        if self._begun and b"\n" not in chunk and b"\r" not in chunk and not self._rest.endswith(b"\r"):
            self._hold(chunk)
            return []
        buffer = bytes(self._rest) + chunk if self._rest else chunk
        if not self._begun:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                self._rest += chunk
                return []
            self._begun, buffer = True, buffer.removeprefix(_BOM)
        held = b""
        if b"\r" in buffer:
            if buffer.endswith(b"\r"):  # its LF may come with the next chunk
                buffer, held = buffer[:-1], b"\r"
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        self._rest.clear()
        self._hold(lines.pop() + held)
        events: list[bytes] = []
        for line in lines:
            self._line(line, events)
        return events

    def end(self) -> list[bytes]:
        """The stream ended: what a server sent without the blank line at the end."""
        events: list[bytes] = []
        if self._rest:
            self._line(bytes(self._rest).rstrip(b"\r"), events)
            self._rest.clear()
        self._line(b"", events)
        return events

    def _hold(self, piece: bytes) -> None:
        self._rest += piece
        if len(self._rest) > MOST_LINE_BYTES:
            raise too_long("a line", MOST_LINE_BYTES)

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._size = [], 0
            return
        if len(line) > MOST_LINE_BYTES:
            raise too_long("a line", MOST_LINE_BYTES)
        if line.startswith(b"data:"):
            self._add(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._add(b"")

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._size += len(data) + _LINE_COST
        if self._size > MOST_EVENT_BYTES:
            raise too_long("an event", MOST_EVENT_BYTES)
