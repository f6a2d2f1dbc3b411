"""Arguments of a call, checked: as the model wrote them, and as handlers changed them."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import add
from cru.core.events.bus import Bus, Outcome
from cru.core.events.payloads import FailureKind, ToolBeforeCall
from cru.core.tools.builtin import BuiltInTool
from cru.core.tools.protocol import ArgumentError, Tool
from cru.core.turn.parts import Parts

PATH_ARGUMENTS = frozenset({"file_path", "path"})
"""Arguments of built-in tools that are paths."""


class CheckedArguments(Struct, frozen=True):
    """Arguments of a call, what is wrong with the call ("" = nothing), and of which kind that is."""

    args: dict[str, object]
    problem: str = ""
    failure_kind: FailureKind | None = None


def check_arguments(parts: Parts, tool: Tool | None, call: ToolCall) -> CheckedArguments:
    """The arguments as the model wrote them."""
    loose = decode_loosely
    if tool is None:
        near = parts.tools.closest(call.name)
        hint = f"; did you mean `{near}`?" if near else ""
        return CheckedArguments(loose(call.arguments), f"there is no tool `{call.name}`{hint}", FailureKind.UNKNOWN)
    try:
        args = tool.check(call.arguments)
        if isinstance(tool, BuiltInTool) and not PATH_ARGUMENTS.isdisjoint(args):
            normalize_paths(args, parts)
        complete = getattr(tool, "complete", None)  # of a ContinuingTool; see permission._receiver
        return CheckedArguments(args if complete is None else complete(args, parts.tool_services))
    except ArgumentError as error:
        problem = f"bad arguments for {call.name}: {error}"
        return CheckedArguments(loose(call.arguments), problem, FailureKind.INVALID)
    except Exception as error:  # noqa: BLE001  the boundary around tools: reported
        return CheckedArguments(loose(call.arguments), report_failure(parts.bus, tool, error), FailureKind.FAILED)


def check_again(parts: Parts, tool: Tool, args: dict[str, object]) -> CheckedArguments:
    """The arguments as a handler changed them."""
    try:
        checked = tool.check(msgspec.json.encode(args).decode())
        if isinstance(tool, BuiltInTool) and not PATH_ARGUMENTS.isdisjoint(checked):
            normalize_paths(checked, parts)
        return CheckedArguments(checked)
    except ArgumentError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001  not JSON, or a defect of the tool: reported
        problem = report_failure(parts.bus, tool, error)
    problem = f"bad arguments for {tool.spec.name} (as changed by a hook): {problem}"
    return CheckedArguments(args, problem, FailureKind.INVALID)


def normalize_paths(args: dict[str, object], parts: Parts) -> None:
    """Give paths the one spelling that guards read, so that the tool opens what they have judged."""
    from cru.core.tools.paths import normalize_path

    for name in PATH_ARGUMENTS & args.keys():
        args[name] = normalize_path(str(args[name]), str(parts.place.root))


def report_failure(bus: Bus, tool: Tool, error: Exception) -> str:
    """Tell the person of a defect in a tool; its text for the model."""
    text = str(error) if isinstance(error, CruError) else f"{type(error).__name__}: {error}"
    bus.stream.warn(f"tool {tool.spec.name} failed: {text}", tool.source)
    return text


def decode_loosely(arguments: str) -> dict[str, object]:
    """Arguments that do not fit, as far as they are a table at all; the raw text otherwise."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}


def describe_call(parts: Parts, tool: Tool | None, args: dict[str, object]) -> str:
    """What a call is about, as a question shows it; "" if its tool cannot say it, which the person is told."""
    if tool is None:
        return ""
    try:
        return tool.subject(args)
    except Exception as error:  # noqa: BLE001  the boundary around tools: reported, and the question is asked without it
        report_failure(parts.bus, tool, error)
        return ""


async def announce_mended(
    parts: Parts, tool: Tool, outcome: Outcome[ToolBeforeCall], checked: CheckedArguments
) -> tuple[Outcome[ToolBeforeCall], CheckedArguments]:
    """A call that a handler has made valid, announced again: some guards hear of valid calls only (docs/decisions/0029). An allow
    covers what it was given to, so one of the first time does not count."""
    first = (
        replace(outcome.answer, decision="none", reason="") if outcome.answer.decision == "allow" else outcome.answer
    )
    mended = replace(outcome.payload, args=checked.args, valid=True, error="")
    again = await parts.bus.dispatch(mended)
    if again.payload.args is not mended.args:
        checked = check_again(parts, tool, again.payload.args)
    return replace(again, answer=add(first, again.answer), owners=again.owners or outcome.owners), checked
