"""Finding the files, and reading what stands above their text."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.front_matter import BadFrontMatter, NoFrontMatter, read_front_matter
from cru.core.base.files.regular import open_regular, read_regular
from cru.core.commands.prompt_files import BadPromptFile, FileOrigin, PromptFileKind, PromptPlaces

LIMIT_BYTES = 1 << 20
"""Of one file."""
HEAD_BYTES = 16 * 1024
"""More than front matter may have."""
MOST_FILES = 5000
"""Of one place; a stranger's folder must not keep anybody waiting."""
DEPTH = 8
SKILL_FILE = "SKILL.md"
KNOWN = (
    "name", "description", "argument-hint", "arguments", "allowed-tools", "model", "disable-model-invocation", "user-invocable",
    "when_to_use", "hooks",
)  # fmt: skip
"""Keys that mean something here."""
IGNORED = (
    "agent", "allowed_tools", "author", "compatibility", "context", "display-name", "effort", "license", "metadata", "paths", "shell",
    "tags", "title", "version",
)  # fmt: skip
"""Keys of other programs that inform, or have no effect here."""
_PLAIN = re.compile(r"(name|description): ([A-Za-z][\w ,.;()/+-]*)\r?")
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n((?:.*\n){1,12}?)---[ \t]*\r?\n")


FileStamp = tuple[str, int, int, int]


class PromptFile(Struct, frozen=True):
    """One command or skill.

    name: what is typed behind the slash, without it
    path: of the file
    keys: of its front matter
    body: the text below
    faults: why it cannot be used, a sentence each
    problems: what is odd
    """

    name: str
    path: Path
    kind: PromptFileKind
    origin: FileOrigin
    keys: Mapping[Any, Any]
    body: str
    text: str
    faults: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Of a skill: where its scripts and texts lie."""
        return self.path.parent

    @property
    def description(self) -> str:
        """In one line; of a file without one the first of its text."""
        words = self.keys.get("description") or next((line for line in self.body.split("\n") if line.strip()), "")
        more = self.keys.get("when_to_use")
        joined = f"{words} - {more}" if self.keys.get("description") and isinstance(more, str) else str(words)
        return " ".join(joined.lstrip("# ").split())

    @property
    def hint(self) -> str:
        hint = self.keys.get("argument-hint")
        return " ".join(f"[{part}]" for part in hint) if isinstance(hint, list) else str(hint or "")

    @property
    def argument_names(self) -> tuple[str, ...]:
        names = self.keys.get("arguments") or ""
        return tuple(map(str, names)) if isinstance(names, list) else tuple(str(names).replace(",", " ").split())

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        listed = self.keys.get("allowed-tools") or ""
        return tuple(map(str, listed)) if isinstance(listed, list) else tuple(split_rules(str(listed)))

    def switch(self, key: str, usual: bool) -> bool:
        value = self.keys.get(key, usual)
        return value if isinstance(value, bool) else usual


def split_rules(text: str) -> Iterator[str]:
    """`Bash(git add:*), Read` at commas and blanks that are not in brackets."""
    depth, start = 0, 0
    for at, char in enumerate(f"{text},"):
        depth += (char == "(") - (char == ")")
        if (char in ", " and depth <= 0) or at == len(text):
            if text[start:at].strip():
                yield text[start:at].strip()
            start = at + 1


def find_files(
    places: PromptPlaces, kind: PromptFileKind, problems: list[str] | None = None
) -> Iterator[tuple[FileOrigin, str, Path]]:
    """(origin, name, path) of every file, the strongest first; names may come more than once. problems: gets what cannot be looked
    through"""
    for origin, folder in places.folders(kind):
        if not os.path.isdir(folder) or (origin is FileOrigin.PROJECT and leads_out(folder, places.root)):
            continue
        names = _skill_files(folder) if kind is PromptFileKind.SKILL else _command_files(folder)
        try:
            yield from [(origin, name, path) for name, path in names]
        except OSError as error:
            if problems is not None:
                problems.append(f"{error.filename} cannot be looked through: {error.strerror}")


def leads_out(path: Path, root: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _skill_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """A skill is a folder; its name is that of the folder, as Claude Code has it."""
    for name in sorted(os.listdir(folder))[:MOST_FILES]:
        path = folder / name / SKILL_FILE
        if os.path.lexists(path):
            yield name, path


def _command_files(folder: Path, above: str = "", depth: int = 0) -> Iterator[tuple[str, Path]]:
    """`git/commit.md` is `git:commit`. Links to folders are not followed."""
    with os.scandir(folder) as entries:
        children = sorted(entries, key=lambda entry: entry.name)[:MOST_FILES]
    for entry in children:
        if entry.name.endswith(".md") and not entry.is_dir(follow_symlinks=False):
            yield above + entry.name[:-3], Path(entry.path)
    for entry in children:
        if entry.is_dir(follow_symlinks=False) and depth < DEPTH:
            yield from _command_files(Path(entry.path), f"{above}{entry.name}:", depth + 1)


def read_file(
    places: PromptPlaces, kind: PromptFileKind, origin: FileOrigin, name: str, path: Path, *, only_head: bool = False
) -> PromptFile:
    """One that cannot be read has faults. only_head: enough for its front matter; a thousand skills must not fill the memory"""

    def bad(fault: str) -> PromptFile:
        return PromptFile(name, path, kind, origin, {}, "", "", (f"{path}{fault}",))

    if origin is FileOrigin.PROJECT and leads_out(path, places.root):
        return bad(" leads out of the project and is not read")
    try:
        text = (_read_head(path) if only_head else read_regular(path, LIMIT_BYTES)).decode()
    except OSError as error:
        too_large = error.errno == errno.EFBIG
        return bad(f" is too large: the limit is {LIMIT_BYTES} bytes" if too_large else f": {error.strerror or error}")
    except UnicodeDecodeError:
        return bad(": not UTF-8")
    keys, body, fault = _take_apart(text)
    faults = [f"{path}: {fault}"] if fault else []
    if kind is PromptFileKind.SKILL and not fault and not str(keys.get("description") or body).strip():
        faults.append(f"{path}: it has neither a description nor a text")
    hooks = keys.get("hooks")
    if isinstance(hooks, dict) and any(places.judges_calls(str(event)) for event in hooks):
        faults.append(f"{path}: `hooks` of a file are not run, and these guard calls")
    return PromptFile(name, path, kind, origin, keys, body, text, tuple(faults), tuple(_oddities(path, keys)))


def stamp_file(path: Path) -> FileStamp:
    """What tells that a file has changed; zeros: it cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return (str(path), 0, 0, 0)
    return (str(path), status.st_ino, status.st_size, status.st_mtime_ns)


def _read_head(path: Path) -> bytes:
    """The first lines. Raises OSError."""
    with open(open_regular(path), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size > LIMIT_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        data = file.read(HEAD_BYTES + 1)
    return data if len(data) <= HEAD_BYTES else data[: data.rfind(b"\n", 0, HEAD_BYTES) + 1]


def _take_apart(text: str) -> tuple[Mapping[Any, Any], str, str]:
    """(keys, body, what is wrong). Simple front matter is read without YAML: a thousand skills must not cost a start a second."""
    head = _HEAD.match(text)
    if head is not None:
        lines = [_PLAIN.fullmatch(line) for line in head[1].splitlines()]
        if all(lines):
            return {line[1]: line[2].strip() for line in lines if line}, text[head.end() :], ""
    try:
        front = read_front_matter(text)
    except NoFrontMatter:
        return {}, text, ""
    except BadFrontMatter as error:
        return {}, "", f"its front matter cannot be read: {error}"
    return front.keys, front.body, ""


def _oddities(path: Path, keys: Mapping[Any, Any]) -> Iterator[str]:
    for key in keys:
        if key not in KNOWN and key not in IGNORED:
            near = did_you_mean(str(key), KNOWN)
            yield f"{path}: the key `{key}` has no effect" + (f" ({near})" if near else "")
    if keys.get("context") == "fork":
        yield f"{path}: `context: fork` has no effect: it works in the conversation itself"
    for key in ("disable-model-invocation", "user-invocable"):
        if key in keys and not isinstance(keys[key], bool):
            yield f"{path}: `{key}` is true or false"


def check_usable(file: PromptFile) -> None:
    """Raises BadPromptFile."""
    if file.faults:
        raise BadPromptFile("; ".join(file.faults), "mend the file, or take it away")
