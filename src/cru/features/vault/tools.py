"""The tools over the vault of notes: they are there only if one is configured. Notes are named by their paths below it, so that rules for
paths judge the very file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import ToolSpec
from cru.core.base.values.visible import visible
from cru.core.tools.arguments import Read, Some, check_arguments, parse_arguments
from cru.core.tools.files import read
from cru.core.tools.hidden import HiddenCount, find_hidden
from cru.core.tools.preview import preview_call
from cru.core.tools.protocol import (
    Access,
    ArgumentError,
    Kind,
    ToolContext,
    ToolError,
    ToolOptions,
    ToolResult,
    ToolSettings,
)
from cru.features.vault import BadNotePath, NoSuchNote
from cru.features.vault.index.records import NoteRecord
from cru.features.vault.live import LiveVault
from cru.features.vault.note_path import note_path
from cru.features.vault.search.full_text import BEGIN, END, Hit
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault

_MARKS = str.maketrans({BEGIN: "**", END: "**"})
Positive = Annotated[int, Meta(ge=1)]


class VaultSearch(Struct, frozen=True, forbid_unknown_fields=True):
    query: Some
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    mode: SearchMode | None = None


class VaultRead(Struct, frozen=True, forbid_unknown_fields=True):
    path: Some
    offset: Positive = 1
    limit: Positive = 2000


class VaultWrite(Struct, frozen=True, forbid_unknown_fields=True):
    path: Some
    content: str
    overwrite: bool = False


class VaultLinks(Struct, frozen=True, forbid_unknown_fields=True):
    path: Some
    depth: Annotated[int, Meta(ge=1, le=5)] = 1


class _Call(Struct, frozen=True):
    """A call that may run. options: sizes of outputs"""

    live: LiveVault
    running: ToolContext
    options: ToolOptions

    def shown(self, tool: str) -> HiddenCount:
        """What of the vault must not be shown."""
        return HiddenCount(find_hidden(self.running, tool, str(self.live.root)))

    def file(self, path: str) -> str:
        return os.path.join(os.path.realpath(self.live.root), path)

    def may_show(self, hidden: HiddenCount, path: str) -> bool:
        return hidden.why(self.file(path)) is None


async def search_notes(args: VaultSearch, call: _Call) -> ToolResult:
    hidden = call.shown("vault_search")
    may_show = partial(call.may_show, hidden) if hidden.hidden else None
    result = await call.live.search(args.query, args.limit, args.mode, may_show)
    lines = [line for hit in result.hits for line in hit_lines(hit)] or ["(no note has that)"]
    notice = [f"[{result.notice}]"] if result.notice else []
    return ToolResult("\n".join([*lines, *hidden.notes(), *notice]))


def hit_lines(hit: Hit) -> list[str]:
    """A note that was found, with what was found in it."""
    snippet = visible(hit.snippet.translate(_MARKS))
    return [note_line(hit.path, hit.title), *([f"    {snippet}"] if snippet else [])]


def note_line(path: str, title: str) -> str:
    """Its path, and its title if the path does not say that."""
    stem = os.path.splitext(path.rpartition("/")[2])[0]
    return visible(path if stem == title else f"{path}  ({title})")


async def read_note(args: VaultRead, call: _Call) -> ToolResult:
    file = call.file(args.path)
    if not os.path.lexists(file):
        raise ToolError(await _no_such_note(args.path, call, "vault_read"))
    return await read(Read(file, args.offset, args.limit), call.running, call.options)


async def _no_such_note(path: str, call: _Call, tool: str) -> str:
    """What to say of it; a note that is meant by its title has a path."""
    hidden = call.shown(tool)

    def look(vault: Vault) -> str:
        try:
            meant = vault.find(os.path.splitext(path)[0]).path
        except NoSuchNote as error:
            return error.hint
        return f"the note of that name has the path `{meant}`" if call.may_show(hidden, meant) else ""

    hint = await call.live.run(look)
    return f"there is no note `{path}`" + (f": {hint}" if hint and not hidden.hidden else "; vault_search finds notes")


async def write_note(args: VaultWrite, call: _Call) -> ToolResult:
    is_new = not os.path.lexists(call.file(args.path))
    path = await call.live.run(lambda vault: vault.write(args.path, args.content, overwrite=args.overwrite))
    return ToolResult(f"{'Created' if is_new else 'Replaced'} {path} ({len(args.content.encode()):,} bytes).")


async def show_links(args: VaultLinks, call: _Call) -> ToolResult:
    hidden = call.shown("vault_links")

    def look(vault: Vault) -> list[tuple[str, Sequence[NoteRecord]]] | None:
        note = vault.get(args.path)
        if note is None:
            return None
        parts: list[tuple[str, Sequence[NoteRecord]]] = [
            ("links to", vault.outlinks(note.id)), ("linked from", vault.backlinks(note.id)),
        ]  # fmt: skip
        if args.depth > 1:
            parts.append((f"at most {args.depth} links away", vault.neighbors(note.id, args.depth)))
        return parts

    parts = await call.live.run(look)
    if parts is None:
        raise ToolError(await _no_such_note(args.path, call, "vault_links"))
    lines = []
    for name, notes in parts:
        shown = [note_line(note.path, note.title) for note in notes if call.may_show(hidden, note.path)]
        lines += [f"{name}:", *(f"  {line}" for line in shown or ["(nothing)"])]
    dangling = await call.live.run(lambda vault: [link for link in vault.dangling() if link.path == args.path])
    lines += [f"line {link.line}: [[{visible(link.target)}]] leads to no note" for link in dangling]
    return ToolResult("\n".join([*lines, *hidden.notes()]))


class _Row(Struct, frozen=True):
    """One tool. of_note: its subject is the note in `path`; else the whole vault"""

    arguments: type[Struct]
    run: Callable[..., Any]
    access: Access
    description: str
    properties: dict[str, object]
    of_note: bool = True


_PATH = {"type": "string", "minLength": 1, "description": "the note's path below the vault, like folder/note.md"}
_ROWS: dict[str, _Row] = {
    "vault_search": _Row(
        VaultSearch, search_notes, "read",
        'Find notes in the person\'s vault, the best first: words (all of them), "a phrase", start*, -not, a OR b, #tag, path:folder/, '
        "title:word, key:value of the front matter. Gives paths and what was found. It goes by words, and by what they mean, in sixteen "
        "languages, if that is installed.",
        {"query": {"type": "string", "minLength": 1, "description": "what to look for"},
         "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "notes at most (10)"},
         "mode": {"type": "string", "enum": [*SearchMode], "description": "words, meaning, or both (both if that is installed)"}},
        of_note=False,
    ),
    "vault_read": _Row(
        VaultRead, read_note, "read", "Read a note of the vault, with line numbers.",
        {"path": _PATH, "offset": {"type": "integer", "minimum": 1, "description": "the first line (1)"},
         "limit": {"type": "integer", "minimum": 1, "description": "lines at most (2000)"}},
    ),
    "vault_write": _Row(
        VaultWrite, write_note, "write",
        "Make a note in the vault (Markdown; [[Title]] links to another note, #tag tags it), or replace one with overwrite = true.",
        {"path": _PATH, "content": {"type": "string", "description": "the whole text of the note"},
         "overwrite": {"type": "boolean", "description": "replace a note that is there (false)"}},
    ),
    "vault_links": _Row(
        VaultLinks, show_links, "read", "What a note of the vault links to, what links to it, and which of its links lead nowhere.",
        {"path": _PATH, "depth": {"type": "integer", "minimum": 1, "maximum": 5, "description": "also notes so many links away (1)"}},
    ),
}  # fmt: skip


class VaultTool:
    """One of them as a Tool."""

    source = "built-in"

    def __init__(self, name: str, row: _Row, live: LiveVault, options: ToolOptions) -> None:
        required = list(
            row.arguments.__struct_fields__[
                : len(row.arguments.__struct_fields__) - len(row.arguments.__struct_defaults__)
            ]
        )
        schema = {"type": "object", "properties": row.properties, "required": required, "additionalProperties": False}
        self.spec = ToolSpec(name, row.description, schema)
        self.kind: Kind = row.access
        self.parallel = row.access == "read"
        self._row = row
        self._live = live
        self._options = options
        self.confined_to = str(live.root), "the vault"

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        args = check_arguments(self._row.arguments, arguments)
        if self._row.of_note:
            try:
                args["path"] = note_path(self._live.root.resolve(), str(args["path"]))
            except BadNotePath as error:
                raise ArgumentError(f"`path`: {error.message}", error.hint) from error
        return args

    def subject(self, args: Mapping[str, object]) -> str:
        return os.path.join(self._live.root, str(args["path"])) if self._row.of_note else str(self._live.root)

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return [(self._row.access, self.subject(args))]

    def preview(self, args: Mapping[str, object]) -> str:
        """What a question shows of the call."""
        return preview_call("write", args) if self.kind == "write" else ""

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        call = _Call(self._live, running, self._options)
        try:
            result: ToolResult = await self._row.run(parse_arguments(self._row.arguments, args), call)
        except ToolError:
            raise
        except CruError as error:
            raise ToolError(error.message, error.hint) from error
        return result


class VaultTools:
    """The source of these tools."""

    def __init__(self, live: LiveVault, settings: ToolSettings) -> None:
        self._live = live
        self._options = ToolOptions(settings)

    def tools(self) -> Iterable[VaultTool]:
        return [VaultTool(name, row, self._live, self._options) for name, row in _ROWS.items()]
