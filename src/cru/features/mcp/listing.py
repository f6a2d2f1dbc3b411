"""What is known of a server: its state, and what it offers, as it was read: names, texts and schemas are a stranger's."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from cru.core.base.values.visible import visible

if TYPE_CHECKING:
    import mcp_types

LONGEST_TEXT = 4_000
"""Characters of a description."""
LARGEST_SCHEMA = 64 * 1024
"""Bytes."""
DEEPEST = 32
MOST = 2_000
"""Tools, resources or prompts of one server."""


class RemoteTool(Struct, frozen=True):
    """A tool of a server.

    name: the server's own
    schema: of its arguments, a JSON Schema
    reads_only: the server says so
    as_task: it can be called as a task of the protocol only
    """

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    reads_only: bool = False
    as_task: bool = False


class RemoteResource(Struct, frozen=True):
    """A resource, or with `{…}` in its uri a template of some."""

    uri: str
    name: str = ""
    description: str = ""
    kind: str = ""


class PromptArgument(Struct, frozen=True):
    name: str
    description: str = ""
    required: bool = False


class RemotePrompt(Struct, frozen=True):
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


def clean_text(text: str | None, limit: int = LONGEST_TEXT) -> str:
    """A stranger's text: what cannot be seen is marked, and it is not longer than that."""
    shown = visible(text or "", keep="\n\t")
    return shown if len(shown) <= limit else f"{shown[:limit]}…"


def read_tool(tool: mcp_types.Tool) -> tuple[RemoteTool | None, str]:
    """(the tool, what is wrong with it): a tool without a usable schema is left out."""
    name, schema = tool.name, tool.input_schema
    shown = clean_text(name, 100)
    if not name or name != shown:
        return None, f"the tool {shown!r} is left out: its name has characters that cannot be seen"
    if why := _why_unusable(schema):
        return None, f"the tool {shown} is left out: {why}"
    hints = tool.annotations
    description = clean_text(tool.description or tool.title)
    reads_only = bool(hints is not None and hints.read_only_hint)
    as_task = tool.execution is not None and tool.execution.task_support == "required"
    return RemoteTool(name, description, _clean(schema, 0), reads_only, as_task), ""


def _why_unusable(schema: dict[str, Any]) -> str:
    from jsonschema import Draft202012Validator, SchemaError

    size = len(msgspec.json.encode(schema, enc_hook=repr))
    if size > LARGEST_SCHEMA:
        return f"its schema has {size:,} bytes"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"its schema is none: {clean_text(error.message, 200)}"
    except RecursionError:
        return "its schema is nested too deeply"
    return ""


def _clean(value: Any, depth: int) -> Any:
    """A schema with its texts cleaned. Keys are names that the server knows: they stay."""
    if isinstance(value, str):
        return clean_text(value)
    if depth > DEEPEST:
        return {}
    if isinstance(value, dict):
        return {key: _clean(inner, depth + 1) for key, inner in value.items() if key != "$schema"}
    return [_clean(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def read_resource(resource: mcp_types.Resource | mcp_types.ResourceTemplate) -> RemoteResource:
    uri = str(getattr(resource, "uri", "") or getattr(resource, "uri_template", ""))
    return RemoteResource(
        uri, clean_text(resource.name, 200), clean_text(resource.description), clean_text(resource.mime_type, 100)
    )


def read_prompt(prompt: mcp_types.Prompt) -> RemotePrompt:
    arguments = tuple(
        PromptArgument(argument.name, clean_text(argument.description), bool(argument.required))
        for argument in prompt.arguments or ()
    )
    return RemotePrompt(prompt.name, clean_text(prompt.description or prompt.title), arguments)


def screen_result(message: object, problems: list[str]) -> None:
    """Make of an answer what the SDK takes. problems: gets what was left out of it"""
    from mcp_types import JSONRPCResponse

    if isinstance(message, JSONRPCResponse):
        _screen_tools(message.result, problems)
        if isinstance(message.result.get("task"), dict):  # the SDK takes results of calls only
            message.result.setdefault("content", [])


def _screen_tools(result: dict[str, Any], problems: list[str]) -> None:
    """Take tools out of a listing that the SDK would refuse: for it, one of them makes the whole listing none."""
    listed = result.get("tools")
    if not isinstance(listed, list):
        return
    kept = [tool for tool in listed if _is_tool(tool)]
    for tool in listed if len(kept) < len(listed) else ():
        if not _is_tool(tool):
            name = clean_text(str(tool.get("name", tool) if isinstance(tool, dict) else tool), 100)
            problems.append(f"the tool {name} is left out: its schema is none of an object")
    result["tools"] = kept


def _is_tool(tool: object) -> bool:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return False
    schema.setdefault("type", "object")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return schema["type"] == "object" and isinstance(properties, dict) and isinstance(required, list)


class ServerState(StrEnum):
    OFF = "off"
    IDLE = "not started"
    STARTING = "starting"
    READY = "ready"
    LOST = "lost"
    FAILED = "failed"


class ServerFacts(Struct):
    """What is known of a server; `why`: why it does not work, and the next step."""

    state: ServerState = ServerState.IDLE
    why: str = ""
    hint: str = ""
    tools: tuple[RemoteTool, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    left_out: tuple[str, ...] = ()
    version: str = ""
    title: str = ""
    seconds: float = 0.0
    starts: int = 0


def count_tools(number: int) -> str:
    """Return the number of tools in words."""
    return "1 tool" if number == 1 else f"{number} tools"
