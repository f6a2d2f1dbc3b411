"""What a person may name of MCP servers in a prompt: `@server:uri` brings a resource along, `/server:prompt` is a prompt of theirs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import partial

from cru.core.events.answers import PASS, Answer
from cru.core.events.payloads import MessageReceived
from cru.core.events.stamp import Event
from cru.core.tools.output import is_too_long, save_output
from cru.core.turn.commands import Command, CommandResult
from cru.core.turn.parts import Parts
from cru.features.mcp import McpError, RequestFailed
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.listing import RemotePrompt
from cru.features.mcp.pool import ServerPool
from cru.features.mcp.tools import OWNER, FileSaver

MENTION = re.compile(r"(?<![\w@])@([A-Za-z0-9][\w.-]*):(\S+)")
TYPED = ("user", "queue", "command")
"""Where a prompt is from that may name resources: a person typed it."""
SECONDS = 600.0
"""For all resources of a prompt."""
LAST = 1_000_000
"""A priority behind those of handlers that may refuse a prompt."""
AFTER_WORDS = ".,;:!?)]}'\""


class ResourceMentions:
    """Handlers of `message:received`: what a person names is read, and goes along beside the prompt."""

    def __init__(self, parts: Parts, pool: ServerPool) -> None:
        self._parts = parts
        self._pool = pool
        self._typed: frozenset[str] = frozenset()

    def note(self, event: Event[MessageReceived]) -> Answer:
        """Before all other handlers: keep what the person named, since others may put text of strangers into the prompt."""
        is_typed = event.stamp.source in TYPED
        self._typed = frozenset(uri for _, uri in self._mentions(event.payload.content)) if is_typed else frozenset()
        return PASS

    async def read(self, event: Event[MessageReceived]) -> Answer:
        """Behind all other handlers: nothing is read for a prompt that one of them refuses."""
        if not self._typed:
            return PASS
        named = [each for each in self._mentions(event.payload.content) if each[1] in self._typed]
        return Answer(context=tuple([await self._read(server, uri) for server, uri in named]))

    def _mentions(self, text: str) -> Iterator[tuple[ServerConnection, str]]:
        servers = {server.name: server for server in self._pool.servers}
        named = dict.fromkeys((name, uri.rstrip(AFTER_WORDS)) for name, uri in MENTION.findall(text))
        yield from ((servers[name], uri) for name, uri in named if name in servers and uri)

    async def _read(self, server: ServerConnection, uri: str) -> str:
        """The content between two lines that name it, or why there is none."""
        label = f"{server.name}:{uri}"
        try:
            text = await server.read(uri, FileSaver(self._parts.store.folder, label))
        except McpError as error:
            self._parts.bus.stream.warn(f"@{label} cannot be read: {error.message}")
            return f"[@{label} cannot be read: {error.message}]"
        settings = self._parts.tool_services.settings
        if is_too_long(text, settings):
            text, _ = save_output(self._parts.store.folder, _file_label(label), f"@{server.name}", text, settings, None)
        return f"--- RESOURCE {label} ---\n{text}\n--- END OF {label} ---"


def _file_label(label: str) -> str:
    """A name for a saved file."""
    return re.sub(r"[^A-Za-z0-9]+", "_", label)[-60:]


class PromptCommands:
    """The prompts of servers as commands (a CommandSource)."""

    def __init__(self, parts: Parts, pool: ServerPool) -> None:
        self._parts = parts
        self._pool = pool

    def commands(self) -> Iterable[Command]:
        """Those of servers that have answered."""
        for server in self._pool.servers:
            for prompt in server.facts.prompts:
                words = " ".join(a.name if a.required else f"[{a.name}]" for a in prompt.arguments)
                about = prompt.description.partition("\n")[0] or f"a prompt of the MCP server {server.name}"
                yield self._command(server, prompt.name, about, words)

    def find(self, name: str) -> Command | None:
        """Also one of a server that has not answered yet."""
        server_name, mark, prompt = name.partition(":")
        server = next((s for s in self._pool.servers if s.name == server_name), None)
        return self._command(server, prompt) if mark and server is not None and prompt else None

    def _command(self, server: ServerConnection, prompt: str, about: str = "", hint: str = "") -> Command:
        expand = partial(self._expand, server, prompt)
        return Command(
            f"{server.name}:{prompt}", about, _send_typed, owner=f"{OWNER}{server.name}", hint=hint, expand=expand
        )

    async def _expand(self, server: ServerConnection, name: str, words: str) -> str:
        """Raises McpError: no such prompt, arguments that do not fit, …"""
        prompts = {prompt.name: prompt for prompt in await server.prompts()}
        if name not in prompts:
            known = ", ".join(f"/{server.name}:{known}" for known in prompts) or "it has none"
            raise RequestFailed(f"{server.name} has no prompt {name}", known)
        saver = FileSaver(self._parts.store.folder, name)
        return await server.prompt(name, read_arguments(prompts[name], words), saver)


async def _send_typed(arguments: str) -> CommandResult:
    return CommandResult(is_typed=True)


def read_arguments(prompt: RemotePrompt, words: str) -> dict[str, str]:
    """`name=value` by name, other words in the order of the arguments; the last one takes what is left. Raises RequestFailed."""
    names = [argument.name for argument in prompt.arguments]
    try:
        split = shlex.split(words)
    except ValueError:  # a quotation mark without its partner
        split = words.split()
    values: dict[str, str] = {}
    plain: list[str] = []
    for word in split:
        name, mark, value = word.partition("=")
        if mark and name in names:
            values[name] = value
        else:
            plain.append(word)
    free = [name for name in names if name not in values]
    if plain and not free:
        raise RequestFailed(f"{prompt.name} takes no further words: {' '.join(plain)}")
    for number, name in enumerate(free[: len(plain)]):
        is_last = number == len(free) - 1
        values[name] = " ".join(plain[number:]) if is_last else plain[number]
    missing = [a.name for a in prompt.arguments if a.required and a.name not in values]
    if missing:
        raise RequestFailed(f"{prompt.name} needs {', '.join(missing)}", " ".join(f"{name}=…" for name in names))
    return values


def add_prompts(parts: Parts, pool: ServerPool) -> None:
    """In the session of these parts."""
    mentions = ResourceMentions(parts, pool)
    on, where = parts.bus.registry.on, "resources of MCP servers"
    on(MessageReceived, mentions.note, owner="cru", where=where, priority=0)
    on(MessageReceived, mentions.read, owner="cru", where=where, priority=LAST, limit=SECONDS)
    parts.services.commands.sources.append(PromptCommands(parts, pool))
