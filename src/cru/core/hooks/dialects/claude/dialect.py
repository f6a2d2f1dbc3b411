"""Claude Code's command hooks as one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.dialects.claude import matching
from cru.core.hooks.dialects.claude.config import read_entries
from cru.core.hooks.dialects.claude.env_file import EnvFiles
from cru.core.hooks.dialects.claude.events import EVENTS
from cru.core.hooks.dialects.claude.responses import forget_calls, note_file, note_result
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import FactsOf, SessionFacts
from cru.core.hooks.model.mapping import ConfigFormat, Dialect, EventMapping, LaunchRules, Matching, ParsedFile
from cru.core.hooks.parsing import common
from cru.core.models import providers

PLACEHOLDERS = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")
SECRET_PREFIX = "OTEL_"
"""Variables that Claude Code keeps from its hooks."""


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    return read_entries(source, EVENTS, facts, any(file.disables for file in below))


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    of_tools = entry.event in matching.TOOL_EVENTS
    return matching.matcher_fits(entry.event, entry.matcher, subject if of_tools else "", "" if of_tools else subject)


def _condition_holds(entry: HookEntry, event: Event, facts: SessionFacts) -> bool:
    if entry.event not in matching.TOOL_EVENTS:
        return True
    tool, args = common.tool_name(event), common.tool_arguments(event)
    return matching.condition_holds(entry.condition, tool, args, str(facts.root), str(facts.user_home))


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    stamp = event.stamp
    known: dict[str, object] = {
        "session_id": stamp.session_id, "transcript_path": str(facts.transcript()), "cwd": str(facts.root),
        "permission_mode": common.MODES.get(facts.mode(), "default"), "hook_event_name": mapping.name,
        "is_sub_agent": stamp.is_sub_agent, "depth": stamp.depth,
    }  # fmt: skip
    if facts.turn:
        known["prompt_id"] = facts.turn
    if stamp.is_sub_agent:
        known |= {"agent_id": stamp.agent_id, "agent_type": TOOLS.foreign_agent(stamp.agent_type)}
    return common.to_json_line({**known, **(mapping.fields(event, facts) if mapping.fields else {})})


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str | None]:
    env: dict[str, str | None] = {name: None for name in facts.env if name.startswith(SECRET_PREFIX)}
    secret = key_variables(facts.settings_env) if entry.of_project and facts.settings_env else ()
    env |= {name: value for name, value in facts.settings_env.items() if name not in secret}
    env |= session_variables(facts)
    if mapping.name == "SessionStart":
        env["CLAUDE_ENV_FILE"] = str(EnvFiles.open(entry, event, facts))
    return env


def key_variables(env: Mapping[str, str]) -> frozenset[str]:
    """Which of these hold keys, which a project's hooks do not get."""
    return providers.key_variables(env)


def session_variables(facts: SessionFacts) -> dict[str, str]:
    """What tells programs that they run inside of such an agent, and in which session: of hooks and of commands of the agent."""
    entrypoint = "cli" if facts.is_chat() else "sdk-cli"
    return {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": facts.session_id, "CLAUDE_CODE_ENTRYPOINT": entrypoint}


def _handlers(entries: Sequence[HookEntry], facts_of: FactsOf) -> list[tuple[str, HandlerFunction]]:
    events = {entry.event for entry in entries}
    handlers: list[tuple[str, HandlerFunction]] = []
    if "SessionStart" in events:
        starting = [entry for entry in entries if entry.event == "SessionStart"]
        handlers.append(("tool:before_call", EnvFiles(starting, facts_of)))
    if not events.isdisjoint(("PostToolUse", "PostToolBatch")):
        handlers.append(("message:before_send", forget_calls(facts_of)))
    if "PostToolUse" in events:
        handlers.append(("tool:called", note_file(facts_of)))
    if "PostToolBatch" in events:
        handlers.append(("tool:settled", note_result(facts_of)))
    return handlers


DIALECT = Dialect(
    name="claude",
    footprint=FOOTPRINTS["claude"],
    events=EVENTS,
    config=ConfigFormat(read=_read, must_hold='"onFailure": "block"'),
    matching=Matching(matcher_fits=_matcher_fits, condition_holds=_condition_holds),
    stdin=_stdin,
    extra_environment=_environment,
    handlers=_handlers,
    tool_environment=session_variables,
    tools=TOOLS,
    launch=LaunchRules(
        shells={"posix": ("sh", "bash", "brush"), "windows": ("git-bash", "powershell")},
        variables={"CLAUDE_PROJECT_DIR": common.project_folder(".claude")},
        placeholders=PLACEHOLDERS,
    ),
)
