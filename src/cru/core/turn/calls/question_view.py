"""What a person is shown of a call that they are asked about: the change to a file as a diff, a command's parts, where it happens."""

from __future__ import annotations

import difflib
import os

from cru.core.base.files.regular import read_regular
from cru.core.base.values.visible import fold_blanks, visible
from cru.core.guard.rules.command_parts import judge_parts
from cru.core.guard.rules.gate import Gate
from cru.core.tools.preview import show_arguments
from cru.core.turn.calls.requested_call import RequestedCall
from cru.core.turn.parts import Parts

MOST = 256 * 1024
"""Bytes of a file, and of what is written, that are compared."""
NO_NEWLINE = "\\ No newline at end of file"
MOST_PARTS = 12


def show_call(parts: Parts, request: RequestedCall) -> str:
    """A diff where a file changes that the model may read; else what the tool shows of the call, or every argument."""
    diff = _diff(parts, request) if request.call.name in ("write", "edit") else []
    if diff:
        return "\n".join(visible(fold_blanks(line)) for line in diff)
    try:
        return str(getattr(request.tool, "preview", show_arguments)(request.args))
    except Exception as error:  # noqa: BLE001  the boundary around tools: the question is asked without it
        parts.bus.stream.warn(f"tool {request.call.name}: no preview: {type(error).__name__}: {error}")
        return ""


def show_parts(gate: Gate, request: RequestedCall) -> tuple[str, ...]:
    """The parts of a command that has several, each with what would happen to it alone, and why."""
    if request.kind != "shell":
        return ()
    judged = judge_parts(gate, request.call.name, request.detail)
    if len(judged.parts) < 2:
        return ()
    lines = [
        f"{part.decision:<5}  {part.text}" + ("" if part.decision == "allow" else f"  ({part.reason})")
        for part in judged.parts[:MOST_PARTS]
    ]
    more = len(judged.parts) - MOST_PARTS + judged.more
    return (*lines, *([f"… {more} more"] if more > 0 else []))


def working_folder(gate: Gate) -> str:
    """Where it happens, if that is a copy of the project."""
    places = gate.places
    return places.root if places.copy else ""


def _diff(parts: Parts, request: RequestedCall) -> list[str]:
    """The lines of a unified diff without its names; nothing if there is no such file, or nothing to compare."""
    paths = [path for _, path in request.paths]
    if len(paths) != 1 or parts.gate.judge("read", "read", paths[0], [("read", paths[0])]).decision != "allow":
        return []
    try:
        before = read_regular(os.path.join(parts.place.root, paths[0]), MOST).decode()
    except (OSError, ValueError):
        return []
    after = _changed(request, before)
    if after is None or len(after) > MOST or "\0" in before:
        return []
    return list(difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=2))[2:]


def _changed(request: RequestedCall, before: str) -> str | None:
    """The file's text afterwards, None if that is not known."""
    args = request.args
    if request.call.name == "write":
        return str(args["content"])
    old, new = str(args["old_string"]), str(args["new_string"])
    count = before.count(old) if old else 0
    if count == 0 or (count > 1 and not args.get("replace_all")):
        return None
    return before.replace(old, new)


def _lines(text: str) -> list[str]:
    """Nothing but a newline ends a line; a last one without it is marked."""
    *lines, rest = text.split("\n")
    return lines if not rest else [*lines, rest, NO_NEWLINE]
