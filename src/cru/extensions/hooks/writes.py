"""Files that a command only writes: a hook may keep a log of its own, and that is no reason to ask again.

Such a file may be left out only where it is certain that the shell reads the words in the same way: a quote or a comment that is read
otherwise could make a script that is run look like one that is written.
"""

from __future__ import annotations

import re

_DOUBLE = r'"(?:[^"\\`$]|\\.|\$(?![({])|\$\{\w+\}|\$\([^()\'"\\`#<\n${]*\))*+"'
_CERTAIN = re.compile(
    rf"""(?:'[^']*'|{_DOUBLE}|\\.|\$\{{\w+\}}|\$(?!['"{{])|(?<=[^\s;|&()<>])\#|<(?!<)|[^'"\\`$#\r<])*+"""
)
"""No comment, no here-document, no `$'…'`, no backtick, no quotes within a substitution within quotes: all others read as POSIX says."""
_TARGET = r"""(?:'[^']*'|"(?:[^"$`\\]|\$(?![({])|\$\{\w+\})*+"|[^\s;|&<>()`"'\\$]|\$\{\w+\}|\$(?!['"({]))++"""
_WRITES = re.compile(
    rf"""('[^']*'|"(?:[^"\\]|\\.)*+"|\\.)|(?:(?<![^\s;|&()])\d+)?(?<!<)>>?\|?[ \t]*{_TARGET}""", re.DOTALL
)
"""What is quoted, and redirections to files."""
_STREAMS = re.compile(r"\bdev\b(?!/null)|\bproc\b|\bfd\b|\bstd(?:in|out|err)\b")
"""Other names of a file that is open for writing."""


def without_written(command: str) -> str:
    """The source without the files that output goes to; as it is where that is not certain."""
    if _CERTAIN.fullmatch(command) is None:
        return command
    rest = _WRITES.sub(lambda match: match[1] or " ", command)
    return command if _STREAMS.search(rest) else rest
