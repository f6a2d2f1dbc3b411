"""`permission_suggestions` and `updatedPermissions` of PermissionRequest: what Claude Code's hooks read and write of rules, folders and
the mode, from and to ours (docs/decisions/answers.md)."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import normpath
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from cru.core.events.answers import TIGHTENING, GrantKind, GrantScope, PermissionUpdate, UpdateKind
from cru.core.events.payloads import PermissionRequested
from cru.core.hooks.dialects.claude.permissions import FILES, translate_rules
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.facts import SessionFacts

Destination: TypeAlias = Literal["session", "cliArg", "localSettings", "projectSettings", "userSettings"]
SCOPES: Mapping[Destination, GrantScope] = {
    "session": GrantScope.SESSION, "cliArg": GrantScope.SESSION, "localSettings": GrantScope.LOCAL,
    "projectSettings": GrantScope.PROJECT, "userSettings": GrantScope.USER,
}  # fmt: skip
Mode: TypeAlias = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]
MODES: Mapping[Mode, str] = {"default": "ask", "acceptEdits": "auto", "plan": "plan", "bypassPermissions": "trust"}
"""The modes that cru has, too."""
MOST = 1000
"""Rules and folders in one answer."""


class ClaudeRule(Struct, frozen=True, rename="camel"):
    tool_name: str
    rule_content: str | None = None

    @property
    def text(self) -> str:
        return self.tool_name if self.rule_content is None else f"{self.tool_name}({self.rule_content})"


class _Rules(Struct, frozen=True, tag_field="type"):
    rules: list[ClaudeRule]
    behavior: Literal["allow", "ask", "deny"]
    destination: Destination


class AddRules(_Rules, frozen=True, tag="addRules"):
    pass


class ReplaceRules(_Rules, frozen=True, tag="replaceRules"):
    pass


class RemoveRules(_Rules, frozen=True, tag="removeRules"):
    pass


class SetMode(Struct, frozen=True, tag_field="type", tag="setMode"):
    mode: Mode
    destination: Destination


class AddDirectories(Struct, frozen=True, tag_field="type", tag="addDirectories"):
    directories: list[str]
    destination: Destination


class RemoveDirectories(Struct, frozen=True, tag_field="type", tag="removeDirectories"):
    directories: list[str]
    destination: Destination


ClaudeUpdate: TypeAlias = AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories
KINDS = {AddRules: UpdateKind.ADD, ReplaceRules: UpdateKind.REPLACE, RemoveRules: UpdateKind.REMOVE}


class BadUpdates(Exception):
    """They cannot be read, or a rule among them that forbids or asks cannot hold."""


class ParsedUpdates(Struct):
    """What `updatedPermissions` says, and what of it has no counterpart."""

    updates: list[PermissionUpdate] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_updates(value: object, facts: SessionFacts) -> ParsedUpdates:
    """Raises BadUpdates: an answer with them says something that cannot be known, or leaves a guard out."""
    try:
        parsed_list = msgspec.convert(value, list[ClaudeUpdate])
    except msgspec.ValidationError as error:
        raise BadUpdates(f"`updatedPermissions` does not fit: {error}") from None
    if sum(len(getattr(item, "rules", ())) + len(getattr(item, "directories", ())) + 1 for item in parsed_list) > MOST:
        raise BadUpdates(f"`updatedPermissions` has more than {MOST} rules and folders")
    parsed = ParsedUpdates()
    for item in parsed_list:
        if isinstance(item, SetMode):
            _read_mode(item, parsed)
        elif isinstance(item, AddDirectories | RemoveDirectories):
            kind = UpdateKind.ADD if isinstance(item, AddDirectories) else UpdateKind.REMOVE
            folders = tuple(_folder(text, facts) for text in item.directories)
            parsed.updates.append(PermissionUpdate(kind, SCOPES[item.destination], GrantKind.FOLDER, folders))
        else:
            _read_rules(item, parsed, facts)
    return parsed


def _read_rules(item: AddRules | ReplaceRules | RemoveRules, parsed: ParsedUpdates, facts: SessionFacts) -> None:
    grant = GrantKind(item.behavior)
    rules, problems = translate_rules([rule.text for rule in item.rules], item.behavior, facts)
    if problems and grant in TIGHTENING and not isinstance(item, RemoveRules):
        raise BadUpdates(f"`updatedPermissions`: {'; '.join(problems)}")
    parsed.warnings += [f"`updatedPermissions`: {problem}" for problem in problems]
    if rules or isinstance(item, ReplaceRules):
        parsed.updates.append(PermissionUpdate(KINDS[type(item)], SCOPES[item.destination], grant, rules))


def _read_mode(item: SetMode, parsed: ParsedUpdates) -> None:
    mode = MODES.get(item.mode)
    if mode is None:
        parsed.warnings.append(f"`setMode`: cru has no mode `{item.mode}`")
        return
    if SCOPES[item.destination] is not GrantScope.SESSION:
        parsed.warnings.append(f"`setMode` holds for this session only, not for {item.destination}")
    parsed.updates.append(PermissionUpdate(UpdateKind.MODE, items=(mode,)))


def _folder(text: str, facts: SessionFacts) -> str:
    if not text.strip() or "\0" in text:
        raise BadUpdates(f"`updatedPermissions`: {text!r} is no folder")
    if text == "~" or text.startswith("~/"):
        return normpath(facts.user_home / text[2:])
    return normpath(facts.root / Path(text))


# on the way out --------------------------------------------------------------------------------------------------------------------


def suggestions(question: PermissionRequested, facts: SessionFacts) -> dict[str, Any]:
    """`permission_suggestions`: what the person is offered, in Claude Code's words; without the key if nothing is. An answer that gives
    one back as it is means what the person's would."""
    if not question.suggestion:
        return {}
    tool, _, pattern = question.suggestion.partition(":")
    updates: list[dict[str, Any]] = []
    if question.kind == "write":
        if facts.mode() == "ask":
            updates.append({"type": "setMode", "mode": "acceptEdits", "destination": "session"})
        if pattern.startswith("/"):
            parents = dict.fromkeys(str(Path(facts.root / path).parent) for path in question.paths)
            updates.append({"type": "addDirectories", "directories": [*parents], "destination": "session"})
    else:
        rule = _foreign_rule(tool, pattern)
        destination = "session" if question.kind == "read" else "localSettings"
        if rule:
            updates.append({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": destination})
    return {"permission_suggestions": updates} if updates else {}


def _foreign_rule(tool: str, pattern: str) -> dict[str, str]:
    """A rule of ours in Claude Code's writing; empty if it has none."""
    name = TOOLS.foreign_name(tool)
    if tool == "bash":
        content = pattern
    elif tool == "fetch":
        host = pattern.removeprefix("https://").removesuffix("/*")
        content = f"domain:{host}" if pattern == f"https://{host}/*" else ""
    elif name in FILES:
        content = f"/{pattern}" if pattern.startswith("/") else f"./{pattern}"
    else:
        content = ""
    return {"toolName": name, "ruleContent": content} if content else {}
