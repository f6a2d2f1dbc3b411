"""THE table of commands, and that of features: what each folder of cru.features brings, and when.

`cru --help` loads this module, so it imports nothing. Nothing of a feature is loaded before it is used. To remove a feature, delete its
folder and its row. If only its folder is missing, whatever asks for it names the feature.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing and collections.abc cost more than all of `cru --help`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Protocol

    from cru.core.base.values.errors import FeatureMissing
    from cru.core.turn.parts import Parts

    class SessionPart(Protocol):
        """What a feature brings to one session.

        readable: folders outside of the project that the model may read as it reads the project
        """

        @property
        def readable(self) -> tuple[Path, ...]: ...

        def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
            """What no record of the session may show."""
            ...

        def join(self, parts: Parts) -> None: ...


PACKAGE = "cru.features."
SHELL_PACKAGE = "cru.faces.cli."
GROUPS = ("start", "conversations", "the chat", "the answer", "rules", "tools", "more work")
"""What people do with commands, in the order of the overview."""


class CommandRow:
    """A command, `cru NAME` in the shell and `/NAME` in the chat.

    about: what it does, one line
    hint: its arguments in the chat, "" if it takes none
    chat: `module:function` below core/commands or the feature's folder, called with the CommandContext and the text behind the name;
        "": the chat runs the shell's command on its terminal
    shell: the module below faces/cli whose function `command(parsed, words) -> exit status`, or the one behind a colon, runs `cru NAME`;
        "": the shell runs the chat's command in a session of one turn
    option: the flag that `cru NAME` stands for
    named: as `shell`, but the function runs `cru NAME WORD` only: `function(parsed, word) -> exit status`
    shape: a regular expression for the words behind `cru NAME` that belong to the chat's command; other words make it a prompt
    aliases: other names of it
    foreign: names that other agents have for it; they are suggested, never run
    only: "shell" or "chat" if it works only there; `instead` says what to do in the other place
    reads: it changes nothing in the conversation: it needs no lock and works while another process holds it
    at_once: it does not wait for what runs
    complete: `module:function` that returns what the Tab key offers as its argument; "": the verbs
    verbs: the words that may follow its name in the shell
    flags: names of flags that the shell's command takes behind its name
    shows_runs: it shows what a run would be, so flags of the sandbox may stand before it
    alone: the words that the chat adds if none are typed, because the shell's command would open a chat of its own
    """

    package = "cru.core.commands."

    def __init__(
        self, name: str, group: str, about: str, hint: str = "", *, chat: str = "", shell: str = "", option: str = "",
        named: str = "", shape: str = "", aliases: str = "", foreign: str = "", only: str = "", instead: str = "", reads: bool = False,
        at_once: bool = False, complete: str = "", verbs: str = "", flags: str = "", shows_runs: bool = False, alone: str = "",
    ) -> None:  # fmt: skip
        self.name, self.group, self.about, self.hint = name, group, about, hint
        self.chat, self.shell, self.option, self.named = chat, shell, option, named
        self.shape, self.complete = shape, complete
        self.aliases, self.foreign, self.verbs, self.flags = map(str.split, (aliases, foreign, verbs, flags))
        self.only, self.instead, self.reads, self.at_once = only, instead, reads, at_once
        self.shows_runs, self.alone = shows_runs, alone

    def run(self, parsed: Any, words: Sequence[str]) -> int:
        """Run the shell's form, and return its exit status. Raises FeatureMissing, and what the command raises."""
        module, _, function = self.shell.partition(":")
        code: int = load_target(f"{SHELL_PACKAGE}{module}:{function or 'command'}")(parsed, words)
        return code


_COMMANDS = (
    CommandRow("doctor", "start", "check the installation, and say how to fix what is wrong", shell="doctor.command", shows_runs=True),
    CommandRow(
        "login", "start", "keep the key of a provider, or of a server at a URL", "[provider]", chat="session:login", shell="setup.login",
        reads=True, foreign="auth setup-token keys signin",
    ),
    CommandRow("logout", "start", "delete a key that login has kept", shell="setup.login:logout"),
    CommandRow("models", "start", "list providers and models, or download the embedded model", shell="models", verbs="list pull"),
    CommandRow(
        "model", "start", "show which model answers, or choose another one for this conversation", "[name [--all] | list [words]]",
        chat="model:model", reads=True, complete="model:complete", shape=r"(?!list)\S+( --all)?|list.*",
    ),
    CommandRow(
        "mode", "start", "show what is permitted without a question, or switch to another mode", "[name]", chat="mode:mode", at_once=True,
        complete="mode:complete", shape=r"\w+", foreign="plan",
    ),
    CommandRow("trust", "start", "show what this project's files would run, and accept it", shell="trust"),
    CommandRow(
        "completion", "start", "print the Tab completion of a shell", shell="completion", verbs="bash zsh fish",
        only="shell", instead='in ~/.bashrc: eval "$(cru completion bash)"',
    ),
    CommandRow("help", "start", "list all commands, or explain one", "[command]", chat="session:help", shell="help_text", reads=True,
        verbs="commands flags chibi"),
    CommandRow(
        "new", "conversations", "start a new conversation; this one is kept", "[name]", chat="session:new",
        option="--switch-context new", named="sessions.named:create", shape=r"\w[\w-]*", reads=True, only="chat", instead="use `cru new`",
    ),
    CommandRow(
        "sessions", "conversations", "list, search, open, fork, rename and delete conversations", shell="sessions.command",
        alone="--list", verbs="list search open fork rename delete", foreign="session chats conversations list ls delete",
    ),
    CommandRow(
        "resume", "conversations", "continue an interrupted turn, or another conversation", "[conversation]", chat="session:resume",
        option="--resume", named="sessions.named:resume", shape=r"-|\w[\w-]*", reads=True, only="chat", instead="use `cru resume`",
        foreign="continue",
    ),
    CommandRow(
        "fork", "conversations", "copy this conversation, up to turn TURN", "[TURN] [NAME]", chat="forks:make_fork", shell="sessions.fork",
        foreign="branch",
    ),
    CommandRow("tree", "conversations", "show the turns of this conversation, and its forks", chat="forks:tree", reads=True),
    CommandRow(
        "rename", "conversations", "give this conversation another name", "name", chat="session:rename",
        option="--rename-current-context", shape=r"[\w-]+", reads=True, only="chat", instead="use `cru rename NAME`",
    ),
    CommandRow(
        "clear", "conversations", "start this conversation from scratch; the log keeps every line", chat="session:clear", foreign="reset",
    ),
    CommandRow(
        "compact", "conversations", "replace this conversation by a summary; words say what it must keep", "[keep words]",
        chat="session:compact", shape="keep .+", foreign="compress summarize",
    ),
    CommandRow(
        "export", "conversations", "write this conversation to a new Markdown file", "[file]", chat="conversation:export", reads=True,
        shape=r"\S+\.md",
    ),
    CommandRow("copy", "conversations", "copy the last answer to the clipboard", chat="conversation:copy", reads=True),
    CommandRow(
        "exit", "the chat", "quit the chat; the conversation is kept", chat="session:leave", reads=True, aliases="quit", only="chat",
        instead="a run ends by itself",
    ),
    CommandRow(
        "pause", "the chat", "return to the shell until `fg`, as Ctrl-Z does", chat="session:pause", reads=True, only="chat",
        instead="Ctrl-Z stops any other run, `fg` continues it",
    ),
    CommandRow("status", "the answer", "show the project, model, mode, sandbox and use", chat="conversation:status", reads=True),
    CommandRow(
        "context", "the answer", "show what the next request would hold, in tokens", chat="conversation:context", reads=True,
        foreign="memory",
    ),
    CommandRow(
        "cost", "the answer", "show the requests, tokens and dollars used", chat="cost:cost", reads=True, foreign="usage",
    ),
    CommandRow(
        "trace", "the answer", "show what happened in the last turn, or in turn N", "[N]", chat="session:trace", shell="trace.command",
        reads=True, shows_runs=True,
    ),
    CommandRow(
        "diff", "the answer", "show what the last turn changed in files, or the last N turns, or all", "[N | all]", chat="undo:diff",
        reads=True, shape=r"\d+|all",
    ),
    CommandRow(
        "undo", "the answer", "undo the last turn, or the last N: its messages and its files", "[N] [--leave]", chat="undo:undo",
        shape=r"\d*( ?--leave)?", foreign="checkpoint rewind",
    ),
    CommandRow("redo", "the answer", "restore what the last undo removed", "[--leave]", chat="undo:redo", shape="--leave"),
    CommandRow("history", "the answer", "show earlier revisions of files that cru changed, and restore them", shell="history"),
    CommandRow("stop", "the chat", "stop what runs and discard what waits", chat="session:stop", at_once=True),
    CommandRow(
        "permissions", "rules", "list the rules in force, test a call, or revoke an answer", "[test tool detail | revoke rule]",
        chat="permissions:permissions", shell="permissions.command", reads=True, at_once=True, verbs="test revoke", shows_runs=True,
        foreign="approvals allowed-tools",
    ),
    CommandRow(
        "hooks", "rules", "list, review and test command hooks", shell="hooks.command",
        verbs="list review enable disable check why log test",
    ),
    CommandRow(
        "config", "rules", "show the settings that are set, and where", "[key]", chat="conversation:config", reads=True, shape=r"[\w.]+",
        foreign="settings",
    ),
    CommandRow("tools", "tools", "list what the model may call, and where each tool is from", chat="session:tools", reads=True),
    CommandRow(
        "plugin", "tools", "list, reload, create and test plugins", "[list | reload [name] | enable name | disable name]",
        chat="plugins:plugin", shell="plugin.command", verbs="list new test health types enable disable",
    ),
    CommandRow(
        "discipline", "tools", "show what keeps the agent at its work, or turn it on or off", "[name [off]]", chat="plugins:discipline",
        only="chat", instead="use `cru --discipline NAME`, or `[discipline] use` in config.toml",
    ),
    CommandRow("view", "the chat", "list the views of plugins, or open one", "[name]", chat="views:view", reads=True, shape=r"\S+"),
    CommandRow(
        "theme", "the chat", "list the colour themes of the chat, or use one", "[name]", chat="session:theme", reads=True, at_once=True,
        complete="session:complete_theme", shape=r"\w+", only="chat", instead='set it for good in config.toml: theme = "light"',
    ),
    CommandRow("lua", "tools", "run Lua with the whole `cru` namespace", shell="lua"),
    CommandRow("init", "more work", "have the model write AGENTS.md for this project", chat="conversation:init"),
    CommandRow(
        "agents", "more work", "list the agents that can be started", chat="tasks:agents", shell="tasks.agents", reads=True,
        verbs="list show",
    ),
    CommandRow(
        "tasks", "more work", "list sub-agents and background commands, or cancel one", "[cancel id]", chat="tasks:tasks",
        shell="tasks.command", at_once=True, verbs="list show follow cancel", foreign="bashes jobs ps",
    ),
)  # fmt: skip


class Feature:
    """One folder of cru.features. Targets are `module:name` below that folder.

    settings: its tables of config.toml, with their structs
    files: names in cru's home and in the project that make it join a session, as a table of its settings does; "" for none
    part: finds what joins a session: a function (Start, Settings) -> SessionPart | None
    saved: keys of plugins' saved state begin with it: the function gets the Parts and sees that what was saved holds
    names: of the namespace: families ("" for none), each with a module and its functions; one that ends with `_` has a name without
    values, keyed: of the namespace, too; see CONSTANTS and INDEXED in core/api/names.py
    commands: its rows of the table of commands
    """

    def __init__(
        self, name: str, *, settings: Mapping[str, str] | None = None, files: tuple[str, str] = ("", ""), part: str = "",
        saved: Mapping[str, str] | None = None, names: tuple[tuple[str, str, str], ...] = (), values: Mapping[str, str] | None = None,
        keyed: Mapping[str, str] | None = None, commands: tuple[CommandRow, ...] = (),
    ) -> None:  # fmt: skip
        self.name, self.files, self.part, self.names, self.commands = name, files, part, names, commands
        self.settings, self.saved, self.values, self.keyed = settings or {}, saved or {}, values or {}, keyed or {}
        for row in commands:
            row.package = f"{PACKAGE}{name}."

    def is_there(self) -> bool:
        """Whether its folder is."""
        from importlib.util import find_spec

        return find_spec(f"{PACKAGE}{self.name}") is not None

    def target(self, place: str) -> str:
        """The full target of one that is below the folder."""
        return f"{PACKAGE}{self.name}{'' if place.startswith(':') else '.'}{place}"


_NOTES = "list_ get search outlinks backlinks neighbors create_note"

FEATURES = (
    Feature(
        "vault", settings={"vault": ":VaultTable"}, part="session:find_vault",
        names=(
            ("vault", "api", _NOTES), ("kiln", "api", _NOTES), ("", "api", "search"), ("paths", "api", "kiln"),
            ("graph", "graph.tables", "find outlinks inlinks"),
            (
                "graph", "graph_api",
                "note_get note_list db_find db_outlinks db_inlinks db_neighbors db_query fast_outlinks fast_backlinks fast_neighbors",
            ),
        ),
        keyed={"vault": "api:key", "kiln": "api:key"},
        commands=(
            CommandRow(
                "vault", "more work", "search a folder of notes, follow, query and draw its links",
                "[search words | read note | links note]", chat="commands:vault", shell="vault.command", reads=True,
                verbs="init status search read links neighbors path orphans dangling tags query rename undo index graph",
            ),
        ),
    ),
    Feature(
        "mcp", settings={"mcp": ":McpTable"}, files=("mcp.json", ".mcp.json"), part="session:find_servers",
        names=(("mcp", "api", "servers list_tools has_tool call call_json"),),
        commands=(
            CommandRow(
                "mcp", "tools", "list, add and test MCP servers", "[tools | prompts | resources | restart name]", chat="commands:mcp",
                shell="mcp.command", at_once=True, verbs="list add remove test tools accept reject login logout serve",
            ),
        ),
    ),
    Feature(
        "formats", names=(("oq", "oq", "parse parse_as json json_pretty yaml toml toon convert detect query format"),),
        values={"oq.null": "oq:NULL"},
        commands=(CommandRow("oq", "more work", "filter JSON, YAML, TOML and TOON with the jq language", shell="oq.command"),),
    ),
    Feature(
        "workflows", saved={"fsm:": "workflows:bind_saved_runs"}, names=(("fsm", "api", "define list_ status start to stop"),),
        commands=(
            CommandRow("fsm", "tools", "draw the workflows of plugins, and show where they stand", shell="fsm.command",
                       verbs="list status show reset"),
        ),
    ),
    Feature("verify", settings={"verify": ":VerifyTable"}, part="session:find_verification"),
    Feature(
        "fleet",
        commands=(
            CommandRow(
                "batch", "more work", "run the prompts of a file, several at once, each in its own conversation",
                shell="fleet.batch_command", flags="model mode trust agent set strict-hooks json",
            ),
            CommandRow(
                "worker", "more work", "run prompts from the queue that `cru batch` fills", shell="fleet.worker_command", only="shell",
                instead="`cru worker` runs until it is stopped: start it in a terminal of its own",
            ),
            CommandRow(
                "fleet", "more work", "show batches in a database and their workers, cancel and retry items, limit providers",
                shell="fleet.fleet_command", verbs="status top cancel retry limit",
            ),
            CommandRow(
                "run-item", "more work", "run one item of a batch: JSON in, its result as JSON out", shell="fleet.run_item_command",
                only="shell", instead="`cru run-item` reads its item from standard input: start it in a shell",
            ),
        ),
    ),
)  # fmt: skip


def collect_commands(features: tuple[Feature, ...]) -> dict[str, CommandRow]:
    """Return the commands of the core and of these features by name; an alias stands for the row that has it."""
    rows = [*_COMMANDS, *[row for feature in features for row in feature.commands]]
    return {name: row for row in rows for name in (row.name, *row.aliases)}


COMMANDS = collect_commands(FEATURES)


def load_target(target: str) -> Any:
    """The function or value at `package.module:name`. Raises FeatureMissing."""
    from importlib import import_module

    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_feature(error) or error from error


def missing_feature(error: BaseException) -> FeatureMissing | None:
    """Return what an import that failed means, if a feature's folder is missing."""
    package, _, name = (error.name or "" if isinstance(error, ModuleNotFoundError) else "").rpartition(".")
    if f"{package}." != PACKAGE:
        return None
    from cru.core.base.values.errors import FeatureMissing

    return FeatureMissing(
        f"this belongs to the feature {name}, which this cru does not have", "install cru with all its features"
    )
