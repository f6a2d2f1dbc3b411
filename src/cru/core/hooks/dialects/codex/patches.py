"""Files that are written or changed, as the patches that hooks of Codex read: `tool_input.command` of `apply_patch`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

PATCH = "apply_patch"
PATCHED = ("write", "edit")
"""Our tools that are patches there."""
BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE = "*** Add File: ", "*** Update File: "


class FilePatch(Struct, frozen=True):
    """A patch of one file with one hunk.

    tool: ours that does the same
    args: its arguments
    """

    tool: str
    args: dict[str, str]


def to_patch(tool: str, args: Mapping[str, Any]) -> str:
    """The call as a patch, with the path as the model wrote it."""
    path = args.get("file_path", "")
    if tool == "write":
        return _joined(f"{ADD}{path}", _marked("+", args.get("content", "")))
    removed, added = _marked("-", args.get("old_string", "")), _marked("+", args.get("new_string", ""))
    return _joined(f"{UPDATE}{path}", ["@@", *removed, *added])


def read_patch(text: str) -> FilePatch | None:
    """The call that a patch is; None if it is more than one change of one file, or none."""
    lines = text.strip().split("\n")
    if len(lines) < 3 or lines[0].strip() != BEGIN or lines[-1].strip() != END:
        return None
    head, body = lines[1], lines[2:-1]
    if any(line.startswith("*** ") for line in body):
        return None
    if head.startswith(ADD) and all(line.startswith("+") for line in body):
        content = "".join(f"{line[1:]}\n" for line in body)
        return FilePatch("write", {"file_path": head.removeprefix(ADD), "content": content})
    hunk = body[1:] if body and body[0].startswith("@@") else body
    if not head.startswith(UPDATE) or not hunk or any(line[:1] not in ("+", "-", " ", "") for line in hunk):
        return None
    old, new = _side(hunk, "-"), _side(hunk, "+")
    return FilePatch("edit", {"file_path": head.removeprefix(UPDATE), "old_string": old, "new_string": new})


def _marked(mark: str, text: object) -> list[str]:
    lines = str(text).removesuffix("\n").split("\n") if text else ()
    return [f"{mark}{line}" for line in lines]


def _joined(head: str, body: Iterable[str]) -> str:
    return "\n".join((BEGIN, head, *body, END, ""))


def _side(hunk: Iterable[str], mark: str) -> str:
    return "\n".join(line[1:] for line in hunk if line[:1] in (mark, " ", ""))
