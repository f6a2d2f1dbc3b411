"""What a chat shows when it opens a conversation: its last turns, and whether the last one was left in its middle. Only the end of the log
is read."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, Entry
from cru.core.conversations.entries import LogProblem, anchor_keeps
from cru.core.conversations.log_tail import newest_entries
from cru.core.turn.turn import TYPED_SOURCES
from cru.core.turn.unfinished import find_unfinished
from cru.core.undo.call_outcomes import results_by_call, why_not_run
from cru.faces.cli.call_summary import LONGEST_ERROR, summarize_arguments
from cru.faces.cli.console import one_line, printable
from cru.faces.cli.terminal.size import terminal_size

TURNS, ENTRIES, LINES = 3, 500, 100
"""So many turns are shown, out of so many entries at the end of the log, and so many lines of them."""
LONG_TEXT = 20_000
"""Characters of a message of which the rest is left out."""
UNFINISHED = 60
"""Characters of the prompt that are shown."""


class Opening(Struct, frozen=True):
    """What is shown.

    text: lines for the terminal, "" of an empty conversation
    unfinished: the beginning of the prompt whose turn can be gone on with, "" if there is none
    """

    text: str = ""
    unfinished: str = ""


def read_opening(folder: Path, root: Path, plain: bool) -> Opening:
    """Of the context in that folder. `plain`: without escape sequences. Raises StoreUnreadable."""
    entries = _last_turns(folder / "context.jsonl")
    results = results_by_call(entries)
    lines = [line for entry in entries for line in _lines(entry, results, plain)]
    if not lines:
        return Opening()
    cut = len(lines) - LINES
    head = f"the end of this conversation{f', without {cut:,} lines before' if cut > 0 else ''} (cru -g 0 shows all of it):"
    shown = "\n".join([head if plain else f"\x1b[2m{head}\x1b[0m", *lines[max(cut, 0) :]])
    return Opening(f"{shown}\n", _unfinished(entries, root))


def _last_turns(path: Path) -> list[Entry]:
    """What counts of the last turns, the oldest first."""
    entries: list[Entry] = []
    problems: list[LogProblem] = []  # whoever opens the session tells them
    keeps: frozenset[str] | None = None
    prompts = 0
    for number, entry in enumerate(newest_entries(path, problems)):
        kept = anchor_keeps(entry)
        if kept is not None:
            keeps = frozenset(kept) if keeps is None else keeps & frozenset(kept)
        elif keeps is None or entry.id in keeps:
            entries.append(entry)
            prompts += is_typed(entry)
        if prompts >= TURNS or number >= ENTRIES or keeps == frozenset():
            break
    entries.reverse()
    first = next((at for at, entry in enumerate(entries) if is_typed(entry)), 0)
    return entries[first:]


def is_typed(entry: Entry) -> bool:
    """Whether a person gave it as a prompt."""
    chibi = "user" if entry.role == "user" else ""  # whose logs do not say it
    return entry.entry_type == MESSAGE and entry.metadata.get("source", chibi) in TYPED_SOURCES


def _unfinished(entries: list[Entry], root: Path) -> str:
    try:
        prompt = find_unfinished(entries, root)
    except CruError:
        return "one of whose attachments cannot be read"
    return "" if prompt is None else one_line(" ".join(prompt.text[: UNFINISHED * 4].split()), UNFINISHED)


def _lines(entry: Entry, results: dict[str, Entry], plain: bool) -> Iterator[str]:
    if is_typed(entry):
        text = printable(entry.content[:LONG_TEXT]).split("\n")
        yield from ("", *(f"{'> ' if at == 0 else '  '}{line}" for at, line in enumerate(text)))
    elif entry.entry_type == TOOL_CALL:
        yield _call(entry)
        if why := why_not_run(results.get(entry.tool_call_id)):
            yield f"  not run: {one_line(why, LONGEST_ERROR)}"
    elif entry.entry_type == MESSAGE and entry.role in ("agent", "assistant") and entry.content.strip():
        yield from (line.rstrip() for line in _rendered(entry.content[:LONG_TEXT], plain).rstrip().split("\n"))


def _call(entry: Entry) -> str:
    try:
        decoded = msgspec.json.decode(entry.content)
    except msgspec.DecodeError:
        decoded = {}
    summary = summarize_arguments(decoded) if isinstance(decoded, dict) else ""
    return f"[tool {one_line(entry.to)} {summary}".rstrip() + "]"


def _rendered(text: str, plain: bool) -> str:
    from cru.faces.cli.terminal.markdown import LineConsole, print_markdown

    written = StringIO()
    console = LineConsole(file=written, force_terminal=not plain, width=terminal_size(2).columns)
    print_markdown(console, printable(text))
    return written.getvalue()
