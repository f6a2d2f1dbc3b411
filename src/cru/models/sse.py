"""Server-sent events from bytes. A chunk may end anywhere: in a line, in a character, between CR and LF."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Turns chunks into the data of whole events. Comments (keep-alives), `event:`, `id:` and `retry:` lines are dropped: the
    JSON inside says what it is. Several data lines of one event are joined by a newline."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes."""
        buffer = self._rest + chunk if self._rest else chunk
        if not self._begun:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                self._rest = buffer
                return []
            self._begun, buffer = True, buffer.removeprefix(_BOM)
        held = b""
        if b"\r" in buffer:
            if buffer.endswith(b"\r"):  # its LF may come with the next chunk
                buffer, held = buffer[:-1], b"\r"
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        self._rest = lines.pop() + held
        events: list[bytes] = []
        for line in lines:
            self._line(line, events)
        return events

    def end(self) -> list[bytes]:
        """The stream ended: what a server sent without the blank line at the end."""
        events: list[bytes] = []
        if self._rest:
            self._line(self._rest.rstrip(b"\r"), events)
            self._rest = b""
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            self._data.append(b"")
