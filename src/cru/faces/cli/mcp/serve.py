"""`cru mcp serve`: the options, and both transports."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from cru.core.base.values.visible import fold_blanks, visible
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem, parse
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.mcp_server.http import HttpPlace, is_loopback, serve_http
from cru.faces.mcp_server.stdio import ServeError, take_standard_streams

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from cru.core.compose import Start
    from cru.faces.mcp_server.served_session import Tell
    from cru.faces.mcp_server.stdio import WireInput, WireOutput

HELP = """\
cru mcp serve               serve this project's tools over MCP to the program that started this, on standard input and output
  --http [HOST:]PORT        over HTTP instead, at /mcp; HOST is 127.0.0.1 by itself, and PORT 0 any free one
  --token-file FILE         clients show this token (or CRU_MCP_TOKEN); without one only this machine's own addresses are served
  --allow-host NAME[:PORT],…    by which names clients call this machine: for 0.0.0.0, behind a proxy, through a tunnel
  --mode MODE               ask, auto, plan or trust (-t), for calls of clients and prompts they send
  --sandbox, --no-sandbox, --hooks WHICH, --strict-hooks    as of every run (cru --help)
  --tools GLOB,…            which tools (read, ls, glob, grep, write, edit, list_contexts, read_context, send_prompt,
                            and with a vault vault_search, vault_read, vault_write, vault_links)
Questions go to the client's person (elicitation); a client that has nobody to ask is refused what needs leave.
"""
TOKEN = "CRU_MCP_TOKEN"
SHORTEST_TOKEN = 16
LOGGED = 300
"""Characters of a line that is logged."""
RUN_SWITCHES = ("--sandbox", "--no-sandbox", "--strict-hooks")
"""Of every run, that this is one of."""
CONTEXT = "mcp"
"""Where records of calls go, unless -C names another context."""


class ServeOptions(Struct, frozen=True):
    """A call of `cru mcp serve`; place None: standard input and output; globs (): the usual tools."""

    place: HttpPlace | None
    globs: tuple[str, ...]
    start: Start


def serve(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Serve until the client goes or a signal comes. Raises UsageProblem, ServeError."""
    values = ("--http", "--token-file", "--allow-host", "--mode", "--tools", "--hooks")
    args = CommandArguments(
        "mcp", ("serve", *words), help=HELP, values=values, switches=("-t", *RUN_SWITCHES), verbs=("serve",), most=1
    )
    if args.show_help():
        return 0
    options = ServeOptions(_place(args), _list(args.value("--tools", "")), _start(parsed, args))
    _require_sdk()
    run_interruptible(_serve(options))
    return 0


async def _serve(options: ServeOptions) -> None:
    from cru.faces.mcp_server.calls import ClientCalls
    from cru.faces.mcp_server.served_session import serve_session
    from cru.faces.mcp_server.server import make_server

    def tell(text: str) -> None:
        say(f"cru mcp: {text}")

    _tell_warnings(tell)
    wire = take_standard_streams() if options.place is None else None  # before a plugin can print on it
    async with serve_session(options.start, options.globs, tell, one_client=wire is not None) as served:
        calls = ClientCalls(served)
        server = make_server(served, calls)
        try:
            if wire is not None:
                await _serve_stdio(server, *wire)
            elif options.place is not None:
                await serve_http(server, options.place, tell)
        finally:
            await calls.end()


def _tell_warnings(tell: Tell) -> None:
    """What the SDK logs, in cru's own words and without control characters: clients choose a part of it."""
    from cru.features.mcp.sdk import LOGGERS

    class LogRelay(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(visible(fold_blanks(record.getMessage()[:LOGGED])))

    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.addHandler(LogRelay(logging.WARNING))


async def _serve_stdio(server: Server[Any], source: WireInput, sink: WireOutput) -> None:
    """To the end of input, or until nobody reads any more. Raises ServeError."""
    from mcp.server.stdio import stdio_server

    try:
        async with stdio_server(cast(Any, source), cast(Any, sink)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except ExceptionGroup as group:
        error = _first(group)
        if not isinstance(error, BrokenPipeError):
            raise error from None


def _first(error: Exception) -> Exception:
    """What went wrong first in the SDK's tasks."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise ServeError("MCP is not available: its library is not installed", 'pip install "cru[mcp]"')


def _start(parsed: Parsed, args: CommandArguments) -> Start:
    """Raises UsageProblem."""
    is_named = parsed.has("transient-context") or parsed.has("switch-context")
    context = context_name(parsed, open_home(parsed)) if is_named else CONTEXT
    mode = args.value("--mode", "trust" if args.has("-t") else "")
    own = [word for word in RUN_SWITCHES if args.has(word)]
    for name, value in (("--mode", mode), ("--hooks", args.value("--hooks", ""))):
        own += [name, value] if value else []
    return start_of(Parsed((*parsed.flags, *parse(tuple(own)).flags), parsed.words), context)


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _place(args: CommandArguments) -> HttpPlace | None:
    """Raises UsageProblem."""
    address = args.value("--http", "")
    if not address:
        if args.has("--token-file") or args.has("--allow-host"):
            raise UsageProblem("--token-file and --allow-host go with --http", "cru mcp serve --http 8765")
        return None
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageProblem(f"--http needs a port, or HOST:PORT, not {address}", "cru mcp serve --http 8765")
    token, names = _token(args), _list(args.value("--allow-host", ""))
    if not is_loopback(host) and not token:
        raise UsageProblem(
            f"{host} can be reached from other machines: a token is needed",
            f"--token-file FILE, or the variable {TOKEN}",
        )
    if host in ("0.0.0.0", "::") and not names:
        raise UsageProblem(
            f"{host} is every address of this machine", "--allow-host NAME: by which name clients call it"
        )
    return HttpPlace(host, int(port), token, names)


def _token(args: CommandArguments) -> str:
    """Raises UsageProblem; never shows any of it."""
    name = args.value("--token-file", "")
    if name:
        try:
            token = Path(name).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageProblem(
                f"--token-file {name}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}"
            ) from error
    else:
        token = os.environ.pop(TOKEN, "").strip()  # no tool needs to see it
    if (name or token) and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageProblem(f"the token needs at least {SHORTEST_TOKEN} printable ASCII characters")
    return token
