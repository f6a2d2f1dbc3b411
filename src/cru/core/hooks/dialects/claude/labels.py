"""Whose words the model reads: what hooks say goes to it under the labels that Claude Code gives them."""

from __future__ import annotations

from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.parsing import common

REFUSAL = "{name} hook error: {why}"
OBJECTION = '{name} hook blocking error from command: "{command}": {why}'
FEEDBACK = "Stop hook feedback:\n{why}"
CONTEXT = "{name} hook additional context: {text}"
PLAIN = "{name} hook success: {text}"
LONGEST_COMMAND = 200
"""Characters of a command in a label."""


def block_text(label: str, event: Event, why: str, facts: SessionFacts, entry: HookEntry | None = None) -> str:
    """Why a hook blocks, as the model reads it."""
    why = common.spill_text(why, facts)
    if not label:
        return why
    return label.format(name=_name(entry, event), command=shown_command(entry), why=why)


def context_text(entry: HookEntry, event: Event, text: str, facts: SessionFacts) -> str:
    """`additionalContext` as the model reads it."""
    return CONTEXT.format(name=_name(entry, event), text=common.spill_text(text, facts))


def plain_text(entry: HookEntry, text: str, subject: str, facts: SessionFacts) -> str:
    """Text that is no JSON as the model reads it. subject: what matchers of the event look at."""
    name = f"{entry.event}:{subject}" if subject else entry.event
    return PLAIN.format(name=name, text=common.spill_text(text, facts))


def shown_command(entry: HookEntry | None) -> str:
    """The command with its arguments, shortened."""
    if entry is None:
        return ""
    text = " ".join((entry.command, *(entry.args or ())))
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def _name(entry: HookEntry | None, event: Event) -> str:
    """`PostToolUse:Bash`: the event of Claude Code, and the tool if it is about one."""
    name = entry.event if entry is not None else "PreToolUse"
    tool = common.tool_name(event)
    return f"{name}:{TOOLS.foreign_name(tool)}" if tool else name
