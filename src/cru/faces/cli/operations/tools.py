"""`-p` and `-P`: the user's own calls of tools, on the road of all calls (docs/command-line.md, "Tools by hand")."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import msgspec

from cru.core.base.values.errors import CruError
from cru.core.conversations import StoreUnwritable
from cru.core.events.payloads import FailureKind
from cru.faces.cli.console import ExitStatus, TerminalOutput, printable, say

if TYPE_CHECKING:
    from cru.core.tools.protocol import Tool
    from cru.core.turn.calls.tool_call import FinishedCall
    from cru.core.turn.session import Session
    from cru.faces.cli.operations.flag_run import FlagRun

# Failures of calls that were not allowed to run; a timeout is one only before the tool ran.
DENIED = frozenset({FailureKind.POLICY, FailureKind.HOOK, FailureKind.HUMAN, FailureKind.ERROR, FailureKind.HALTED})
TRUST_HINT = '"flags": {"trust": true} allows what only a mode asks about'


class CallFailed(CruError):
    """A call by hand came to nothing; `code` says of which kind that is."""

    def __init__(self, message: str, hint: str = "", code: int = ExitStatus.ERROR) -> None:
        super().__init__(message, hint)
        self.code = code


def run_plugin(run: FlagRun, name: str, *words: str) -> None:
    """`{"args": [words]}`, whatever they look like."""
    _call(run, name, words, as_object=False)


def call_tool(run: FlagRun, name: str, *words: str) -> None:
    """One word that is a JSON object is the arguments themselves."""
    _call(run, name, words, as_object=True)


def _call(run: FlagRun, name: str, words: tuple[str, ...], *, as_object: bool) -> None:
    """Run it and print its result; the model gets that too if it is called after all. Raises CallFailed."""
    if as_object and len(words) == 1 and words[0].lstrip().startswith("{"):
        _check_object(name, words[0])
    tools: list[Tool | None] = []
    outcomes: list[FinishedCall] = []
    by_program = run.parsed.has("json-config")

    async def work(session: Session) -> None:
        def arguments_for(tool: Tool | None) -> str:
            tools.append(tool)
            return arguments(tool, words, as_object)

        outcomes.append(await session.call_tool(name, arguments_for, "script" if by_program else "user"))

    try:
        run.with_session(run.name, work, tells_failures=False)
    except StoreUnwritable as error:
        if not outcomes:
            raise
        say(f"cru: {error}")
    [outcome] = outcomes
    if outcome.is_error:
        raise _failure(name, tools[0], outcome, by_program=by_program, is_streamed=not run.parsed.has("json"))
    _show(run, outcome.text)
    if outcome.answer.halt:
        raise CallFailed(f"halted by {outcome.halted_by}: {outcome.answer.reason}".rstrip(": "), code=ExitStatus.DENIED)
    run.results.append(outcome.content)


def arguments(tool: Tool | None, words: tuple[str, ...], as_object: bool = True) -> str:
    """The words of a command line as a tool's arguments: JSON text. A tool that knows no `args` gets none if there are no words."""
    if as_object and len(words) == 1 and isinstance(_decoded(words[0]), dict):
        return words[0]
    if not words and tool is not None and _closed(tool):
        return "{}"
    return msgspec.json.encode({"args": words}).decode()


def _check_object(name: str, word: str) -> None:
    """What begins as an object and is none is a slip, no word for the tool. Raises CallFailed."""
    try:
        msgspec.json.decode(word)
    except (msgspec.DecodeError, RecursionError) as error:
        why = str(error).replace("Input data was truncated", f"it ends too early (byte {len(word.encode())})")
        raise CallFailed(
            f"the arguments of {name} are not one JSON object: {why}",
            "cru -p takes words as they are",
            ExitStatus.USAGE,
        ) from error


def _decoded(word: str) -> object:
    try:
        return msgspec.json.decode(word)
    except (msgspec.DecodeError, RecursionError):
        return None


def _closed(tool: Tool) -> bool:
    """Whether the tool takes nothing but arguments that it names, and `args` is not among them."""
    schema = tool.spec.parameters
    return schema.get("additionalProperties") is False and "args" not in schema.get("properties", {})


def _failure(name: str, tool: Tool | None, outcome: FinishedCall, *, by_program: bool, is_streamed: bool) -> CallFailed:
    """`by_program`: a program asked, not a person; `is_streamed`: what a tool's own process said on standard error has been seen there."""
    text = outcome.content
    if is_streamed and outcome.result.brief:
        text = text.replace(outcome.result.content, outcome.result.brief, 1)
    text = text.rstrip("\n") or f"{name} failed"
    if outcome.failure_kind is FailureKind.UNKNOWN:
        return CallFailed(text, "`cru /tools` lists them", ExitStatus.USAGE)
    if outcome.failure_kind is FailureKind.INVALID:
        return CallFailed(text, _example(name, tool), ExitStatus.USAGE)
    denied = outcome.failure_kind in DENIED or (
        outcome.failure_kind is FailureKind.TIMEOUT and outcome.decided.state != "granted"
    )
    hint = TRUST_HINT if by_program and outcome.failure_kind is FailureKind.POLICY else ""
    return CallFailed(text, hint, ExitStatus.DENIED if denied else ExitStatus.ERROR)


def _example(name: str, tool: Tool | None) -> str:
    """The tool's required arguments as they are written."""
    if tool is None or not _closed(tool):
        return ""
    names = tool.spec.parameters.get("required") or list(tool.spec.parameters.get("properties", ()))[:1]
    text = msgspec.json.encode(dict.fromkeys(names, "…")).decode()
    return f"write its arguments as one JSON object: {shlex.join(('cru', '-P', name))} '{text}'"


def _show(run: FlagRun, text: str) -> None:
    """The result as it is; on a terminal it is harmless and ends its line, as it does before an answer."""
    if run.parsed.has("json"):
        run.show(text)
        return
    terminal = sys.stdout.isatty()
    if not text.endswith("\n") and (terminal or run.parsed.has("force-llm")):
        text += "\n"
    TerminalOutput().write((printable(text) if terminal else text).encode("utf-8", "replace"))
