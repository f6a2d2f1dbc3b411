"""`-p` and `-P`: the user's own calls of tools, on the road of all calls (docs/command-line.md, "Tools by hand")."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from cru.faces.cli import start as exits
from cru.faces.cli.terminal import Output, printable
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.engine.session import Session
    from cru.engine.tool_call import Done
    from cru.faces.cli.operations import Operations
    from cru.tools.protocol import Tool

# Words of `tool:failed` for calls that were not let; a timeout is one only before the tool ran.
DENIED = frozenset({"policy", "hook", "human", "error", "halted"})


class CallFailed(CruError):
    """A call by hand came to nothing; `code` says of which kind that is."""

    def __init__(self, message: str, hint: str = "", code: int = exits.ERROR) -> None:
        super().__init__(message, hint)
        self.code = code


def plugin(do: Operations, name: str, *words: str) -> None:
    """`{"args": [words]}`, whatever they look like."""
    _call(do, name, words, as_object=False)


def call(do: Operations, name: str, *words: str) -> None:
    """One word that is a JSON object is the arguments themselves."""
    _call(do, name, words, as_object=True)


def _call(do: Operations, name: str, words: tuple[str, ...], *, as_object: bool) -> None:
    """Run it and print its result; the model gets that too if it is called after all. Raises CallFailed."""
    found: list[Tool | None] = []
    done: list[Done] = []

    async def work(session: Session) -> None:
        def given(tool: Tool | None) -> str:
            found.append(tool)
            return arguments(tool, words, as_object)

        done.append(await session.call_tool(name, given))

    do.with_session(do.name, work, tells_failures=False)
    [outcome] = done
    if outcome.is_error:
        raise _failure(name, found[0], outcome)
    _show(do, outcome.result)
    if outcome.answer.halt:
        raise CallFailed(f"halted by {outcome.halted_by}: {outcome.answer.reason}".rstrip(": "), code=exits.DENIED)
    do.results.append(outcome.content)


def arguments(tool: Tool | None, words: tuple[str, ...], as_object: bool = True) -> str:
    """The words of a command line as a tool's arguments: JSON text. A tool that knows no `args` gets none if there are no words."""
    if as_object and len(words) == 1 and isinstance(_decoded(words[0]), dict):
        return words[0]
    if not words and tool is not None and _closed(tool):
        return "{}"
    return msgspec.json.encode({"args": words}).decode()


def _decoded(word: str) -> Any:
    try:
        return msgspec.json.decode(word)
    except (msgspec.DecodeError, RecursionError):
        return None


def _closed(tool: Tool) -> bool:
    """Whether the tool takes nothing but arguments that it names, and `args` is not among them."""
    schema = tool.spec.parameters
    return schema.get("additionalProperties") is False and "args" not in schema.get("properties", {})


def _failure(name: str, tool: Tool | None, outcome: Done) -> CallFailed:
    text = outcome.content.rstrip("\n") or f"{name} failed"
    if outcome.which == "unknown":
        return CallFailed(text, "`cru /tools` lists them", exits.USAGE)
    if outcome.which == "invalid":
        return CallFailed(text, _example(name, tool), exits.USAGE)
    denied = outcome.which in DENIED or (outcome.which == "timeout" and not outcome.ran)
    return CallFailed(text, code=exits.DENIED if denied else exits.ERROR)


def _example(name: str, tool: Tool | None) -> str:
    """The tool's required arguments as they are written."""
    if tool is None or not _closed(tool):
        return ""
    wanted = tool.spec.parameters.get("required") or list(tool.spec.parameters.get("properties", ()))[:1]
    text = msgspec.json.encode(dict.fromkeys(wanted, "…")).decode()
    return f"write its arguments as one JSON object: {shlex.join(('cru', '-P', name))} '{text}'"


def _show(do: Operations, text: str) -> None:
    """The result as it is; on a terminal it is harmless and ends its line, as it does before an answer."""
    if do.parsed.has("json"):
        do.show(text)
        return
    terminal = sys.stdout.isatty()
    if not text.endswith("\n") and (terminal or do.parsed.has("force-llm")):
        text += "\n"
    Output().write((printable(text) if terminal else text).encode("utf-8", "replace"))
