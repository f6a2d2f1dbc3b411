"""MCP servers in other programs' settings: Claude Code, Crush, Codex, Gemini CLI. They are used once a person has accepted them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.files import decode_json, parse_toml
from cru.core.base.files.regular import read_regular
from cru.features.mcp import McpServer
from cru.features.mcp.definition import ServerDefinition

LARGEST = 64 * 1024 * 1024
"""Bytes of a file."""
_VARIABLE = re.compile(r"\$(\w+)")
_MILLISECONDS = 1000.0
"""Milliseconds a second."""


class ForeignFile(Struct, frozen=True):
    """A file that may define servers.

    program: whose it is
    read: its content → servers by name, in the program's own words
    adapt: one of these in ours; raises ValueError with what it is that cannot be used here
    of_project: it is none of the user's own
    """

    program: str
    path: Path
    read: Callable[[Any], Mapping[str, Any]]
    adapt: Callable[[Mapping[str, Any]], McpServer]
    of_project: bool = False


def foreign_files(root: Path, user_home: Path, env: Mapping[str, str]) -> tuple[ForeignFile, ...]:
    """The weakest first: what is nearer to the project wins over what is the user's."""
    config = Path(env.get("XDG_CONFIG_HOME") or user_home / ".config")
    servers = _table("mcpServers")
    return (
        ForeignFile("Gemini CLI", user_home / ".gemini" / "settings.json", servers, _gemini),
        ForeignFile(
            "Codex", Path(env.get("CODEX_HOME") or user_home / ".codex") / "config.toml", _table("mcp_servers"), _codex
        ),
        ForeignFile("Crush", config / "crush" / "crush.json", _table("mcp"), _crush),
        ForeignFile("Claude Code", user_home / ".claude.json", _claude_servers(root), _claude),
        ForeignFile("Gemini CLI", root / ".gemini" / "settings.json", servers, _gemini, of_project=True),
        ForeignFile("Codex", root / ".codex" / "config.toml", _table("mcp_servers"), _codex, of_project=True),
        ForeignFile("Crush", root / "crush.json", _table("mcp"), _crush, of_project=True),
        ForeignFile("Crush", root / ".crush.json", _table("mcp"), _crush, of_project=True),
        ForeignFile("Claude Code", root / ".mcp.json", servers, _claude, of_project=True),
    )


class ForeignServers(Struct):
    """What was found: one definition a name, and what cannot be used."""

    definitions: dict[str, ServerDefinition]
    problems: list[str]


def find_servers(files: tuple[ForeignFile, ...]) -> ForeignServers:
    """Every server of these files; of two with one name the later file's."""
    known = ForeignServers({}, [])
    for file in files:
        for name, raw in _entries(file, known.problems):
            try:
                server = file.adapt(raw)
                definition = ServerDefinition(name, server, str(file.path), file.program, file.of_project)
                definition.check()
            except (ValueError, TypeError, msgspec.ValidationError) as error:
                known.problems.append(f"{file.path}: the MCP server {name} cannot be used here: {error}")
            except Exception as error:  # noqa: BLE001  CruError of a definition, or a stranger's file in an unheard-of shape
                known.problems.append(f"{file.path}: the MCP server {name} cannot be used here: {error}")
            else:
                known.definitions[name] = definition
    return known


def _entries(file: ForeignFile, problems: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        data = read_regular(file.path, LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        problems.append(f"{file.path} cannot be read: {error.strerror or error}")
        return
    try:
        table = parse_toml(data.decode()) if file.path.suffix == ".toml" else decode_json(data or b"{}", object)
        servers = file.read(table if isinstance(table, dict) else {})
    except ValueError as error:
        problems.append(f"{file.path} cannot be read: {error}")
        return
    yield from ((str(name), raw) for name, raw in servers.items() if isinstance(raw, dict))


def _table(key: str) -> Callable[[Any], Mapping[str, Any]]:
    def read(content: Mapping[str, Any]) -> Mapping[str, Any]:
        inner = content.get(key)
        return inner if isinstance(inner, dict) else {}

    return read


def _claude_servers(root: Path) -> Callable[[Any], Mapping[str, Any]]:
    """Those of the user, and of this project."""

    def read(content: Mapping[str, Any]) -> Mapping[str, Any]:
        projects = content.get("projects")
        project = projects.get(str(root)) if isinstance(projects, dict) else None
        servers = _table("mcpServers")
        return {**servers(content), **(servers(project) if isinstance(project, dict) else {})}

    return read


def _claude(raw: Mapping[str, Any]) -> McpServer:
    _refuse_sse(raw)
    return _make(raw, ("command", "args", "env", "url", "headers"))


def _crush(raw: Mapping[str, Any]) -> McpServer:
    _refuse_sse(raw)
    fields = _with_references(_chosen(raw, ("command", "args", "env", "url", "headers")))
    timeout = raw.get("timeout")
    more = {"start_timeout": float(timeout)} if isinstance(timeout, int | float) and timeout > 0 else {}
    denied = raw.get("disabled_tools") or ()
    return msgspec.convert(
        {**fields, **more, "enabled": raw.get("disabled") is not True, "deny_tools": tuple(denied)}, McpServer
    )


def _codex(raw: Mapping[str, Any]) -> McpServer:
    fields = _chosen(raw, ("command", "args", "cwd", "url"))
    env = {**{name: f"${{{name}}}" for name in raw.get("env_vars") or ()}, **(raw.get("env") or {})}
    headers = dict(raw.get("http_headers") or {})
    headers |= {name: f"${{{variable}}}" for name, variable in (raw.get("env_http_headers") or {}).items()}
    if raw.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{raw['bearer_token_env_var']}}}"
    names = {"startup_timeout_sec": "start_timeout", "tool_timeout_sec": "call_timeout", "enabled_tools": "allow_tools",
             "disabled_tools": "deny_tools", "enabled": "enabled"}  # fmt: skip
    more = {own: raw[name] for name, own in names.items() if name in raw}
    return msgspec.convert({**fields, **more, "env": env, "headers": headers}, McpServer)


def _gemini(raw: Mapping[str, Any]) -> McpServer:
    if raw.get("url") and not raw.get("httpUrl") and raw.get("type", "sse") != "http":
        raise ValueError("the old transport `sse` is not supported; `httpUrl` is")
    fields = _with_references(_chosen(raw, ("command", "args", "env", "cwd", "headers")))
    address = raw.get("httpUrl") or raw.get("url")
    if address:
        fields["url"] = _with_references(address)
    if isinstance(raw.get("timeout"), int | float) and raw["timeout"] > 0:
        fields["call_timeout"] = raw["timeout"] / _MILLISECONDS
    names = {"includeTools": "allow_tools", "excludeTools": "deny_tools"}
    return msgspec.convert({**fields, **{own: raw[name] for name, own in names.items() if raw.get(name)}}, McpServer)


def _refuse_sse(raw: Mapping[str, Any]) -> None:
    if raw.get("type") == "sse":
        raise ValueError("the old transport `sse` is not supported")


def _make(raw: Mapping[str, Any], names: tuple[str, ...]) -> McpServer:
    return msgspec.convert(_chosen(raw, names), McpServer)


def _chosen(raw: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: raw[name] for name in names if raw.get(name)}


def _with_references(value: Any) -> Any:
    """`$NAME` as `${NAME}`. Raises ValueError for `$(…)`: nothing is run to read settings."""
    if isinstance(value, str):
        if "$(" in value:
            raise ValueError("`$(…)` is not run here; put the value into a variable")
        return _VARIABLE.sub(r"${\1}", value)
    if isinstance(value, dict):
        return {key: _with_references(inner) for key, inner in value.items()}
    return [_with_references(inner) for inner in value] if isinstance(value, list) else value
