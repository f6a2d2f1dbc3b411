"""The documents that `cru oq` reads: from files and pipes, in four formats, each with the place where it stands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO

from msgspec import Struct

from cru.core.api.host import BadArgument
from cru.core.base.files.yaml_text import BadYaml, parse_yaml_documents
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import await_input
from cru.features.formats.convert import TOON_HEAD, detect_format, is_json, read_unbounded, to_plain
from cru.features.formats.json_stream import JsonSplitter, JsonText

EXTENSIONS = {
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".geojson": "json", ".ipynb": "json", ".yaml": "yaml", ".yml": "yaml",
    ".toml": "toml", ".toon": "toon",
}  # fmt: skip
CHUNK, LARGEST_CHUNK = 64 << 10, 64 << 20
_SECTION = re.compile(rb"\[[^\],:=]+\]\s*(#.*)?")


class BadInput(CruError):
    """A file or document that cannot be read; the place stands first."""

    code = 2


class Document(Struct, frozen=True):
    """One document.

    source: the file's path as given, or `stdin`
    text: its JSON; None: it was another format, and `value` is what it holds
    """

    source: str
    text: JsonText | None = None
    value: Any = None

    @property
    def place(self) -> str:
        return self.source if self.text is None else f"{self.source}:{self.text.line}"

    def bad(self, offset: int, problem: str) -> BadInput:
        """The mistake at a byte of its text."""
        assert self.text is not None
        line, column = self.text.place(offset)
        return BadInput(f"{self.source}:{line}:{column}: {problem}")


def read_documents(path: str, format: str) -> Iterator[Document]:
    """The documents of a file (`-`: standard input) in this format; "" is found out. Raises BadInput where one cannot be read."""
    name = "stdin" if path == "-" else path
    try:
        if path == "-":
            await_input("documents", "or name a file: cru oq FILTER FILE; without any input: cru oq -n FILTER")
            yield from _documents(name, sys.stdin.buffer, format)
            return
        with open(path, "rb") as file:
            yield from _documents(name, file, format or EXTENSIONS.get(PurePath(path).suffix.lower(), ""))
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror or error}") from error


def _documents(name: str, file: BinaryIO, format: str) -> Iterator[Document]:
    head = b"" if format else _first_line(file)
    if not format and _begins_json(head):
        format = "json"
    if format == "json":
        yield from _json(name, file, head)
        return
    text = _decode(name, head + file.read())
    format = format or _detect(text)
    if format == "json":
        splitter = JsonSplitter()
        yield from (_utf8(name, text) for text in (*splitter.feed(text.encode()), *splitter.end()))
    elif format == "yaml":
        yield from _yaml(name, text)
    else:
        try:
            yield Document(name, value=read_unbounded(name, text, format))
        except BadArgument as error:
            raise BadInput(error.message) from error


def _first_line(file: BinaryIO) -> bytes:
    """The bytes up to the end of the first line that is not blank, or at least CHUNK of them."""
    head = b""
    while len(head) < CHUNK and b"\n" not in head.lstrip():
        more = _read_some(file, CHUNK)
        if not more:
            break
        head += more
    return head


def _begins_json(head: bytes) -> bool:
    """Whether a text that begins so is JSON for certain, or cannot be anything else."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].strip()
    if line.startswith((b"{", b"[")):
        return is_json(line) or not _SECTION.fullmatch(line.replace(b"[[", b"[").replace(b"]]", b"]"))
    return is_json(line)


def _detect(text: str) -> str:
    """As `cru.oq.detect`, but flat `key: value` lines are YAML, which has more values than TOON without an array."""
    format = detect_format(text)
    if format == "toon" and not any(TOON_HEAD.fullmatch(line.strip()) for line in text.splitlines()):
        return "yaml"
    return format


def _read_some(file: BinaryIO, size: int) -> bytes:
    """What has come already, at most `size` bytes; b"" at the end."""
    return os.read(file.fileno(), size)


def _json(name: str, file: BinaryIO, head: bytes) -> Iterator[Document]:
    splitter = JsonSplitter()
    size, data = CHUNK, head or _read_some(file, CHUNK)
    while data:
        count = 0
        for text in splitter.feed(data):
            count += 1
            yield _utf8(name, text)
        size = CHUNK if count else min(size * 2, LARGEST_CHUNK)
        data = _read_some(file, size)
    for text in splitter.end():
        yield _utf8(name, text)


def _utf8(name: str, text: JsonText) -> Document:
    document = Document(name, text)
    try:
        text.data.decode()
    except UnicodeDecodeError as error:
        raise document.bad(error.start, "not UTF-8 text") from error
    return document


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = JsonText(data).place(error.start)
        raise BadInput(f"{name}:{line}:{column}: not UTF-8 text") from error


def _yaml(name: str, text: str) -> Iterator[Document]:
    try:
        for value in parse_yaml_documents(text):
            yield Document(name, value=to_plain(value))
    except BadYaml as error:
        raise BadInput(f"{name}{f':{error.line}' if error.line else ''}: {error.problem}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name}: {error}") from error
