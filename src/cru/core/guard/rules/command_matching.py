"""Match a shell command against the patterns of deny and ask rules. Suspicion is enough: in a command that cannot be read, every
word may be a command. gate.py decides what a match means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from cru.core.base.files.glob import StarGlob, matches_text
from cru.core.guard.rules.denied_options import read_denied_options, without_denied_options
from cru.core.guard.rules.rule_programs import GLOB, programs_of, without_globs, without_versions
from cru.core.guard.shell.analysis import CommandAnalysis, Words
from cru.core.guard.shell.braces import expand_bash_braces
from cru.core.guard.shell.inner_commands import find_inner_commands, find_line_commands, find_plainly_run
from cru.core.guard.shell.literal_values import write_out_values
from cru.core.guard.shell.plain_commands import find_every_command
from cru.core.guard.shell.programs import KEYWORDS, SUBCOMMAND_PROGRAMS, base_name

if TYPE_CHECKING:
    from cru.core.guard.rules.denied_options import DeniedOptions

_OPERATORS = ";|&<>()`\n"
_CUT = str.maketrans(dict.fromkeys(_OPERATORS + "\r", "\n"))
_CUT_BRACES = str.maketrans(dict.fromkeys(_OPERATORS + "{}\r", "\n"))
_CUT_LINE = re.compile(r"[;|&\n`]|\$\(")
_BLANK = re.compile(r"[\s;|&]")
_BARE = str.maketrans(dict.fromkeys("'\"(){}\\", " "))
_DEFAULT = re.compile(r"\$\{\w*:?[-+=?]")
_ESCAPED_BLANK = re.compile(r"\\[tvfr]")
_MOST_OPTIONS = 100
"""Words between a program and what it is to do, of a rule that does not write out the program's name."""
MOST_WORDS = 600_000
"""Words that the rules look at together; beyond, the command is too long to be judged."""
MOST_CHARACTERS = 600_000_000
"""The same of the characters in which what rules write out is looked for."""
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|0?([0-7]{2,3}))")


class _SearchedWords:
    """Words that may be a command, with what every rule wants to know of them."""

    def __init__(self, words: Words, begins: Sequence[int] | None = None) -> None:
        """begins: places of words that may begin a command; None: all"""
        self.words = words
        self.begins = range(len(words)) if begins is None else begins

    @cached_property
    def text(self) -> str:
        return " ".join(self.words)

    @cached_property
    def starts(self) -> list[int]:
        return [*_starts(self.words, self.begins)]

    @cached_property
    def behind_options(self) -> dict[str, list[int]]:
        return _behind_options(self.words)

    @cached_property
    def has_glob(self) -> bool:
        return GLOB.search(self.text) is not None


def _spellings_of(candidate: _SearchedWords, programs: Words) -> Iterator[_SearchedWords]:
    """The candidate, and with the rule's program in the place of its versions."""
    is_command = len(candidate.begins) == 1  # the first word is the program for certain
    if candidate.has_glob and not is_command:
        candidate = _SearchedWords(without_globs(candidate.words, programs), candidate.begins)
    yield candidate
    for words in without_versions(candidate.words, candidate.text, programs, is_command=is_command):
        yield _SearchedWords(words, candidate.begins)


class SearchedCommand:
    """A command that many deny or ask rules look at. What a rule writes out is looked for in all of it first, which most end with.

    is_too_long: the rules would have to look at more words than there is time for; from then on each is taken to match
    """

    def __init__(
        self, command: CommandAnalysis, simplified: CommandAnalysis | None = None, *, is_shell: bool = True
    ) -> None:
        """simplified: the same without what changes nothing; what allow rules see, these rules see, too
        is_shell: a shell reads it, not another program"""
        self._is_shell = is_shell
        self._forms = (command,) if simplified is None else (command, simplified)
        self._raw = command.raw
        self._words_seen = 0
        self._characters_seen = 0
        self._contained: dict[str, bool] = {}
        self.is_too_long = False

    def matches(self, pattern: StarGlob) -> bool:
        """Whether a rule's pattern finds a command of its own in this one, with or without further arguments."""
        denied = _denied_options(pattern)
        may_match = self._may_match(pattern if denied is None else denied.rest)
        self._words_seen += self._size * (1 if denied is None else 3) if may_match else 0
        if self._words_seen > MOST_WORDS or self._characters_seen > MOST_CHARACTERS:
            self.is_too_long = True
            return True
        if not may_match:
            return False
        forms = _forms(pattern)
        has_operator = any(char in piece for piece in pattern for char in _OPERATORS)
        if has_operator and _matches_from(forms, self._line.text, _places(self._line, pattern)):
            return True
        programs = programs_of(pattern)
        is_about_command = programs[0] != "" and programs[0] not in KEYWORDS
        candidates = self._commands if is_about_command else self._candidates
        spelled = (form for candidate in candidates for form in _spellings_of(candidate, programs))
        return any(_is_hit(candidate, forms, denied) for candidate in spelled)

    def _may_match(self, pattern: StarGlob) -> bool:
        """Whether all that the pattern writes out stands somewhere."""
        programs = programs_of(pattern) if self._has_globs else ()
        tokens = (token for token in _tokens(pattern) if not any(token in program for program in programs))
        return all(map(self._contains, tokens))

    def _contains(self, text: str) -> bool:
        """Many rules write out the same."""
        if text not in self._contained:
            self._contained[text] = text in self._all
            self._characters_seen += len(self._all)
        return self._contained[text]

    @cached_property
    def _suspect(self) -> list[CommandAnalysis]:
        return [form for form in self._forms if form.suspect and not form.is_plainly_wrapped]

    @cached_property
    def _candidates(self) -> list[_SearchedWords]:
        return self._read_candidates(self._suspect)

    @cached_property
    def _commands(self) -> list[_SearchedWords]:
        """The candidates, but of a suspect form of which every command is known only these."""
        if not self._suspect or not self._is_shell:
            return self._candidates
        commands = {form.raw: find_every_command(form.raw) for form in self._suspect}
        unknown = [form for form in self._suspect if commands[form.raw] is None]
        if len(unknown) == len(self._suspect):
            return self._candidates
        known = (_SearchedWords(*placed) for each in commands.values() for placed in each or ())
        return [*known, *self._read_candidates(unknown)]

    def _read_candidates(self, suspect: list[CommandAnalysis]) -> list[_SearchedWords]:
        """suspect: forms of which every word may begin a command"""
        parts = dict.fromkeys(words for form in suspect for words in (*form.parts, *form.emptied))
        others = [form for form in self._forms if form not in self._suspect]
        sources = (form.raw for form in suspect)
        fed = (" ".join(words) for form in others for words in _parts_that_feed(form))
        segments = (words for text in (*sources, *fed) for words in _segments(text))  # every word may begin a command
        inner = (each for form in others for words in (*form.parts, *form.emptied) for each in _inner_commands(words))
        return [
            *(_SearchedWords(words, (0,)) for words in parts),
            *map(_SearchedWords, segments),
            *(_SearchedWords(words, begins) for words, begins in dict.fromkeys(inner)),
        ]

    @cached_property
    def _line(self) -> _SearchedWords:
        return _SearchedWords(tuple(self._raw.split()))

    @cached_property
    def _all(self) -> str:
        return "\n".join(candidate.text for candidate in (*self._candidates, self._line))

    @cached_property
    def _size(self) -> int:
        return sum(len(candidate.words) for candidate in self._candidates)

    @cached_property
    def _has_globs(self) -> bool:
        return any(candidate.has_glob for candidate in self._candidates if len(candidate.begins) > 1)


@lru_cache(maxsize=4096)
def _tokens(pattern: StarGlob) -> tuple[str, ...]:
    """What must stand in one word of whatever the pattern matches."""
    return tuple(dict.fromkeys(token for piece in pattern for token in piece.split(" ") if token))


@lru_cache(maxsize=4096)
def _forms(pattern: StarGlob) -> tuple[StarGlob, ...]:
    """The pattern with and without further arguments."""
    forms = [pattern] if pattern[-1] == "" and len(pattern) > 1 else [pattern, (*pattern[:-1], pattern[-1] + " ", "")]
    if len(pattern) > 1 and pattern[-1] == "" and pattern[-2].endswith(" "):
        forms.append((*pattern[:-2], pattern[-2].rstrip()))
    return tuple(forms)


def _inner_commands(words: Words) -> Iterator[tuple[Words, tuple[int, ...]]]:
    """The words of a simple command, and the command lines that its program may run, each with the places where commands may begin."""
    inner = find_inner_commands(words)
    yield words, (0, *inner)
    lines = (text for at in inner if _BLANK.search(words[at]) for text in _texts(words[at]))
    for line in (line for text in lines for line in _CUT_LINE.split(text)):
        if own := tuple(line.translate(_BARE).split()):
            yield own, find_line_commands(own)


def _parts_that_feed(form: CommandAnalysis) -> Iterator[Words]:
    """Yield the commands whose output another one may get as words, if one of them is `xargs`."""
    if form.is_plainly_wrapped and any(base_name(words[0]) == "xargs" for words in form.parts):
        yield from (words for words in form.parts if not find_plainly_run(words))


def _texts(word: str) -> Iterator[str]:
    """The word, and what stands behind the `=` of an option or a variable."""
    yield word
    head, equals, value = word.partition("=")
    if equals and " " not in head:
        yield value


def _denied_options(pattern: StarGlob) -> DeniedOptions | None:
    if not any("-" in piece for piece in pattern):
        return None
    return read_denied_options(pattern)


def _is_hit(candidate: _SearchedWords, forms: Sequence[StarGlob], denied: DeniedOptions | None) -> bool:
    """Whether it matches as it is written, or has the rule's options otherwise."""
    if _matches(candidate, forms):
        return True
    if denied is None:
        return False
    rest = _forms(denied.rest)
    others = without_denied_options(candidate.words, candidate.begins, denied)
    return any(_matches(_SearchedWords(words, (0,)), rest) for words in others)


def _matches(candidate: _SearchedWords, forms: Sequence[StarGlob]) -> bool:
    """Whether the words are the command, or what a program among them is to do behind its own options is."""
    return _matches_from(forms, candidate.text, _places(candidate, forms[0])) or _subcommand_matches(candidate, forms)


def _places(candidate: _SearchedWords, pattern: StarGlob) -> Sequence[int]:
    """Where a command of the pattern may begin; one that begins with a star finds everything from the start of the text."""
    return candidate.starts if pattern[0] else (0,)


def _matches_from(forms: Sequence[StarGlob], text: str, starts: Iterable[int]) -> bool:
    """Whether one of the forms matches the text from one of these places, which are in their order. Of a form with a star only the first
    place counts at which its beginning stands: what matches further behind matches from there, too."""
    places = list(starts)
    for form in forms:
        fitting = (start for start in places if text.startswith(form[0], start))
        if any(matches_text(form, text, start) for start in (islice(fitting, 1) if len(form) > 1 else fitting)):
            return True
    return False


def _subcommand_matches(candidate: _SearchedWords, forms: Sequence[StarGlob]) -> bool:
    """Whether one of the forms is `git push` for `git -C . push`: the words from each program that has subcommands, without the options
    before its own. Whether an option takes a value is not known, so both are tried."""
    if not candidate.behind_options:
        return False
    text = candidate.text
    for name, starts in candidate.behind_options.items():
        own = [(form[0][len(name) + 1 :], *form[1:]) for form in forms if form[0].startswith(f"{name} ")]
        if _matches_from(own, text, starts):
            return True
        wide = [form for form in forms if len(form) > 1 and name.startswith(form[0])]
        if wide and any(_matches_from(wide, f"{name} {text[start:]}", (0,)) for start in starts[:_MOST_OPTIONS]):
            return True
    return False


def _behind_options(words: Words) -> dict[str, list[int]]:
    """Where in the joined words each program's own words may begin."""
    programs = [(at, name) for at, word in enumerate(words) if (name := base_name(word)) in SUBCOMMAND_PROGRAMS]
    if not programs:
        return {}
    ends = [*accumulate((len(word) + 1 for word in words), initial=0)]
    dashed = [word.startswith("-") for word in words]
    places: dict[str, list[int]] = {}
    stops: dict[str, int] = {}
    for at, name in programs:
        if at + 2 < stops.get(name, 0):  # among the options of the same program before: there are no further places
            continue
        stops[name] = len(words)
        for first in range(at + 2, len(words)):
            if not (dashed[first - 1] or (first > at + 2 and dashed[first - 2])):
                stops[name] = first
                break
            places.setdefault(name, []).append(ends[first])
    return places


@lru_cache(maxsize=2)
def _segments(raw: str) -> tuple[Words, ...]:
    """The words of a suspect command, cut wherever a command might begin: once with the quotes taken away, so that pieces of a
    word come together (with braces, too, as bash expands them), and once with everything but plain characters as a blank, so that nothing
    hangs before a command."""
    text = raw.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ").replace("&-", "\n")  # as in `<&-rm x`
    if "\\" in text:
        text = f"{text}\n{_unescaped(text)}"
    if "=" in text or "$(" in text or "`" in text or "for " in text:
        text = f"{text}\n{write_out_values(text)}"
    joined = text.replace("\\n", "\n").replace("$'", "").replace('$"', "")
    for char in "'\"\\":
        joined = joined.replace(char, "")
    apart = _DEFAULT.sub(" ", text.replace("\\n", "\n"))
    for char in "'\"\\,[]{}=!@:$":
        apart = apart.replace(char, " ")
    whole = [expand_bash_braces(line) for line in joined.translate(_CUT).split("\n") if "{" in line]
    texts = (joined, apart, "\n".join(whole))
    lines = dict.fromkeys(line for text in texts for line in text.translate(_CUT_BRACES).split("\n"))
    return tuple(words for line in lines if (words := tuple(line.split())))


def _unescaped(text: str) -> str:
    """With `\\x72` and `\\162` as the letters they stand for in `$'…'` and in `printf`, and `\\t` as a blank."""
    text = _ESCAPED_BLANK.sub(" ", text.replace("\\n", "\n"))
    return _ESCAPED.sub(lambda m: chr(int(m[3], 8) if m[3] else int(m[1] or m[2], 16)), text)


def _starts(words: Words, begins: Sequence[int]) -> Iterator[int]:
    """Where in the joined words a command may begin: at each of these words, behind its `=` or its option's letter, at the last name of a
    path."""
    ends = [*accumulate((len(word) + 1 for word in words), initial=0)]
    for place in begins:
        at, word = ends[place], words[place]
        yield at
        if "/" in word:
            yield at + word.rindex("/") + 1
        if "=" in word:
            yield at + word.index("=") + 1
        if word.startswith("-") and not word.startswith("--"):  # `-Srm`
            yield at + 2
