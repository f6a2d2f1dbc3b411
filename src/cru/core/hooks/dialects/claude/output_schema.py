"""Parse what a hook of Claude Code prints and its exit status. output_to_answer.py gives the parsed fields their meaning."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from cru.core.hooks.model.result import HookRun
from cru.core.hooks.parsing import common

BLOCKING = 2

Behavior = Literal["allow", "deny"]


class ClaudeEventOutput(Struct, frozen=True, rename="camel"):
    """`hookSpecificOutput`, the part that is the same for all events."""

    hook_event_name: str | None = None
    additional_context: str | None = None


class ClaudePreToolUseOutput(ClaudeEventOutput, frozen=True):
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None


class ClaudePermissionDecision(Struct, frozen=True, rename="camel"):
    """How a question is answered. What only an allow may have is looked at there: nothing in it may void a deny."""

    behavior: Behavior
    updated_input: Any = None
    updated_permissions: Any = None
    message: str | None = None
    interrupt: bool = False


class ClaudePermissionRequestOutput(ClaudeEventOutput, frozen=True):
    decision: ClaudePermissionDecision | None = None


class ClaudePostToolUseOutput(ClaudeEventOutput, frozen=True):
    updated_tool_output: Any | UnsetType = UNSET
    updated_mcp_tool_output: Any | UnsetType = field(default=UNSET, name="updatedMCPToolOutput")
    classifier_context: str | None = None


class ClaudeSessionStartOutput(ClaudeEventOutput, frozen=True):
    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: list[str] | None = None
    reload_skills: bool | None = None


class ClaudePromptOutput(ClaudeEventOutput, frozen=True):
    session_title: str | None = None
    suppress_original_prompt: bool | None = None


S = TypeVar("S", bound=ClaudeEventOutput)


class ClaudeOutput(Struct, frozen=True, rename="camel"):
    """The JSON object, but for its `hookSpecificOutput`."""

    continue_: bool | None = field(default=None, name="continue")
    stop_reason: str | None = None
    suppress_output: bool | None = None
    system_message: str | None = None
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    hook_specific_output: dict[str, Any] | None = None


class ParsedClaudeOutput(Struct, frozen=True):
    """A run as it was understood.

    output, specific: its JSON, None and empty if there is none that fits
    plain: its text if that is no JSON
    exit2: whether it ended with the blocking status
    stderr: without blanks around it
    wrong: why it counts as failed
    warning: what a person should know of the output
    """

    output: ClaudeOutput | None = None
    specific: ClaudeEventOutput = ClaudeEventOutput()
    plain: str = ""
    exit2: bool = False
    stderr: str = ""
    wrong: str = ""
    warning: str = ""

    def specific_as(self, kind: type[S]) -> S:
        """What is specific to an event; empty if it is of another one."""
        return self.specific if isinstance(self.specific, kind) else kind()


def parse_output(event: str, kind: type[ClaudeEventOutput], run: HookRun, is_plain: bool = False) -> ParsedClaudeOutput:
    """JSON counts whatever the exit status is, 2 blocks whatever the JSON says, any other failure needs JSON to mean anything.
    is_plain: whether text that is no JSON counts on this event."""
    text = run.stdout.strip(common.BLANK)
    stderr = run.stderr.strip()
    output, specific, wrong = _parsed(event, kind, text, is_plain)
    if run.exit == BLOCKING:
        return ParsedClaudeOutput(output, specific, exit2=True, stderr=stderr, warning=wrong)
    if output is not None:
        return ParsedClaudeOutput(output, specific, stderr=stderr)
    if run.exit:
        first = stderr.partition("\n")[0]
        return ParsedClaudeOutput(wrong=f"exit status {run.exit}" + (f": {first}" if first else ""))
    return ParsedClaudeOutput(plain=text, stderr=stderr, wrong=wrong, warning="" if wrong else _hidden(text))


def _parsed(
    event: str, kind: type[ClaudeEventOutput], text: str, is_plain: bool
) -> tuple[ClaudeOutput | None, ClaudeEventOutput, str]:
    """(the object, its specific part, "") or, for a text that begins like one and is none, what is wrong: nothing where text counts."""
    nothing = kind()
    if not text.startswith("{"):
        return None, nothing, ""
    value, wrong = common.parse_json(text)
    if wrong:
        return None, nothing, "" if is_plain else f"the output begins with {{ and is {wrong}"
    try:
        output = msgspec.convert(value, ClaudeOutput)
        specific = msgspec.convert(output.hook_specific_output or {}, kind)
    except msgspec.ValidationError as error:
        return None, nothing, f"the output does not fit: {error}"
    if specific.hook_event_name not in (None, event):
        return None, nothing, f"`hookEventName` is {specific.hook_event_name}, and this is {event}"
    return output, specific, ""


def _hidden(text: str) -> str:
    """A decision that is lost because something else was printed with it."""
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            value, _ = common.parse_json(line)
            if isinstance(value, dict) and not KNOWN.isdisjoint(value):
                return "its JSON has no effect, since other text stands before it; a hook's JSON is all that it prints"
    return ""


KNOWN = frozenset(ClaudeOutput.__struct_encode_fields__)
