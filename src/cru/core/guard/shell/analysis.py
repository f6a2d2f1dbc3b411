"""What a shell command runs, as far as can be said for certain. Whatever this does not know for certain makes the command opaque."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cru.core.guard.shell.option_uses import (
    end_of_options,
    find_option_uses,
    may_become_option,
    names_may_do_more,
    takes_options,
)
from cru.core.guard.shell.options import OptionEffect, OptionUse
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import (
    KEYWORDS,
    KINDS,
    NAMING_OPTIONS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    WRAPPERS,
    base_name,
    runs_code,
)
from cru.core.guard.shell.syntax import (
    EXPANSION,
    Compound,
    CompoundKind,
    Misplaced,
    ParsedShell,
    PartKind,
    Pipeline,
    Redirection,
    ShellNode,
    SimpleCommand,
    Unreadable,
    Word,
    WordPart,
)

Words: TypeAlias = tuple[str, ...]

_GLOB = "*?["
_GLOB_MARKS = str.maketrans(dict.fromkeys(_GLOB, EXPANSION))
_PATHS = frozenset(("HOME", "PWD"))
"""Variables that the shell sees to, but for what sets variables, which is opaque; only of the folder the name may hold blanks."""
_COMPUTED = {
    PartKind.COMPUTED: "a computed value",
    PartKind.ARITHMETIC: "a command substitution",
    PartKind.DOLLAR_QUOTED: "a $-quoted text",
    PartKind.COMMAND: "a command substitution",
    PartKind.BACKQUOTED: "a command substitution",
    PartKind.ARRAY: "a subshell or function",
}
_PARENTHESES = (CompoundKind.SUBSHELL, CompoundKind.ARITHMETIC, CompoundKind.FUNCTION)
_HARMLESS_OUTPUTS = (">", ">>", "&>", "&>>", ">&")


class CommandAnalysis(Struct, frozen=True):
    """What is known of a command before it runs.

    raw: the source
    parts: the words of each simple command that was found, quotes removed
    opaque: why the parts are not all there is, "" if they are
    suspect: words may hide commands
    uses: of each part, what makes its program do more than its name says
    emptied: those parts in which variables stand, without these: they may be empty
    is_plainly_wrapped: only `sudo` and the like, or keywords that run what stands behind them, make it suspect
    """

    raw: str
    parts: tuple[Words, ...] = ()
    opaque: str = ""
    suspect: bool = False
    uses: tuple[tuple[OptionUse, ...], ...] = ()
    emptied: tuple[Words, ...] = ()
    is_plainly_wrapped: bool = False


def analyze(text: str, known_variables: Set[str] = frozenset()) -> CommandAnalysis:
    """known_variables: names whose value is a plain word"""
    return _analyze(text, frozenset(known_variables))


@lru_cache(maxsize=4)
def _analyze(text: str, known_variables: frozenset[str]) -> CommandAnalysis:
    if any((char < " " and char not in "\t\n") or char == "\x7f" for char in text):
        return CommandAnalysis(text, (), "a control character", True)
    parsed = parse(text)
    problem = parsed.problem or Unreadable(len(text) + 1, "")
    stop, opaque = min(_unclear_places(parsed), default=(len(text) + 1, ""))
    if problem.at <= stop:
        stop, opaque = problem.at, "" if isinstance(problem, Misplaced) else problem.reason
    marked: list[Words] = []
    emptied: list[Words] = []
    hides = bool(opaque)  # commands that are not among the parts, and not behind a plain wrapper
    for node in parsed.script.walk():
        if node.start > stop:
            continue
        if isinstance(node, SimpleCommand) and (words := tuple(_words_before(node, stop))):
            marked.append(words)
            if any(EXPANSION in word for word in words):
                emptied.append(tuple(filter(None, _words_before(node, stop, variables=False))))
            reason = _why_opaque(node, known_variables)
            hides = hides or (bool(reason) and not _is_plainly_wrapped(node, words, known_variables))
            opaque = opaque or reason
        elif isinstance(node, Compound | Pipeline):
            reason = _why_keyword(node)
            hides = hides or (isinstance(node, Compound) and node.kind is not CompoundKind.IF and bool(reason))
            opaque = opaque or reason
    hides = hides or bool(problem.reason)
    opaque = opaque or problem.reason
    marked = [*dict.fromkeys(marked)]  # twenty thousand times the same one is judged once
    parts = tuple(tuple(word.replace(EXPANSION, "$") for word in words) for words in marked)
    uses = tuple(find_option_uses(words) for words in marked)
    hides = hides or any(runs_code(word) for words in parts for word in words)
    hides = hides or any(map(_runs_by_option, uses))
    without = tuple(filter(None, dict.fromkeys(emptied)))
    return CommandAnalysis(text, parts, opaque, hides or bool(opaque), uses, without, bool(opaque) and not hides)


def _runs_by_option(uses: tuple[OptionUse, ...]) -> bool:
    return any(use.effect is OptionEffect.RUNS for use in uses)


# what is not read ----------------------------------------------------------------------------------------------------------------


def _unclear_places(parsed: ParsedShell) -> Iterator[tuple[int, str]]:
    """Where something stands that makes all behind it uncertain, and what."""
    yield from ((start, "a comment") for start, _ in parsed.comments)  # another shell may read a quote in it
    for node in parsed.script.walk():
        if reason := _why_unclear(node):
            yield node.start, reason
        elif isinstance(node, Word) and node.has_unquoted("{") and has_braces(node.text):
            yield node.end, "a brace expansion"


def has_braces(text: str) -> bool:
    """Return whether a list or a range may stand in braces."""
    inner = text[text.find("{") : text.rfind("}")]
    return "," in inner or ".." in inner


def _why_unclear(node: ShellNode) -> str:
    if isinstance(node, WordPart):
        if node.kind is PartKind.PROCESS:
            return "an input redirection" if node.value.startswith("<") else "a redirection to a file"
        return _COMPUTED.get(node.kind, "")
    if isinstance(node, Compound):
        return "a subshell or function" if node.kind in _PARENTHESES else ""
    if isinstance(node, Redirection):
        if "<" in node.operator:
            return "an input redirection"
        return "" if writes_nothing(node) else "a redirection to a file"
    return ""


def writes_nothing(redirection: Redirection) -> bool:
    """To /dev/null, or one stream into another."""
    target = redirection.target[0].source if redirection.target else ""
    if redirection.operator not in _HARMLESS_OUTPUTS or redirection.stream.startswith("{"):
        return False
    copies = redirection.operator == ">&" and (target == "-" or (target.isascii() and target.isdigit()))
    return copies or target == "/dev/null"


def _words_before(command: SimpleCommand, stop: int, *, variables: bool = True) -> Iterator[str]:
    """With EXPANSION for the `$` of each variable, or without variables."""
    for word in (*command.assignments, *command.words):
        parts = (part for part in word.parts if variables or part.kind is not PartKind.VARIABLE)
        text = "".join(part.marked_value for part in parts if word.end <= stop or part.end <= stop)
        if text or word.end <= stop:
            yield text


# what runs other commands --------------------------------------------------------------------------------------------------------


def _why_keyword(node: Compound | Pipeline) -> str:
    if isinstance(node, Pipeline):
        return f"shell syntax (`{node.prefix[0]}`)" if node.prefix else ""
    return f"shell syntax (`{node.kind.value}`)"


def _why_opaque(command: SimpleCommand, known_variables: Set[str]) -> str:
    """Why a simple command may run others, "" if it does not."""
    if command.assignments:
        return "a variable set for the command"
    words = tuple(word.text for word in command.words)
    first = words[0]
    name = base_name(first)
    head, assigned, _ = first.partition("=")
    if assigned and head.rstrip("+").partition("[")[0].isidentifier():
        return "a variable set for the command"
    if first in KEYWORDS:
        return f"shell syntax (`{first}`)"
    fixed = "".join(
        part.value
        for part in command.words[0].parts
        if part.kind is not PartKind.VARIABLE or part.name not in known_variables
    )
    if "HOME" in known_variables and any(
        part.value.startswith("~/") and not part.quoted for part in command.words[0].parts[:1]
    ):
        fixed = fixed[2:]  # the shell puts HOME there, which is known
    if any(char in fixed for char in "$*?[{~!") and first != "[":
        return "a computed command name"
    if name in WRAPPERS or name.startswith(("ld-linux", "ld.so")) or (name in SHELLS and not _has_script(words)):
        return f"`{name}`, which runs other commands"
    if takes_options(words) and any(_may_be_option(word, known_variables) for word in command.words[1:]):
        return f"`{name}` with a value that may be an option"
    end = end_of_options(words)
    globs = {place: word for place, word in enumerate(command.words) if 0 < place < end and word.has_unquoted(_GLOB)}
    return _why_options(name, words, globs)


def _is_plainly_wrapped(command: SimpleCommand, words: Words, known_variables: Set[str]) -> bool:
    """Return whether a program such as `sudo` runs another one behind which there are no further commands.

    words: of the command, with EXPANSION
    """
    from cru.core.guard.shell.inner_commands import find_plainly_run, only_looks_up

    if not command.assignments and only_looks_up(words):
        return True
    at = 0 if command.assignments or command.redirections else find_plainly_run(words)
    if not at or len(words) != len(command.words) or _runs_by_option(find_option_uses(words[at:])):
        return False
    return not _why_opaque(replace(command, words=command.words[at:]), known_variables)


def _may_be_option(word: Word, known_variables: Set[str]) -> bool:
    """Whether an option may stand in its place, or behind it: a value stands at its beginning, or may become several words."""
    parts = [part for part in word.parts if part.value]
    for place, part in enumerate(parts):
        if part.kind is not PartKind.VARIABLE or part.name in known_variables or part.is_number:
            continue
        is_path = part.name in _PATHS and all(behind.value.startswith("/") for behind in parts[place + 1 : place + 2])
        if not part.quoted and not (is_path and part.name == "HOME"):
            return True
        if place == 0 and not is_path:
            return True
    return False


def _why_options(name: str, words: Words, globs: dict[int, Word]) -> str:
    """Why the arguments may run other commands; globs: those that become names of files, by their place."""
    if name in KINDS.variable_setters or (name in NAMING_OPTIONS and (globs or _names_variables(words))):
        return f"`{name}`, which may run what stands in a name"
    dashed = [word for word in globs.values() if word.text.startswith(("-", *_GLOB))]  # `''*`, too
    if globs and may_become_option(words, tuple(globs), bool(dashed)):
        plain = f"; those of `./{dashed[0].source}` are none" if dashed else ""
        return f"`{name}` with names of files that may be options{plain}"
    if globs and names_may_do_more(words, {place: _with_marks(word) for place, word in globs.items()}):
        return f"`{name}` with a glob that may become more than names of files"
    if name in SUBCOMMAND_PROGRAMS and len(words) > 2 and words[1].startswith("-"):
        return f"an option before what `{name}` is to do"
    return ""


def _with_marks(word: Word) -> str:
    """With EXPANSION in the place of what becomes any text."""
    return "".join(
        part.marked_value if part.quoted or part.kind is not PartKind.TEXT else part.value.translate(_GLOB_MARKS)
        for part in word.parts
    )


def _names_variables(words: Words) -> bool:
    name = base_name(words[0])
    marker = "\0" if name == "printf" else "["
    return any(marker in word or word.startswith(NAMING_OPTIONS[name]) for word in words[1:])


def _has_script(words: Words) -> bool:
    """Whether a shell runs a file, not text: from an argument (`-c`) or its standard input (`-s`, or no argument)."""
    options = [word for word in words[1:] if word.startswith("-")]
    return len(options) < len(words) - 1 and not any("c" in word.lower() or "s" in word for word in options)
