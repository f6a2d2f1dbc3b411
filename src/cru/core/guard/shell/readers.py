"""Which commands only read: they leave every file as it is."""

from __future__ import annotations

import re

from cru.core.guard.shell.programs import base_name, names

READERS = names(
    "[ : basename cat cd cmp comm cut diff dirname du echo egrep false fgrep grep head hostname id ls md5sum nl od printf pwd "
    "readlink realpath rg sha256sum sleep stat tail test tr true type uname wc which whoami"
)
"""Programs that change nothing, whatever their arguments, but for the options that the table of options tells."""
GIT_READERS = names("blame diff log ls-files rev-parse show status")
_PLAIN = re.compile(r"[a-z0-9_:]+(?: +[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+,-]*)*")
"""Matches a program with plain operands: no option, variable, pattern, quote, assignment or second command."""


def only_reads(command: str) -> bool:
    """Whether that is certain."""
    if _PLAIN.fullmatch(command) and command.partition(" ")[0] in READERS:
        return True  # without loading the parser: no operand makes one of them write (tests/core/guard/shell/test_readers.py)
    from cru.core.guard.shell.analysis import analyze

    analysis = analyze(command)
    if analysis.opaque or any(analysis.uses):
        return False
    return bool(analysis.parts) and all(_reads(words) for words in analysis.parts)


def _reads(words: tuple[str, ...]) -> bool:
    name = base_name(words[0])
    if name == "git":
        return len(words) > 1 and words[1] in GIT_READERS and not any(word.startswith(("-o", "--ou")) for word in words)
    return name in READERS
