"""Which files a hook may run, as far as its words tell, and what they do not tell (docs/decisions/hook-trust.md).

Every word of the command that is a file counts, wherever it stands, in every folder that a word names: one word too many costs a
question after a change; one too few would let a changed script run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice

from msgspec import Struct, field

from cru.core.guard.shell.analysis import Words, analyze
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import (
    CODE_RUNNERS,
    CODE_VARIABLE_PREFIXES,
    KEYWORDS,
    KINDS,
    PLAIN_PROGRAMS,
    SHELLS,
    VARIABLES,
    WRAPPERS,
    base_name,
    is_listed,
    names,
)
from cru.core.guard.shell.syntax import Word
from cru.core.hooks.dialects import load_dialect, load_dialects
from cru.core.hooks.model.entry import HookEntry, is_lua_file
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.trust.files import LookupBudget, is_plain_file
from cru.core.hooks.trust.imports import BELOW, READS_CACHES, find_imports, folder_files
from cru.core.hooks.trust.written_files import strip_written_files

MOST_NAMES = 4000
"""Words of a command, and paths that they may mean."""
FOLDERS = 64
"""Folders that a hook may stand in."""
TOKEN = re.compile(r"""[^\s"'`;|&<>()]+""")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
RUNS = re.compile(
    r"\b(?:os\s*\.\s*(?:execute|system|popen|exec\w*|spawn\w*)|io\s*\.\s*popen|shell\s*\.\s*(?:exec|spawn)|load(?:string|file)?|dofile|require"
    r"|subprocess|exec|eval|open)\b"
)
"""In code that stands in the entry itself: calls that run something else."""
MOVES = frozenset({"cd", "pushd"})
NAMES_FOLLOW = frozenset({"for", "select", "case", "in", "function", "[["})
"""Words of the shell behind which no command stands."""
DATA = names(".log .txt .json .jsonl .csv .md")
_QUOTES = re.compile(r"""[\\"']""")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)


class References(Struct):
    """What a hook's words say of the files that it runs.

    paths: what the words may mean, whether it is there or not
    data: of these, files that may change
    unseen: what the words do not tell, for a person
    """

    paths: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


def find_references(entry: HookEntry, facts: SessionFacts, budget: LookupBudget) -> References:
    """Nothing is run; folders are looked into, as long as the budget lasts."""
    references = References()
    variables = known_variables(entry, facts)
    parts, words = _read(entry, variables, references.unseen)
    words = _whole(words, variables, references.unseen)
    bases = _bases(words, entry, facts, budget, references.unseen)
    paths = [] if budget.over else list(islice(_paths(words, bases), MOST_NAMES + 1))
    if len(paths) > MOST_NAMES:
        references.unseen.append(f"the command may name more than {MOST_NAMES} files; only these were looked at")
    references.paths = [path for path in paths[:MOST_NAMES] if not _is_program(path, facts)]
    existing = {path for path in references.paths if budget.is_file(path)}
    skips_caches = not READS_CACHES.search(" ".join((entry.command, *(entry.args or ()), *entry.env)))
    place = _Place(bases, existing, _search(entry, bases, variables, facts), variables, facts, budget, skips_caches)
    for part in parts:
        _program(part, place, references)
    scripts = [path for path in references.paths if path in existing and is_inside(path, facts)]
    references.paths += find_imports(scripts, _modules(parts, place), budget, skips_caches=place.skips_caches)
    _variables(entry, parts, place, references)
    if entry.kind == "command" and not references.unseen:
        references.data = [path for path in _only_given(parts, place) if is_plain_file(path, DATA)]
    return references


class _Place(Struct):
    """Where programs are looked for.

    bases: the folders that relative paths may start from
    existing: the named files that are there
    path: the folders of PATH, as the hook has it
    variables: those whose value is known before it runs
    budget: how much more may be looked at
    skips_caches: whether compiled modules of Python never run
    """

    bases: list[str]
    existing: set[str]
    path: list[str]
    variables: Mapping[str, str]
    facts: SessionFacts
    budget: LookupBudget
    skips_caches: bool

    def shows(self, word: str) -> bool:
        """Whether the program of this word is one of the files that are shown."""
        if "/" in word:
            return any(_joined(base, word) in self.existing for base in self.bases)
        candidates = (path for folder in self.path if os.access(path := _joined(folder, word), os.X_OK))
        return next((path for path in candidates if self.budget.is_file(path)), "") in self.existing


# words ---------------------------------------------------------------------------------------------------------------------------


def _read(entry: HookEntry, variables: Mapping[str, str], unseen: list[str]) -> tuple[list[Words], list[str]]:
    """The programs that are started, each with its words; and all words that may be files."""
    texts = [*entry.env.values()]
    parts: list[Words] = []
    if entry.kind != "command":
        texts.append(entry.command)
        unseen += [f"what `{call}` in its code runs" for call in dict.fromkeys(_inline_calls(entry))]
        words = [entry.command]
    elif entry.args is not None:
        texts += entry.args
        words = [entry.command, *entry.args]
        parts = [tuple(words)]
        if base_name(entry.command) in SHELLS:
            unseen += [
                reason for arg in entry.args if not arg.startswith("-") and (reason := _shell_words(arg, variables)[2])
            ]
    else:
        plain = entry.command if entry.shell == "powershell" else strip_written_files(entry.command)
        parts, words, opaque = _shell_words(plain, variables)
        unseen += [opaque] if opaque else []
    for text in texts:
        words += [text, *_shell_words(text, variables)[1]]
    return parts, words


def _inline_calls(entry: HookEntry) -> Iterator[str]:
    return (match[0] for match in RUNS.finditer(entry.command)) if is_code(entry) else iter(())


def is_code(entry: HookEntry) -> bool:
    """Whether the code of a function stands in the entry, not in a file."""
    return entry.kind == "lua" and not is_lua_file(entry.command)


def _shell_words(command: str, variables: Mapping[str, str]) -> tuple[list[Words], list[str], str]:
    """The programs as a shell reads them; all words, those of functions and of what cannot be judged among them, with everything that
    stands between blanks, quotes and operators beside; and why the programs are not all there is."""
    analysis = analyze(command, variables.keys())
    words = [word for part in analysis.parts for word in part]
    words += [node.text for node in parse(command).script.walk() if isinstance(node, Word)]
    words += TOKEN.findall(command) + TOKEN.findall(_QUOTES.sub("", command))
    return list(analysis.parts), words, analysis.opaque


def _whole(words: list[str], variables: Mapping[str, str], unseen: list[str]) -> list[str]:
    """Each word once, with its parts behind `=` and between colons, and with the variables that are known."""
    pieces = [
        piece for word in dict.fromkeys(words) for piece in (word, word.partition("=")[2], *re.split("[:,=]", word))
    ]
    known = list(
        dict.fromkeys(
            expanded(piece, variables) for piece in pieces if piece and "\0" not in piece and len(piece) < 4096
        )
    )
    unseen += [
        f"{word} is known only when it runs" for word in known if "$" in word and "/" in word and " " not in word
    ]
    if len(known) > MOST_NAMES:
        unseen.append(f"the command has more than {MOST_NAMES} words; only these were looked at")
    return known[:MOST_NAMES]


def known_variables(entry: HookEntry, facts: SessionFacts) -> dict[str, str]:
    """The variables whose value is known before the hook runs. Those of other systems are taken to mean the same here: people export them
    for scripts that serve several."""
    known = {**facts.variables, **load_dialect(entry.dialect).launch.known_variables(entry, facts)}
    texts = (entry.command, *(entry.args or ()), *entry.env.values())
    if {match[1] or match[2] for text in texts for match in _VARIABLE.finditer(text)} <= known.keys():
        return known  # the others need not be loaded
    for dialect in load_dialects().values():
        known = {**dialect.launch.known_variables(entry, facts), **known}
    return known


def expanded(word: str, variables: Mapping[str, str]) -> str:
    """The word with the known variables and the user's home in it."""
    if word.startswith("~/"):
        word = os.path.join(variables["HOME"], word[2:])
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), word)


# places --------------------------------------------------------------------------------------------------------------------------


def _bases(
    words: list[str], entry: HookEntry, facts: SessionFacts, budget: LookupBudget, unseen: list[str]
) -> list[str]:
    """The folders that words may be looked up in: where it runs, project folders on PATH, and every folder that a word names in one of
    these, since `cd`, `env -C` and `PATH=` all lead there."""
    bases = [str(facts.root / entry.cwd)]
    if entry.kind != "command":
        bases += [str(facts.root), str(entry.source.path.parent)]
    bases += [folder for folder in facts.env.get("PATH", "").split(os.pathsep) if _is_own_folder(folder, facts)]
    bases = list(dict.fromkeys(bases))
    known = {os.path.realpath(base) for base in bases}
    for base in bases:  # grows
        for word in words:
            path = _joined(base, word)
            if not budget.is_dir(path) or (real := os.path.realpath(path)) in known:
                continue
            if len(known) >= FOLDERS:
                unseen.append(f"the command may stand in more than {FOLDERS} folders; only these were looked at")
                return bases
            known.add(real)
            bases.append(path)
    return bases


def _is_own_folder(folder: str, facts: SessionFacts) -> bool:
    return bool(folder) and (not folder.startswith("/") or is_inside(os.path.realpath(folder), facts))


def _paths(words: list[str], bases: list[str]) -> Iterator[str]:
    """Each path once, of the first folder first."""
    seen: set[str] = set()
    for number, base in enumerate(bases):
        for word in words:
            if word[0] == "/" and number:
                continue
            path = _joined(base, word)
            if path not in seen:
                seen.add(path)
                yield path


def _joined(base: str, word: str) -> str:
    """`..` behind a link leads elsewhere than in the text, so such a path stays as it is."""
    path = os.path.join(base, word)
    return path if ".." in path else os.path.normpath(path)


def is_inside(path: str, facts: SessionFacts) -> bool:
    """Whether it lies in the project, by its text or by where it leads."""
    return os.path.normpath(path).startswith(_roots(str(facts.root)))


@lru_cache(maxsize=8)
def _roots(root: str) -> tuple[str, ...]:
    return tuple({folder.rstrip(os.sep) + os.sep for folder in (root, os.path.realpath(root))})


def _is_program(path: str, facts: SessionFacts) -> bool:
    """Programs that stand on PATH anyway are left out, as if they were called by name."""
    return not is_inside(path, facts) and os.path.dirname(path) in facts.env.get("PATH", "").split(os.pathsep)


# programs ------------------------------------------------------------------------------------------------------------------------


def _program(part: Words, place: _Place, references: References) -> None:
    """Add what this program runs, or that nobody can tell."""
    words = [expanded(word, place.variables) for word in part]
    while words and (ASSIGNED.match(words[0]) or words[0] in KEYWORDS - NAMES_FOLLOW):
        words.pop(0)
    if not words or words[0] in NAMES_FOLLOW:
        return
    first, name = words[0], base_name(words[0])
    if first in MOVES and any("$" in word for word in words[1:]):
        references.unseen.append(f"where `{' '.join(words)}` leads")
    if place.shows(first) or name in PLAIN_PROGRAMS or any(char in first for char in "$*?["):
        return  # what is computed is told already
    if name in WRAPPERS:
        references.unseen.append(f"`{name}`, which runs other commands")
    elif not is_listed(name, CODE_RUNNERS):
        references.unseen.append(f"what `{first}` starts is not looked at")
    else:
        _interpreter(words, place, references)


def _interpreter(words: list[str], place: _Place, references: References) -> None:
    """Add the folder that it is given, or that what it runs is not to be seen."""
    first = words[0]
    argument = next((word for word in words[1:] if not word.startswith("-")), "")
    options = words[1 : words.index(argument, 1)] if argument else words[1:]
    if options and not all(_is_harmless(option) for option in options):
        references.unseen.append(f"what the options of `{first}` make it run: {' '.join(options)}")
    paths = [_joined(base, argument) for base in place.bases] if argument else []
    folders = [path for path in paths if place.budget.is_dir(path)]
    for folder in folders:
        if is_inside(folder, place.facts):
            _folder(folder, place, references)
        else:
            references.unseen.append(f"what `{first}` finds in {folder}")
    if not folders and not any(path in place.existing for path in paths):
        references.unseen.append(f"what `{first}` starts is not looked at")


def _modules(parts: list[Words], place: _Place) -> Iterator[str]:
    """What `python -m` runs, as paths without a suffix: modules of the folder in which it is started."""
    for part in parts:
        words = [expanded(word, place.variables) for word in part]
        for at, word in enumerate(words[:-1]):
            if re.fullmatch(r"-[A-Za-z]*m", word) and any(base_name(w).startswith("python") for w in words[:at]):
                yield from (_joined(base, words[at + 1].partition(".")[0]) for base in place.bases[:1])


def _is_harmless(option: str) -> bool:
    """Such as `-e` and `-eu` of a shell: letters that take no value and are no code; what is not known is told."""
    return option == "--" or (len(option) > 1 and set(option[1:]) <= set("uxfBsEI"))


def _folder(folder: str, place: _Place, references: References) -> None:
    """A folder that programs load from: all of it is what runs."""
    paths, is_cut = folder_files(folder, place.budget, skips_caches=place.skips_caches)
    references.paths += paths
    if is_cut:
        references.unseen.append(f"{folder} holds more than {BELOW} files; only these were looked at")


# variables -----------------------------------------------------------------------------------------------------------------------


def _search(entry: HookEntry, bases: list[str], variables: Mapping[str, str], facts: SessionFacts) -> list[str]:
    """The folders that the hook's programs are found in."""
    path = expanded(entry.env["PATH"], variables) if "PATH" in entry.env else facts.env.get("PATH", "")
    return [_joined(bases[0], folder) for folder in path.split(os.pathsep)]


def _variables(entry: HookEntry, parts: list[Words], place: _Place, references: References) -> None:
    """Variables that make programs run something, and values that nobody knows yet."""
    assignments = [(match[1], match[2]) for part in parts for word in part if (match := ASSIGNED.match(word))]
    for name, value in (*entry.env.items(), *assignments):
        known = expanded(value, place.variables)
        if name in VARIABLES.code or name.startswith(CODE_VARIABLE_PREFIXES):
            references.unseen.append(f"what `{name}={value}` makes programs run")
            _folders_of(known, place, references)
        elif name in entry.env and ("$" in known or "`" in known):
            references.unseen.append(f"`{name}={value}` may be computed when it runs")


def _folders_of(value: str, place: _Place, references: References) -> None:
    """What lies in the project's folders of a search path counts."""
    for folder in dict.fromkeys(
        _joined(base, word) for word in value.split(os.pathsep) if word for base in place.bases
    ):
        if is_inside(folder, place.facts) and place.budget.is_dir(folder):
            _folder(folder, place, references)


# data ----------------------------------------------------------------------------------------------------------------------------


def _only_given(parts: list[Words], place: _Place) -> list[str]:
    """Files that are arguments of programs which are shown, or which do not look into them; and nothing else anywhere. What another
    program reads may become code further on, or decides as a list does."""
    arguments: dict[str, None] = {}
    other: set[str] = set()
    for part in parts:
        words = [expanded(word, place.variables) for word in part]
        while words and (ASSIGNED.match(words[0]) or words[0] in KEYWORDS - NAMES_FOLLOW):
            words.pop(0)
        first = _arguments(words, place)
        other |= _meant(words[:first], place)
        arguments.update(dict.fromkeys(sorted(_meant(words[first:], place))))
    return [path for path in arguments if path not in other]


def _arguments(words: list[str], place: _Place) -> int:
    """From which word on they only are arguments."""
    if not words or words[0] in NAMES_FOLLOW:
        return len(words)
    name = base_name(words[0])
    if place.shows(words[0]) or name in KINDS.quiet_programs:
        return 1
    if not is_listed(name, CODE_RUNNERS):
        return len(words)
    script = next((at for at, word in enumerate(words[1:], 1) if not word.startswith("-")), len(words))
    return script + 1


def _meant(words: list[str], place: _Place) -> set[str]:
    """The files that these words may mean."""
    pieces = {piece for word in words for piece in (word, word.partition("=")[2], *re.split("[:,=]", word)) if piece}
    return {path for base in place.bases for piece in pieces if (path := _joined(base, piece)) in place.existing}
