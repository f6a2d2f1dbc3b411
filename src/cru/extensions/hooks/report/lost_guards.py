"""Active hooks that cannot guard, told when a session opens: what they run is not there, or they look at nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cru.extensions.hooks import HookOptions
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect
from cru.extensions.hooks.model.status import LoadedHooks
from cru.extensions.hooks.notices import unavailable_guards
from cru.extensions.hooks.report import runnable
from cru.extensions.hooks.report.lint import (
    Finding,
    check_async,
    check_condition,
    check_matcher,
    find_problems,
    sort_by_place,
)
from cru.shell.programs import names

THEIRS = names(
    "Agent AskUserQuestion BashOutput EnterPlanMode ExitPlanMode KillBash KillShell ListMcpResourcesTool Monitor NotebookEdit NotebookRead "
    "ReadMcpResourceTool Skill SlashCommand Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate ToolSearch WebSearch "
    "google_web_search save_memory web_search update_plan view_image spawn_agent agent download sourcegraph diagnostics"
)
"""Tools of other systems that cru has none for: a hook that is for them guards nothing that can happen here."""


def find_all(inventory: HookInventory, options: HookOptions, tools: Iterable[str]) -> list[Finding]:
    """Everything that is wrong or odd. Whatever ends a run with --strict-hooks is broken, or waits for a person. tools: all names of tools
    that a session is sure to have."""
    known_tools = tuple(tools)
    lost = find_lost_guards(inventory.loaded, inventory.dialects, inventory.facts, known_tools)
    texts = {(finding.id, finding.text) for finding in lost}
    unavailable = {status.entry.id for status in unavailable_guards(inventory, options)}
    findings = find_problems(inventory, known_tools)
    reported = {(finding.id, finding.text) for finding in findings}
    findings = [
        replace(finding, level="broken")
        if finding.id in unavailable or (finding.id, finding.text) in texts
        else finding
        for finding in findings
    ]
    findings += [finding for finding in lost if (finding.id, finding.text) not in reported]
    findings += [
        Finding("waiting", "", missing.file, f"{missing.label}: {missing.why}", "cru hooks review")
        for missing in inventory.loaded.missing
    ]
    return sort_by_place(findings)


def find_lost_guards(
    loaded: LoadedHooks, dialects: Mapping[str, Dialect], facts: SessionFacts, tools: Iterable[str]
) -> list[Finding]:
    """Of active hooks that may refuse something: those whose command cannot run for certain, and those that fit nothing or refuse
    nothing. tools: all names of tools in the session."""
    known_tools = tuple(tools)
    findings: list[Finding] = []
    for entry in loaded.active():
        dialect = dialects[entry.dialect]
        if not dialect.can_refuse(entry):
            continue
        broken = runnable.find_broken(entry, dialect.launch, facts)
        texts = [(text, hint) for certain, text, hint in broken if certain]
        texts += _fits_nothing(entry, dialect, known_tools)
        if entry.on_error in ("deny", "ask"):
            texts += check_async(entry, dialect, known_tools)
        findings += [Finding("broken", entry.id, entry.where, text, hint) for text, hint in texts]
    return findings


def _fits_nothing(entry: HookEntry, dialect: Dialect, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What is wrong with its matcher and its `if`. Of another program's hook only what is nearly the name of a tool: it may be meant for
    tools that cru does not have."""
    own = entry.source.own
    if not own:
        words = [word.strip() for word in re.split(r"[|,]", entry.matcher)]
        if all(re.fullmatch(r"\w+", word) for word in words):
            words = [word for word in words if word not in THEIRS]
            if not words:
                return
            entry = replace(entry, matcher="|".join(words))
    for check in (check_matcher, check_condition):
        yield from ((text, hint) for text, hint in check(entry, dialect, tools) if own or hint)
