"""The items of a batch: a file of JSON lines, or of plain lines that are a prompt each."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.config.closest import closest
from cru.core.conversations.identity import is_name
from cru.core.guard import UnknownMode
from cru.core.guard.rules.modes import check_mode
from cru.features.fleet import BadItems
from cru.features.fleet.records import BatchItem

LARGEST = 16 << 20
"""Bytes of a line."""
MOST_SECONDS = 10**9
MOST_PROBLEMS = 20
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FIELDS = BatchItem.__struct_fields__


class ItemDefaults(Struct, frozen=True):
    """What holds for items that do not say it themselves.

    batch: its name, in the names of contexts
    options: fields of an item
    """

    batch: str
    cwd: Path
    options: BatchItem


class ItemProblem(Struct, frozen=True):
    """A line that is no item."""

    line: int
    text: str


class ItemFile(Struct, frozen=True):
    """What stands in a file: items with their lines, and lines that are none."""

    items: tuple[tuple[int, BatchItem], ...]
    problems: tuple[ItemProblem, ...]

    def require_good(self, name: str) -> None:
        """Raises BadItems if there are problems."""
        if not self.problems:
            return
        lines = [f"{name}:{problem.line}: {problem.text}" for problem in self.problems[:MOST_PROBLEMS]]
        if len(self.problems) > MOST_PROBLEMS:
            lines.append(f"… and {len(self.problems) - MOST_PROBLEMS} more")
        raise BadItems("\n".join(lines), "nothing is run; mend these lines, or leave them out with --skip-bad")


def read_items(data: bytes, defaults: ItemDefaults) -> ItemFile:
    """All items of a file, each with an id, a context and absolute paths."""
    data = data.removeprefix(codecs.BOM_UTF8)
    is_json = data.lstrip()[:1] == b"{"
    if not is_json and _is_list(data):
        return ItemFile((), (ItemProblem(1, "a JSON list; a batch has one JSON object a line: jq -c '.[]' FILE"),))
    items: list[tuple[int, BatchItem]] = []
    problems: list[ItemProblem] = []
    lines_by_id: dict[str, int] = {}
    copies: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        item, faults = _parse(line, is_json)
        if item is not None:
            item = _complete(item, defaults, copies)
            faults = list(_faults(item))
            if item.id in lines_by_id:
                faults.append(f"the id {item.id} is that of line {lines_by_id[item.id]}, too")
            lines_by_id.setdefault(item.id, number)
        problems += [ItemProblem(number, fault) for fault in faults]
        if item is not None and not faults:
            items.append((number, item))
    return ItemFile(tuple(items), tuple(problems))


def _is_list(data: bytes) -> bool:
    """Whether this is one JSON list, that of a program that writes no lines."""
    if data.lstrip()[:1] != b"[":
        return False
    try:
        return isinstance(msgspec.json.decode(data), list)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _parse(line: bytes, is_json: bool) -> tuple[BatchItem | None, list[str]]:
    """The item, or all that is wrong with the line."""
    if len(line) > LARGEST:
        return None, [f"it has more than {LARGEST >> 20} MiB; give large texts as files: `attach`"]
    try:
        if not is_json:
            return BatchItem(line.decode().strip()), []
        return msgspec.json.decode(line, type=BatchItem), []
    except msgspec.ValidationError as error:
        return None, list(_explain(line, error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, [f"not {'JSON' if is_json else 'UTF-8'}: {error}"]


def _explain(line: bytes, error: msgspec.ValidationError) -> Iterator[str]:
    """Field by field, with the one that was probably meant; else the words of the decoder."""
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        yield str(error)
        return
    unknown = [name for name in data if name not in _FIELDS]
    yield from map(_explain_unknown, unknown)
    if "prompt" not in data and "prompt" not in (closest(name, _FIELDS) for name in unknown):
        yield "Object missing required field `prompt`"
    for name in (name for name in data if name in _FIELDS):
        try:
            msgspec.convert({"prompt": "", name: data[name]}, BatchItem)
        except msgspec.ValidationError as fault:
            yield str(fault)


def _explain_unknown(name: str) -> str:
    near = closest(name, _FIELDS)
    return f"there is no field `{name}`" + (
        f" (did you mean `{near}`?)" if near else f"; there are {', '.join(_FIELDS)}"
    )


def _complete(item: BatchItem, defaults: ItemDefaults, copies: dict[str, int]) -> BatchItem:
    """The item with everything that it leaves out."""
    options = defaults.options
    changes: dict[str, object] = {
        name: getattr(options, name)
        for name in ("model", "mode", "agent", "seconds", "fuel", "max_cost", "on_interrupted", "strict_hooks")
        if not getattr(item, name)
    }
    if options.set:
        changes["set"] = {**options.set, **item.set}
    cwd = os.path.normpath(defaults.cwd / os.path.expanduser(item.cwd))
    name = item.id or _id_of(item, copies)
    context = item.context or f"{defaults.batch}-{name}"
    attach = tuple(os.path.normpath(os.path.join(cwd, os.path.expanduser(path))) for path in item.attach)
    return replace(item, id=name, context=context, cwd=cwd, attach=attach, **changes)


def _faults(item: BatchItem) -> Iterator[str]:
    """All that is wrong with a completed item, as far as it can be told from itself."""
    if not item.prompt.strip():
        yield "the prompt is empty"
    if "\0" in item.prompt:
        yield "the prompt has a NUL character in it"
    if not 0 <= item.seconds <= MOST_SECONDS or item.fuel < 0 or item.max_cost < 0:
        yield f"`seconds`, `fuel` and `max_cost` are 0 or more, and no more than {MOST_SECONDS} seconds"
    if item.mode:
        try:
            check_mode(item.mode)
        except UnknownMode as error:
            yield f"{error.message} ({error.hint})"
    if not ID.fullmatch(item.id):
        yield f"`id` has letters, digits, dots, dashes and underscores, 64 at most: {item.id!r}"
    elif not is_name(item.context):
        yield f"no context may be called {item.context!r}"


def _id_of(item: BatchItem, copies: dict[str, int]) -> str:
    """Of what is asked, so that other lines may come and go; a copy of it is counted."""
    digest = sha256(msgspec.json.encode((item.prompt, item.context, item.cwd, item.attach))).hexdigest()[:8]
    copies[digest] = copies.get(digest, 0) + 1
    return digest if copies[digest] == 1 else f"{digest}-{copies[digest]}"


def batch_name(path: Path) -> str:
    """Of a file, the same as long as it lies where it does."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")[:32] or "batch"
    return f"{stem}-{sha256(os.path.realpath(path).encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"


def estimate_tokens(items: Sequence[tuple[int, BatchItem]]) -> int:
    """Of the prompts and their attachments alone: four bytes make a token, roughly."""
    return sum(map(_bytes_of, (item for _, item in items))) // 4


def _bytes_of(item: BatchItem) -> int:
    return len(item.prompt.encode("utf-8", "replace")) + sum(_sizes(item.attach))


def _sizes(paths: Sequence[str]) -> Iterator[int]:
    for path in paths:
        try:
            yield os.stat(path).st_size
        except OSError:
            yield 0
