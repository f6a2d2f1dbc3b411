"""What a question shows of a call before it runs: what would be written or sent, short enough to be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from cru.values.masking import masked
from cru.values.visible import fold_blanks, visible

LINES = 12
WIDTH = 160


def preview_call(tool: str, args: Mapping[str, object]) -> str:
    """A few lines without control characters; "" where the subject of the call says it all."""
    if tool == "write":
        return _show_written(str(args["content"]))
    if tool == "edit":
        return _show_edited(args)
    if tool == "send_message":
        return _first_lines(str(args["content"]), "")
    if tool == "bash":
        return _show_how_it_runs(args)
    return ""


def _show_how_it_runs(args: Mapping[str, object]) -> str:
    if args.get("input_to"):
        return _safe_line(f"not run: typed into the running command of task {args['input_to']}")
    if args.get("detached"):
        return "in the background, and it goes on when cru has ended"
    return "in the background" if args.get("background") else ""


def show_arguments(args: Mapping[str, object], first: Iterable[str] = ()) -> str:
    """Every argument of a call, one a line: those of `first` in that order, then the others. What looks like a secret is hidden."""
    names = dict.fromkeys((*(name for name in first if name in args), *args))
    return "\n".join(_safe_line(masked(f"{_name(name)}: {_json(args[name])}")) for name in names)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else _json(name)


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")


def _show_written(content: str) -> str:
    size = len(content.encode("utf-8", "replace"))
    if not content:
        return "(0 lines, 0 bytes)"
    count = len(content.splitlines())
    return f"{_first_lines(content, '')}\n({count} {'line' if count == 1 else 'lines'}, {size} bytes)"


def _show_edited(args: Mapping[str, object]) -> str:
    parts = [_first_lines(str(args["old_string"]), "- ")]
    if args["new_string"]:
        parts.append(_first_lines(str(args["new_string"]), "+ "))
    if args.get("replace_all"):
        parts.append("(everywhere in the file)")
    return "\n".join(parts)


def _first_lines(text: str, mark: str) -> str:
    """The first lines, each behind the mark, and how many more there are."""
    lines = text.splitlines() or [""]
    shown = [mark + _safe_line(line) for line in lines[:LINES]]
    if len(lines) > LINES:
        shown.append(f"{mark}… {len(lines) - LINES} more lines")
    return "\n".join(shown)


def _safe_line(line: str) -> str:
    """A line as it is safe to show: nothing in it may move the cursor, turn the text around or be out of sight."""
    folded = fold_blanks(line)
    shown = visible(folded[:WIDTH])
    return f"{shown}… ({len(folded) - WIDTH} more characters)" if len(folded) > WIDTH else shown
