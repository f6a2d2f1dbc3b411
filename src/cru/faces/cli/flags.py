"""The flags and the management commands: two tables. Parsing, help, order of execution and suggestions come from them
(docs/command-line.md)."""

from __future__ import annotations

TYPE_CHECKING = False  # typing and collections.abc cost more than all of `cru --help`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


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
    Flag("-C", "--transient-context", ("NAME",), False, "use a context for this run only"),
    Flag("-c", "--switch-context", ("NAME",), False, "use a context from now on (new, new:PREFIX, - = previous)"),
    Flag("-a", "--archive-current-context", (), False, "start the context from nothing; the log keeps every line"),
    Flag("-A", "--archive-context", ("NAME",), True, "the same for another context"),
    Flag("-z", "--compact-current-context", (), False, "replace the conversation by a summary that the model writes"),
    Flag("-Z", "--compact-context", ("NAME",), True, "empty a context without a model, keeping its last summary"),
    Flag("-r", "--rename-current-context", ("NEW",), False, "rename the context"),
    Flag("-R", "--rename-context", ("OLD", "NEW"), True, "rename another context"),
    Flag("-y", "--set-current-system-prompt", ("TEXT|FILE",), False, "set the context's own system prompt"),
    Flag("-Y", "--set-system-prompt", ("NAME", "TEXT|FILE"), True, "the same for another context"),
    Flag("-u", "--set-username", ("NAME",), False, "save a user name in the context's local.toml"),
    Flag("-U", "--transient-username", ("NAME",), False, "a user name for this run only"),
    Flag("-m", "--set-model", ("MODEL",), False, "check a model and save it in the context's local.toml"),
    Flag("-M", "--set-model-for-context", ("NAME", "MODEL"), True, "the same for another context"),
    Flag("", "--destroy-at", ("TIME",), False, "destroy the context at: Unix seconds, 2030-01-31T12:00, never"),
    Flag("", "--destroy-after-inactive", ("TIME",), False, "destroy it when unused for: seconds, 12h, 30d, never"),
    Flag("", "--clear-cache", (), False, "remove the context's saved tool outputs"),
    Flag("", "--clear-cache-for", ("NAME",), True, "the same for another context"),
    Flag("", "--cleanup-cache", (), True, "remove the saved tool outputs of all contexts that are too old"),
    Flag("-l", "--list-current-context", (), True, "what the context holds"),
    Flag("-L", "--list-contexts", (), True, "all contexts; * marks the current one"),
    Flag("", "--model-metadata", ("MODEL",), True, "the model's context window, as models.toml takes it"),
    Flag("", "--model-metadata-full", ("MODEL",), True, "the same with provider and price"),
    Flag("-d", "--delete-current-context", (), True, "destroy the context (asks on a terminal)"),
    Flag("-D", "--delete-context", ("NAME",), True, "destroy another context"),
    Flag("-g", "--show-current-log", ("N",), True, "the last N entries (negative: the first, 0: all)"),
    Flag("-G", "--show-log", ("NAME", "N"), True, "the same of another context"),
    Flag("-n", "--inspect-current", ("THING",), True, "a text, a setting (api.temperature) or home; list names all"),
    Flag("-N", "--inspect", ("NAME", "THING"), True, "the same of another context"),
    Flag("-p", "--plugin", ("NAME", REST), True, "run a plugin's tool with these arguments; ends the flags"),
    Flag("-P", "--call-tool", ("TOOL", REST), True, "run any tool; one JSON object is its arguments; ends the flags"),
    Flag("-b", "--check-inboxes", (), True, "let every context act on the messages in its inbox"),
    Flag("-B", "--check-inbox", ("NAME",), True, "the same for one context"),
    Flag("", "--resume", (), False, "go on with the last prompt that is not done", "option"),
    Flag("", "--idempotency-key", ("KEY",), False, "ask once: the same key goes on or repeats the answer", "option"),
    Flag("", "--no-session", (), False, "keep nothing of this run or chat: no context, no records", "option"),
    Flag("", "--attach", ("FILE",), False, "give a text file or an image with the prompt (repeatable)", "option"),
    Flag("", "--model", ("NAME",), False, "model for this run: [provider:]model", "option"),
    Flag("", "--agent", ("NAME",), False, "answer as this agent card says: `cru agents` lists them", "option"),
    Flag("-s", "--set", ("KEY=VALUE",), False, "a setting for this run: api.temperature=0.2 (repeatable)", "option"),
    Flag("", "--mode", ("MODE",), False, "ask, auto, plan or trust", "option"),
    Flag("-t", "--trust", (), False, "the same as --mode trust", "option"),
    Flag(
        "", "--sandbox", (), False, "confine commands and the project's programs strictly: no network, and nothing runs where that fails",
        "option",
    ),
    Flag("", "--no-sandbox", (), False, "do not confine them (by default they are, where that works)", "option"),
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
    Flag("", "--json", (), False, "one JSON object a line for every event, for programs", "option"),
    Flag("", "--json-config", (), False, "read the whole command as one JSON object from stdin; implies --json", "option"),
    Flag("", "--fail-on-refusal", (), False, "exit status 3 if a tool call was refused, whatever the answer is", "option"),
    Flag("-v", "--verbose", (), False, "diagnostics on stderr", "option"),
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
SANDBOX = frozenset({"sandbox", "no-sandbox"})
RUN_OPTION_FLAGS = ("-C", "-U")  # they only say how this run works: a chat may follow them
CHAT_FLAGS = (*RUN_OPTION_FLAGS, "-c")  # the same on a terminal; without one, -c has done its work
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


class ManagementCommand:
    """A management command.

    module: what is loaded; its function `command(parsed, words) -> exit status` is called, or the one that is named behind a colon
    help: what it does, one line
    verbs: the words that may follow its name
    flags: names of flags that it takes itself, behind its name
    shows_runs: it shows what a run would be: flags of the sandbox may stand before it
    """

    def __init__(self, module: str, help: str, verbs: str = "", flags: str = "", *, shows_runs: bool = False) -> None:
        self.module, self.help, self.verbs, self.flags = module, help, tuple(verbs.split()), tuple(flags.split())
        self.flags_before = BEFORE_COMMANDS | SANDBOX if shows_runs else BEFORE_COMMANDS

    def run(self, parsed: Parsed, words: Sequence[str]) -> int:
        """Load it and return its exit status."""
        from importlib import import_module

        module, _, function = self.module.partition(":")
        code: int = getattr(import_module(module), function or "command")(parsed, words)
        return code


COMMANDS: dict[str, ManagementCommand] = {
    "trace": ManagementCommand(
        "cru.faces.cli.trace.command", "what happened in a turn; what was sent, and what would be sent", shows_runs=True,
    ),
    "models": ManagementCommand("cru.faces.cli.models", "which models can be used; fetch the embedded one", "list pull"),
    "doctor": ManagementCommand("cru.faces.cli.doctor.command", "what is there, what is wrong and how to mend it", shows_runs=True),
    "login": ManagementCommand("cru.faces.cli.setup.login", "keep the key of a provider, once it is seen to work"),
    "logout": ManagementCommand("cru.faces.cli.setup.login:logout", "forget a key that `cru login` has kept"),
    "trust": ManagementCommand("cru.faces.cli.trust", "trust this project's .cru/config.toml as it is now"),
    "permissions": ManagementCommand(
        "cru.faces.cli.permissions.command", "the rules in force; what would happen to a call; take back an answer", "test revoke",
        shows_runs=True,
    ),
    "hooks": ManagementCommand(
        "cru.faces.cli.hooks.command", "command hooks: what there is, what may run, and why something did or did not",
        "list review enable disable check why log test",
    ),
    "agents": ManagementCommand("cru.faces.cli.tasks.agents", "the agents that may work below the main one", "list show"),
    "tasks": ManagementCommand(
        "cru.faces.cli.tasks.command", "what agents have started beside their conversations", "list show follow cancel",
    ),
    "plugin": ManagementCommand(
        "cru.faces.cli.plugin.command", "list plugins, make a new one, run its tests and its health checks",
        "list new test health types enable disable adopt-chibi",
    ),
    "mcp": ManagementCommand(
        "cru.faces.cli.mcp.command", "MCP servers: add, list and test them, and use those of other agents",
        "list add remove test tools accept reject login logout serve",
    ),
    "batch": ManagementCommand(
        "cru.faces.cli.fleet.batch_command", "ask many prompts of a file, several at once, each in its own context",
        flags="model mode trust agent set strict-hooks json",
    ),
    "worker": ManagementCommand("cru.faces.cli.fleet.worker_command", "take prompts from the queue that `cru batch` fills"),
    "fleet": ManagementCommand("cru.faces.cli.fleet.fleet_command", "batches in a database and their workers: status, top, cancel, retry"),
    "run-item": ManagementCommand("cru.faces.cli.fleet.run_item_command", "one item of a batch: JSON in, its result as JSON out"),
    "oq": ManagementCommand("cru.faces.cli.oq.command", "the jq language over JSON, YAML, TOML and TOON, in files and pipes"),
    "vault": ManagementCommand(
        "cru.faces.cli.vault.command", "a folder of notes: search it, follow its links, query, draw and rename",
        "init status search read links neighbors path orphans dangling tags query rename undo index graph",
    ),
    "sessions": ManagementCommand("cru.faces.cli.sessions.command", "conversations: list, open, fork, rename, delete"),
    "fork": ManagementCommand("cru.faces.cli.sessions.fork", "a new context that begins as a copy of this one"),
    "history": ManagementCommand("cru.faces.cli.history", "how files were before cru changed them; bring them back"),
    "completion": ManagementCommand("cru.faces.cli.completion", "the Tab key of bash, zsh or fish", "bash zsh fish"),
    "lua": ManagementCommand("cru.faces.cli.lua", "evaluate Lua with the whole `cru` namespace"),
    "help": ManagementCommand("cru.faces.cli.help_text", "all flags, all commands, or one command"),
    "fsm": ManagementCommand(
        "cru.faces.cli.fsm.command", "the workflows of plugins: draw them, see where they stand", "list status show reset",
    ),
}  # fmt: skip

CHAT_COMMANDS = {
    "clear": "", "compact": "", "config": r"[\w.]+", "context": "", "copy": "", "cost": "", "diff": r"\d+|all", "exit": "",
    "export": r"\S+\.md", "init": "", "mode": r"\w+", "model": r"(?!list)\S+( --all)?|list.*", "new": "", "pause": "", "quit": "",
    "redo": "--leave", "rename": "", "resume": "", "status": "", "stop": "", "theme": r"\S+", "tools": "", "tree": "",
    "undo": r"\d*( ?--leave)?", "view": r"\S+",
}  # fmt: skip
"""Commands of the chat, and what may stand behind them (a regular expression) so that `cru NAME …` is that command and no prompt."""


def nearest_command(words: Sequence[str], is_typed: bool = False) -> str:
    """The command that the first word nearly is, if one of that command's verbs follows it, or nothing that was typed; "" if it is a
    prompt."""
    alone = is_typed and len(words) == 1
    names = [name for name, command in COMMANDS.items() if alone or (len(words) > 1 and words[1] in command.verbs)]
    if not names:
        return ""
    from cru.core.base.config.closest import distance

    return next((name for name in names if distance(words[0].casefold(), name) <= 1), "")


def command_or_prompt(near: Sequence[str], words: Sequence[str]) -> str:
    """A hint: the command that was probably meant, and what to type if the words were meant for the model."""
    import shlex

    return f"did you mean: {shlex.join(('cru', *near))}\nas a prompt: {shlex.join(('cru', '--', *words))}"


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
            except UnicodeEncodeError as error:
                raise UsageProblem(f"{flag.short or flag.long}: {value!a} is not UTF-8 text") from error


def find(word: str) -> tuple[Flag, str | None]:
    """The flag of an argument and the value attached to it (-Dname, --mode=auto), if any. Raises UsageProblem."""
    name, mark, value = word.partition("=") if word.startswith("--") else (word, "", "")
    if name not in BY_NAME:
        short = BY_NAME.get(name[:2])
        if short is not None and short.args:
            return short, name[2:]
        from cru.faces.cli.flag_names import ABSENT, SYNONYMS

        if name in ABSENT:
            raise UsageProblem(f"{name}: {ABSENT[name][0]}", ABSENT[name][1])
        name = SYNONYMS.get(name, name)
    flag = BY_NAME.get(name)
    if flag is not None:
        if mark and not flag.args:
            raise UsageProblem(f"{flag.long} takes no value", f"{flag.long}: {flag.help}")
        return flag, value if mark else None
    near = _near(name)
    raise UsageProblem(f"unknown flag {word}", f"did you mean {near}?" if near else "`cru help flags` lists all")


def _near(name: str) -> str | None:
    """The flag that was probably meant: for an unknown letter a long flag that begins with it, first of all one without a letter
    of its own."""
    if len(name) == 2:
        flags = [flag for flag in FLAGS if flag.name[0] == name[1].lower()]
        return min(flags, key=lambda flag: bool(flag.short)).long if flags else None
    from cru.core.base.config.closest import closest

    return closest(name, [n for n in BY_NAME if n.startswith("--")] if name.startswith("--") else list(BY_NAME))
