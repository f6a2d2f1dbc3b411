"""The conversation as a JSONL file that scripts for Claude Code can read (`transcript_path`), brought up to date when a hook asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from cru import __version__
from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import append_lines, read_regular
from cru.core.base.values.messages import ANCHOR, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, Entry
from cru.core.conversations.store import ContextStore
from cru.core.events.stamp import Stamp
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.parsing import common
from cru.core.turn.history import INPUT_TOKENS

NO_NAME = re.compile(r"[^a-zA-Z0-9]")
"""Characters of a project's path that become `-` in the name of Claude Code's folder for it."""
PROMPTS = frozenset({"user", "queue", "command", "inbox", "continuation", "recurse", "task"})
"""Sources of messages that count when they are resolved: a blocked prompt was never said."""


class Transcript:
    """Call it for the path. Only what is new is written; a file that does not fit the log is written anew. `warn` is told once that
    it cannot be written: hooks run all the same. root: where tools run; link: where a link to it is made; agent: the
    stamp of the sub-agent whose conversation it is."""

    def __init__(
        self,
        store: ContextStore,
        root: Path,
        warn: Callable[[str], object],
        link: Path | None = None,
        agent: Stamp | None = None,
    ) -> None:
        name = store.session_id if agent is None else f"agent-{agent.agent_id}"
        self.path = store.folder / f"{name}.jsonl"
        self._whose: dict[str, object] = {"isSidechain": False, "sessionId": store.session_id}
        if agent is not None:
            self._whose = {"isSidechain": True, "sessionId": agent.session_id, "agentId": agent.agent_id}
        self._link = link
        self._store = store
        self._root = root
        self._warn = warn
        self._last = ""  # the id of the entry that was read last
        self._line = ""  # the id of the line that was written last
        self._prompts: dict[str, Entry] = {}
        self._warned = False
        self._is_in_use = False

    def __call__(self) -> Path:
        self._is_in_use = True
        try:
            self._update()
            self._set_link()
        except OSError as error:
            if not self._warned:
                self._warn(f"{self.path} cannot be written: {error.strerror or error}; hooks see an old transcript")
            self._warned = True
        return self.path

    async def close(self) -> None:
        """Bring the file up to date at the end of a session in which a hook was given its path: what reads it later finds all of it."""
        if self._is_in_use:
            self()

    def _set_link(self) -> None:
        """Link to it once, when there is something to find. What cannot be done is told: hooks need no link."""
        link = self._link
        if link is None or not self._last:
            return
        self._link = None
        try:
            why = link_transcript(link, self.path)
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            self._warn(f"there is no link to the transcript at {link}: {why}")

    def _update(self) -> None:
        """Raises OSError."""
        if not self._last:
            self._last = self._line = _last_id(self.path)
        new = _after(self._last, self._store.entries())
        if new is None:
            everything = list(self._store.everything())
            new = _after(self._last, everything)
            if new is None:
                self._anew(everything)
                return
        if new:
            data = self._lines(new)
            if data:
                append_lines(self.path, data)
            self._last = new[-1].id

    def _anew(self, entries: Sequence[Entry]) -> None:
        self._line = ""
        replace_file(self.path, self._lines(entries), keep_mode=False)
        self._last = entries[-1].id if entries else ""

    def _lines(self, entries: Iterable[Entry]) -> bytes:
        return b"".join(common.to_json_line(line) for entry in entries for line in self._said(entry))

    def _said(self, entry: Entry) -> Iterator[dict[str, object]]:
        """The lines of one entry: one or none."""
        if entry.entry_type == RESOLVED:
            prompt = self._prompts.pop(str(entry.metadata.get("ref")), None)
            if prompt is not None and not entry.metadata.get("blocked"):
                yield self._user(prompt, entry.content or prompt.content)
        elif entry.entry_type == MESSAGE and entry.role == "user":
            source = entry.metadata.get("source")
            if source in PROMPTS:
                self._prompts[entry.id] = entry
            else:
                yield self._user(entry, entry.content, **({"isMeta": True} if source else {}))
        elif entry.entry_type == MESSAGE and entry.role == "agent":
            yield self._assistant(entry, {"type": "text", "text": entry.content})
        elif entry.entry_type == TOOL_CALL:
            yield self._assistant(entry, self._call(entry))
        elif entry.entry_type == TOOL_RESULT:
            block = {"type": "tool_result", "tool_use_id": entry.tool_call_id, "content": entry.content}
            failed = {"is_error": True} if entry.metadata.get("is_error") else {}
            yield self._user(entry, [{**block, **failed}])
        elif entry.entry_type == ANCHOR and entry.content:
            yield self._user(entry, entry.content, isCompactSummary=True)

    def _call(self, entry: Entry) -> dict[str, object]:
        value, _ = common.parse_json(entry.content or "{}")
        tool_input = TOOLS.to_foreign(entry.to, value if isinstance(value, dict) else {}, self._root)
        return {
            "type": "tool_use",
            "id": entry.tool_call_id,
            "name": TOOLS.foreign_name(entry.to),
            "input": tool_input,
        }

    def _user(self, entry: Entry, content: str | list[dict[str, object]], **more: object) -> dict[str, object]:
        return self._whole(entry, "user", {"role": "user", "content": content}, **more)

    def _assistant(self, entry: Entry, block: dict[str, object]) -> dict[str, object]:
        known: dict[str, object] = {"id": entry.metadata.get("reply", entry.id), "type": "message", "role": "assistant"}
        if entry.metadata.get("model"):
            known["model"] = entry.metadata["model"]
        if entry.metadata.get(INPUT_TOKENS):
            known["usage"] = _usage(entry.metadata)
        return self._whole(entry, "assistant", {**known, "content": [block]})

    def _whole(self, entry: Entry, kind: str, message: dict[str, object], **more: object) -> dict[str, object]:
        before, self._line = self._line, entry.id
        at = datetime.fromtimestamp(entry.timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return {
            "type": kind, "uuid": entry.id, "parentUuid": before or None, **self._whose, "timestamp": at,
            "version": __version__, "cwd": str(self._root), "message": message, **more,
        }  # fmt: skip


def link_path(config: Path, project: Path, session_id: str) -> Path:
    """Where Claude Code keeps the transcript of a session in this folder, and where programs look for it. config: its `~/.claude`."""
    name = NO_NAME.sub("-", str(project))
    return config / "projects" / name / f"{session_id}.jsonl"


def link_transcript(link: Path, path: Path) -> str:
    """Have `link` point to the transcript; why it does not, "" if it does. Only a link to a transcript of this name is replaced: the
    context was renamed. Folders that are made are private. Raises OSError."""
    if link.is_symlink():
        old = link.readlink()
        if old == path:
            return ""
        if old.name != path.name:
            return "there is another link"
        link.unlink()
    elif link.exists():
        return "there is a file already"
    for folder in reversed((link.parent, *list(link.parents)[1:3])):
        folder.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(path)
    return ""


def _usage(metadata: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of a reply as Anthropic counts them: input that was read from or written to a cache is none of `input_tokens`."""
    read, written = (int(metadata.get(name, 0)) for name in ("cache_read_tokens", "cache_write_tokens"))
    return {
        "input_tokens": int(metadata[INPUT_TOKENS]) - read - written, "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read, "output_tokens": int(metadata.get("output_tokens", 0)),
    }  # fmt: skip


def _after(last: str, entries: Sequence[Entry]) -> Sequence[Entry] | None:
    """What follows the entry with this id; None if it is not among them."""
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].id == last:
            return entries[at + 1 :]
    return None


def _last_id(path: Path) -> str:
    """The id of a transcript's last line, "" if there is none that is whole."""
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return ""
    try:
        value = msgspec.json.decode(data.rstrip(b"\n").rpartition(b"\n")[2]) if data.endswith(b"\n") else None
    except (msgspec.DecodeError, RecursionError):
        return ""
    return str(value.get("uuid", "")) if isinstance(value, dict) else ""
