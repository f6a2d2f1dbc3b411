"""Rules on shell commands: an allow rule needs certainty; a deny rule needs suspicion, so of an opaque command every word may be a
command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from cru.files.glob import StarGlob, matches_text, parse_glob
from cru.shell.analysis import CommandAnalysis, Words
from cru.shell.option_uses import OptionUse
from cru.shell.programs import SUBCOMMAND_PROGRAMS, WRAPPERS, base_name

_OPERATORS = ";|&<>()`\n"
_LONG_OPTION = re.compile(r"--[\w-]+")
_DEFAULT = re.compile(r"\$\{\w*:?[-+=?]")
_ESCAPED_BLANK = re.compile(r"\\[tvfr]")
_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|0?([0-7]{2,3}))")


def allowed_text(words: Words) -> str:
    """The words as an allow rule sees them: blanks inside a word are no blanks."""
    return " ".join("".join("\0" if char in " \t\n" else char for char in word) for word in words)


def names_uses(pattern: str, uses: Sequence[OptionUse]) -> bool:
    """Whether an allow rule writes out each option that does more than the program's name says; each word of it stands for one."""
    words = [parse_glob(word) for word in pattern.split()] if uses else []
    for use in uses:
        text = allowed_text((use.word,))
        naming = next((w for w in words if len(w[0]) >= use.length and matches_text(w, text)), None)
        if naming is None:
            return False
        words.remove(naming)
    return True


def command_matches(command: CommandAnalysis, pattern: StarGlob) -> bool:
    """Whether a deny or ask rule's pattern finds a command of its own in this one, with or without further arguments."""
    forms = [pattern] if pattern[-1] == "" and len(pattern) > 1 else [pattern, (*pattern[:-1], pattern[-1] + " ", "")]
    if len(pattern) > 1 and pattern[-1] == "" and pattern[-2].endswith(" "):
        forms.append((*pattern[:-2], pattern[-2].rstrip()))
    return any(matches_text(form, text, start) for text, start in _candidates(command, pattern) for form in forms)


def _candidates(command: CommandAnalysis, pattern: StarGlob) -> Iterator[tuple[str, int]]:
    """The texts, and where in them a command may begin."""
    named = [option for piece in pattern for option in _LONG_OPTION.findall(piece)]
    for words in command.parts:
        spelled_out = _spelled_out(words, named) if named else words
        for form in (words, *_without_options(words), spelled_out, *_without_options(spelled_out)):
            text = " ".join(form)
            yield text, 0
            yield text, len(form[0]) - len(base_name(form[0]))
    if any(char in piece for piece in pattern for char in _OPERATORS):
        text = " ".join(command.raw.split())
        yield from ((text, start) for start in _starts(text, pattern))
    if command.suspect:
        first = pattern[0].split(" ")[0]
        for words in _segments(command.raw):
            words = _glob_named(words, first)
            for form in (words, *_without_options(words)):
                text = " ".join(form)
                yield from ((text, start) for start in _starts(text, pattern))


def _spelled_out(words: Words, named: Sequence[str]) -> Words:
    """With the long options that a rule names in the place of what may be short for them: `--force` for `--forc`."""
    spelled_out = []
    for word in words:
        head, equals, value = word.partition("=")
        whole = next((option for option in named if option.startswith(head)), head) if len(head) > 3 else head
        spelled_out.append(f"{whole}{equals}{value}" if head.startswith("--") else word)
    return tuple(spelled_out)


def _without_options(words: Words) -> Iterator[Words]:
    """`git push` for `git -C . push`: the words from each program that has subcommands, without the options before its own.
    Whether an option takes a value is not known, so both are tried."""
    for at, word in enumerate(words):
        name = base_name(word)
        if name not in SUBCOMMAND_PROGRAMS:
            continue
        for first in range(at + 2, len(words)):
            if not (words[first - 1].startswith("-") or (first > at + 2 and words[first - 2].startswith("-"))):
                break
            yield (name, *words[first:])


def _segments(raw: str) -> Iterator[Words]:
    """The words of a suspect command, cut wherever a command might begin: once with the quotes taken away, so that pieces of a
    word come together, and once with everything but plain characters as a blank, so that nothing hangs before a command."""
    text = raw.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ")
    if "\\" in text:
        text = f"{text}\n{_unescaped(text)}"
    joined = text.replace("\\n", "\n").replace("$'", "").replace('$"', "")
    for char in "'\"\\":
        joined = joined.replace(char, "")
    apart = _DEFAULT.sub(" ", text.replace("\\n", "\n"))
    for char in "'\"\\,[]{}=!@:$":
        apart = apart.replace(char, " ")
    for separated in (joined, apart):
        for char in _OPERATORS + "{}\r":
            separated = separated.replace(char, "\n")
        yield from (tuple(line.split()) for line in separated.split("\n") if line and not line.isspace())


def _glob_named(words: Words, first: str) -> Words:
    """With the rule's program in the place of a command word that may become its file's name: `rm` for `/bin/r?`."""
    for at, word in enumerate(words):
        name = base_name(word)
        if _GLOB.search(name) and any(char.isalnum() for char in name) and fnmatchcase(first, name):
            return (*words[:at], first, *words[at + 1 :])
        if name not in WRAPPERS and "=" not in word and not word.startswith("-"):
            break
    return words


def _unescaped(text: str) -> str:
    """With `\\x72` and `\\162` as the letters they stand for in `$'…'` and in `printf`, and `\\t` as a blank."""
    text = _ESCAPED_BLANK.sub(" ", text.replace("\\n", "\n"))
    return _ESCAPED.sub(lambda m: chr(int(m[3], 8) if m[3] else int(m[1] or m[2], 16)), text)


def _starts(text: str, pattern: StarGlob) -> Iterator[int]:
    """Where in the text a command may begin: at each word, behind its `=` or its option's letter, at the last name of a path.
    A pattern that begins with a star finds everything from the start of the text."""
    if pattern[0] == "":
        yield 0
        return
    at = 0
    for word in text.split(" "):
        yield at
        if "/" in word:
            yield at + word.rindex("/") + 1
        if "=" in word:
            yield at + word.index("=") + 1
        if word.startswith("-"):  # `-Srm`
            yield at + 2
        at += len(word) + 1
