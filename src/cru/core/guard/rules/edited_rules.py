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
    RUNNING_WORDS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    WRAPPERS,
    base_name,
    is_listed,
    names,
)

if TYPE_CHECKING:
    from cru.core.guard.rules.paths import JudgedCall, PathRoots

_PODS = "pod pods po service services svc deployment deployments deploy node nodes event events namespace namespaces ns ingress job jobs"
PREFIXES = frozenset(
    f"{program} {word}"
    for program, words in {
        "git": "blame describe diff for-each-ref grep log ls-files ls-tree merge-base name-rev rev-list rev-parse shortlog show "
        "show-ref status",
        "gh issue": "list status view",
        "gh pr": "checks diff list status view",
        "gh release": "list view",
        "gh repo": "list view",
        "gh run": "list view watch",
        "gh": "search",
        "docker": "history images info logs port ps stats top version",
        "docker compose": "images logs ls ps top version",
        "kubectl": "api-resources api-versions describe explain logs top version",
        "kubectl get": _PODS,
        "npm": "explain list ls outdated search view why",
        "pip": "check freeze list show",
        "systemctl": "is-active is-enabled is-failed list-timers list-unit-files list-units show status",
    }.items()
    for word in words.split()
)
"""Beginnings of commands behind which a `*` is proposed to whoever edits a rule. What they do is the same whatever follows, but for
options that a rule must write out: they show what is there. None runs hooks of a repository (`git commit`, `git push`, `git fetch`)
or code of the project (`npm test`, `cargo tree`, which starts what `.cargo/config.toml` names), shows secrets (`kubectl get secrets`)
or changes anything."""
_LONGEST_PREFIX = 3
"""Words of one."""
RUNNERS = names(
    "bazel bundle claude codex crontab cru crush direnv dotnet elvish gemini ghci hatch java julia just mise nix nix-shell pdm pixi pnpx "
    "R rake Rscript runghc rye scala swift task ts-node tsx"
)
"""Programs beside those of cru.core.guard.shell.programs that run what their arguments name."""
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
    if name in WRAPPERS | SHELLS or is_listed(name, INTERPRETERS | CODE_RUNNERS | RUNNERS):
        return f"`{name}` runs whatever stands behind it, so a rule with a `*` is about everything; keep the command as it is"
    if words[-1] in RUNNING_WORDS:
        return f"what stands behind `{' '.join(words)}` is run, so a rule with a `*` is about everything; name what is to run"
    if is_listed(name, SUBCOMMAND_PROGRAMS) and len(words) < 2:
        return f"`{name} *` is about all that {name} does: name what it is to do{example}"
    return ""


def _example(call: JudgedCall) -> str:
    """A rule that would be kept for this very command, "" if it is none for a line."""
    text = call.detail.strip()
    return propose_prefix(call) or (f"{call.tool}:{escape(text)}" if len(text) <= LONGEST and "\n" not in text else "")
