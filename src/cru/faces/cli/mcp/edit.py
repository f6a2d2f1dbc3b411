"""`cru mcp add` and `cru mcp remove`: one table of a settings file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cru.core.base.config.edit import set_value
from cru.core.base.config.layers import read_layer
from cru.core.base.config.positions import join_key
from cru.core.base.config.secret import is_secret
from cru.faces.cli.console import complain, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.mcp.probe import test_by_name
from cru.faces.cli.mcp.servers import KnownServers, load_servers
from cru.features.mcp import McpServer, UnknownServer
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.sdk import HINT as SDK_HINT
from cru.features.mcp.sdk import find_missing_sdk

SCOPES = ("user", "project")
VALUES = ("-s", "-e", "--env", "--cwd", "--url", "--header", "--scope")
_ADDRESS = re.compile(r"https?://", re.I)
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def add(parsed: Parsed, words: Sequence[str], help: str) -> int:
    """Write the server into the settings, then test it; 1 if no server can be used. Raises UsageProblem, ConfigError, BadServer."""
    options, rest = _read_options(words)
    if "--help" in options:
        print(help, end="")
        return 0
    name, *program = rest
    scope = (options.get("-s") or options.get("--scope") or ["user"])[-1]
    if scope not in SCOPES:
        raise UsageProblem(f"-s {scope}: it is `user` or `project`")
    definition = ServerDefinition(name, _server(options, program))
    definition.check()
    servers = load_servers(parsed)
    path = servers.settings_file(scope)
    known = next((own for own in servers.configured.definitions if own.name == name and own.owner == "cru"), None)
    if known is not None:
        raise UsageProblem(f"there is an MCP server {name} already ({known.origin})", f"cru mcp remove {name}")
    for key, value in _fields(definition.server).items():
        set_value(path, join_key(("mcp", "servers", name, key)), value)
    show(f"{name} is in {path}")
    _warn_of_secrets(definition.server)
    if missing := find_missing_sdk():
        complain(f"{name} is saved, but no MCP server can be used yet: {missing} is not installed", SDK_HINT)
        return 1
    if scope == "project":
        show("it is used once you have accepted this project's settings: cru trust")
        return 0
    test_by_name(load_servers(parsed), name)
    return 0


def remove(servers: KnownServers, name: str, scope: str) -> int:
    """Raises UnknownServer, ConfigError."""
    if scope not in ("", *SCOPES):
        raise UsageProblem(f"-s {scope}: it is `user` or `project`")
    others = (*servers.configured.definitions, *servers.configured.waiting)
    foreign = [d for d in others if d.name == name and d.owner != "cru"]
    if foreign:
        raise UnknownServer(f"{name} stands in {foreign[0].origin} of {foreign[0].owner}", f"cru mcp reject {name}")
    for candidate in (scope,) if scope else SCOPES:
        path = servers.settings_file(candidate)
        if _holds(path, name):
            set_value(path, join_key(("mcp", "servers", name)), None)
            servers.cache.forget(name)
            show(f"{name} is no longer in {path}")
            return 0
    servers.find(name)
    raise UnknownServer(f"there is no MCP server {name} in {' or '.join((scope,) if scope else SCOPES)} settings")


def _holds(path: Path, name: str) -> bool:
    layer = read_layer("user", path)
    table = layer.data.get("mcp") if layer is not None else None
    servers = table.get("servers") if isinstance(table, dict) else None
    return isinstance(servers, dict) and name in servers


def _read_options(words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """(values of options, the name and the program's words). Options end at `--`, or at the program."""
    options: dict[str, list[str]] = {}
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, mark, attached = word.partition("=")
        if word in ("-h", "--help"):
            return {"--help": []}, ["", ""]
        if word == "--" or (rest and not word.startswith("-")):
            rest += waiting if word == "--" else [word, *waiting]
            break
        if word.startswith("-"):
            name, attached = (name, attached) if name in VALUES and mark else (word, "")
            if name not in VALUES or not (attached or waiting):
                raise UsageProblem(f"`cru mcp add` does not take {word}", "cru mcp --help")
            options.setdefault(name, []).append(attached or waiting.pop(0))
        else:
            rest.append(word)
    if not rest:
        raise UsageProblem(
            "`cru mcp add` needs a name", "cru mcp add NAME -- PROGRAM ARGS…, or cru mcp add NAME --url URL"
        )
    return options, rest


def _server(options: dict[str, list[str]], program: list[str]) -> McpServer:
    env = dict(_pair(text, "=", "-e") for text in (*options.get("-e", ()), *options.get("--env", ())))
    headers = dict(_pair(text, ":", "--header") for text in options.get("--header", ()))
    url = (options.get("--url") or [""])[-1]
    if not url and len(program) == 1 and _ADDRESS.match(program[0]):
        url = program.pop()
    if url and program:
        raise UsageProblem("a server has a --url or a program, not both")
    if not url and not program:
        raise UsageProblem("what is to be started?", "cru mcp add NAME -- PROGRAM ARGS…, or cru mcp add NAME --url URL")
    if (url and (env or options.get("--cwd"))) or (program and headers):
        raise UsageProblem("-e and --cwd belong to a program, --header to a --url")
    first, *args = program or [""]
    return McpServer(first, tuple(args), env, (options.get("--cwd") or [""])[-1], url, headers)


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition(mark)
    name = name.strip()
    if not separator or not name or (mark == "=" and not _VARIABLE.fullmatch(name)):
        raise UsageProblem(f"{option} {text}: it is NAME{mark}VALUE")
    return name, value.strip() if mark == ":" else value


def _fields(server: McpServer) -> dict[str, object]:
    """What is not as it is by default."""
    default = McpServer()
    values = {key: getattr(server, key) for key in server.__struct_fields__}
    return {key: value for key, value in values.items() if value != getattr(default, key)}


def _warn_of_secrets(server: McpServer) -> None:
    names = [
        name for name, text in {**server.env, **server.headers}.items() if "${" not in text and text and is_secret(name)
    ]
    names += [name for name, text in server.headers.items() if name.lower() == "authorization" and "${" not in text]
    for name in names:
        complain(f"{name} stands there as it is", "'${NAME}' in its place would leave it in the environment")
