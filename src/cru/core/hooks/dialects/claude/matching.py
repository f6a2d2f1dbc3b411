"""Which hooks of Claude Code fit an event: its matchers, and the rule of `if`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from cru.core.base.files import glob
from cru.core.guard.rules import paths, rules
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.parsing.bounded_regex import check_regex, finds_any

LITERAL = re.compile(r"[A-Za-z0-9_\-,| ]*")
PLAIN = re.compile(r"[A-Za-z0-9_|]*")
PLAIN_EVENTS = ("FileChanged", "StopFailure")
"""Events whose matchers know fewer literal characters, and only `|` between them."""
TOOL_EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "PreSkillShellCommand",
)
AGENT_EVENTS = ("SubagentStart", "SubagentStop")
UNMATCHED = (
    "UserPromptSubmit", "PostToolBatch", "Stop", "TeammateIdle", "TaskCreated", "TaskCompleted", "WorktreeCreate", "WorktreeRemove",
    "MessageDisplay", "CwdChanged",
)  # fmt: skip
"""Events on which a matcher has no effect."""
_NEGATIVE = re.compile(r"\(\?<?!")
_RULE = re.compile(r"([A-Za-z][\w*-]*)(?:\((.*)\))?", re.DOTALL)

# Our tool → the kind that rules know it by, and the argument that they look at.
KINDS: dict[str, tuple[str, str]] = {
    "bash": ("shell", "command"), "read": ("read", "file_path"), "ls": ("read", "path"), "glob": ("read", "path"),
    "grep": ("read", "path"), "write": ("write", "file_path"), "edit": ("write", "file_path"), "fetch": ("fetch", "url"),
    "task": ("agent", "agent"),
}  # fmt: skip


def check_matcher(event: str, matcher: str) -> str:
    """Why a matcher can never fit; "" if it can."""
    if event in UNMATCHED or _is_all(matcher) or _is_literal(event, matcher):
        return ""
    wrong = check_regex(_python(matcher))
    return f"the matcher {matcher!r} is no regular expression: {wrong}" if wrong else ""


def matcher_fits(event: str, matcher: str, tool: str, value: str) -> bool:
    """Whether a matcher fits. tool: our name of the tool that the event is about, "" if it is about none; value: what else it is
    tested against."""
    if _is_all(matcher):
        return True
    known = TOOLS.names(tool) if tool else TOOLS.agent_names(value) if event in AGENT_EVENTS else (value,)
    if _is_literal(event, matcher):
        words = re.split(r"\|" if event in PLAIN_EVENTS else r"[|,]", matcher)
        return not {word.strip() for word in words}.isdisjoint(known)
    if _NEGATIVE.search(matcher):
        known = known[:1]  # "anything but Bash" is not to hear of it by another name
    return finds_any(_python(matcher), known)


def _is_all(matcher: str) -> bool:
    return matcher in ("", "*")


def _is_literal(event: str, matcher: str) -> bool:
    return (PLAIN if event in PLAIN_EVENTS else LITERAL).fullmatch(matcher) is not None


def _python(pattern: str) -> str:
    """JavaScript's named groups in Python's spelling."""
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    return re.sub(r"\\k<(\w+)>", r"(?P=\1)", pattern)


class ToolCondition(Struct, frozen=True):
    """The rule of an `if`: Claude's name of a tool, and what stands between the brackets (None: every call)."""

    tool: str
    what: str | None


def parse_condition(text: str) -> ToolCondition | None:
    """`Bash(git *)` in its parts; None if it is no rule."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        return None
    what = match[2]
    return ToolCondition(match[1], None if what is None or what.strip() in ("", "*") else what.strip())


def check_condition(event: str, text: str) -> str:
    """Why a hook with this `if` never runs; "" if it may."""
    if not text:
        return ""
    if event not in TOOL_EVENTS:
        return f"`if` works on events of tools only, so a hook of {event} with one never runs"
    return "" if parse_condition(text) else f"`if`: {text!r} is no permission rule such as `Bash(git *)`"


def condition_holds(text: str, tool: str, args: Mapping[str, object], root: str, home: str) -> bool:
    """Whether a call is what an `if` wants. What a command does not tell for certain counts as wanted."""
    rule = parse_condition(text)
    if rule is None or not _is_of(rule.tool, tool):
        return False
    kind, argument = KINDS.get(tool, ("tool", ""))
    detail = str(args.get(argument, "") or "")
    if rule.what is None:
        return True
    if kind == "agent":
        return any(glob.matches_text(glob.parse_glob(rule.what), name) for name in TOOLS.agent_names(detail))
    if kind == "fetch":
        return _url(rule.what, detail)
    if kind == "shell":
        call = paths.JudgedCall(tool, kind, detail, receiver=str(args.get("input_to") or ""))
        return bool(call.command.opaque) or rules.rule_hits(
            _rule(kind, _command(rule.what)), call, paths.PathRoots(root, "", home)
        )
    if kind in ("read", "write"):
        return _path(rule.what, kind, tool, detail or ".", root, home)
    return glob.matches_text(glob.parse_glob(rule.what), detail)


def _is_of(name: str, tool: str) -> bool:
    """Whether the name in an `if` means the tool. `Read` means every tool that reads files; a server's name all of its tools."""
    if name == "Read":
        return KINDS.get(tool, ("",))[0] == "read"
    if name.startswith("mcp__"):
        known = TOOLS.foreign_name(tool)
        return known == name or known.startswith(f"{name}__") or glob.matches_text(glob.parse_glob(name), known)
    return name in TOOLS.names(tool)


def _rule(kind: str, pattern: str) -> rules.Rule:
    return rules.Rule(f"{kind}:{pattern}", kind, pattern, "", glob.parse_glob(pattern))


def _command(what: str) -> str:
    return what.removesuffix(":*") + " *" if what.endswith(":*") else what


def _path(what: str, kind: str, tool: str, path: str, root: str, home: str) -> bool:
    """`//x` is absolute, `/x` and `./x` lie in the project, a bare name lies anywhere."""
    pattern = what[1:] if what.startswith("//") else what.removeprefix("./").removeprefix("/") or "**"
    places = paths.PathRoots(paths.resolve(root), "", home)
    try:
        located = paths.locate(places, "read" if kind == "read" else "write", path)
    except ValueError:
        return True
    return rules.rule_hits(_rule(kind, pattern), paths.JudgedCall(tool, kind, path, (located,)), places)


def _url(what: str, url: str) -> bool:
    from cru.core.guard.places import urls

    host = urls.parse_rule_url(url).host.partition(":")[0]
    return glob.matches_text(glob.parse_glob(what.removeprefix("domain:").lower()), host)
