"""Rules `tool:glob`. The name is a tool's, a kind's (read, write, shell, fetch, …) or a glob of names; without a glob the rule
means every call. Allow rules are read narrowly, ask and deny rules broadly (docs/permissions.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.base.config.layers import Layer, SettingsProblem
from cru.core.base.files import glob, is_inside
from cru.core.base.files.glob import escape
from cru.core.base.values.mcp_names import PREFIX, names_server, own_name, plain_text, whole_names
from cru.core.guard import BadRule
from cru.core.guard.places.path_set import PathSet, fold, names_of
from cru.core.guard.rules.modes import KINDS
from cru.core.guard.rules.paths import JudgedCall, PathRoots, ResolvedPath, is_protected, resolve
from cru.core.guard.shell.programs import KINDS as PROGRAM_KINDS

if TYPE_CHECKING:
    from cru.core.guard.rules import LayerRules


SKILL = "skill"
INPUT_TO = "input_to"
OUTSIDE = "outside_sandbox"  # names commands that run outside of the sandbox
"""In the place of a tool: what is typed into a running command; the pattern is matched against that command."""


class GrantOrigin(Struct, frozen=True):
    """Where a rule is from that stands in no settings.

    scope: of a person's answer: session, project or always; of a hook's grant: session, local, project or user
    by: the owner of the hook that gave it; "": a person's answer
    file: where it is kept, "" if nowhere
    """

    scope: str
    by: str = ""
    file: str = ""


class Rule(Struct, frozen=True):
    """One rule.

    text: as it was written
    tool: a tool, a kind, or a glob of names
    pattern: the glob behind the colon; None: every call
    source: who made it, for the reason given to the model
    pieces: the pattern, parsed
    origin: the settings or the grant that it is from
    """

    text: str
    tool: str
    pattern: str | None = None
    source: str = ""
    pieces: glob.StarGlob = ("", "")
    origin: LayerRules | GrantOrigin | None = None


def parse_rule(text: str, source: str = "", origin: LayerRules | GrantOrigin | None = None) -> Rule:
    """Read one rule. Raises BadRule that says what to write instead."""
    tool, colon, pattern = text.partition(":")
    if not tool or tool != tool.strip():
        raise BadRule(f"rule `{text}` has no tool", 'write "tool:glob", "tool" or "*"')
    if "(" in tool or " " in tool:
        name = tool.partition("(")[0].split(" ")[0].lower()
        raise BadRule(f"rule `{text}` is not of the form `tool:glob`", f'write "{name}:…", as in "bash:git *"')
    if tool.startswith("mcp__"):  # as other programs write it
        tool = own_name(tool)
    if colon and not pattern.strip():
        raise BadRule(f"rule `{text}` has nothing behind the colon", f'write "{tool}" for every call')
    if not colon:
        return Rule(text, tool, None, source, origin=origin)
    return Rule(text, tool, pattern, source, glob.parse_glob(pattern), origin)


def drop_unreadable(layer: Layer) -> tuple[Layer, list[str]]:
    """Return the layer of a project without the rules that cannot be read, and a sentence for each: the other rules still refuse."""
    table = layer.data.get("permissions", {})
    if not isinstance(table, dict):
        data = {key: value for key, value in layer.data.items() if key != "permissions"}
        where = f"{layer.place(('permissions',))}: `permissions`"
        return replace(layer, data=data), [f"{where}: expected a table with lists of rules: the setting is ignored"]
    kept: dict[str, object] = {}
    problems = []
    for key, rules in table.items():
        where = f"{layer.place(('permissions', key))}: `permissions.{key}`"
        if not isinstance(rules, list):
            problems.append(f"{where}: expected a list of rules: the setting is ignored")
            continue
        kept[key] = readable = []
        for rule in rules:
            try:
                parse_rule(rule if isinstance(rule, str) else "")
                readable.append(rule)
            except BadRule as error:
                what = f"{error.message} ({error.hint})" if isinstance(rule, str) else "expected text"
                problems.append(f"{where}: {what}: the rule is ignored, the others hold")
    return replace(layer, data={**layer.data, "permissions": kept}), problems


def unknown_tools(rules: Iterable[Rule], known: Iterable[str]) -> tuple[SettingsProblem, ...]:
    """A problem for each rule that names neither a known tool nor a kind; globs of names are not judged, nor tools that come and go: those
    of MCP servers, and the one that loads skills."""
    names = (*known, *KINDS, INPUT_TO, OUTSIDE, SKILL)
    return tuple(
        SettingsProblem(f"rule `{rule.text}` names no tool", rule.source, did_you_mean(rule.tool, names))
        for rule in rules
        if "*" not in rule.tool and rule.tool not in names and not rule.tool.startswith(PREFIX)
    )


def find_allowing_rules(rules: Sequence[Rule], call: JudgedCall, places: PathRoots) -> tuple[Rule, ...]:
    """The allow rules that cover the call together, each once, () if something is not covered."""
    if call.kind in ("read", "write"):
        covering = [
            next((rule for rule in rules if path_is_covered(rule, call, path, places)), None) for path in call.paths
        ]
        if None in covering:
            return ()
        return tuple(rule for at, rule in enumerate(covering) if rule is not None and rule not in covering[:at])
    if call.receiver:
        return _find_input_rules(rules, call)
    if call.is_outside:
        rules, call = [rule for rule in rules if rule.tool == OUTSIDE], call.named(OUTSIDE, call.detail)
    own = [rule for rule in rules if names_call(rule, call) and names_server(rule.tool, call.tool)]
    whole = next((rule for rule in own if rule.pattern is None or rule.pattern == "*"), None)
    if whole is not None or not own:
        return (whole,) if whole is not None else ()
    if call.kind == "shell":
        from cru.core.guard.rules.allowed_commands import find_command_rules

        return find_command_rules(own, call, places.root if call.tool != OUTSIDE else "")
    if call.kind == "fetch":
        from cru.core.guard.places import urls

        return tuple(islice((rule for rule in own if urls.url_is_covered(rule.pattern or "*", call.detail)), 1))
    return tuple(islice((rule for rule in own if glob.matches_text(rule.pieces, call.detail)), 1))


def _find_input_rules(rules: Sequence[Rule], call: JudgedCall) -> tuple[Rule, ...]:
    """One for every call of the tool, or one on the command that gets the text. Rules on commands do not cover it: what that does with a
    text nobody knows."""
    whole = (
        rule for rule in rules if rule.pattern in (None, "*") and (names_call(rule, call) or rule.tool == INPUT_TO)
    )
    if (rule := next(whole, None)) is not None:
        return (rule,)
    own = [rule for rule in rules if rule.tool == INPUT_TO]
    if not own:
        return ()
    from cru.core.guard.rules.allowed_commands import find_command_rules

    return find_command_rules(own, JudgedCall(INPUT_TO, call.kind, call.receiver), "")


def path_is_covered(rule: Rule, call: JudgedCall, path: ResolvedPath, places: PathRoots) -> bool:
    """Whether an allow rule covers this path. Only where it really leads counts, and only a glob that begins with `/` or `~`
    reaches outside the project, or to what is protected from reading."""
    named = call.kind in ("read", "write") and names_call(rule, call)
    if not (named or rule.tool == path.access) or (rule.tool == "read" and path.access == "write"):
        return False
    if path.access == "read" and not (rule.pattern or "").startswith(("/", "~")) and is_protected(path, places):
        return False
    if rule.pattern is None:
        return is_inside(path.real, places.root)
    return glob.matches_path(absolute_glob(rule.pattern, places), names_of(path.real))


def writes_out(rule: Rule, special: str) -> bool:
    """Whether the rule names this part of a path: `edit:src/*` is not meant for `src/.envrc`."""
    pattern = (rule.pattern or "").casefold().replace("\\", "")
    return f"/{special}/" in f"/{pattern}/"


def rule_hits(rule: Rule, call: JudgedCall, places: PathRoots) -> bool:
    """Whether an ask or deny rule touches the call: any path, any command in it, any spelling of its URL."""
    by_access = [path for path in call.paths if path.access == rule.tool]
    if by_access and (rule.pattern is None or any(_path_is_hit(rule.pattern, path, places) for path in by_access)):
        return True
    if rule.tool == INPUT_TO and call.receiver:
        call = call.named(INPUT_TO, call.receiver)
    if rule.tool == OUTSIDE and call.is_outside:
        call = call.named(OUTSIDE, call.detail)
    if not names_call(rule, call) and not _names_server_tool(rule, call.tool):
        return False
    if rule.pattern is None or rule.pattern == "*":
        return True
    if call.kind in ("read", "write"):
        return any(_path_is_hit(rule.pattern, path, places) for path in call.paths)
    if call.kind == "shell":
        return call.searched.matches(rule.pieces)
    if call.kind == "fetch":
        from cru.core.guard.places import urls

        return urls.url_is_hit(rule.pieces, call.detail)
    return glob.matches_text(glob.parse_glob(rule.pattern.strip()), call.detail.strip())


def names_call(rule: Rule, call: JudgedCall) -> bool:
    if rule.tool in (call.tool, call.kind, "*"):
        return True
    return "*" in rule.tool and glob.matches_text(glob.parse_glob(rule.tool), call.tool)


def _names_server_tool(rule: Rule, tool: str) -> bool:
    """Whether it may mean this tool of an MCP server: `mcp__a__b__c` is that of `a__b`, too, and a long name counts as it was before it was
    shortened. Two tools may be written the same, so no allow rule is read like this."""
    if not (tool.startswith(PREFIX) and rule.tool.startswith(PREFIX)):
        return False
    written = glob.parse_glob(plain_text(rule.text.partition(":")[0]))
    return any(glob.matches_text(written, name) for name in whole_names(tool))


def matched_paths(rules: Iterable[Rule], places: PathRoots) -> PathSet | None:
    """All that these deny or ask rules touch, as `rule_hits` tells it of one path; None if there are no rules."""
    patterns = [rule.pattern or "*" for rule in rules]
    if not patterns:
        return None
    if "*" in patterns:
        return PathSet(((),))
    names = [name for pattern in patterns if (name := _name_glob(pattern)) is not None]
    anchors = [anchor for pattern in patterns for anchor in _anchors(pattern, places)]
    return PathSet(tuple(dict.fromkeys(anchors)), tuple(names), places.root)


def allowed_paths(rules: Iterable[Rule], places: PathRoots) -> tuple[glob.PathGlob, ...]:
    """What these allow rules let be read although it is protected, as `path_is_covered` tells it of one path."""
    patterns = [rule.pattern for rule in rules if (rule.pattern or "").startswith(("/", "~"))]
    return tuple(absolute_glob(pattern, places) for pattern in patterns if pattern)


def _path_is_hit(pattern: str, resolved: ResolvedPath, places: PathRoots) -> bool:
    """Either spelling, anything below what is named, a bare name anywhere, and a named symlink's target."""
    spellings = {resolved.lexical, resolved.real}
    name_glob = _name_glob(pattern)
    if name_glob is not None and any(
        glob.matches_text(name_glob, fold(name))
        for path in spellings
        for name in names_of(path)[_own_names(path, places) :]
    ):
        return True
    anchors = _anchors(pattern, places)
    return any(glob.matches_path(a, names_of(fold(path)), below=True) for a in anchors for path in spellings)


def _name_glob(pattern: str) -> glob.StarGlob | None:
    """The glob of one name that a pattern without a folder is."""
    if "/" in pattern.rstrip("/") or pattern.startswith("~"):
        return None
    return glob.parse_glob(fold(pattern.rstrip("/")))


def _anchors(pattern: str, places: PathRoots) -> list[glob.PathGlob]:
    """The whole paths that a pattern stands for; in a worktree those of the project, too, and the same files in the worktree."""
    anchors = _anchors_at(pattern, places)
    if not places.copy:
        return anchors
    originals = _anchors_at(pattern, replace(places, root=places.in_project(places.root), copy="", copy_of=""))
    return [*anchors, *originals, *(copied for original in originals for copied in _copied(original, places))]


def _copied(original: glob.PathGlob, places: PathRoots) -> list[glob.PathGlob]:
    """What it matches of the repository that the project is in, in its worktree."""
    names, root = names_of(fold(places.copy_of)), _fold_glob(glob.literal_path_glob(places.copy))
    if glob.matches_path(original, names, below=True):
        return [root]
    ends = [end for end in range(1, len(original)) if glob.matches_path(original[:end], names)]
    return [(*root, *original[end - (original[end - 1] is None) :]) for end in ends]


def _anchors_at(pattern: str, places: PathRoots) -> list[glob.PathGlob]:
    """The whole paths that a pattern with a folder stands for, and where the links lead that a pattern names: those on its way, and
    those directly in the folder before its first star (for a bare name the project's)."""
    name_glob = _name_glob(pattern)
    if name_glob is not None:
        targets = _link_targets(places.root, name_glob)
        return [_fold_glob(target) for target in targets]
    base, rest = _split_base(pattern, places)
    names = rest.rstrip("/").split("/") + (["**"] if rest.endswith("/") else [])
    plain = next((i for i, name in enumerate(names) if "*" in name or "\\" in name), len(names))
    real = resolve(os.path.join(base or "/", *names[:plain]))
    followed = (*glob.literal_path_glob(real), *glob.parse_path_glob("/".join(names[plain:])))
    is_last = plain == len(names) - 1
    linked = _link_targets(real, glob.parse_glob(fold(names[plain]))) if is_last else []
    return [_fold_glob(path) for path in (absolute_glob(pattern, places), followed, *linked)]


def _link_targets(folder: str, name_glob: glob.StarGlob) -> list[glob.PathGlob]:
    """Where the links of these names lead that lie directly in a folder."""
    if len(name_glob) == 1:
        path = os.path.join(folder, name_glob[0])
        return [glob.literal_path_glob(resolve(path))] if os.path.islink(path) else []
    try:
        with os.scandir(folder) as listing:
            links = [e.path for e in listing if e.is_symlink() and glob.matches_text(name_glob, fold(e.name))]
    except OSError:
        return []
    return [glob.literal_path_glob(resolve(link)) for link in links]


def _own_names(path: str, places: PathRoots) -> int:
    """The names of the project's own folder say nothing about what lies in it."""
    return len(names_of(places.root)) if is_inside(path, places.root) else 0


def absolute_glob(pattern: str, places: PathRoots) -> glob.PathGlob:
    """The whole paths that a pattern stands for."""
    base, rest = _split_base(pattern, places)
    return (*glob.literal_path_glob(base), *glob.parse_path_glob(rest))


def _fold_glob(pattern: glob.PathGlob) -> glob.PathGlob:
    return tuple(name and tuple(fold(piece) for piece in name) for name in pattern)


def _split_base(pattern: str, places: PathRoots) -> tuple[str, str]:
    """The folder that a path pattern starts from ("" for /), and the rest of the pattern."""
    if pattern == "~" or pattern.startswith("~/"):
        return places.user_home, pattern[2:]
    if pattern.startswith("/"):
        return "", pattern[1:]
    base = places.root
    while pattern.startswith("../"):
        base, pattern = base.rpartition("/")[0], pattern[3:]
    return base, pattern


LONGEST = 300
_PLAIN_WORD = re.compile(r"[\w./:=@,+-]+", re.ASCII)


def suggest_rule(call: JudgedCall, places: PathRoots) -> str:
    """The rule in the writing of `parse_rule`, "" if none should be stored."""
    if call.kind in ("read", "write"):
        return _path_rule(call, places)
    if call.paths:
        return ""
    if call.kind == "shell":
        return _command_rule(call, places)
    if call.kind == "fetch":
        from cru.core.guard.places import urls

        pattern = urls.suggest_pattern(call.detail)
        return f"{call.tool}:{pattern}" if pattern else ""
    if call.kind == "message":
        return f"{call.tool}:{escape(call.detail)}" if call.detail and len(call.detail) <= LONGEST else ""
    return call.tool


def _command_rule(call: JudgedCall, places: PathRoots) -> str:
    """No rule for a command that may write into a protected file: changing it is asked about each time."""
    from cru.core.guard.rules.protected_writes import may_write_protected

    text = call.detail.strip()
    from cru.core.guard.rules.allowed_commands import bare_command

    command = bare_command(call, places.root)
    if may_write_protected(command.raw, places):
        return ""
    words = command.parts[0] if len(command.parts) == 1 and not command.opaque else ()
    if not any(command.uses) and len(words) > 1 and words[1] in PROGRAM_KINDS.safe_subcommands.get(words[0], ()):
        return f"{call.tool}:{words[0]} {words[1]} *"
    if command is not call.command and all(map(_PLAIN_WORD.fullmatch, words)):
        text = " ".join(words)
        if may_write_protected(text, places):
            return ""
    return f"{call.tool}:{escape(text)}" if text and "\n" not in text and len(text) <= LONGEST else ""


def _path_rule(call: JudgedCall, places: PathRoots) -> str:
    """In a folder of the project its files; outside, and directly in the root (where settings of all kinds lie), this file only."""
    if len({path.real for path in call.paths}) != 1:
        return ""
    path = call.paths[0]
    if is_protected(path, places):
        return ""
    if not is_inside(path.real, places.root):
        return f"{call.tool}:{escape(path.real)}"
    inner = path.real[len(places.root.rstrip("/")) + 1 :]
    if inner.partition("/")[0] == "~":  # a folder of that name; in a rule it is the user's home
        return f"{call.tool}:{escape(path.real)}"
    folder, _, name = inner.rpartition("/")
    from cru.core.guard.rules.later_runs import special_name

    if path.access == "write" and special_name(path, places):
        return f"{call.tool}:{escape(inner)}"
    if folder:
        return f"{call.tool}:{escape(folder)}/*"
    return f"{call.tool}:{escape(name)}" if name else ""
