"""A tool call as it is asked for: its arguments, checked as the model wrote them and as handlers changed them."""

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
from cru.core.tools.protocol import Access, ArgumentError, Kind, Tool
from cru.core.turn.parts import Parts, Workplace

PATH_ARGUMENTS = frozenset({"file_path", "path"})
"""Arguments of built-in tools that are paths."""


class RequestedCall(Struct, frozen=True):
    """A call that something asks for.

    call: as the model, or another caller, wrote it
    tool: None: there is no tool of that name
    kind: what modes and rules call it
    args: as handlers left them
    origin: who calls: model, user, script, hook or command
    prompt_file: of a `!` line: `name` of the command or skill, `source`, `invoked_by`
    problem: what is wrong with the call; "": nothing
    failure_kind: of which kind that is
    detail: what a rule's glob matches
    paths: what it touches, as given by the model
    changed_by: the handlers that changed it; "": none
    before: the detail as the model gave it, if handlers changed the call
    is_rewritten: it was put in the place of another one at that one's question, and takes no further change
    leave_of: the owners of the handlers that allowed it there with these very arguments
    asks: which of them want a person to decide, and why; "": none
    """

    call: ToolCall
    tool: Tool | None = None
    kind: Kind = "tool"
    args: dict[str, object] = {}
    origin: str = "model"
    prompt_file: dict[str, str] = {}
    problem: str = ""
    failure_kind: FailureKind | None = None
    detail: str = ""
    paths: tuple[tuple[Access, str], ...] = ()
    changed_by: str = ""
    before: str = ""
    is_rewritten: bool = False
    leave_of: tuple[str, ...] = ()
    asks: str = ""


def check_arguments(parts: Parts, request: RequestedCall) -> RequestedCall:
    """Read the arguments that the model wrote, and return the call with them."""
    call, tool = request.call, request.tool
    if tool is None:
        near = parts.tools.closest(call.name)
        hint = f"; did you mean `{near}`?" if near else ""
        return unfit(request, f"there is no tool `{call.name}`{hint}", FailureKind.UNKNOWN)
    try:
        args = tool.check(call.arguments)
        if isinstance(tool, BuiltInTool) and not PATH_ARGUMENTS.isdisjoint(args):
            normalize_paths(args, parts.place)
        complete = getattr(tool, "complete", None)  # of a ContinuingTool
        return replace(request, args=args if complete is None else complete(args, parts.tool_services))
    except ArgumentError as error:
        return unfit(request, f"bad arguments for {call.name}: {error}", FailureKind.INVALID)
    except Exception as error:  # noqa: BLE001  the boundary around tools: reported
        return unfit(request, report_failure(parts.bus, tool, error), FailureKind.FAILED)


def unfit(request: RequestedCall, problem: str, kind: FailureKind) -> RequestedCall:
    """Return the call with what is wrong with it, and its arguments as far as they can be read."""
    return replace(request, args=_decode_loosely(request.call.arguments), problem=problem, failure_kind=kind)


def check_again(parts: Parts, request: RequestedCall, args: dict[str, object]) -> RequestedCall:
    """Return the call with arguments that a handler has changed, checked by its tool if there is one."""
    tool = request.tool
    if tool is None:
        return replace(request, args=args)
    try:
        checked = tool.check(msgspec.json.encode(args).decode())
        if isinstance(tool, BuiltInTool) and not PATH_ARGUMENTS.isdisjoint(checked):
            normalize_paths(checked, parts.place)
        return replace(request, args=checked, problem="", failure_kind=None)
    except ArgumentError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001  not JSON, or a defect of the tool: reported
        problem = report_failure(parts.bus, tool, error)
    problem = f"bad arguments for {tool.spec.name} (as changed by a hook): {problem}"
    return replace(request, args=args, problem=problem, failure_kind=FailureKind.INVALID)


def normalize_paths(args: dict[str, object], place: Workplace) -> None:
    """Give paths the one spelling that guards read, so that the tool opens what they have judged."""
    from cru.core.tools.paths import normalize_path

    for name in PATH_ARGUMENTS & args.keys():
        args[name] = normalize_path(str(args[name]), str(place.root))


def report_failure(bus: Bus, tool: Tool, error: Exception) -> str:
    """Tell the person of a defect in a tool; its text for the model."""
    text = str(error) if isinstance(error, CruError) else f"{type(error).__name__}: {error}"
    bus.stream.warn(f"tool {tool.spec.name} failed: {text}", tool.source)
    return text


def _decode_loosely(arguments: str) -> dict[str, object]:
    """Arguments that do not fit, as far as they are a table at all; the raw text otherwise."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}


def describe_change(parts: Parts, request: RequestedCall, before: ToolBeforeCall, changed_by: str) -> RequestedCall:
    """Return the call, changed by handlers, with what it was about before, for a question. If its tool cannot say that, the
    person is warned, and the question is asked without it."""
    if not changed_by or request.tool is None or not before.valid:
        return replace(request, changed_by=changed_by)
    try:
        detail = request.tool.subject(before.args)
    except Exception as error:  # noqa: BLE001  the boundary around tools: reported, and the question is asked without it
        report_failure(parts.bus, request.tool, error)
        detail = ""
    return replace(request, changed_by=changed_by, before=detail)


async def announce_mended(
    parts: Parts, outcome: Outcome[ToolBeforeCall], request: RequestedCall
) -> tuple[Outcome[ToolBeforeCall], RequestedCall]:
    """Announce a call again that a handler has made valid: some guards hear of valid calls only (docs/decisions/hook-dialects.md).
    An allow covers what it was given to, so one for the first call does not count."""
    first = (
        replace(outcome.answer, decision="none", reason="") if outcome.answer.decision == "allow" else outcome.answer
    )
    mended = replace(outcome.payload, args=request.args, valid=True, error="")
    again = await parts.bus.dispatch(mended)
    if again.payload.args is not mended.args:
        request = check_again(parts, request, again.payload.args)
    return replace(again, answer=add(first, again.answer), owners=again.owners or outcome.owners), request
