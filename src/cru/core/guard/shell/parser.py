"""Shell source to a tree: the grammar of bash, from left to right, without a guess. At what it does not understand it stops, and the tree
holds what stands before (docs/decisions/command-rules.md)."""

from __future__ import annotations

import re
from functools import lru_cache

from cru.core.guard.shell.syntax import (
    Compound,
    CompoundKind,
    Misplaced,
    ParsedShell,
    Pipeline,
    Redirection,
    Script,
    SimpleCommand,
    Unreadable,
    Word,
)
from cru.core.guard.shell.word_reader import WORD_ENDS, WordReader

_RESERVED = re.compile(r"(?:[a-z]+|[{}!]|\[\[|\]\])(?=[ \t\n;|&<>()]|\Z)")
_REDIRECTION = re.compile(r"([0-9]*|\{[A-Za-z_]\w*\})(<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())|&>>|&>")
_CLOSING = re.compile(r"(?<=&)-[^ \t\n;|&<>()]")  # behind `<&-` and `>&-` bash begins another word
_FUNCTION = re.compile(r"\([ \t]*\)")
_TIME_OPTIONS = re.compile(r"(?:-p(?=[ \t\n;|&<>()]|\Z)[ \t]*)?(?:--(?=[ \t\n;|&<>()]|\Z))?")
_COPROCESS_NAME = re.compile(
    r"([A-Za-z_]\w*)(?:[ \t]|\\\n)+(?=\(|(?:\{|\[\[|if|case|while|until|for|select)(?:[ \t\n;|&<>()]|\Z))"
)
_LIST_OPERATORS = re.compile(r"&&|\|\||;(?![;&])|&|\n")
_PREFIX_END = re.compile(r";(?![;&])|[\n)]|\Z")
_TOKEN = re.compile(r"&&|\|\||;;|.|\n")
_CASE_ENDS = (";;", ";&")
_MISPLACED = frozenset(["!", "then", "else", "elif", "fi", "do", "done", "esac", "in", "}", "]]"])
_LOOPS = {"while": CompoundKind.WHILE, "until": CompoundKind.UNTIL}
_NO_BODIES = (CompoundKind.FUNCTION, CompoundKind.COPROCESS)
_NAMED_LOOPS = {"for": CompoundKind.FOR, "select": CompoundKind.SELECT}


@lru_cache(maxsize=4)
def parse(text: str) -> ParsedShell:
    """The tree of the source, which nobody changes. Nothing is too strange for it: what it cannot read is its `problem`."""
    parsed = ParsedShell(text, Script(0, len(text)))
    reader = _Parser(parsed)
    try:
        reader.read_body(parsed.script, "")
    except Unreadable as problem:
        parsed.problem = problem
        parsed.stop = reader.at
    return parsed


def _misplaced(at: int, token: str) -> Unreadable:
    if token in ("(", ")"):
        return Unreadable(at, "a subshell or function")
    return Misplaced(at, f"shell syntax (`{token}`)" if token.strip() else "an unfinished command")


class _Parser(WordReader):
    """documents: here-documents whose text begins behind the line"""

    def __init__(self, parsed: ParsedShell) -> None:
        super().__init__(parsed.text)
        self.comments = parsed.comments
        self.documents: list[Redirection] = []

    def skip_space(self, *, newlines: bool) -> None:
        while char := self.peek():
            if char in " \t":
                self.at += 1
            elif char == "\\" and self.peek(1) == "\n":
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.comments.append((self.at, end if end >= 0 else len(self.text)))
                self.at = self.comments[-1][1]
            elif char == "\n" and newlines:
                self.end_line()
            else:
                return

    def end_line(self) -> None:
        self.at += 1
        documents, self.documents = self.documents, []
        for redirection in documents:
            self.read_here_document(redirection)

    def read_here_document(self, redirection: Redirection) -> None:
        word = redirection.target[0]
        start, delimiter = self.at, word.text
        while True:
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else len(self.text)]
            if (line.lstrip("\t") if redirection.operator == "<<-" else line) == delimiter:
                break
            if end < 0:
                self.at = len(self.text)
            if end < 0 or (line.endswith("\\") and word.text == word.source):
                raise Unreadable(redirection.start, "an input redirection")
            self.at = end + 1
        close, after = self.at, self.at + len(line)
        redirection.text = self.text[start:close]
        if word.text == word.source:
            self.at = start
            self.read_document(redirection.document, close)
        self.at = after

    def reserved(self) -> str:
        """The reserved word that stands here, "" for none."""
        return match[0] if (match := _RESERVED.match(self.text, self.at)) else ""

    def expect(self, word: str) -> None:
        self.skip_space(newlines=True)
        if self.reserved() != word:
            raise self.unexpected()
        self.at += len(word)

    def unexpected(self) -> Unreadable:
        token = _TOKEN.match(self.text, self.at)
        return _misplaced(self.at, self.reserved() or (token[0] if token else ""))

    def read_body(self, script: Script, close: str) -> None:
        documents, self.documents = self.documents, []
        self.read_list(script, (close,))
        if self.documents:
            raise Unreadable(self.documents[0].start, "an input redirection")
        self.documents = documents
        self.at += len(close)

    def read_list(self, script: Script, ends: tuple[str, ...]) -> None:
        """Commands up to one of these tokens, which stays; "" is the end of the text."""
        operator = ""
        while True:
            self.skip_space(newlines=True)
            if self.is_at(ends):
                break
            operator = self.read_pipeline(script)
            if not operator and not self.is_at(ends):
                raise self.unexpected()
        if operator in ("&&", "||"):
            raise self.unexpected()
        script.end = self.at

    def is_at(self, ends: tuple[str, ...]) -> bool:
        if not self.peek():
            return "" in ends
        if self.peek() in ";)":
            return any(end and self.text.startswith(end, self.at) for end in ends)
        return self.reserved() in ends if self.reserved() else False

    def read_pipeline(self, script: Script) -> str:
        """One pipeline and the operator behind it, which is the answer."""
        pipeline = Pipeline(self.at, len(self.text))
        script.pipelines.append(pipeline)
        while (word := self.reserved()) in ("!", "time"):
            pipeline.prefix.append(word)
            self.at += len(word)
            self.skip_space(newlines=False)
            if word == "time" and (options := _TIME_OPTIONS.match(self.text, self.at)):
                self.at = options.end()
                self.skip_space(newlines=False)
        while True:
            self.read_command(pipeline)
            self.skip_space(newlines=False)
            if self.peek() != "|" or self.peek(1) == "|":
                break
            self.at += 2 if self.peek(1) == "&" else 1
            self.skip_space(newlines=True)
        pipeline.end = self.at
        if match := _LIST_OPERATORS.match(self.text, self.at):
            pipeline.operator = match[0]
            if match[0] == "\n":
                self.end_line()
            else:
                self.at = match.end()
        return pipeline.operator

    def read_command(self, pipeline: Pipeline) -> None:
        self.enter("commands that stand too deep in each other")
        word = self.reserved()
        if word in _MISPLACED:
            raise self.unexpected()
        if self.peek() == "(":
            self.read_parentheses(pipeline)
        elif word in ("{", "[[", "if", "case", "function", "coproc", *_LOOPS, *_NAMED_LOOPS):
            compound = self.begin(pipeline, CompoundKind(word))
            self.at += len(word)
            self.read_compound(compound)
            self.finish(compound)
        else:
            self.read_simple(pipeline)
        self.depth -= 1

    def begin(self, pipeline: Pipeline, kind: CompoundKind) -> Compound:
        compound = Compound(self.at, len(self.text), kind)
        pipeline.commands.append(compound)
        return compound

    def finish(self, compound: Compound) -> None:
        """The redirections behind it."""
        compound.end = self.at
        self.skip_space(newlines=False)
        while self.read_redirection(compound.redirections):
            compound.end = self.at
            self.skip_space(newlines=False)

    def read_parentheses(self, pipeline: Pipeline) -> None:
        if self.peek(1) == "(":
            compound = self.begin(pipeline, CompoundKind.ARITHMETIC)
            self.at += 2
            self.read_arithmetic(compound)
        else:
            compound = self.begin(pipeline, CompoundKind.SUBSHELL)
            self.at += 1
            self.add_body(compound, ")")
            self.at += 1
        self.finish(compound)

    def read_arithmetic(self, compound: Compound) -> None:
        word = Word(self.at, len(self.text))
        compound.words.append(word)
        self.read_up_to("))", word.parts, quoted=False)
        word.end = self.at - 2

    def add_body(self, compound: Compound, *ends: str) -> None:
        script = Script(self.at, len(self.text))
        compound.bodies.append(script)
        self.read_list(script, ends)
        if (not script.pipelines and "esac" not in ends) or (ends == (")",) and script.ends_with_prefix):
            raise self.unexpected()

    def read_compound(self, compound: Compound) -> None:
        kind = compound.kind
        if kind is CompoundKind.GROUP:
            self.add_body(compound, "}")
            self.expect("}")
        elif kind is CompoundKind.CONDITION:
            self.read_condition(compound)
        elif kind is CompoundKind.IF:
            self.read_if(compound)
        elif kind is CompoundKind.CASE:
            self.read_case(compound)
        elif kind in _LOOPS.values():
            self.add_body(compound, "do")
            self.read_loop_body(compound)
        elif kind in _NAMED_LOOPS.values():
            self.read_loop_head(compound)
            self.read_loop_body(compound)
        else:
            self.read_named_body(compound)

    def read_condition(self, compound: Compound) -> None:
        while True:
            self.skip_space(newlines=True)
            if not self.peek():
                raise _misplaced(compound.start, "[[")
            if self.peek() in WORD_ENDS and not (self.peek() in ("<", ">") and self.peek(1) == "("):
                self.at += 1
            elif self.read_word(compound.words).source == "]]":
                return

    def read_if(self, compound: Compound) -> None:
        self.add_body(compound, "then")
        self.expect("then")
        self.add_body(compound, "elif", "else", "fi")
        while self.reserved() == "elif":
            self.at += 4
            self.add_body(compound, "then")
            self.expect("then")
            self.add_body(compound, "elif", "else", "fi")
        if self.reserved() == "else":
            self.at += 4
            self.add_body(compound, "fi")
        self.expect("fi")

    def read_loop_head(self, compound: Compound) -> None:
        self.skip_space(newlines=False)
        if self.text.startswith("((", self.at):
            self.at += 2
            self.read_arithmetic(compound)
        else:
            self.read_plain_word(compound)
            self.skip_space(newlines=True)
            if self.reserved() == "in":
                self.at += 2
                self.skip_space(newlines=False)
                while self.peek() and self.peek() not in ";\n":
                    self.read_plain_word(compound)
                    self.skip_space(newlines=False)
        if self.peek() == ";":
            self.at += 1
        self.skip_space(newlines=True)

    def read_loop_body(self, compound: Compound) -> None:
        self.expect("do")
        self.add_body(compound, "done")
        self.expect("done")

    def read_plain_word(self, compound: Compound) -> None:
        if self.is_at_end():
            raise self.unexpected()
        self.read_word(compound.words)

    def read_case(self, compound: Compound) -> None:
        self.skip_space(newlines=False)
        self.read_plain_word(compound)
        self.expect("in")
        self.skip_space(newlines=True)
        while self.reserved() != "esac":
            self.read_patterns(compound)
            self.add_body(compound, *_CASE_ENDS, "esac")
            if self.peek() == ";":
                self.at += 3 if self.text.startswith(";;&", self.at) else 2
            self.skip_space(newlines=True)
        self.at += 4

    def read_patterns(self, compound: Compound) -> None:
        self.at += self.peek() == "("
        while True:
            self.skip_space(newlines=False)
            self.read_plain_word(compound)
            self.skip_space(newlines=False)
            if self.peek() not in ("|", ")"):
                raise self.unexpected()
            self.at += 1
            if self.text[self.at - 1] == ")":
                return

    def read_named_body(self, compound: Compound) -> None:
        """A function behind its name, or what `coproc` starts, which has a name only if it is no simple command."""
        self.skip_space(newlines=False)
        if compound.kind is CompoundKind.FUNCTION:
            self.read_plain_word(compound)
            self.skip_space(newlines=False)
            if match := _FUNCTION.match(self.text, self.at):
                self.at = match.end()
        elif not self.reserved() and _COPROCESS_NAME.match(self.text, self.at):
            self.read_plain_word(compound)
        self.read_function_body(compound)

    def read_function_body(self, compound: Compound) -> None:
        self.skip_space(newlines=compound.kind is CompoundKind.FUNCTION)
        script = Script(self.at, len(self.text), [Pipeline(self.at, len(self.text))])
        compound.bodies.append(script)
        self.read_command(script.pipelines[0])
        body = script.pipelines[0].commands[0]
        if compound.kind is CompoundKind.FUNCTION and (isinstance(body, SimpleCommand) or body.kind in _NO_BODIES):
            raise _misplaced(compound.start, "(")
        script.end = script.pipelines[0].end = self.at

    def read_simple(self, pipeline: Pipeline) -> None:
        command = SimpleCommand(self.at, len(self.text))
        pipeline.commands.append(command)
        while True:
            end = self.at
            self.skip_space(newlines=False)
            if self.read_redirection(command.redirections):
                continue
            if self.peek() == "(":
                self.read_function(pipeline, command)
                return
            if self.is_at_end():
                break
            word = self.read_argument(command.words)
            if word.assigned_name and len(command.words) == 1:
                command.assignments.append(command.words.pop())
        command.end = end
        if command.start == end and not (pipeline.is_only_prefix and _PREFIX_END.match(self.text, self.at)):
            raise self.unexpected()

    def read_function(self, pipeline: Pipeline, command: SimpleCommand) -> None:
        """What looked like a program's name is a function's."""
        match = _FUNCTION.match(self.text, self.at)
        if match is None or len(command.words) != 1 or command.assignments or command.redirections:
            raise _misplaced(self.at, "(")
        self.at = match.end()
        compound = Compound(command.start, len(self.text), CompoundKind.FUNCTION, command.words)
        pipeline.commands[-1] = compound
        self.read_function_body(compound)
        compound.end = self.at

    def read_redirection(self, redirections: list[Redirection]) -> bool:
        """Whether there was one."""
        if (match := _REDIRECTION.match(self.text, self.at)) is None:
            return False
        operator = match[2] or match[0]
        redirection = Redirection(self.at, len(self.text), operator, match[1] or "")
        redirections.append(redirection)
        self.at = match.end()
        while self.peek() in (" ", "\t") or self.text.startswith("\\\n", self.at):
            self.at += 2 if self.peek() == "\\" else 1
        begins_other = _CLOSING.match(self.text, self.at) or _REDIRECTION.match(self.text, self.at)
        if begins_other or self.peek() == "#" or self.is_at_end():
            raise Unreadable(match.start(), "an input redirection" if operator[0] == "<" else "a redirection to a file")
        self.read_word(redirection.target)
        redirection.end = self.at
        if operator in ("<<", "<<-"):
            self.documents.append(redirection)
        return True
