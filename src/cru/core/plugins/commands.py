"""Commands and services that plugins bring, whatever their language."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable
from typing import Any

from msgspec import UNSET

from cru.core.api.answers import values
from cru.core.api.arguments import lua_type, tostring, warn
from cru.core.api.host import HOST, BadArgument, Host, NamespaceError, Object
from cru.core.api.log import shown
from cru.core.api.session_view import SessionView
from cru.core.events.answers import Inject
from cru.core.events.payloads import Custom
from cru.core.events.stream import CommandSaid
from cru.core.plugins import unknown_keys
from cru.core.plugins.errors import CommandFailed
from cru.core.plugins.tools import Parameter, read_parameters, spec_entries
from cru.core.turn.commands import Command, CommandResult

COMMAND_KEYS = ("desc", "hint", "params", "fn")
SERVICE_KEYS = ("desc", "fn")
RESULT_KEYS = ("message", "error", "inject", "model")
NAMED_ARGUMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)


def add_commands(host: Host, commands: object) -> None:
    """The commands of a plugin's table: name → {desc, hint, params, fn}. Raises PluginFailed."""
    for entry in spec_entries(host, "commands", commands, COMMAND_KEYS):
        parameters = read_parameters(host, entry.label, entry.spec.get("params"))
        hint = str(entry.spec.get("hint") or "")
        add_command(host, entry.name, entry.description, hint, parameters, entry.function)


def add_command(
    host: Host, name: str, description: str, hint: str, params: tuple[Parameter, ...], function: Callable[..., Any]
) -> None:
    """Let a person type `/name`; or `/plugin:name`, with a problem for the plugin, if the name is taken or has a dot in it (`/notes.md` at
    the beginning of a prompt is a file)."""
    hint = hint or " ".join(p.name if p.required else f"[{p.name}]" for p in params)
    commands, owner = host.session.parts.services.commands, host.plugin.name
    run = partial(_run_command, host, name, function)
    problem, full = commands.problem_with(name), name
    if problem and not commands.problem_with(f"{owner}:{name}"):
        full = f"{owner}:{name}"
        host.problem(f"/{name} of {owner} can only be called as /{full}: {problem}")
    problem = commands.add(Command(full, description, run, owner=owner, hint=hint, where=host.plugin.where(function)))
    if problem:
        host.problem(problem)
        return
    host.own(lambda: commands.drop(owner), "commands")


async def start_services(host: Host, services: object) -> None:
    """The services of a plugin's table: name → {desc, fn}; each fn runs beside everything else until the plugin is unloaded. Raises
    PluginFailed."""
    from cru.core.api.service import start_service

    for entry in spec_entries(host, "services", services, SERVICE_KEYS):
        await start_service(entry.name, entry.description, entry.function)


def parse_arguments(typed: str) -> dict[str, object]:
    """What a command's function gets first: `input` and `_raw` as typed, `_args` the words (quotes hold words together), `_positional`
    those without `key=`, and each `key=value` under its key."""
    try:
        words = shlex.split(typed)
    except ValueError:  # a quote without its pair is an apostrophe
        words = typed.split()
    pairs = [(word, NAMED_ARGUMENT.match(word)) for word in words]
    named = {match[1]: match[2] for _, match in pairs if match}
    positional = [word for word, match in pairs if not match]
    return {**named, "input": typed, "_raw": typed, "_args": words, "_positional": positional}


class PluginCommandContext(Object):
    """What a command's function gets second: as a handler's context, and `display(text)`, `display_info(text)`, `display_error(text)`, with
    a dot or a colon; a node of `cru.oil` is drawn."""

    METHODS = ("set", "get", "emit")
    FIELDS = (
        "session", "session_id", "is_continuation", "handler_name", "priority", "display", "display_info",
        "display_error",
    )  # fmt: skip
    is_continuation = False
    priority = 100

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._values: dict[str, object] = {}
        self.session = SessionView(host)
        self.session_id = host.session.parts.store.session_id
        self.handler_name = name

    def set(self, key: str, value: object = None) -> None:
        self._values[key] = value

    def get(self, key: str) -> object:
        return self._values.get(key)

    async def emit(self, name: str, payload: object = None) -> None:
        """Raise an event of one's own; those who listen to that name hear it before this returns."""
        await self._host.session.parts.bus.dispatch(Custom(name, payload))

    def display(self, *words: object) -> None:
        self._display(words, is_error=False)

    def display_info(self, *words: object) -> None:
        self._display(words, is_error=False)

    def display_error(self, *words: object) -> None:
        self._display(words, is_error=True)

    def _display(self, words: tuple[object, ...], is_error: bool) -> None:
        words = tuple(word for word in words if word is not self)
        text, view = shown(words[0]) if len(words) == 1 and _is_node(words[0]) else ("".join(map(_word, words)), UNSET)
        self._host.session.parts.bus.stream.tell(CommandSaid(self.handler_name, text, is_error, view))


async def _run_command(host: Host, name: str, function: Callable[..., object], typed: str) -> CommandResult:
    """Call the function in its plugin's name. Raises CommandFailed."""
    token = HOST.set(host)
    try:
        value = host.plugin.invoke(function, parse_arguments(typed), PluginCommandContext(host, name))
        if isawaitable(value):
            value = await value
        return _read_result(host, name, value)
    except NamespaceError as error:
        where = getattr(error, "where", "")
        place = f"{where}: " if where and where not in error.message else ""
        raise CommandFailed(f"/{name} of {host.plugin.name}: {place}{error.message}", error.hint) from error
    finally:
        HOST.reset(token)


def _read_result(host: Host, name: str, value: object) -> CommandResult:
    """What the function returned: a text or {message} is shown, {error} is a failure, {inject} gives the prompt; what is shown is shown
    beside a failure, too. Raises CommandFailed and BadArgument."""
    if value is None:
        return CommandResult()
    if not isinstance(value, Mapping):
        if _is_node(value):
            return _show(host, name, value)
        if _is_text(value):
            return CommandResult(tostring(value))
        warn(f"{host.plugin.name}: /{name} returned a {lua_type(value)}; a text, a table or nil is understood")
        return CommandResult()
    unknown_keys.check_result(f"{host.plugin.name}: /{name}", value, RESULT_KEYS)
    message = "" if _is_node(value.get("message")) else _read_text("message", value)
    try:
        if error := _read_text("error", value):
            raise CommandFailed(error)
        inject = _read_inject(value)
    except (CommandFailed, BadArgument):
        if message:
            host.session.parts.bus.stream.tell(CommandSaid(name, message))
        elif _is_node(value.get("message")):
            _show(host, name, value["message"])
        raise
    if _is_node(value.get("message")):
        _show(host, name, value["message"])
    return CommandResult(message) if inject is None else CommandResult(message, inject.content, inject.model)


def _show(host: Host, name: str, node: object) -> CommandResult:
    """Show a view at once: the result of a command has text only."""
    text, view = shown(node)
    host.session.parts.bus.stream.tell(CommandSaid(name, text, view=view))
    return CommandResult()


def _is_node(value: object) -> bool:
    return isinstance(value, Object) and value.as_text() is not None


def _word(value: object) -> str:
    return tostring(value) if _is_node(value) else str(value)


def _read_inject(value: Mapping[str, object]) -> Inject | None:
    if value.get("inject") is None or value["inject"] is False:
        return None
    inject = values.read_inject(value["inject"], model=value.get("model"))
    if not inject.content.strip():
        raise BadArgument("`inject` is empty: there is no prompt to send", "leave `inject` out to send nothing")
    return inject


def _read_text(field: str, value: Mapping[str, object]) -> str:
    raw = value.get(field)
    if raw is None or raw is False:
        return ""
    if not _is_text(raw):
        raise BadArgument(f"`{field}` must be a text, not a {lua_type(raw)}")
    return tostring(raw)


def _is_text(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
