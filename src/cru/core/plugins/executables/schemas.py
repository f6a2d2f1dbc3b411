"""What `PLUGIN --schema` says: asked for, read, and kept in `cache/schemas.json`, so that an unchanged program is not asked again."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru import __version__
from cru.core.base.config.closest import closest, did_you_mean
from cru.core.base.files import atomic, read_json
from cru.core.base.files.regular import make_private_folder
from cru.core.base.process.capture import ByteCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError, has_windows_line_end
from cru.core.base.process.run import AT_ONCE, ProcessResult, run_program
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.executables.calls import (
    ProgramContext,
    environment,
    exit_words,
    not_started,
    run_in_sandbox,
    windows_line_end,
)
from cru.core.plugins.executables.executable import HOOKS, Era, ToolSchema

SECONDS = 30.0
"""How long a program may take for its schema. That it took longer is remembered, so the limit must not be reached on a busy machine."""
LONGEST_OUTPUT = 4 << 20
"""Bytes that a schema may have."""
EARLY = (b"CHIBI_TOOL_ARGS", b"CHIBI_HOOK_DATA")
"""What only a program of the first generation speaks of."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SchemaTimeout(PluginFailed):
    """It went on running."""


class CachedSchema(Struct, frozen=True):
    """What is known of one program while its file has this time and size.

    era: the generation of chibi that it was written for
    problems: what is wrong with its schema
    failure: it did not end in time, and why; waiting for it at each start would help nobody
    """

    mtime_ns: int
    size: int
    era: Era
    tools: tuple[ToolSchema, ...] = ()
    problems: tuple[str, ...] = ()
    failure: str = ""


class _SchemaFile(Struct):
    """The file of the cache; another version of cru starts it anew."""

    version: str = __version__
    programs: dict[str, CachedSchema] = {}


class SchemaCache:
    """The schemas of earlier runs. One that cannot be read counts as empty; one that cannot be written costs the next run its time."""

    def __init__(self, home: Path) -> None:
        self._path = home / "cache" / "schemas.json"
        self._programs = self._read()

    def of(self, path: Path) -> CachedSchema | None:
        """What is known of the file as it is now. Raises OSError if it is gone."""
        known, status = self._programs.get(str(path)), path.stat()
        is_current = known is not None and (known.mtime_ns, known.size) == (status.st_mtime_ns, status.st_size)
        return known if is_current else None

    def forget_failures(self) -> None:
        """Ask again those that did not end in time."""
        failed = [path for path, known in self._programs.items() if known.failure]
        if failed:
            for path in failed:
                del self._programs[path]
            self._write()

    def keep(self, schemas: Mapping[Path, CachedSchema]) -> None:
        """For this run and, unless that fails, for the next ones. Programs that are gone are forgotten."""
        if schemas:
            self._programs |= {str(path): schema for path, schema in schemas.items()}
            self._write()

    def _write(self) -> None:
        try:
            make_private_folder(self._path.parent)
            with atomic.file_lock(self._path):
                others = {name: schema for name, schema in self._read().items() if not schema.failure}
                programs = others | self._programs
                self._programs = {name: schema for name, schema in programs.items() if os.path.exists(name)}
                atomic.replace_file(self._path, msgspec.json.encode(_SchemaFile(programs=self._programs)))
        except OSError:
            pass  # it only saves time

    def _read(self) -> dict[str, CachedSchema]:
        try:
            file = read_json(self._path, _SchemaFile)
        except (OSError, msgspec.DecodeError):
            return {}
        return file.programs if file.version == __version__ else {}


async def ask_schema(path: Path, where: ProgramContext) -> CachedSchema:
    """Ask the program, and see of which generation it is; one that does not end in time is known by its failure. Raises
    PluginFailed."""
    try:
        status = path.stat()
        era = era_of(path)
    except OSError as error:
        raise PluginFailed(f"{path} cannot be read: {error.strerror}") from error
    try:
        printed = await _print_schema(path, where)
    except SchemaTimeout as error:
        return CachedSchema(status.st_mtime_ns, status.st_size, era, failure=error.message)
    tools, problems = read_schema(printed)
    return CachedSchema(status.st_mtime_ns, status.st_size, era, tools, problems)


def era_of(path: Path) -> Era:
    """By the words in the file itself. Raises OSError."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return "stdin"
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return "env" if any(content.find(word) >= 0 for word in EARLY) else "stdin"


async def _print_schema(path: Path, where: ProgramContext) -> bytes:
    """What it prints for `--schema`. Raises SchemaTimeout and PluginFailed."""
    out, err = ByteCapture(LONGEST_OUTPUT, LONGEST_OUTPUT), ByteCapture(LONGEST_OUTPUT, LONGEST_OUTPUT)
    program = Program((str(path), "--schema"), where.cwd, environment(where, {}), is_marked=True)

    async def run(program: Program) -> ProcessResult:
        return await run_program(program, SECONDS, out, err, ending=AT_ONCE)

    try:
        ended = await (run(program) if where.confine is None else run_in_sandbox(path.name, where, program, run))
    except StartError as error:
        raise PluginFailed(not_started(error)) from error
    if out.is_cut or err.is_cut:
        raise PluginFailed(
            f"`--schema` prints more than {LONGEST_OUTPUT >> 20} MiB", "it must print one JSON value and end"
        )
    if ended.timed_out:
        raise SchemaTimeout(f"`--schema` does not end within {SECONDS:g} s")
    if ended.exit_status:
        if has_windows_line_end(path):
            raise PluginFailed(windows_line_end(str(path)))
        complaint = " ".join(err.content()[-400:].decode("utf-8", "replace").split())
        raise PluginFailed(f"`--schema`: {exit_words(ended.exit_status)}" + (f": {complaint}" if complaint else ""))
    return out.content()


def read_schema(printed: bytes) -> tuple[tuple[ToolSchema, ...], tuple[str, ...]]:
    """The tools of one JSON value, an object or a list of them, and what is odd about it. Raises PluginFailed."""
    if not printed.strip():
        raise PluginFailed("`--schema` prints nothing", "it must print one JSON value")
    try:
        value = msgspec.json.decode(printed)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PluginFailed(f"`--schema` does not print JSON: {error}") from error
    members = value if isinstance(value, list) else [value]
    tools: list[ToolSchema] = []
    problems: list[str] = []
    for at, member in enumerate(members):
        place = f"`--schema`, tool {at + 1}" if isinstance(value, list) else "`--schema`"
        try:
            tools.append(_tool(member, place, problems))
        except PluginFailed as error:
            problems.append(error.message)
    if not tools:
        raise PluginFailed("; ".join(problems) or "`--schema` names no tool")
    return tuple(tools), tuple(problems)


class _SchemaReply(Struct):
    """One member as it is printed; unknown fields are ignored."""

    name: str
    description: str
    parameters: dict[str, Any] | None = None
    hooks: list[str] | None = None
    parallel: bool | None = None
    flow_control: bool | None = None
    ends_turn: bool | None = None
    summary_params: list[str] | None = None


def _tool(member: Any, place: str, problems: list[str]) -> ToolSchema:
    """Raises PluginFailed for one that is left out."""
    try:
        reply = msgspec.convert(member, _SchemaReply)
    except msgspec.ValidationError as error:
        raise PluginFailed(f"{place} is left out: {error}") from error
    if not NAME.fullmatch(reply.name):
        raise PluginFailed(
            f"{place} is left out: the name {reply.name!r} is not made of at most 64 letters, digits, _ and -"
        )
    problems += _near_misses(member, reply, place)
    hooks = dict.fromkeys(hook for hook in reply.hooks or () if hook in HOOKS)
    return ToolSchema(
        reply.name, reply.description, reply.parameters or {"type": "object", "properties": {}}, tuple(hooks),
        reply.parallel is not False, bool(reply.flow_control), bool(reply.ends_turn), tuple(reply.summary_params or ()),
    )  # fmt: skip


def _near_misses(member: Mapping[str, object], reply: _SchemaReply, place: str) -> Iterator[str]:
    """Hooks that there are not, and fields that are nearly one of ours; others may be anybody's."""
    for hook in reply.hooks or ():
        if hook not in HOOKS:
            hint = did_you_mean(hook, HOOKS)
            yield f"{place}: there is no hook {hook}" + (f"; {hint}" if hint else "")
    fields = _SchemaReply.__struct_fields__
    for key in member:
        near = closest(key, fields) if key not in fields else None
        if near and near not in member:
            yield f"{place}: `{key}` has no effect; did you mean `{near}`?"
