"""Annotations in the comments above a function of Lua or Fennel: @handler, @hook, @tool, @param, @return, @command, @view,
@view.handler, @plugin.

The grammar is that of the seeds and of crucible's parser of January 2026: a comment block directly above a function line, blank lines
allowed, `---` or `--`. Unknown annotations and fields are told with their line, never silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.plugins.tools import Parameter, make_parameter

FUNCTION = re.compile(r"^\s*(local\s+)?function\s+([A-Za-z_][\w]*(?:[.:][A-Za-z_]\w*)*)\s*\(")
ASSIGNED = re.compile(r"^\s*(local\s+)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*=\s*function\s*\(")
COMMENT = re.compile(r"^\s*--+(?!\[)\s?(.*)$")
FENNEL_COMMENT = re.compile(r"^\s*;+\s?(.*)$")
FENNEL_FUNCTION = re.compile(
    r"^\s*\((?:(?:fn|defn|lambda|λ)\s+|(?:global|local|var)\s+(?=\S+\s+\((?:fn|lambda|λ)\b))()([^\s()\[\]{}\"';]+)"
)
MARK = re.compile(r"^\s*@([A-Za-z_.]+)\s*(.*)$")
FIELD = re.compile(r"""(?<!\w)([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[^\s]+)""")
PARAM = re.compile(r"""^(\w+)\s+(\{?[\w<>,]+\}?\??)\s*(.*)$""")

# Annotation → the fields that it may have.
KNOWN: dict[str, tuple[str, ...]] = {
    "handler": ("event", "pattern", "priority", "on_error", "scope"),
    "tool": ("name", "desc"),
    "command": ("name", "desc", "hint"),
    "view": ("name", "desc"),
    "view.handler": ("name",),
    "plugin": ("watch",),
    "param": (),
    "return": (),
    "description": (),
}
SYNONYMS = {"hook": "handler", "returns": "return", "desc": "description"}
DOCUMENTATION = frozenset({
    "alias", "as", "async", "author", "cast", "class", "copyright", "deprecated", "diagnostic", "enum", "example", "field", "generic",
    "license", "meta", "module", "nodiscard", "note", "operator", "overload", "package", "private", "protected", "release", "see", "since",
    "source", "todo", "type", "usage", "vararg", "version", "within",
})  # fmt: skip
"""What LuaLS and LDoc read: none of it is meant for us."""


class Syntax(Struct, frozen=True):
    """How a language writes what is read here.

    comment: a line of comment, its text
    functions: the first line of a function: "local" or nothing, its path
    """

    comment: re.Pattern[str]
    functions: tuple[re.Pattern[str], ...]


LUA = Syntax(COMMENT, (FUNCTION, ASSIGNED))
FENNEL = Syntax(FENNEL_COMMENT, (FENNEL_FUNCTION,))


class LuaAnnotation(Struct, frozen=True):
    """One annotation on a function.

    kind: handler, tool, command, …
    function: its path as written (`M.on_turn_complete`)
    line: where it stands
    local: the function is local, so that nobody can reach it
    """

    kind: str
    function: str
    line: int
    fields: dict[str, str] = {}
    text: str = ""
    params: tuple[Parameter, ...] = ()
    local: bool = False


class SourceAnnotations(Struct):
    """What a source holds; problems are (line, text, hint).

    problems: for which the file is not loaded: something that is known is not said rightly
    unknown: what nobody here knows; the rest of the file counts
    """

    annotations: list[LuaAnnotation]
    problems: list[tuple[int, str, str]]
    unknown: list[tuple[int, str, str]]


def parse_annotations(source: str, syntax: Syntax = LUA) -> SourceAnnotations:
    """All annotations of a source, in order."""
    annotations = SourceAnnotations([], [], [])
    if "@" not in source:
        return annotations
    block: list[tuple[int, str]] = []
    for number, line in enumerate(source.splitlines(), 1):
        comment = syntax.comment.match(line)
        if comment is not None:
            block.append((number, comment[1]))
            continue
        if not line.strip():
            continue
        if block:
            function = next(filter(None, (form.match(line) for form in syntax.functions)), None)
            _read_block(block, function, annotations)
        block = []
    return annotations


def needs_module(source: str) -> bool:
    """The source assigns `M.x` without ever declaring `local M` (as the seeds' Ralph loop does)."""
    if "M." not in source and "M:" not in source:
        return False
    uses = re.search(r"^\s*(?:function\s+M[.:]|M\.\w+\s*=)", source, re.MULTILINE)
    return uses is not None and re.search(r"^\s*(?:local\s+M\b|M\s*=)", source, re.MULTILINE) is None


def _read_block(
    block: Sequence[tuple[int, str]], function: re.Match[str] | None, annotations: SourceAnnotations
) -> None:
    marks = [(number, match) for number, text in block if (match := MARK.match(text))]
    if not marks:
        return
    if function is None:
        if any(SYNONYMS.get(m[1], m[1]) in ("handler", "tool", "command", "view", "view.handler") for _, m in marks):
            annotations.problems.append(
                (marks[0][0], f"@{marks[0][1][1]} stands above no function", "put it directly above one")
            )
        return
    text = " ".join(t.strip() for _, t in block if t.strip() and not MARK.match(t))
    params = tuple(p for number, m in marks if m[1] == "param" and (p := _read_param(m[2], number, annotations)))
    for number, match in marks:
        kind = SYNONYMS.get(match[1], match[1])
        if kind in DOCUMENTATION:
            continue
        if kind not in KNOWN:
            what, hint = f"unknown annotation @{match[1]}, which has no effect", _nearest(match[1], [*KNOWN, *SYNONYMS])
            annotations.unknown.append((number, what, hint))
        elif kind not in ("param", "return", "description"):
            fields = _read_fields(kind, match[2], number, annotations)
            annotations.annotations.append(
                LuaAnnotation(kind, function[2], number, fields, text, params, bool(function[1]))
            )


def _read_fields(kind: str, text: str, number: int, annotations: SourceAnnotations) -> dict[str, str]:
    fields: dict[str, str] = {}
    if kind in ("tool", "command", "view", "view.handler") and text and "=" not in text:
        return {"name": text.split()[0].strip("\"'")}
    for match in FIELD.finditer(text):
        if match[1] not in KNOWN[kind]:
            hint = _nearest(match[1], KNOWN[kind])
            annotations.problems.append((number, f"@{kind} has no field `{match[1]}`", hint))
            continue
        fields[match[1]] = _unquote(match[2])
    return fields


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_param(text: str, number: int, annotations: SourceAnnotations) -> Parameter | None:
    match = PARAM.match(text.strip())
    if match is None:
        annotations.problems.append((number, f"@param cannot be read: {text}", "@param name type[?] description"))
        return None
    description = _unquote(match[3].strip())
    return make_parameter(match[1], match[2], description, "(optional)" in description)


def _nearest(word: str, known: Sequence[str]) -> str:
    return did_you_mean(word, known)
