"""What -l, -L, -g and -n print (chibi 0.4, section 1 of its contract)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from cru.core.base.values.messages import ANCHOR, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, UNANSWERED, Entry
from cru.core.base.values.visible import set_in
from cru.core.conversations import ContextError
from cru.core.conversations.entries import ANCHORS, summary_of
from cru.core.conversations.home import Home
from cru.core.conversations.inbox import read_inbox
from cru.core.conversations.store import FileContext
from cru.core.undo.call_outcomes import why_not_run
from cru.faces.cli.console import one_line

if TYPE_CHECKING:
    from cru.core.base.config.layers import Settings

MARKS = {"none": "", "active": " [active]", "stale": " [stale]"}
FIRST_LINES = 3
SHORT_ARGS = 60
LONGEST_REASON = 200
TEXTS = {"system_prompt": "system_prompt.md", "prompt": "system_prompt.md", "todos": "todos.md", "goals": "goals.md"}

# Prompts that no person typed, and what handlers may have made of one: blocked, rewritten, added context.
UNTYPED = ("continuation", "recurse", "inbox", "task")
HANDLED = ("blocked", "rewritten", "with context")
NONE = {"system_prompt.md": "(no system prompt of its own; cru trace --next shows what is sent)"}


def render_contexts(home: Home, current: str) -> str:
    """All names, sorted; `* ` marks the current one, then who holds it and what waits for it."""
    return "\n".join(_render_name(home, name, name == current) for name in home.names() or [current])


def _render_name(home: Home, name: str, current: bool) -> str:
    waiting = inbox_summary(home, name)
    line = f"{'* ' if current else '  '}{name}{MARKS[home.status(name)]}"
    return f"{line} ({waiting})" if waiting else line


def inbox_summary(home: Home, name: str) -> str:
    """How many messages from other contexts wait: "2 messages wait"; "" if none do."""
    try:
        count = len(read_inbox(home.folder_of(name))[0])
    except ContextError as error:
        return error.message
    return count_waiting(count) if count else ""


def count_waiting(count: int) -> str:
    return "1 message waits" if count == 1 else f"{count} messages wait"


def render_context(home: Home, store: FileContext) -> str:
    """The context's name, its size, and the beginnings of summary, todos and goals."""
    messages = sum(1 for e in store.visible() if e.entry_type == MESSAGE)
    lines = [f"Context: {store.name}{MARKS[home.status(store.name)]}", f"Messages: {messages}"]
    summary = store.summary().strip()
    if summary:
        lines.append(f"Summary: {summary.splitlines()[0]}")
    for title in ("todos", "goals"):
        text = store.read_text(f"{title}.md").strip()
        if text:
            lines += [f"{title.capitalize()}:", *_first(text)]
    if waiting := inbox_summary(home, store.name):
        lines.append(f"Inbox: {waiting}")
    if store.name in home.expiring:
        from cru.core.conversations.expiry import read_mark

        fate = read_mark(home.path, store.folder).describe()
        lines += [f"Destroys itself: {fate}"] if fate else []
    return "\n".join(lines)


def _first(text: str) -> list[str]:
    lines = text.splitlines()
    more = ["  ..."] if len(lines) > FIRST_LINES else []
    return [*(f"  {line}" for line in lines[:FIRST_LINES]), *more]


def render_log(entries: Sequence[Entry], count: int, verbose: bool) -> Iterator[str]:
    """The last (count > 0), the first (count < 0) or all entries, as a person reads them."""
    sent = {e.metadata.get("ref"): e for e in entries if e.entry_type == RESOLVED}
    kinds = readable_kinds(verbose)
    entries = [entry for entry in entries if entry.entry_type in kinds]
    for entry in entries[-count:] if count > 0 else entries[:-count] if count < 0 else entries:
        yield from _lines(entry, sent.get(entry.id), verbose)


def readable_kinds(verbose: bool) -> tuple[str, ...]:
    """Of entries that a person reads."""
    return (MESSAGE, TOOL_CALL, TOOL_RESULT, *sorted(ANCHORS)) if verbose else (MESSAGE, TOOL_CALL, TOOL_RESULT)


def _lines(entry: Entry, resolved: Entry | None, verbose: bool) -> Iterator[str]:
    if entry.entry_type == TOOL_CALL:
        args = entry.content if verbose or len(entry.content) <= SHORT_ARGS else entry.content[:SHORT_ARGS] + "..."
        yield f"[TOOL CALL: {_name(entry.to)}] {set_in(args)}"
    elif entry.entry_type == TOOL_RESULT:
        text = set_in(entry.content) if verbose else _describe_result(entry)
        yield f"[TOOL RESULT: {_name(entry.from_)}] {text}"
    elif entry.entry_type in ANCHORS:
        kind = entry.metadata.get("kind", "anchor") if entry.entry_type == ANCHOR else entry.entry_type
        yield f"[{str(kind).upper()}]: {set_in(entry.content or summary_of(entry) or '')}".rstrip()
    else:
        yield f"[{_who(entry)}]{_mark(entry, resolved)}: {set_in(entry.content)}"
        if verbose and resolved is not None and resolved.metadata.get("rewritten"):
            yield f"[SENT]: {set_in(resolved.content)}"


def _describe_result(result: Entry) -> str:
    """The reason of a call that did not run, else the size of the result."""
    why = why_not_run(result)
    return f"not run: {one_line(why, LONGEST_REASON)}" if why else _size(len(result.content.encode()))


def _name(text: str) -> str:
    return one_line(text).translate(str.maketrans("[]", "()"))


def _who(entry: Entry) -> str:
    return "HOOK" if entry.metadata.get("source") in UNTYPED else _name(entry.from_).upper()


def _mark(entry: Entry, resolved: Entry | None) -> str:
    """How a text came about that nobody typed, why it breaks off, and what handlers made of a prompt, whose original is shown."""
    metadata, changes = entry.metadata, {} if resolved is None else resolved.metadata
    source = metadata.get("source")
    marks = [
        str(metadata.get("partial", "")),
        one_line(str(metadata.get("command", source)), SHORT_ARGS) if source in (*UNTYPED, "command") else "",
        *(word for word in HANDLED if changes.get(word.split()[-1]) and changes.get("reason") != UNANSWERED),
        "not answered" if changes.get("reason") == UNANSWERED else "",
    ]
    shown = ", ".join(mark for mark in marks if mark)
    return f" ({shown})" if shown else ""


def _size(count: int) -> str:
    return f"{count}b" if count < 1024 else f"{count / 1024:.1f}kb"


def inspect_context(home: Home, store: FileContext, thing: str, settings: Callable[[], Settings]) -> str:
    """One of the texts of a context, the home folder, or a setting; a line that says so if it is empty. Raises UsageProblem."""
    if thing in TEXTS:
        return store.read_text(TEXTS[thing]) or NONE.get(TEXTS[thing], f"(no {thing})")
    if thing == "reflection":
        return home.reflection or "(no reflection)"
    if thing == "home":
        return str(home.path)
    if thing == "inbox":
        return (
            "\n".join(f"[{_name(m.from_)}]: {set_in(m.content)}" for m in read_inbox(store.folder)[0])
            or "(no messages wait)"
        )
    from cru.faces.cli.operations import setting_values

    texts = ("system_prompt", "reflection", "todos", "goals", "home", "inbox")
    if thing == "list":
        return "\n".join((*texts, *setting_values.setting_names(settings())))
    return setting_values.setting_value(settings(), thing, (*texts, "list"))
