"""Files that a command only writes: a hook may keep a log of its own, and that is no reason to ask again.

Such a file may be left out only where it is certain that the shell reads the words in the same way: a quote or a comment that is read
otherwise could make a script that is run look like one that is written. What this reader does not know, leaves the source as it is.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\s;|&<>()`'\"\\$#]+")
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\}|[#?!$@*-])?(?!['\"({])")
_DOUBLE = re.compile(r"\\.|[^\"\\$`]+", re.DOTALL)
_SINGLE = re.compile(r"'[^']*'")
_TARGET = re.compile(
    r"""[ \t]*((?:'[^']*'|"(?:[^"$`\\]|\$(?![({])|\$\{\w+\})*+"|[^\s;|&<>()`"'\\$]|\$\{\w+\}|\$(?!['"({]))++)"""
)
_REDIRECTION = re.compile(r"<>|<&|>&|>>|>\||>|<(?![<(])")
_UNKNOWN = re.compile(r"\r|\balias\b|=~|\(\(|\btee[ \t]*\(|\bfunction[ \t]+tee\b")
"""Words that change how what follows is read, or what `tee` is."""
_TEE = re.compile(r"(?:(?:/usr)?/bin/)?tee(?=[ \t])")
_OPTION = re.compile(r"[ \t]+(?:-[ai]+|--append)(?=[ \t])")
_STREAMS = re.compile(r"\bdev\b(?!/null)|\bproc\b|\bfd\b|\bstd(?:in|out|err)\b")
"""Other names of a file that is open for writing."""


class _Unsure(Exception):
    pass


def strip_written_files(command: str) -> str:
    """The source without comments and without the files that output goes to; as it is where that is not certain."""
    if _UNKNOWN.search(command) is not None:
        return command
    reader = _Reader(command)
    try:
        reader.commands("")
    except (_Unsure, RecursionError):
        return command
    rest = "".join(reader.out)
    return command if _STREAMS.search(rest) else rest


class _Reader:
    """One pass. out: what is left · first: the next word begins a command · fresh: the next character begins a word · close: what ends the
    source that is read now."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.close = ""
        self.out: list[str] = []
        self.first = self.fresh = True

    def take(self, length: int) -> None:
        self.out.append(self.text[self.at : self.at + length])
        self.at += length

    def commands(self, close: str) -> None:
        """Up to `close`, which is a parenthesis, or to the end of the text."""
        self.first = self.fresh = True
        outer, self.close = self.close, close
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == close:
                self.take(1)
                self.close = outer
                return
            if close and char == "(":
                raise _Unsure
            self.one(char)
        if close:
            raise _Unsure

    def one(self, char: str) -> None:
        if char in " \t":
            self.take(1)
            self.fresh = True
        elif char in "\n;|&()":
            self.take(1)
            self.first = self.fresh = True
        elif char in "<>":
            self.redirection()
        elif char == "#" and self.fresh:
            self.comment()
        elif self.first and self.fresh and (tee := _TEE.match(self.text, self.at)):
            self.take(tee.end() - self.at)
            self.first = False
            self.tee()
        else:
            start = self.at
            self.piece(char)
            word = self.text[start : self.at]
            if self.close and word == "case":
                raise _Unsure  # its patterns end in parentheses
            self.first = self.first and self.fresh and word in ("if", "then", "else", "do", "!", "{")
            self.fresh = False

    def comment(self) -> None:
        """To the end of the line; behind an operator it might be something else."""
        if self.at and self.text[self.at - 1] not in " \t\n;":
            raise _Unsure
        end = self.text.find("\n", self.at)
        self.at = end if end >= 0 else len(self.text)

    def redirection(self) -> None:
        found = _REDIRECTION.match(self.text, self.at)
        if found is None:
            raise _Unsure  # a here-document, a process for a file
        if found[0] in (">", ">>", ">|"):
            target = _TARGET.match(self.text, found.end())
            if self.text[found.end() : found.end() + 1] == "(" or (target is not None and target[1][0] == "#"):
                raise _Unsure
            if target is None and self.text[found.end() :].lstrip(" \t")[:1] in ("", "\n", ";", "|", "&", ")"):
                raise _Unsure
            if target is not None and self.ends_word(target.end()):
                self.written(target.end())
                return
        self.take(len(found[0]))
        self.fresh = True

    def written(self, end: int) -> None:
        """Leave the target out, and the number of the stream before it."""
        if self.out and self.out[-1].isdigit() and (len(self.out) == 1 or self.out[-2] in tuple(" \t\n;|&()")):
            self.out.pop()
        self.out.append(" ")
        self.at = end
        self.fresh = True

    def ends_word(self, at: int) -> bool:
        return at == len(self.text) or self.text[at] in " \t\n;|&<>)"

    def tee(self) -> None:
        """Its options, and the files that it writes."""
        while option := _OPTION.match(self.text, self.at):
            self.take(option.end() - self.at)
        while (
            (target := _TARGET.match(self.text, self.at)) and target[1][0] not in "-#" and self.ends_word(target.end())
        ):
            if target[1].isdigit() and self.text[target.end() : target.end() + 1] in ("<", ">"):
                break  # the number of a stream
            self.out.append(" ")
            self.at = target.end()
        self.fresh = False

    def piece(self, char: str) -> None:
        """A part of a word."""
        if char == "\\":
            self.take(2)
        elif char == '"':
            self.double()
        elif char in "$`":
            self.computed(char, quoted=False)
        elif found := (_SINGLE if char == "'" else _PLAIN).match(self.text, self.at):
            self.take(len(found[0]))
        elif char == "#":
            self.take(1)
        else:
            raise _Unsure

    def double(self) -> None:
        self.take(1)
        while self.text[self.at : self.at + 1] != '"':
            char = self.text[self.at : self.at + 1]
            if char in "$`" and char:
                self.computed(char, quoted=True)
            elif found := _DOUBLE.match(self.text, self.at):
                self.take(len(found[0]))
            else:
                raise _Unsure
        self.take(1)

    def computed(self, char: str, *, quoted: bool) -> None:
        """A variable, or what a command prints: its source is read like the rest."""
        if char == "`":
            end = self.text.find("`", self.at + 1)
            inner = self.text[self.at + 1 : end]
            if end < 0 or "\\" in inner or (quoted and '"' in inner):
                raise _Unsure
            reader = _Reader(inner)
            reader.commands("")
            self.out += ["`", *reader.out, "`"]
            self.at = end + 1
        elif self.text.startswith("$(", self.at):
            self.take(2)
            kept = self.first, self.fresh
            self.commands(")")
            self.first, self.fresh = kept
        elif found := _VARIABLE.match(self.text, self.at):
            self.take(len(found[0]))
        else:
            raise _Unsure
