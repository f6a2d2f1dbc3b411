"""Reading the journal over all its files, the newest dispatch first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from cru.core.conversations.entries import BROKEN, LogProblem, line_key, short_error
from cru.core.conversations.record_files import RecordFiles
from cru.core.events.journal import JournalLine

FILE = "journal.jsonl"


def read_dispatches(folder: Path, runs: Collection[str], problems: list[LogProblem]) -> Iterator[JournalLine]:
    """The dispatches of these runs in the context of this folder. Lines that are none are added to `problems`. Raises StoreUnreadable."""
    decoder = msgspec.json.Decoder(JournalLine)
    names = [run.encode() for run in runs]
    with RecordFiles(folder / FILE) as files:
        for place, line in files.backward_with_places():
            is_whole = line.startswith(b'{"') and line.endswith(b"}")
            if is_whole and not any(name in line for name in names):
                continue
            try:
                dispatch = decoder.decode(line) if line.strip() else None
            except BROKEN as error:
                path, number = files.line_number(place)
                problems.append(LogProblem(path.name, number, f"{short_error(error)} (skipped)", line_key(line)))
                continue
            if dispatch is not None and dispatch.run in runs:
                yield dispatch
