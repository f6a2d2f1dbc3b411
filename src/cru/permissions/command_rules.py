"""Rules on shell commands: an allow rule needs certainty; a deny rule needs suspicion, so of an opaque command every word may be a
command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import accumulate, islice

from cru.files.glob import StarGlob, matches_text, parse_glob
from cru.shell.analysis import CommandAnalysis, Words
from cru.shell.option_effects import OptionUse
from cru.shell.programs import SUBCOMMAND_PROGRAMS, WRAPPERS, base_name

_OPERATORS = ";|&<>()`\n"
_LONG_OPTION = re.compile(r"--[\w-]+")
_DEFAULT = re.compile(r"\$\{\w*:?[-+=?]")
_ESCAPED_BLANK = re.compile(r"\\[tvfr]")
_MOST_OPTIONS = 100
"""Words between a program and what it is to do, of a rule that does not write out the program's name."""
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
    named = [option for piece in pattern for option in _LONG_OPTION.findall(piece)]
    for words in command.parts:
        if _words_match(words, forms) or (
            named and any(_words_match(other, forms) for other in _spellings(words, named))
        ):
            return True
    if any(char in piece for piece in pattern for char in _OPERATORS):
        text = " ".join(command.raw.split())
        if _matches_from(forms, text, _starts(text, pattern)):
            return True
    if not command.suspect:
        return False
    first = pattern[0].split(" ")[0]
    segments = (_glob_named(words, first) for words in _segments(command.raw))
    return any(
        _segment_matches(spelling, pattern, forms)
        for words in segments
        for spelling in ((words, *_spellings(words, named)) if named else (words,))
    )


def _words_match(words: Words, forms: Sequence[StarGlob]) -> bool:
    """Whether the words are the command, or what a program among them is to do behind its own options is."""
    heads = (words[0], base_name(words[0]))
    if any(f"{head} ".startswith(_first_word(form)) for form in forms for head in heads):
        text = " ".join(words)
        if _matches_from(forms, text, (0, len(heads[0]) - len(heads[1]))):
            return True
    return _subcommand_matches(words, forms)


def _segment_matches(words: Words, pattern: StarGlob, forms: Sequence[StarGlob]) -> bool:
    text = " ".join(words)
    return _matches_from(forms, text, _starts(text, pattern)) or _subcommand_matches(words, forms)


def _first_word(form: StarGlob) -> str:
    """What the first word of a command must begin with, the blank behind it included."""
    head, blank, _ = form[0].partition(" ")
    return head + blank


def _matches_from(forms: Sequence[StarGlob], text: str, starts: Iterable[int]) -> bool:
    """Whether one of the forms matches the text from one of these places, which are in their order. Of a form with a star only the first
    place counts at which its beginning stands: what matches further behind matches from there, too."""
    places = list(starts)
    for form in forms:
        fitting = (start for start in places if text.startswith(form[0], start))
        if any(matches_text(form, text, start) for start in (islice(fitting, 1) if len(form) > 1 else fitting)):
            return True
    return False


def _spellings(words: Words, named: Sequence[str]) -> Iterator[Words]:
    """With the long options that a rule names written out, if that changes anything."""
    from cru.permissions.short_options import with_long_options

    whole = _spelled_out(words, named)
    if whole != words:
        yield whole
    if (long := with_long_options(whole, named)) != whole:
        yield long


def _spelled_out(words: Words, named: Sequence[str]) -> Words:
    """With the long options that a rule names in the place of what may be short for them: `--force` for `--forc`."""
    spelled_out = []
    for word in words:
        head, equals, value = word.partition("=")
        whole = next((option for option in named if option.startswith(head)), head) if len(head) > 3 else head
        spelled_out.append(f"{whole}{equals}{value}" if head.startswith("--") else word)
    return tuple(spelled_out)


def _subcommand_matches(words: Words, forms: Sequence[StarGlob]) -> bool:
    """Whether one of the forms is `git push` for `git -C . push`: the words from each program that has subcommands, without the options
    before its own. Whether an option takes a value is not known, so both are tried."""
    places = _behind_options(words) if any(base_name(word) in SUBCOMMAND_PROGRAMS for word in words) else {}
    if not places:
        return False
    text = " ".join(words)
    for name, starts in places.items():
        own = [(form[0][len(name) + 1 :], *form[1:]) for form in forms if form[0].startswith(f"{name} ")]
        if _matches_from(own, text, starts):
            return True
        wide = [form for form in forms if len(form) > 1 and name.startswith(form[0])]
        if wide and any(_matches_from(wide, f"{name} {text[start:]}", (0,)) for start in starts[:_MOST_OPTIONS]):
            return True
    return False


def _behind_options(words: Words) -> dict[str, list[int]]:
    """Where in the joined words each program's own words may begin."""
    ends = [*accumulate((len(word) + 1 for word in words), initial=0)]
    places: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        name = base_name(word)
        if name not in SUBCOMMAND_PROGRAMS:
            continue
        for first in range(at + 2, len(words)):
            if not (words[first - 1].startswith("-") or (first > at + 2 and words[first - 2].startswith("-"))):
                break
            places.setdefault(name, []).append(ends[first])
    return {name: sorted(set(starts)) for name, starts in places.items()}


@lru_cache(maxsize=2)
def _segments(raw: str) -> tuple[Words, ...]:
    """The words of a suspect command, cut wherever a command might begin: once with the quotes taken away, so that pieces of a
    word come together, and once with everything but plain characters as a blank, so that nothing hangs before a command."""
    text = raw.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ").replace("&-", "\n")  # as in `<&-rm x`
    if "\\" in text:
        text = f"{text}\n{_unescaped(text)}"
    joined = text.replace("\\n", "\n").replace("$'", "").replace('$"', "")
    for char in "'\"\\":
        joined = joined.replace(char, "")
    apart = _DEFAULT.sub(" ", text.replace("\\n", "\n"))
    for char in "'\"\\,[]{}=!@:$":
        apart = apart.replace(char, " ")
    cut = str.maketrans(dict.fromkeys(_OPERATORS + "{}\r", "\n"))
    lines = dict.fromkeys(line for text in (joined, apart) for line in text.translate(cut).split("\n"))
    return tuple(words for line in lines if (words := tuple(line.split())))


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
