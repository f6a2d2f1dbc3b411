"""Words of shell source: quotes, escapes, variables and what is computed in place."""

from __future__ import annotations

import re

from cru.core.guard.shell.syntax import PartKind, Script, Unreadable, Word, WordPart

DEEPEST = 50
"""How deep commands and expansions may stand in each other."""
WORD_ENDS = " \t\n;|&<>()"
_PLAIN = re.compile(r"[^ \t\n;|&<>()`'\"\\$]+")
_QUOTED = re.compile(r"[^\"\\$`]+")
_DOCUMENT = re.compile(r"[^\\$`]+")
_ENCLOSED = re.compile(r"[^\\$`'\"(){}<>]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9?#@*!$-]|\{\w+\})", re.ASCII)
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_TAKE_ARRAYS = ("alias", "declare", "eval", "export", "let", "local", "readonly", "typeset")
"""Builtins whose arguments bash reads as assignments."""
_INDEXED = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)


class WordReader:
    """A place in the text that moves on.

    at: the next character
    depth: how many commands and expansions are open
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def read_body(self, script: Script, close: str) -> None:
        """Read commands up to `close`, and that; "" means up to the end of the text."""
        raise NotImplementedError

    def skip_space(self, *, newlines: bool) -> None:
        """Go to the next word or operator."""
        raise NotImplementedError

    def peek(self, ahead: int = 0) -> str:
        """A character, "" at the end."""
        return self.text[self.at + ahead : self.at + ahead + 1]

    def endless(self, reason: str) -> Unreadable:
        """What begins here has no end in the text."""
        at, self.at = self.at, len(self.text)
        return Unreadable(at, reason)

    def enter(self, reason: str) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(self.at, reason)

    def read_argument(self, words: list[Word]) -> Word:
        """Add the next word of a command. The first one may be an assignment, in whose index bash reads on over blanks and operators."""
        is_first = not words
        word = self.read_word(words, may_be_array=is_first or words[0].text in _TAKE_ARRAYS)
        if is_first and _INDEXED.match(word.source) and _is_open(word):
            raise Unreadable(word.start, "an index with blanks or operators in it")
        return word

    def read_word(self, words: list[Word], *, may_be_array: bool = False) -> Word:
        """Add the word that begins here."""
        word = Word(self.at, len(self.text))
        words.append(word)
        while (char := self.peek()) and (char not in WORD_ENDS or self._at_process()):
            self._read_part(word.parts, char)
        if may_be_array and self.peek() == "(" and _ARRAY.fullmatch(self.text, word.start, self.at):
            self._read_array(word.parts)
        word.end = self.at
        word.source = self.text[word.start : word.end]
        return word

    def read_document(self, parts: list[WordPart], end: int) -> None:
        """The text of a here-document, in which variables and commands count."""
        text, self.text = self.text, self.text[:end]
        while self.at < end:
            self._read_quoted(parts, _DOCUMENT, "$`\\")
        self.text = text

    def is_at_end(self) -> bool:
        """Whether no word begins here."""
        return self.peek() in WORD_ENDS and not self._at_process()

    def _at_process(self) -> bool:
        return self.peek() in ("<", ">") and self.peek(1) == "("

    def _read_part(self, parts: list[WordPart], char: str) -> None:
        if char == "\\":
            self._read_escaped(parts)
        elif char == "'":
            self._read_single_quoted(parts)
        elif char == '"':
            self._read_double_quoted(parts)
        elif char == "$":
            self._read_dollar(parts, quoted=False)
        elif char == "`":
            self._read_backquoted(parts, quoted=False)
        elif char in "<>":
            self._read_commands(parts, PartKind.PROCESS, quoted=False)
        else:
            self._take(parts, _PLAIN, quoted=False)

    def _take(self, parts: list[WordPart], pattern: re.Pattern[str], *, quoted: bool) -> None:
        """What the pattern matches, or else one character, as text."""
        match = pattern.match(self.text, self.at)
        end = match.end() if match else self.at + 1
        parts.append(WordPart(self.at, end, quoted=quoted, value=self.text[self.at : end]))
        self.at = end

    def _read_escaped(self, parts: list[WordPart]) -> None:
        char = self.peek(1)
        if not char:
            raise Unreadable(self.at, "a backslash at the end")
        is_joint = char == "\n"  # the shell joins the lines: nothing is quoted by it
        parts.append(WordPart(self.at, self.at + 2, quoted=not is_joint, value="" if is_joint else char))
        self.at += 2

    def _read_single_quoted(self, parts: list[WordPart]) -> None:
        close = self.text.find("'", self.at + 1)
        if close < 0:
            raise self.endless("an open quote")
        parts.append(WordPart(self.at, close + 1, quoted=True, value=self.text[self.at + 1 : close]))
        self.at = close + 1

    def _read_double_quoted(self, parts: list[WordPart]) -> None:
        start = self.at
        self.at += 1
        parts.append(WordPart(start, self.at, quoted=True))
        while self.peek() != '"':
            if not self.peek():
                raise Unreadable(start, "an open quote")
            self._read_quoted(parts, _QUOTED, '"\\$`\n')
        parts.append(WordPart(self.at, self.at + 1, quoted=True))
        self.at += 1

    def _read_quoted(self, parts: list[WordPart], plain: re.Pattern[str], escapable: str) -> None:
        char = self.peek()
        if char == "$":
            self._read_dollar(parts, quoted=True)
        elif char == "`":
            self._read_backquoted(parts, quoted=True)
        elif char == "\\" and (following := self.peek(1)) and following in escapable:
            self._read_escaped(parts)
        else:
            self._take(parts, plain, quoted=True)

    def _read_dollar(self, parts: list[WordPart], *, quoted: bool) -> None:
        following = self.peek(1)
        if self.text.startswith("\\\n", self.at + 1):
            raise Unreadable(
                self.at, "an expansion that goes on in the next line"
            )  # the shell joins them, then reads `$(`
        if following == "(":
            self._read_commands(parts, PartKind.COMMAND, quoted=quoted)
        elif following == "[":
            raise Unreadable(self.at, "a command substitution")  # arithmetic as it once was written
        elif following in ("'", '"') and not quoted:
            self._read_dollar_quoted(parts, following)
        elif match := _VARIABLE.match(self.text, self.at):
            parts.append(WordPart(self.at, match.end(), PartKind.VARIABLE, quoted, match[0]))
            self.at = match.end()
        elif following == "{":
            self._read_enclosed(parts, PartKind.COMPUTED, 2, "}", quoted=quoted)
        else:
            parts.append(WordPart(self.at, self.at + 1, quoted=quoted, value="$"))
            self.at += 1

    def _read_dollar_quoted(self, parts: list[WordPart], quote: str) -> None:
        part = self._begin(parts, PartKind.DOLLAR_QUOTED, quoted=True)
        if quote == '"':
            self.at += 1
            word = Word(self.at, part.end)
            part.words.append(word)
            self._read_double_quoted(word.parts)
            word.end = self.at
        else:
            match = _ANSI.match(self.text, self.at)
            if match is None:
                raise self.endless("a $-quoted text")
            self.at = match.end()
        self._end(part)

    def _read_commands(self, parts: list[WordPart], kind: PartKind, *, quoted: bool) -> None:
        """`$(…)`, which may be arithmetic, or a process."""
        if kind is PartKind.COMMAND and self.peek(2) == "(":
            self._read_enclosed(parts, PartKind.ARITHMETIC, 3, "))", quoted=quoted)
            return
        part = self._begin(parts, kind, quoted=quoted)
        self.at += 2
        part.body = Script(self.at, part.end)
        self.read_body(part.body, ")")
        self._end(part)

    def _read_backquoted(self, parts: list[WordPart], *, quoted: bool) -> None:
        """Backslashes, and quotes in quotes, are read twice there: such commands cannot be read in place."""
        part = self._begin(parts, PartKind.BACKQUOTED, quoted=quoted)
        match = _BACKQUOTED.match(self.text, self.at)
        if match is None:
            raise self.endless("a command substitution")
        if "\\" not in match[1] and not (quoted and '"' in match[1]):
            self.at += 1
            part.body = Script(self.at, match.end(1))
            text, self.text = self.text, self.text[: match.end(1)]
            self.read_body(part.body, "")
            self.text = text
        self.at = match.end()
        self._end(part)

    def _read_enclosed(self, parts: list[WordPart], kind: PartKind, opening: int, close: str, *, quoted: bool) -> None:
        part = self._begin(parts, kind, quoted=quoted)
        self.at += opening
        word = Word(self.at, part.end)
        part.words.append(word)
        self.read_up_to(close, word.parts, quoted=quoted)
        word.end = self.at - len(close)
        self._end(part)

    def read_up_to(self, close: str, parts: list[WordPart], *, quoted: bool) -> None:
        """What stands in `${…}` or in arithmetic, and what closes it. Where shells differ it is not read."""
        arithmetic = close == "))"
        reason = "a command substitution" if arithmetic else "a computed value"
        self.enter(reason)
        open_parentheses = 0
        while open_parentheses or not self.text.startswith(close, self.at):
            char = self.peek()
            unclear = "'\"" if arithmetic else "{'" if quoted else "{"
            if not char or char in unclear or (not arithmetic and self._at_process()):
                raise Unreadable(self.at, reason)
            if arithmetic and char in "()":
                open_parentheses += 1 if char == "(" else -1
                if open_parentheses < 0:
                    raise Unreadable(self.at, reason)  # `$((` was two
            if char in "\\$`'\"":
                self._read_part(parts, char) if not quoted or char in '\\"' else self._read_quoted(parts, _QUOTED, "")
            else:
                self._take(parts, _ENCLOSED, quoted=quoted)
        self.at += len(close)
        self.depth -= 1

    def _read_array(self, parts: list[WordPart]) -> None:
        part = self._begin(parts, PartKind.ARRAY, quoted=False)
        self.at += 1
        self.skip_space(newlines=True)
        while self.peek() != ")":
            if not self.peek() or (self.peek() in WORD_ENDS and not self._at_process()):
                raise Unreadable(self.at, "a subshell or function")
            self.read_word(part.words)
            self.skip_space(newlines=True)
        self.at += 1
        self._end(part)
        if self.peek() and self.peek() not in WORD_ENDS:
            raise Unreadable(part.start, "a subshell or function")

    def _begin(self, parts: list[WordPart], kind: PartKind, *, quoted: bool) -> WordPart:
        part = WordPart(self.at, len(self.text), kind, quoted)
        parts.append(part)
        return part

    def _end(self, part: WordPart) -> None:
        part.end = self.at
        part.value = self.text[part.start : part.end]


def _is_open(word: Word) -> bool:
    """Whether brackets of an index are open at the end of the word."""
    plain = [part.value for part in word.parts if part.kind is PartKind.TEXT and not part.quoted]
    return sum(text.count("[") - text.count("]") for text in plain) > 0
