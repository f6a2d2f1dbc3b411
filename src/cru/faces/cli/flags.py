"""THE table of flags. Parsing, help, order of execution and suggestions come from it and from the table of commands
(docs/command-line.md)."""

from __future__ import annotations

TYPE_CHECKING = False  # typing and collections.abc cost more than all of `cru --help`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cru.core.command_table import CommandRow


class Flag:
    """A flag.

    short, long: its names; short may be ""
    args: the names of its values (REST takes the whole rest of the line)
    quiet: the model is not called because of it
    help: what it does, one line
    kind: op (carried out, in the order of this table) or option
    """

    __slots__ = ("args", "help", "kind", "long", "name", "quiet", "short")

    def __init__(self, short: str, long: str, args: tuple[str, ...], quiet: bool, help: str, kind: str = "op") -> None:
        self.short, self.long, self.args, self.quiet, self.help, self.kind = short, long, args, quiet, help, kind
        self.name = long[2:]


REST = "[ARGS…]"

FLAGS: tuple[Flag, ...] = (
    Flag("-C", "--transient-context", ("NAME",), False, "use conversation NAME for this run only"),
    Flag("-c", "--switch-context", ("NAME",), False, "switch to conversation NAME; `new` makes one"),
    Flag("-a", "--archive-current-context", (), False, "start the context from nothing; the log keeps every line"),
    Flag("-A", "--archive-context", ("NAME",), True, "start context NAME from nothing"),
    Flag("-z", "--compact-current-context", (), False, "replace the conversation by a summary that the model writes"),
    Flag("-Z", "--compact-context", ("NAME",), True, "empty a context without a model, keeping its last summary"),
    Flag("-r", "--rename-current-context", ("NEW",), False, "rename the context"),
    Flag("-R", "--rename-context", ("OLD", "NEW"), True, "rename another context"),
    Flag("-y", "--set-current-system-prompt", ("TEXT|FILE",), False, "set the context's own system prompt"),
    Flag("-Y", "--set-system-prompt", ("NAME", "TEXT|FILE"), True, "set the system prompt of context NAME"),
    Flag("-u", "--set-username", ("NAME",), False, "save a user name in the context's local.toml"),
    Flag("-U", "--transient-username", ("NAME",), False, "a user name for this run only"),
    Flag("-m", "--set-model", ("MODEL",), False, "check a model and save it in the context's local.toml"),
    Flag("-M", "--set-model-for-context", ("NAME", "MODEL"), True, "check a model and save it for context NAME"),
    Flag("", "--destroy-at", ("TIME",), False, "destroy the context at: Unix seconds, 2030-01-31T12:00, never"),
    Flag("", "--destroy-after-inactive", ("TIME",), False, "destroy it when unused for: seconds, 12h, 30d, never"),
    Flag("", "--clear-cache", (), False, "remove the context's saved tool outputs"),
    Flag("", "--clear-cache-for", ("NAME",), True, "remove the saved tool outputs of context NAME"),
    Flag("", "--cleanup-cache", (), True, "remove the saved tool outputs of all contexts that are too old"),
    Flag("-l", "--list-current-context", (), True, "what the context holds"),
    Flag("-L", "--list-contexts", (), True, "all contexts; * marks the current one"),
    Flag("", "--model-metadata", ("MODEL",), True, "the model's context window, as models.toml takes it"),
    Flag("", "--model-metadata-full", ("MODEL",), True, "the model's context window, provider and price"),
    Flag("-d", "--delete-current-context", (), True, "destroy the context (asks on a terminal)"),
    Flag("-D", "--delete-context", ("NAME",), True, "destroy another context"),
    Flag("-g", "--show-current-log", ("N",), True, "the last N entries (negative: the first, 0: all)"),
    Flag("-G", "--show-log", ("NAME", "N"), True, "the last N entries of context NAME"),
    Flag("-n", "--inspect-current", ("THING",), True, "a text, a setting (api.temperature) or home; list names all"),
    Flag("-N", "--inspect", ("NAME", "THING"), True, "a text or a setting of context NAME"),
    Flag("-p", "--plugin", ("NAME", REST), True, "run a plugin's tool with these arguments; ends the flags"),
    Flag("-P", "--call-tool", ("TOOL", REST), True, "run any tool; one JSON object is its arguments; ends the flags"),
    Flag("-b", "--check-inboxes", (), True, "let every context act on the messages in its inbox"),
    Flag("-B", "--check-inbox", ("NAME",), True, "let context NAME act on the messages in its inbox"),
    Flag("", "--resume", (), False, "finish the last prompt, if it was interrupted", "option"),
    Flag("", "--idempotency-key", ("KEY",), False, "ask once: the same key goes on or repeats the answer", "option"),
    Flag("", "--no-session", (), False, "keep neither a conversation nor records", "option"),
    Flag("", "--attach", ("FILE",), False, "add a text file or an image (repeatable)", "option"),
    Flag("", "--model", ("NAME",), False, "model for this run: [provider:]model", "option"),
    Flag("", "--agent", ("NAME",), False, "answer as this agent card says: `cru agents` lists them", "option"),
    Flag("-s", "--set", ("KEY=VALUE",), False, "a setting for this run: budget.max_cost=1", "option"),
    Flag("", "--mode", ("MODE",), False, "ask, auto, plan or trust", "option"),
    Flag("", "--discipline", ("NAME",), False, "todos, ralph, plan, deliver or verify (repeatable)", "option"),
    Flag("-t", "--trust", (), False, "the same as --mode trust", "option"),
    Flag(
        "", "--sandbox", (), False, "confine commands and the project's programs strictly: no network, and nothing runs where that fails",
        "option",
    ),
    Flag("", "--no-sandbox", (), False, "run commands without the sandbox", "option"),
    Flag("", "--hooks", ("WHICH",), False, "command hooks of this run: trusted, none or all (unaccepted ones, too)", "option"),
    Flag(
        "", "--strict-hooks", (), False, "do not begin while a hook or plugin awaits trust, cannot be used, or is not understood", "option",
    ),
    Flag("", "--no-tool-calls", (), False, "offer the model no tools", "option"),
    Flag("", "--hide-tool-calls", (), False, "do not tell which tools run", "option"),
    Flag("", "--show-thinking", (), False, "show the model's visible reasoning, on stderr", "option"),
    Flag("", "--commands", (), False, "piped text that begins with /word is a command, not a prompt", "option"),
    Flag("", "--raw", (), False, "show the answer as the model wrote it, on a terminal too", "option"),
    Flag("", "--debug", ("WHAT",), False, "keep request-log, response-meta or all in the context's folder", "option"),
    Flag("", "--json", (), False, "print each event as a line of JSON", "option"),
    Flag("", "--json-config", (), False, "read the whole command as one JSON object from stdin; implies --json", "option"),
    Flag("", "--fail-on-refusal", (), False, "exit status 3 if a tool call was refused, whatever the answer is", "option"),
    Flag("-v", "--verbose", (), False, "print more on standard error", "option"),
    Flag("-x", "--no-llm", (), False, "do not call the model", "option"),
    Flag("-X", "--force-llm", (), False, "call the model although another flag says not to", "option"),
    Flag("", "--home", ("PATH",), False, "home folder (default ~/.cru, or CRU_HOME)", "option"),
    Flag("", "--project-root", ("PATH",), False, "project root (default: the repository above here)", "option"),
    Flag("", "--print", (), False, "ask once and print the answer: never a chat (also: -p in front of a prompt)", "option"),
    Flag("", "--continue", (), False, "go on with the project's conversation, which is what cru does anyway", "option"),
    Flag("-h", "--help", (), True, "an overview; `cru help flags` lists all flags", "option"),
    Flag("", "--version", (), True, "the version", "option"),
)  # fmt: skip

BEFORE_COMMANDS = frozenset({"home", "switch-context", "transient-context", "verbose"})
BEFORE_LOOKING = BEFORE_COMMANDS | {"sandbox", "no-sandbox"}  # before commands that show what a run would be
RUN_OPTION_FLAGS = ("-C", "-U")  # they only say how this run works: a chat may follow them
CHAT_FLAGS = (*RUN_OPTION_FLAGS, "-c")  # the same on a terminal; without one, -c has done its work
OWN_LETTERS = ("-C", "-c", "-s", "-v", "-h")  # the others are chibi's (docs/coming-from-chibi.md)
LETTERS = tuple(flag.short for flag in FLAGS if flag.short)
PATHS = ("PATH", "FILE", "TEXT|FILE")
BY_NAME = {name: flag for flag in FLAGS for name in (flag.short, flag.long) if name}


class UsageProblem(Exception):
    """The command line cannot be understood; `hint` names the next step. Exit status 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Parsed:
    """A command line.

    flags: each flag with its values, in the order of the command line
    words: the prompt
    literal: `--` came before the words
    config: settings that came with them (--json-config), as in a local.toml
    private: the folder of a run that keeps nothing (--no-session), "": it keeps what it does
    """

    __slots__ = ("config", "flags", "literal", "private", "words")

    def __init__(
        self, flags: tuple[tuple[Flag, tuple[str, ...]], ...], words: tuple[str, ...], literal: bool = False
    ) -> None:
        self.flags, self.words, self.literal = flags, words, literal
        self.config: dict[str, Any] = {}
        self.private = ""

    def has(self, name: str) -> bool:
        return any(flag.name == name for flag, _ in self.flags)

    def last(self, name: str) -> str | None:
        """The value of a one-value flag; the last one given counts."""
        values = [v for flag, v in self.flags if flag.name == name]
        return values[-1][0] if values else None

    def all(self, name: str) -> list[str]:
        return [v[0] for flag, v in self.flags if flag.name == name]

    def operations(self) -> list[tuple[Flag, tuple[str, ...]]]:
        """What is to be carried out, in the order of the table."""
        return [(flag, v) for row in FLAGS if row.kind == "op" for flag, v in self.flags if flag is row]


def flags_before(row: CommandRow) -> frozenset[str]:
    """Return the names of the flags that may stand before a command of the shell."""
    return BEFORE_LOOKING if row.shows_runs else BEFORE_COMMANDS


def parse(argv: Sequence[str]) -> Parsed:
    """Left to right; the first bare word (or `--`) makes everything after it the prompt (but see flag_places.py). Raises UsageProblem."""
    flags: list[tuple[Flag, tuple[str, ...]]] = []
    rest = list(argv)
    while rest:
        word = rest[0]
        if word == "--":
            return Parsed(tuple(flags), tuple(rest[1:]), True)
        if not word.startswith("-") or word == "-":
            return Parsed(tuple(flags), tuple(rest))
        if word in ("-a", "-y", "--sandbox"):  # other agents mean something else by them
            from cru.faces.cli.flag_names import foreign_use

            if problem := foreign_use(rest, BY_NAME):
                raise UsageProblem(*problem)
        rest.pop(0)
        flag, attached = find("--print" if word == "-p" and _is_prompt(rest) else word)
        values = take_values(flag, attached, rest)
        check_text(flag, values)
        flags.append((flag, tuple(values)))
    return Parsed(tuple(flags), ())


def _is_prompt(rest: Sequence[str]) -> bool:
    """Whether what follows -p is a prompt, as other agents have it, and no plugin with its arguments, as chibi has it."""
    return not rest or rest[0].startswith("-") or any(map(str.isspace, rest[0]))


def flag_behind(parsed: Parsed) -> str:
    """A word of the prompt that looks as if it was meant as a flag; "" if there is none, or `--` says that none is."""
    return "" if parsed.literal else next((word for word in parsed.words[1:] if word in BY_NAME), "")


def take_values(flag: Flag, attached: str | None, rest: list[str]) -> list[str]:
    """The values of a flag, taken from the rest of the line."""
    values = [attached] if attached is not None else []
    for kind in flag.args[len(values) :]:
        if kind == REST:
            values += rest
            rest.clear()
        elif rest:
            values.append(rest.pop(0))
        else:
            raise UsageProblem(f"{flag.short or flag.long} needs {' '.join(flag.args)}", f"{flag.long}: {flag.help}")
    return values


def check_text(flag: Flag, values: list[str]) -> None:
    """Values that are no paths go into logs and requests, which are UTF-8."""
    for kind, value in zip((*flag.args, *values), values, strict=False):
        if kind not in PATHS and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise UsageProblem(f"{flag.short or flag.long}: {value!a} is not UTF-8 text") from None


def find(word: str) -> tuple[Flag, str | None]:
    """The flag of an argument and the value attached to it (-Dname, --mode=auto), if any. Raises UsageProblem."""
    name, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
    if name not in BY_NAME:
        short = BY_NAME.get(name[:2])
        if short is not None and short.args:
            return short, name[2:]
        from cru.faces.cli.flag_names import known_name

        name, problem, hint = known_name(name, BY_NAME)
        if problem:
            raise UsageProblem(problem, hint)
    flag = BY_NAME[name]
    if mark and not flag.args:
        raise UsageProblem(f"{flag.long} takes no value", f"{flag.long}: {flag.help}")
    return flag, value if mark else None


COMMON = (
    "--model", "--mode", "-C", "-c", "-s", "--attach", "--resume", "--no-session", "--json", "--no-sandbox", "-v"
)  # fmt: skip
"""The flags of the overview."""
USAGE = """\
cru [FLAGS] [PROMPT…] [OPTIONS]   continue the conversation, print the answer
… | cru [FLAGS] [PROMPT…]         the piped text follows the prompt
cru                               on a terminal: a chat
cru COMMAND …                     in the chat: /COMMAND …
cru -- PROMPT…                    everything after -- is the prompt
"""
MORE = "`cru help COMMAND` explains one; `cru help commands`, `cru help flags` list all."


def overview() -> str:
    """Return what `cru --help` prints, one screen."""
    from cru.core.command_table import COMMANDS, GROUPS

    names = [(group, " ".join([name for name, row in COMMANDS.items() if row.group == group])) for group in GROUPS]
    flags = [flag_row(flag) for flag in FLAGS if flag.long in COMMON or flag.short in COMMON]
    return f"{USAGE}\nCommands, by what they are about:\n{columns(names)}\n\nFlags:\n{columns(flags)}\n\n{MORE}"


def flag_row(flag: Flag, letters: Sequence[str] = OWN_LETTERS) -> tuple[str, str]:
    """Return a flag with its values, and what it does. Only these letters are shown."""
    return f"{flag.short}, " * (flag.short in letters) + " ".join((flag.long, *flag.args)), flag.help


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Return a table of two columns."""
    width = max([len(left) for left, _ in rows])
    return "\n".join([f"  {left:<{width}}  {text}" for left, text in rows])
