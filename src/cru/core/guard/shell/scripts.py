"""Whether a script for `sed` or `awk` only changes the text that goes through it: what is not understood is not plain."""

from __future__ import annotations

import re

from cru.core.guard.shell.syntax import EXPANSION

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|[+~]\d+|\$|(?P<regex>/|\\(?P<mark>[^\n\\])))")
_ALONE = frozenset("=dDFgGhHnNpPxz")
_NUMBERED = frozenset("lLqQ")
_TO_LINE_END = frozenset("#aicrR")
_LABELS = frozenset(":btTv")
_LABEL = re.compile(r"[ \t]*[^\s;]*")  # what stands behind a blank is a command again
_FLAGS = re.compile(r"[gpiImM0-9]*")
_END = re.compile(r"\s*(?:;|\n|$|(?=[}#]))")
_BLANKS_AND_DIGITS = re.compile(r"[ 0-9]*")
_BRACKETS = re.compile(r"\[\^?\]?[^\]]*")
_UNCLEAR = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|[^\S \t\n]")
"""Control characters, EXPANSION among them, and blanks that are none everywhere."""


def is_plain_sed(script: str) -> bool:
    """No command that runs something (`e`) or writes a file (`w`), alone or as a flag of `s`."""
    try:
        at = 0
        if _UNCLEAR.search(script):
            return False
        while at < len(script):
            at = _sed_command(script, at)
    except ValueError:
        return False
    return True


def _sed_command(text: str, at: int) -> int:
    """The place behind the command at this one. Raises ValueError for what is not plain."""
    at = _skip_addresses(text, at)
    command = text[at : at + 1]
    at += 1
    if not command or command == "{":
        return at
    if command in "sy":
        return _end_of_command(text, _skip_replacement(text, at, has_flags=command == "s"))
    if command in _TO_LINE_END:
        return _line_end(text, at, continues=command in "aic")
    if command in _LABELS:
        match = _LABEL.match(text, at)
        return match.end() if match is not None else at
    if command in _ALONE:
        return _end_of_command(text, at)
    if command in _NUMBERED:
        match = _BLANKS_AND_DIGITS.match(text, at)
        return _end_of_command(text, match.end() if match is not None else at)
    raise ValueError(command)


def _skip_addresses(text: str, at: int) -> int:
    """The place behind what stands before a command, also behind the end of the one before."""
    while at < len(text) and (text[at].isspace() or text[at] in ";}"):
        at += 1
    for _ in range(2):
        at = _skip_address(text, at)
        if text[at : at + 1] != ",":
            break
        at += 1
    while text[at : at + 1] in ("!", " ", "\t"):
        at += 1
    return at


def _skip_address(text: str, at: int) -> int:
    match = _ADDRESS.match(text, at)
    if match is None:
        return at
    if match["regex"] is None:
        return match.end()
    at = _skip_part(text, match.end(), match["mark"] or "/")
    while text[at : at + 1] in ("I", "M"):
        at += 1
    return at


def _skip_replacement(text: str, at: int, *, has_flags: bool) -> int:
    mark = text[at : at + 1]
    if not mark or mark in "\n\\":
        raise ValueError(mark)
    at = _skip_part(text, _skip_part(text, at + 1, mark), mark)
    match = _FLAGS.match(text, at)
    return match.end() if match is not None and has_flags else at


def _skip_part(text: str, at: int, mark: str) -> int:
    """The place behind the next mark that no backslash stands before. In brackets a mark may stand for itself or not: not plain. Nor is a
    line end: what stands behind it is a command if this line is the text of an `a\\` in the script before."""
    start = at
    while at < len(text) and text[at] not in (mark, "\n"):
        at += 2 if text[at] == "\\" else 1
    if text[at : at + 1] != mark:
        raise ValueError(mark)
    part = re.sub(r"\\.", "", text[start:at], flags=re.DOTALL)
    behind = part.find("[")
    while behind >= 0:
        match = _BRACKETS.match(part, behind)
        if match is None or match.end() == len(part):
            raise ValueError(mark)
        behind = part.find("[", match.end())
    return at + 1


def _line_end(text: str, at: int, *, continues: bool) -> int:
    while at < len(text) and text[at] != "\n":
        at += 2 if continues and text[at] == "\\" else 1
    return min(at, len(text))


def _end_of_command(text: str, at: int) -> int:
    match = _END.match(text, at)
    if match is None:
        raise ValueError(text[at])
    return match.end()


def is_plain_awk(script: str) -> bool:
    """No pipe, no output into a file, no call of a program, nothing loaded, and no file or host read that it names itself. Looks for the
    signs of it anywhere, also in texts."""
    if "system" in script or EXPANSION in script or "@" in script or "|" in script.replace("||", ""):
        return False
    if "ARGV" in script or "/inet" in script or ("getline" in script and "<" in script):
        return False
    printing = script.find("print")
    return printing < 0 or ">" not in script[printing:].replace(">=", "")
