"""Go's regular expressions (RE2) as Python's: the same pattern may be written for either."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import category

# The named classes of RE2, as the inside of a class.
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z",
    "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]*)?([):])")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_ONLY_PYTHON = re.compile(r"\(\?(?:<?[=!]|[>#(])|\\[1-9Z]|[*+?}]\+")


@lru_cache(maxsize=256)
def to_python(pattern: str) -> tuple[str, bool]:
    """(the pattern in Python's words, whether RE2 would refuse it). Does not raise: what is wrong with it, `re` says."""
    return _RegexTranslation(pattern).whole()


class _RegexTranslation:
    """One pattern while it is read. `_flags`: for every group that is open, the flags that were set in it with `(?i)`: Python
    knows them only as a group of their own, which may not reach over a `|`."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._flags: list[list[str]] = [[]]
        self._refused = False

    def whole(self) -> tuple[str, bool]:
        while self._at < len(self._text):
            char = self._text[self._at]
            if _ONLY_PYTHON.match(self._text, self._at):
                self._refused = True
            if char == "\\":
                self._out.append(self._escape(inside=False))
            elif char == "[":
                self._out.append(self._set())
            elif char == "(":
                self._open()
            else:
                self._other(char)
        self._out.append(")" * len(self._flags[-1]))
        return "".join(self._out), self._refused

    def _other(self, char: str) -> None:
        flags = self._flags[-1]
        if char == "|":
            self._out.append(")" * len(flags) + "|" + "".join(flags))
        elif char == ")":
            if len(self._flags) > 1:
                self._flags.pop()
            self._out.append(")" * len(flags) + ")")
        else:
            self._out.append(char)
        self._at += 1

    def _open(self) -> None:
        """A group; `(?i)` is one that ends with the group around it. Ungreedy (`U`) says nothing about whether it is found."""
        match = _FLAGS.match(self._text, self._at)
        if match is None:
            self._flags.append([])
            named = re.compile(r"\(\?<(?=[A-Za-z_])").match(self._text, self._at)
            self._out.append("(?P<" if named else "(")
            self._at += len(named[0]) if named else 1
            return
        on, off = match[1].replace("U", ""), (match[2] or "").replace("U", "")
        opened = f"(?{on}{off if len(off) > 1 else ''}:"
        self._out.append(opened)
        if match[3] == ")":
            self._flags[-1].append(opened)
        else:
            self._flags.append([])
        self._at = match.end()

    def _escape(self, inside: bool) -> str:
        """An escape as Python has it; its inside if it stands in a set."""
        match = _PROPERTY.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return _property(match[3] or match[4], (match[1] == "P") != (match[2] == "^"), inside)
        code = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}").match(self._text, self._at)
        if code is not None and int(code[1], 16) <= 0x10FFFF:
            self._at = code.end()
            return re.escape(chr(int(code[1], 16)))
        char = self._text[self._at + 1 : self._at + 2]
        if char == "Q":
            literal, _, _ = self._text[self._at + 2 :].partition(r"\E")
            self._at = min(self._at + 4 + len(literal), len(self._text))
            return re.escape(literal)
        self._at += 2
        return {"z": r"\Z", "C": "."}.get(char, "\\" + char) if not inside else "\\" + char

    def _set(self) -> str:
        text, out = self._text, ["["]
        self._at += 1
        if text.startswith("^", self._at):
            out.append("^")
            self._at += 1
        first = self._at
        while self._at < len(text) and (text[self._at] != "]" or self._at == first):
            named = re.compile(r"\[:(\^?)(\w+):\]").match(text, self._at)
            if named is not None and named[2] in POSIX:
                out.append(_negated(POSIX[named[2]]) if named[1] else POSIX[named[2]])
                self._at = named.end()
            elif text[self._at] == "\\":
                out.append(self._escape(inside=True))
            else:
                out.append("\\" + text[self._at] if text[self._at] in "[&|~]" else text[self._at])
                self._at += 1
        out.append("]" if self._at < len(text) else "")
        self._at += 1
        return "".join(out)


def _property(name: str, negated: bool, inside: bool) -> str:
    r"""`\pL`, `\p{Lu}`, `\p{Latin}`: of ASCII, as the names of tools are."""
    every = [chr(n) for n in range(128)]
    body = "".join(re.escape(c) for c in every if category(c).startswith(name) or (name == "Latin" and c.isalpha()))
    if negated:
        body = _negated(body)
    if inside:
        return body
    return f"[{body}]" if body else "(?!)"


def _negated(body: str) -> str:
    """The inside of a set for everything else."""
    is_in = re.compile(f"[{body}]") if body else None
    rest = "".join(re.escape(chr(n)) for n in range(128) if is_in is None or not is_in.match(chr(n)))
    return rest + "\x80-\u024f"
