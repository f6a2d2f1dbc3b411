"""Rules that a person writes at a question, before they are kept: which prefix is proposed, and what is refused as too wide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cru.core.base.files import is_inside
from cru.core.base.files.glob import escape, parse_glob
from cru.core.guard import BadRule
from cru.core.guard.rules import RuleEditing
from cru.core.guard.rules.allowed_commands import bare_command, bare_pattern
from cru.core.guard.rules.rules import LONGEST, OUTSIDE, Rule, absolute_glob, find_allowing_rules, parse_rule
from cru.core.guard.shell.analysis import CommandAnalysis
from cru.core.guard.shell.programs import (
    CODE_RUNNERS,
    INTERPRETERS,
    KINDS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    WRAPPERS,
    base_name,
    is_listed,
)

if TYPE_CHECKING:
    from cru.core.guard.rules.paths import JudgedCall, PathRoots

PREFIXES = frozenset(f"{program} {word}" for program, words in KINDS.proposed_prefixes.items() for word in words)
_LONGEST_PREFIX = 3
"""Words of one."""
WHOLE = "write it into [permissions] allow of config.toml if you mean that"


def editing_of(call: JudgedCall, places: PathRoots, rule: str, others: Sequence[Rule] = ()) -> RuleEditing | None:
    """How the rule that is proposed for this call may be edited; None if no other one would be kept. others: rules that allow here already,
    which may cover parts of it"""
    if call.tool == OUTSIDE and not propose_prefix(call):
        return None
    is_bare = call.kind == "shell" and call.tool != OUTSIDE
    prefix = _prefix_of(call.tool, bare_command(call, places.root)) if is_bare else propose_prefix(call)
    return RuleEditing(prefix or rule, partial(why_not_kept, call=call, places=places, others=others))


def propose_prefix(call: JudgedCall) -> str:
    """`bash:git log *` for `git log --oneline`; "" if no prefix makes sense."""
    return _prefix_of(call.tool, call.command) if call.kind == "shell" else ""


def _prefix_of(tool: str, command: CommandAnalysis) -> str:
    if command.opaque or len(command.parts) != 1 or any(command.uses):
        return ""
    words = command.parts[0]
    beginnings = (" ".join(words[:count]) for count in range(2, min(len(words), _LONGEST_PREFIX) + 1))
    prefix = next((beginning for beginning in beginnings if beginning in PREFIXES), "")
    return f"{tool}:{escape(prefix)} *" if prefix else ""


def why_not_kept(text: str, call: JudgedCall, places: PathRoots, others: Sequence[Rule] = ()) -> str:
    """Why an edited rule is not kept for this call, "" if it is: it cannot be read, does not cover the call, or covers far more."""
    try:
        rule = parse_rule(text)
    except BadRule as error:
        return f"{error.message}; {error.hint}"
    if rule.tool not in ((OUTSIDE,) if call.tool == OUTSIDE else (call.tool, call.kind)):
        return f"the rule is about `{rule.tool}`, this call is `{call.tool}`"
    wide = _why_too_wide(rule, call, places)
    if wide:
        return wide
    covers_rest = call.tool != OUTSIDE and not find_allowing_rules(others, call, places)
    if not find_allowing_rules((*others, rule) if covers_rest else (rule,), call, places):
        return "the rule does not cover this call, nor what no other rule covers of it"
    is_wider = call.tool == OUTSIDE and len(rule.pieces) > 1 and text != propose_prefix(call)
    return "of a run outside of the sandbox only this very command is kept" if is_wider else ""


def _why_too_wide(rule: Rule, call: JudgedCall, places: PathRoots) -> str:
    if call.kind not in ("read", "write", "shell", "fetch"):
        return ""
    if rule.pattern is None or not rule.pattern.strip("*/ "):
        return f"the rule is about every call of `{rule.tool}`; {WHOLE}"
    if call.kind == "shell":
        example = _example(call)
        as_in = f", as in `{example}`" if example else ""
        patterns = filter(None, (rule.pattern, bare_pattern(rule.pattern)))
        return next(filter(None, (_why_too_wide_command(pattern, as_in) for pattern in patterns)), "")
    if call.kind in ("read", "write"):
        return _why_too_wide_path(rule.pattern, places)
    if call.kind == "fetch" and "*" in rule.pattern.partition("://")[2].partition("/")[0]:
        return f"the rule is about other hosts, too; {WHOLE}"
    return ""


def _why_too_wide_path(pattern: str, places: PathRoots) -> str:
    """Names of any kind stand in folders below the person's home, or in the project, and not in what holds these."""
    names_below = absolute_glob(pattern, places)
    first = next((at for at, name in enumerate(names_below) if name is None or len(name) > 1), len(names_below))
    if all(name is not None and any(name) for name in names_below[first:]):
        return ""
    folder = "/" + "/".join(name[0] for name in names_below[:first] if name is not None)
    if is_inside(places.user_home, folder) or (is_inside(places.root, folder) and folder != places.root):
        return f"the rule is about all that is in {folder}; {WHOLE}"
    return ""


def _why_too_wide_command(pattern: str, example: str) -> str:
    """A star stands for arguments only: behind a blank, and behind what says what the command does. example: a rule that would be kept"""
    pieces = parse_glob(pattern)
    if len(pieces) == 1:
        return ""
    fixed = pieces[0]
    words = fixed.split()
    is_program_whole = " " in fixed.strip("\t ") or fixed.endswith(" ")
    if not words or not is_program_whole or not fixed.endswith((" ", "/", "=")):
        others = "options" if words and words[-1].startswith("-") else "words" if len(words) > 1 else "programs"
        return f"a `*` stands behind a blank, else it is about other {others} that begin so, too{example}"
    name = base_name(words[0])
    if name in WRAPPERS | SHELLS or is_listed(name, INTERPRETERS | CODE_RUNNERS | KINDS.runners):
        return f"`{name}` runs whatever stands behind it, so a rule with a `*` is about everything; keep the command as it is"
    if words[-1] in KINDS.running_words:
        return f"what stands behind `{' '.join(words)}` is run, so a rule with a `*` is about everything; name what is to run"
    if is_listed(name, SUBCOMMAND_PROGRAMS) and len(words) < 2:
        return f"`{name} *` is about all that {name} does: name what it is to do{example}"
    return ""


def _example(call: JudgedCall) -> str:
    """A rule that would be kept for this very command, "" if it is none for a line."""
    text = call.detail.strip()
    return propose_prefix(call) or (f"{call.tool}:{escape(text)}" if len(text) <= LONGEST and "\n" not in text else "")
