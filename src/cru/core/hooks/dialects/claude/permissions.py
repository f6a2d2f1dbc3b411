"""`permissions` of a settings.json of Claude Code as rules of ours. Deny and ask rules are widened where the two writings differ, allow
rules are left out there; what has no counterpart is a problem, so that it is told."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from cru.core.base.config.closest import did_you_mean, is_misprint
from cru.core.base.files.glob import escape
from cru.core.guard import BadRule
from cru.core.guard.rules import RuleLists
from cru.core.guard.rules.rules import parse_rule
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.entry import HookSource, ProblemKind
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.parsing.reading import Reading, canonical_definition, typed_value
from cru.core.tools.protocol import AGENT_ALIASES

Effect = Literal["deny", "ask", "allow"]
EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
MODES = "defaultMode"
BYPASS = "disableBypassPermissionsMode"
FOLDERS = "additionalDirectories"
OTHERS = (MODES, BYPASS, FOLDERS)
"""Keys of `permissions` that are no rules."""
FILES = {
    "Read": "read", "Edit": "write", "Write": "write", "MultiEdit": "write", "NotebookEdit": "write", "Glob": "glob", "Grep": "grep",
    "LS": "ls",
}  # fmt: skip
"""Tools whose rules name paths → the tool or kind that ours name."""
ABSENT = (
    "WebSearch",
    "SlashCommand",
    "NotebookRead",
    "ExitPlanMode",
)
"""Tools that cru has not: there is nothing to guard."""
WHOLE = ("TodoWrite", *TOOLS.tools["task_output"], *TOOLS.tools["task_cancel"])
"""Tools whose rules name nothing but the tool."""
KNOWN = ("Bash", "Skill", *FILES, "WebFetch", *TOOLS.tools["task"], *WHOLE, *ABSENT)
WRITERS = (
    "*>*",
    *(f"{name} *" for name in ("tee", "cp", "mv", "rm", "touch", "truncate", "install", "ln", "dd", "sed *-i")),
)
"""How commands begin that write a file which they name."""
MOST_RULES = 2_000
"""Of one file: every call is held against each of them. The largest that people write have some hundred."""
_RULE = re.compile(r"([A-Za-z_][\w*-]*)(?:\((.*)\))?", re.DOTALL)
_SPECIAL = re.compile(r"\[[^\]]*(?:\]|\Z)|\{[^}]*(?:\}|\Z)|\?")
"""What a pattern of gitignore has and ours has not. A bracket that is not closed reaches to the end: looking for the end of each
of many such brackets would take a time that grows with the square of their number."""


def read_permissions(reading: Reading, facts: SessionFacts) -> tuple[RuleLists, dict[tuple[str, str], int]]:
    """The rules of a file, in our writing, and the line of each by what it decides and its text."""
    for key in reading.value:
        if is_misprint(key, "permissions"):
            reading.report_misprint(key, "permissions")
    table = reading.typed(reading.value, "permissions", dict, {}, kind=ProblemKind.PART)
    for key in table:
        if key not in EFFECTS and key not in OTHERS:
            hint = did_you_mean(key, (*EFFECTS, *OTHERS))
            kind = ProblemKind.PART if hint else ProblemKind.ODDITY
            text = f"`permissions.{key}` has no effect in cru"
            reading.wrong(text, hint, line=reading.line("permissions", key), kind=kind)
    _tell_others(reading, table, facts.mode())
    lines: dict[tuple[str, str], int] = {}
    remaining = MOST_RULES
    for effect in EFFECTS:
        texts = reading.typed(table, effect, list, [], "permissions", kind=ProblemKind.PART)
        for number, text in enumerate(texts[:remaining]):
            for rule in _rules(reading, effect, number, text, facts):
                if (effect, rule) not in lines and _is_readable(reading, effect, rule):
                    lines[effect, rule] = reading.line("permissions", effect, number)
        if len(texts) > remaining:
            text = f"rules from here on do not count, since the file has more than {MOST_RULES:,}"
            _report(reading, effect, text, "write wider patterns", reading.line("permissions", effect, remaining))
        remaining -= min(remaining, len(texts))
    lists = {effect: tuple(rule for of, rule in lines if of == effect) for effect in EFFECTS}
    return RuleLists(**lists), lines


def read_folders(reading: Reading, facts: SessionFacts) -> tuple[str, ...]:
    """`additionalDirectories`: `~` is the user's home, other paths begin in the settings' project."""
    table = typed_value(reading.value, "permissions", dict, {})
    folders = []
    for text in reading.typed(table, FOLDERS, list, [], "permissions"):
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            reading.wrong(f"`permissions.{FOLDERS}`: {text!r} is no folder", line=reading.line("permissions", FOLDERS))
            continue
        at_home = text == "~" or text.startswith("~/")
        path = facts.user_home / text[2:] if at_home else _base(reading, facts) / text
        folders.append(os.path.normpath(path))
    return tuple(dict.fromkeys(folders))


def _tell_others(reading: Reading, table: Mapping[str, object], mode: str) -> None:
    """What cru does not take over: of what tightens that it does not hold, unless it does anyway; of what widens that it is ignored.
    mode: that of the session."""
    chosen = table.get(MODES)
    if chosen == "dontAsk" or (chosen == "plan" and mode != "plan"):
        hint = "`--mode plan`, or `mode` in config.toml" if chosen == "plan" else "write deny rules"
        _tell_ignored(reading, MODES, f'"{chosen}" does not hold here', hint, ProblemKind.UNHELD)
    elif chosen not in (None, "default", "plan"):
        text = f"{canonical_definition(chosen)} has no effect in cru"
        _tell_ignored(reading, MODES, text, "`--mode`, or `mode` in config.toml", ProblemKind.IGNORED)
    if table.get(BYPASS) is not None and mode == "trust":
        text = "does not hold here: this session runs in the mode trust all the same"
        _tell_ignored(reading, BYPASS, text, "leave out `-t`", ProblemKind.UNHELD)


def _tell_ignored(reading: Reading, key: str, text: str, hint: str, kind: ProblemKind) -> None:
    reading.wrong(f"`permissions.{key}` {text}", hint, line=reading.line("permissions", key), kind=kind)


def translate_rules(texts: Iterable[str], effect: Effect, facts: SessionFacts) -> tuple[tuple[str, ...], list[str]]:
    """(rules such as `Bash(git *)` of no file in our writing, what cannot be read)."""
    reading = Reading(HookSource("claude", "user", Path(), "{}"))
    rules = (rule for text in texts for rule in _rules(reading, effect, 0, text, facts))
    kept = tuple(dict.fromkeys(rule for rule in rules if _is_readable(reading, effect, rule)))
    return kept, [problem.text for problem in reading.problems]


def _rules(reading: Reading, effect: Effect, number: int, text: object, facts: SessionFacts) -> Iterator[str]:
    line = reading.line("permissions", effect, number)
    match = _RULE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        _tell(reading, effect, f"{text!r} is no rule such as `Bash(git *)`", "", line)
        return
    name, what = match[1], (match[2] or "").strip()
    what = "" if what == "*" else what
    if name in ABSENT:
        return
    if name.startswith("mcp__"):
        yield TOOLS.own_name(name)
    elif name == "Bash":
        yield f"bash:{_command(what)}" if what else "bash"
    elif name == "Skill":
        yield f"skill:{_skill(what)}" if what else "skill"
    elif name in FILES:
        yield from _path_rules(reading, effect, FILES[name], what, line, facts)
    elif name == "WebFetch":
        yield from _fetch_rules(reading, effect, what, line)
    elif name in TOOLS.tools["task"]:
        yield f"task:{AGENT_ALIASES.get(what, what)}" if what else "task"
    elif name in WHOLE:
        yield TOOLS.own_name(name)
    else:
        _tell(reading, effect, f"`{text}` names no tool that is known here", did_you_mean(name, KNOWN), line)


def _is_readable(reading: Reading, effect: Effect, rule: str) -> bool:
    try:
        parse_rule(rule)
    except BadRule as error:
        _tell(reading, effect, str(error), "", reading.line("permissions", effect))
        return False
    return True


def _tell(reading: Reading, effect: Effect, text: str, hint: str, line: int) -> None:
    _report(reading, effect, f"{text}, so it does not count", hint, line)


def _report(reading: Reading, effect: Effect, text: str, hint: str, line: int) -> None:
    """An allow rule that is left out opens nothing; of the others a guard is lost."""
    kind = ProblemKind.ODDITY if effect == "allow" else ProblemKind.PART
    reading.wrong(f"permissions.{effect}: {text}", hint, line=line, kind=kind)


def _skill(what: str) -> str:
    """`Skill(pdf *)` and `Skill(pdf:*)` are the skill with any words."""
    return what.removesuffix(" *").removesuffix(":*")


def _command(what: str) -> str:
    """`npm run test:*` is what begins so."""
    return f"{what[:-2]} *" if what.endswith(":*") else what


def _path_rules(
    reading: Reading, effect: Effect, tool: str, what: str, line: int, facts: SessionFacts
) -> Iterator[str]:
    if not what:
        yield tool
        return
    if what.startswith("!") or _SPECIAL.search(what):
        if effect == "allow" or what.startswith("!"):
            _tell(reading, effect, f"the pattern {what!r} has no counterpart", "", line)
            return
        what = _SPECIAL.sub("*", what)
    yield f"{tool}:{_path(what, _base(reading, facts), facts)}"
    if effect != "allow":
        yield from _commands_on(tool, what)


def _commands_on(tool: str, what: str) -> Iterator[str]:
    """Rules for commands that name such a path: for reading any, for writing those that write."""
    folder = what.removesuffix("/**").removesuffix("/*").removesuffix("/")
    bare = re.sub(r"^(?:\./|\*\*/)", "", folder).replace("**", "*")
    name = f"/{bare.lstrip('~/')}" if bare.startswith(("/", "~")) else bare
    if name.strip("*/"):
        tail = f"{name}/*" if folder != what else name
        starts = ("* *", "*<*") if tool == "read" else WRITERS if tool == "write" else ()
        yield from (f"bash:{start}{tail}" for start in starts)


def _base(reading: Reading, facts: SessionFacts) -> Path:
    """What `/x` in this file is meant from."""
    is_project = reading.source.layer == "project"
    return reading.source.path.parent.parent if is_project else facts.root


def _path(what: str, base: Path, facts: SessionFacts) -> str:
    """`//x` is absolute, `/x` lies in the settings' project, `a/b` and `./x` in the working directory, a bare name anywhere."""
    if what.startswith("//"):
        return what[1:]
    if what.startswith("~/") or what == "~":
        return what
    if what.startswith("/"):
        return f"{escape(str(base))}{what}"
    if what.startswith("**/") and "/" not in what[3:].rstrip("/"):
        return what[3:]
    if what.startswith("./") or "/" in what.rstrip("/"):
        return f"{escape(str(facts.cwd))}/{what.removeprefix('./')}"
    return what


def _fetch_rules(reading: Reading, effect: Effect, what: str, line: int) -> Iterator[str]:
    if not what:
        yield "fetch"
    elif not what.startswith("domain:"):
        _tell(reading, effect, f"WebFetch knows `domain:` only, not {what!r}", "", line)
    elif effect == "allow":
        yield f"fetch:https://{what[7:]}/*"
    else:
        yield f"fetch:*://{what[7:]}*"
