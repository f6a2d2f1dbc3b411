"""Active hooks that cannot guard, told when a session opens: what they run is not there, or they look at nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cru.core.guard.shell.programs import names
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import LoadedHooks
from cru.core.hooks.report import runnable
from cru.core.hooks.report.matchers import check_async, check_condition, check_matcher
from cru.core.plugins.lost_guards import LossKind, LostGuard

THEIRS = names(
    "AskUserQuestion EnterPlanMode ExitPlanMode KillBash ListMcpResourcesTool Monitor NotebookEdit NotebookRead "
    "ReadMcpResourceTool Skill SlashCommand TaskCreate TaskGet TaskList TaskUpdate ToolSearch WebSearch "
    "google_web_search save_memory web_search update_plan view_image download sourcegraph diagnostics"
)
"""Tools of other systems that cru has none for: a hook that is for them guards nothing that can happen here."""


def find_powerless(
    loaded: LoadedHooks, dialects: Mapping[str, Dialect], facts: SessionFacts, tools: Iterable[str]
) -> list[LostGuard]:
    """Of active hooks that may refuse something: those whose command cannot run for certain, and those that fit nothing or refuse
    nothing. tools: all names of tools in the session."""
    known_tools = tuple(tools)
    lost: list[LostGuard] = []
    for entry in loaded.active():
        dialect = dialects[entry.dialect]
        if not dialect.can_refuse(entry):
            continue
        broken = runnable.find_broken(entry, dialect.launch, facts)
        texts = [(text, hint) for certain, text, hint in broken if certain]
        texts += _fits_nothing(entry, dialect, known_tools)
        if entry.on_error in ("deny", "ask"):
            texts += check_async(entry, dialect, known_tools)
        file = str(entry.source.path)
        lost += [LostGuard(LossKind.POWERLESS, entry.id, file, text, hint, entry.line) for text, hint in texts]
    return lost


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
