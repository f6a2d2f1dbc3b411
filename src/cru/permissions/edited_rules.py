"""Rules that a person writes at a question, before they are kept: which prefix is proposed, and what is refused as too wide."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cru.files.glob import escape
from cru.permissions import BadRule, RuleEditing
from cru.permissions.paths import is_inside
from cru.permissions.rules import Rule, absolute_glob, find_allowing_rule, parse_rule
from cru.shell.programs import (
    CODE_RUNNERS,
    INTERPRETERS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    WRAPPERS,
    base_name,
    is_listed,
    names,
)

if TYPE_CHECKING:
    from cru.permissions.paths import JudgedCall, PathRoots

PREFIXES = {
    "git": names(
        "blame branch describe diff fetch log ls-files pull push remote rev-parse shortlog show stash status tag"
    ),
    "gh": names("browse issue pr release repo run search"),
    "docker": names("images inspect logs ps stats version"),
    "podman": names("images inspect logs ps stats version"),
    "kubectl": names("describe explain get logs top version"),
    "npm": names("audit ls outdated search view"),
    "pnpm": names("audit list outdated view"),
    "cargo": names("metadata search tree"),
    "go": names("list version"),
    "pip": names("check freeze list show"),
    "systemctl": names("is-active list-units show status"),
}
"""Programs → first words behind which a `*` is proposed to whoever edits a rule: what they do is the same whatever follows, but for options
that a rule must write out (cru.shell.option_effects). None
of them runs code of the project by its nature (`git commit`, `npm run`, `cargo build`)."""
RUNNERS = names(
    "bazel bundle claude codex crontab cru crush direnv dotnet elvish gemini ghci hatch java julia just mise nix nix-shell pdm pixi pnpx "
    "R rake Rscript runghc rye scala swift task ts-node tsx"
)
"""Programs beside those of cru.shell.programs that run what their arguments name."""
RUNNING_WORDS = names("exec run dlx x shell -exec -execdir -ok -okdir")
"""First words of programs (`npm exec`), and options of `find`, behind which a program stands."""
WHOLE = "write it into [permissions] allow of config.toml if you mean that"


def editing_of(call: JudgedCall, places: PathRoots, rule: str) -> RuleEditing:
    """How the rule that is proposed for this call may be edited."""
    return RuleEditing(propose_prefix(call) or rule, partial(why_not_kept, call=call, places=places))


def propose_prefix(call: JudgedCall) -> str:
    """`bash:git push *` for `git push origin main`; "" if no prefix makes sense."""
    command = call.command if call.kind == "shell" else None
    if command is None or command.opaque or len(command.parts) != 1 or any(command.uses):
        return ""
    words = command.parts[0]
    if len(words) < 2 or words[1] not in PREFIXES.get(words[0], ()):
        return ""
    return f"{call.tool}:{escape(words[0])} {escape(words[1])} *"


def why_not_kept(text: str, call: JudgedCall, places: PathRoots) -> str:
    """Why an edited rule is not kept for this call, "" if it is: it cannot be read, does not cover the call, or covers far more."""
    try:
        rule = parse_rule(text)
    except BadRule as error:
        return f"{error.message}; {error.hint}"
    if rule.tool not in (call.tool, call.kind):
        return f"the rule is about `{rule.tool}`, this call is `{call.tool}`"
    wide = _why_too_wide(rule, call, places)
    if wide:
        return wide
    if find_allowing_rule((rule,), call, places) is None:
        return "the rule does not cover this call"
    return ""


def _why_too_wide(rule: Rule, call: JudgedCall, places: PathRoots) -> str:
    if call.kind not in ("read", "write", "shell", "fetch"):
        return ""
    if rule.pattern is None or not rule.pattern.strip("*/ "):
        return f"the rule is about every call of `{rule.tool}`; {WHOLE}"
    if call.kind == "shell":
        return _why_too_wide_command(rule)
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


def _why_too_wide_command(rule: Rule) -> str:
    """A star stands for arguments only: behind a blank, and behind what says what the command does."""
    if len(rule.pieces) == 1:
        return ""
    fixed = rule.pieces[0]
    words = fixed.split()
    is_program_whole = " " in fixed.strip("\t ") or fixed.endswith(" ")
    if not words or not is_program_whole or not fixed.endswith((" ", "/", "=")):
        return f"a `*` stands behind a blank: `{words[0] if words else 'make'} *`, else it is about other programs, too"
    name = base_name(words[0])
    if name in WRAPPERS | SHELLS or is_listed(name, INTERPRETERS | CODE_RUNNERS | RUNNERS):
        return f"`{name}` runs whatever stands behind it, so a rule with a `*` is about everything; keep the command as it is"
    if words[-1] in RUNNING_WORDS:
        return f"what stands behind `{' '.join(words)}` is run, so a rule with a `*` is about everything; name what is to run"
    if is_listed(name, SUBCOMMAND_PROGRAMS) and len(words) < 2:
        return f"`{name} *` is about all that {name} does: name what it is to do, as in `{name} {_example(name)} *`"
    return ""


def _example(program: str) -> str:
    return min(PREFIXES.get(program, ("list",)))
