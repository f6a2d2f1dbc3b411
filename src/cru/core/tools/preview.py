"""What a question shows of a call before it runs: what would be written or sent, whole, and what a question has room for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from cru.core.base.values.visible import fold_blanks, visible
from cru.core.tools.secret_variables import masked

LINES, FIRST_LINES, COLUMNS = 30, 20, 200
"""What a question shows of a preview: so many lines, so many of them from its beginning, and so much of each."""
LONGEST = 256 * 1024
"""Characters of a text that a preview holds."""


def preview_call(tool: str, args: Mapping[str, object]) -> str:
    """Return lines without control characters; "" where the subject of the call says it all."""
    if tool == "write":
        return _show_written(str(args["content"]))
    if tool == "edit":
        return _show_edited(args)
    if tool == "send_message":
        return _marked(str(args["content"]), "")
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
    return f"{_marked(content, '')}\n({count} {'line' if count == 1 else 'lines'}, {size} bytes)"


def _show_edited(args: Mapping[str, object]) -> str:
    parts = [_marked(str(args["old_string"]), "- ")]
    if args["new_string"]:
        parts.append(_marked(str(args["new_string"]), "+ "))
    if args.get("replace_all"):
        parts.append("(everywhere in the file)")
    return "\n".join(parts)


def _marked(text: str, mark: str) -> str:
    """Return the lines of a text, each behind the mark; of a very long one the first."""
    lines = text[:LONGEST].splitlines() or [""]
    if len(text) > LONGEST:
        lines.append(f"… {len(text) - LONGEST:,} more characters")
    return "\n".join(mark + _safe_line(line) for line in lines)


def _safe_line(line: str) -> str:
    """A line as it is safe to show: nothing in it may move the cursor, turn the text around or be out of sight."""
    return visible(fold_blanks(line))


def cut_preview(preview: str) -> list[str]:
    """Return the lines that a question has room for. The end is shown too: of a diff, it may be all that is added."""
    lines = preview.rstrip("\n").split("\n") if preview.strip() else []
    rest = len(lines) - LINES
    if rest > 0:
        lines[FIRST_LINES : FIRST_LINES + rest] = [f"… {rest} more line{'s' if rest > 1 else ''}"]
    return [cut_line(line) for line in lines]


def cut_line(line: str) -> str:
    """Return the beginning of a line, made visible, and how much more there is."""
    folded = fold_blanks(line)
    rest = len(folded) - COLUMNS
    return visible(folded[:COLUMNS]) + (f" … {rest} more characters" if rest > 0 else "")
