"""`cru trace --next`: what the next request would contain, with origins, sizes and an estimate of its tokens."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from cru.core.compose import Start, build
from cru.core.conversations.inbox import read_inbox
from cru.core.conversations.store import ContextStore
from cru.core.records.trace import last_request
from cru.core.turn.history import BYTES_PER_TOKEN, History, weight
from cru.core.turn.parts import Parts
from cru.faces.cli.console import one_line, show
from cru.faces.cli.permissions.command import open_sandbox


def show_next(start: Start, as_json: bool) -> int:
    """Print it; asks no handler and no model."""
    built = build(start)
    try:
        open_sandbox(built.session.parts)
        return _shown(built.session.parts, as_json)
    finally:
        built.store.close()


def _shown(parts: Parts, as_json: bool) -> int:
    parts.store.refresh()
    rows = _rows(parts)
    if as_json:
        show(msgspec.json.encode(rows).decode())
        return 0
    total = sum(row["bytes"] for row in rows)
    for row in rows:
        mark = "  changed since the last request" if row["changed"] else ""
        size = f"{row['bytes']:>8} bytes  ~{row['tokens']:>6} tokens"
        show(f"{size}  {row['kind']:<8} {one_line(row['name'])}  ({one_line(row['origin'])}){mark}")
    show(f"{total:>8} bytes  ~{total // BYTES_PER_TOKEN:>6} tokens  in all, before your prompt")
    asked = parts.bus.registry.by_event.keys() & {"system_prompt:build", "tools:select", "message:before_send"}
    if asked:
        show(f"handlers of {', '.join(sorted(asked))} may still change it; they are not asked here")
    return 0


def _rows(parts: Parts) -> list[dict[str, Any]]:
    known = _last_spans(parts.store)
    rows: list[dict[str, Any]] = []
    for span in parts.prompt.sections():
        data = span.text.encode()
        changed = bool(known) and hashlib.sha256(data).hexdigest()[:24] not in known
        rows.append(_row("section", span.name, span.origin, len(data), changed))
    for spec in parts.tools.specs():
        source = getattr(parts.tools.find(spec.name), "source", "")
        rows.append(_row("tool", spec.name, source, len(msgspec.json.encode(spec)), False))
    for message in History(parts.store.visible()).messages():
        first = message.content.strip().split("\n", 1)[0][:40] or ", ".join(c.name for c in message.calls)
        rows.append(_row("message", f"{message.role}: {first}", f"log entry {message.ref}", weight(message), False))
    for letter in read_inbox(parts.store.folder)[0]:
        rows.append(_row("inbox", letter.content[:40], f"from {letter.from_}", len(letter.content.encode()), False))
    return rows


def _row(kind: str, name: str, origin: str, size: int, changed: bool) -> dict[str, Any]:
    return {
        "kind": kind, "name": name, "origin": origin, "bytes": size, "tokens": size // BYTES_PER_TOKEN, "changed": changed,
    }  # fmt: skip


def _last_spans(store: ContextStore) -> set[str]:
    """The hashes of the sections of the last request; empty if there was none."""
    last = last_request(store.folder)
    return {key for _, _, key in last.data["spans"]} if last is not None else set()
