"""The arguments of the built-in tools, how a model's mistake in them is worded, and their schemas (a test keeps both equal)."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct, field

from cru.core.base.values.messages import ToolSpec
from cru.core.tools.protocol import ArgumentError

Some = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]


class Read(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    offset: Positive = 1
    limit: Positive = 2000


class Write(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    content: str


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    old_string: str
    new_string: str
    replace_all: bool = False


class Ls(Struct, frozen=True, forbid_unknown_fields=True):
    path: Some = "."


class Glob(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Some
    path: Some = "."


class Grep(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Some
    path: Some = "."
    include: Some | None = None
    ignore_case: bool = False
    context: Annotated[int, Meta(ge=0, le=20)] = 0


class Bash(Struct, frozen=True, forbid_unknown_fields=True):
    command: Some
    timeout: Annotated[float, Meta(gt=0, le=3600)] | None = None
    background: bool = False
    stdin: bool = False
    detached: bool = False
    input_to: Some | None = None  # a task: it gets `command` as its input, and nothing is started
    outside_sandbox: bool = False  # models are told of it where there is a sandbox
    typed_before: Some | None = None  # no model gives it: the beginning of `command`, which that task has got already

    def __post_init__(self) -> None:
        if (self.stdin or self.detached) and not self.background:
            raise ValueError("`stdin` and `detached` are for commands with `background`")
        if self.stdin and self.detached:
            raise ValueError("a command that is `detached` has no `stdin`")
        if self.detached and self.timeout is not None:
            raise ValueError("a command that is `detached` has no `timeout`: nobody is left to end it")
        if self.input_to is not None and (self.background or self.outside_sandbox or self.timeout is not None):
            raise ValueError("with `input_to` nothing is started: leave what is about that out")
        if self.input_to is not None and "\0" in self.command:  # shells read on as if it were not there
            raise ValueError("what is typed has no NUL characters")
        if self.typed_before is not None and self.input_to is None:
            raise ValueError("`typed_before` is nothing without `input_to`")


class TaskOutput(Struct, frozen=True, forbid_unknown_fields=True):
    id: Some
    wait: Annotated[float, Meta(ge=0, le=3600)] = 0  # seconds
    lines: Annotated[int, Meta(ge=1, le=2000)] | None = None  # the last ones, instead of what is new


class TaskCancel(Struct, frozen=True, forbid_unknown_fields=True):
    id: Some


class Fetch(Struct, frozen=True, forbid_unknown_fields=True):
    url: Some


class Content(Struct, frozen=True, forbid_unknown_fields=True):
    content: str


class ReadContext(Struct, frozen=True, forbid_unknown_fields=True):
    context_name: Some
    include_messages: bool | Literal["true", "false"] = True  # chibi's schema has a string
    num_messages: Annotated[int, Meta(ge=0)] = 5


class SendMessage(Struct, frozen=True, forbid_unknown_fields=True):
    to: Some
    content: Some
    from_: Some | None = field(name="from", default=None)


class CallUser(Struct, frozen=True, forbid_unknown_fields=True):
    message: str = ""


class Recurse(Struct, frozen=True, forbid_unknown_fields=True):
    note: str = ""


S = TypeVar("S", bound=Struct)

_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check_arguments(kind: type[Struct], arguments: str | Mapping[str, object]) -> dict[str, object]:
    """The arguments as given, validated against `kind`; null for one that may be left out counts as left out. Raises ArgumentError."""
    decoded = decode_object(arguments)
    optional = kind.__struct_encode_fields__[len(kind.__struct_fields__) - len(kind.__struct_defaults__) :]
    present = {key: value for key, value in decoded.items() if value is not None or key not in optional}
    parse_arguments(kind, present)
    return present


def parse_arguments(kind: type[S], arguments: Mapping[str, object]) -> S:
    """The arguments as a struct with its defaults filled in. Raises ArgumentError."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise ArgumentError(_explain(str(error), kind)) from error


def decode_object(arguments: str | Mapping[str, object]) -> dict[str, object]:
    """The arguments by their names, from the model's JSON text ("" counts as {}) or as already parsed. Raises ArgumentError."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        value = msgspec.json.decode(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise ArgumentError(f"the arguments are not valid JSON: {error}") from error
    except RecursionError as error:
        raise ArgumentError("the arguments are nested too deep") from error
    if not isinstance(value, dict):
        raise ArgumentError(f"the arguments must be a JSON object, got {_NAMES[_kind_of(value)]}")
    return value


def _kind_of(value: object) -> str:
    return "array" if isinstance(value, list) else "null" if value is None else type(value).__name__


def _explain(problem: str, kind: type[Struct]) -> str:
    """Words msgspec's message for a model: which argument, what was expected, what it got."""
    what, _, where = problem.partition(" - at `$.")
    if what.startswith("Object contains unknown field"):
        return _unknown(what.split("`")[1], kind)
    if what.startswith("Object missing required field"):
        return f"`{what.split('`')[1]}`: required, but missing"
    if what.startswith("Expected `str` of length >= 1"):
        return f"`{where.rstrip('`')}`: must not be empty"
    if not where:
        return what
    words = what.replace("Expected", "expected", 1).replace("Invalid enum", "invalid enum", 1)
    for name, english in _NAMES.items():
        words = words.replace(f"`{name}`", english).replace(f"`{name} | null`", english)
    return f"`{where.rstrip('`')}`: {words}{_choices(where.rstrip('`'), kind) if 'enum' in words else ''}"


def _choices(name: str, kind: type[Struct]) -> str:
    """The values that an argument may have, where it is known which; "" where it is not."""
    values = next((get_args(known.type) for known in msgspec.structs.fields(kind) if known.encode_name == name), ())
    named = ", ".join(f"`{value}`" for value in values if isinstance(value, str) and value)
    return f"; it may be {named}{', or left out' if '' in values else ''}" if named else ""


def _unknown(name: str, kind: type[Struct]) -> str:
    from cru.core.base.config.closest import closest

    known = kind.__struct_encode_fields__
    near = closest(name, known)
    meant = f"did you mean `{near}`?" if near else "known: " + ", ".join(f"`{k}`" for k in known)
    return f"`{name}`: unknown argument; {meant}"


def _text(description: str, **more: object) -> dict[str, object]:
    return {"type": "string", "description": description, **more}


def _nonempty_text(description: str) -> dict[str, object]:
    return _text(description, minLength=1)


def _count(description: str, least: int = 1, **more: object) -> dict[str, object]:
    return {"type": "integer", "description": description, "minimum": least, **more}


def _texts(description: str) -> dict[str, object]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _flag(description: str) -> dict[str, object]:
    return {"type": "boolean", "description": description}


def _spec(name: str, description: str, required: tuple[str, ...] = (), /, **properties: object) -> ToolSpec:
    names = {key.rstrip("_"): value for key, value in properties.items()}
    schema: dict[str, object] = {"type": "object", "properties": names, "required": list(required)}
    schema["additionalProperties"] = False
    return ToolSpec(name, description, schema)


_FILE = "The file, relative to the project root or absolute."
_FOLDER = "The folder to search, relative to the project root or absolute. Default: the project root."

_ALL = (
    _spec(
        "read",
        "Read a text file. Each line comes with its number and a tab, which are not part of the file.",
        ("file_path",),
        file_path=_nonempty_text(_FILE),
        offset=_count("The first line to read, counted from 1. Default: 1."),
        limit=_count("How many lines to read. Default: 2000."),
    ),
    _spec(
        "write",
        "Write a whole file, replacing what it held. Missing folders are made. To change a part of a file use `edit`.",
        ("file_path", "content"),
        file_path=_nonempty_text(_FILE),
        content=_text("The whole new content."),
    ),
    _spec(
        "edit",
        "Replace exact text in a file. `old_string` must occur exactly once, unless `replace_all` is true. "
        "An empty `old_string` creates a new file from `new_string`.",
        ("file_path", "old_string", "new_string"),
        file_path=_nonempty_text(_FILE),
        old_string=_text("The text to replace, with its exact white space and without line numbers."),
        new_string=_text("The text to put in its place."),
        replace_all=_flag("Replace every occurrence. Default: false."),
    ),
    _spec(
        "ls",
        "List a folder: its files with their sizes in bytes, its folders with a slash.",
        path=_nonempty_text("The folder, relative to the project root or absolute. Default: the project root."),
    ),
    _spec(
        "glob",
        "Find files by name, newest first, at most 100. What .gitignore names is left out.",
        ("pattern",),
        pattern=_nonempty_text(
            "Relative to `path`: `*` stays inside a name, `**` crosses folders, as in `src/**/*.{ts,tsx}`."
        ),
        path=_nonempty_text(_FOLDER),
    ),
    _spec(
        "grep",
        "Search the contents of files with a regular expression; gives path:line:text, at most 200 matches. "
        "What .gitignore names is left out, and so are binary files.",
        ("pattern",),
        pattern=_nonempty_text("The regular expression, matched line by line."),
        path=_nonempty_text(
            "The file or folder to search, relative to the project root or absolute. Default: the project root."
        ),
        include=_nonempty_text(
            "Only files whose name matches this glob, as in `*.py`; with a slash it matches the path from the project root."
        ),
        ignore_case=_flag("Ignore upper and lower case. Default: false."),
        context=_count("Lines to show before and after each match. Default: 0.", 0, maximum=20),
    ),
    _spec(
        "bash",
        "Run a command with bash in the project root; gives its output and errors together, and its exit code if not 0. "
        "It has no terminal and no input. Each call is a new shell; what one leaves running ends with the session. What should run on "
        "while you do something else, as a server or a long build, runs with `background`: you get the id of a task, `task_output` gives "
        "what it prints, and you are told when it ends.",
        ("command",),
        command=_nonempty_text("The command."),
        timeout={
            "type": "number",
            "description": "Seconds after which it is ended with everything it started, at most 3600. Default: 120.",
            "exclusiveMinimum": 0,
            "maximum": 3600,
        },
        background=_flag(
            "Go on at once while it runs; it ends with the session. No time limit but `timeout`. Default: false."
        ),
        stdin=_flag(
            "With `background`: it reads what later calls with `input_to` give it. Default: false: it has no input."
        ),
        detached=_flag(
            "With `background`: it goes on when the session has ended. A person is asked. Only if that was asked for. Default: false."
        ),
        input_to=_nonempty_text(
            "Nothing is started: `command` goes to this task (the id of a command with `stdin`) as input, as a line."
        ),
    ),
    _spec(
        "task_output",
        "See what a task in the background has printed (a command) or said (a sub-agent) since you last looked, and whether it still "
        "runs.",
        ("id",),
        id=_nonempty_text("The id of the task."),
        wait={
            "type": "number",
            "description": "Seconds to wait for its end first, at most 3600. Default: 0.",
            "minimum": 0,
            "maximum": 3600,
        },
        lines=_count("The last lines instead of what is new, at most 2000.", maximum=2000),
    ),
    _spec(
        "task_cancel",
        "End a task in the background, with everything that it started.",
        ("id",),
        id=_nonempty_text("The id of the task."),
    ),
    _spec(
        "fetch",
        "Get a web page or file over http or https, as text; of HTML only text and links are kept. At most 1 MiB.",
        ("url",),
        url=_nonempty_text("The whole address, with http:// or https://."),
    ),
    _spec(
        "update_todos",
        "Replace your todo list, which you see at the start of every turn.",
        ("content",),
        content=_text("The whole list; empty clears it."),
    ),
    _spec(
        "update_goals",
        "Replace the goals of this conversation, which you see at the start of every turn.",
        ("content",),
        content=_text("All goals; empty clears them."),
    ),
    _spec(
        "update_reflection",
        "Replace your reflection: what you want to remember in every conversation.",
        ("content",),
        content=_text("The whole reflection; empty clears it."),
    ),
    _spec(
        "read_context",
        "Look into another context (a named conversation): its summary, todos, goals and last messages, as JSON.",
        ("context_name",),
        context_name=_nonempty_text("The name of the context."),
        include_messages=_flag("Whether its last messages are given. Default: true."),
        num_messages=_count("How many of them. Default: 5.", 0),
    ),
    _spec(
        "send_message",
        "Send a message to another context (a named conversation); it is read there before its next prompt.",
        ("to", "content"),
        to=_nonempty_text("The name of the context."),
        content=_nonempty_text("The message."),
        from_=_nonempty_text("Has no effect: the sender is this context."),
    ),
    _spec(
        "task",
        "Give a piece of work to a sub-agent: a conversation of its own, which sees nothing of this one but the prompt, with your tools "
        "or fewer. You get its last message. Several calls in one reply run at the same time. Agents: explore (looks things up, reads "
        "only), plan (works out a change, reads only), review (checks work), general (does anything); more may be named in the system "
        "prompt.",
        ("agent", "prompt"),
        agent=_nonempty_text("Which agent."),
        prompt=_nonempty_text("The whole order: what to do, what is known already, what to answer."),
        description=_text("Three to six words for the person who watches."),
        model=_text("A model or category, instead of that of the agent."),
        background=_flag("Go on at once; the answer comes by itself when it is there. Default: false."),
        tools=_texts("Only these of its tools, by name; [] = none. Default: all that the agent has."),
        isolation={
            "enum": ["", "worktree"],
            "description": "worktree: it works in a git worktree of its own, and you get what it changed as a diff.",
        },
    ),
    _spec(
        "call_user",
        "End your turn and hand over to the user.",
        message=_text("What to tell the user."),
    ),
    _spec(
        "recurse",
        "Go on with a new round of your own after this one.",
        note=_text("What the next round should know."),
    ),
)

SPECS: dict[str, ToolSpec] = {spec.name: spec for spec in _ALL}
