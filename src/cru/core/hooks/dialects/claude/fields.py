"""What hooks of Claude Code read beside the common fields, and what their matchers look at: one function an event."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cru.core.events import payloads as p
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude import output_to_answer, responses, tools
from cru.core.hooks.dialects.claude.permission_updates import suggestions
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.parsing import common

RAN = ("failed", "timeout", "interrupted")
"""Ends of a call that was begun: of others Claude Code tells nobody."""
# The status that a provider answered → `error` of StopFailure.
ERRORS = {
    401: "authentication_failed",
    402: "billing_error",
    403: "authentication_failed",
    404: "model_not_found",
    429: "rate_limit",
    529: "overloaded",
}
DIALOGS = {"permission": "permission_prompt"}
OTHER_DIALOG = "elicitation_dialog"
DIALOG_KINDS = (*DIALOGS.values(), OTHER_DIALOG)


def always(word: str) -> Callable[[Event], str]:
    return lambda event: word


def source_fields(word: str) -> Callable[[Event, SessionFacts], dict[str, Any]]:
    return lambda event, facts: {"source": word}


def start_source(event: Event[p.SessionStarted]) -> str:
    payload = event.payload
    return "resume" if payload.resumed or payload.source == "resume" else "startup"


def start_subject(event: Event[Any]) -> str:
    """The `source` of a SessionStart, whichever of our events it is; "" of another event."""
    if isinstance(event.payload, p.SessionStarted):
        return start_source(event)
    return {"context:cleared": "clear", "session:compacted": "compact"}.get(event.name, "")


def session_start_fields(event: Event[p.SessionStarted], facts: SessionFacts) -> dict[str, Any]:
    source, model = start_source(event), event.payload.model or facts.model
    known: dict[str, Any] = {"source": source, **({"model": model} if model else {})}
    if source == "resume":
        from cru.core.hooks.dialects.claude.last_reply import describe_last_reply

        known |= describe_last_reply(facts.entries(), event.stamp.timestamp)
    return known


def ends_at_prompt(event: Event[p.SessionEnded], facts: SessionFacts) -> bool:
    """Whether a person left the chat: by `/exit`, or at the end of input."""
    return facts.is_chat() and event.payload.reason == "exit"


def end_reason(event: Event) -> str:
    reason = str(getattr(event.payload, "reason", ""))
    return reason if reason in ("clear", "resume", "logout", "prompt_input_exit") else "other"


def prompt_fields(event: Event[p.MessageReceived], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {
        "prompt": payload.content,
        "prompt_id": payload.ref,
        "attachments": [attachment.path for attachment in payload.attachments],
    }


def tool_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    return tools.call_fields(
        common.tool_name(event), common.tool_arguments(event), getattr(event.payload, "call_id", ""), facts
    )


def is_line_of_prompt_file(event: Event[p.ToolBeforeCall], facts: SessionFacts) -> bool:
    """Whether the call is a `!` line of a command or skill."""
    return bool(event.payload.prompt_file)


def line_fields(event: Event[p.ToolBeforeCall], facts: SessionFacts) -> dict[str, Any]:
    """Of PreSkillShellCommand, as Claude Code 2.1.332 gives them."""
    known, file = tool_fields(event, facts), event.payload.prompt_file
    return {
        **known,
        "tool_input": {"command": known["tool_input"]["command"]},
        "command_name": file["name"],
        "command_source": file["source"],
        "invoked_by": "claude" if file["invoked_by"] == "model" else "user",
    }


def permission_fields(event: Event[p.PermissionRequested], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {**tool_fields(event, facts), **suggestions(payload, facts), "reason": payload.why}


def tool_result_fields(event: Event[p.ToolCompleted], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    known = tool_fields(event, facts)
    response = responses.tool_response(
        payload.name, payload.args, known["tool_input"], payload.result, payload.call_id, facts
    )
    return {**known, "tool_response": response, "duration_ms": round(payload.duration)}


def was_run(event: Event, facts: SessionFacts) -> bool:
    return getattr(event.payload, "which", "") in RAN


def tool_failure_fields(event: Event[p.ToolFailed], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    error = tools.failure_text(payload.name, payload.error)
    return {
        **tool_fields(event, facts), "error": error, "is_interrupt": payload.which == "interrupted",
        "is_timeout": payload.which == "timeout", "duration_ms": round(payload.duration),
    }  # fmt: skip


def batch_fields(event: Event[p.ToolBatchCompleted], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    results = facts.state(responses.CallRecord).results
    calls = []
    for call in payload.tool_calls:
        known = tools.call_fields(call.name, parse_arguments(call.arguments), call.id, facts)
        calls.append({**known, **({"tool_response": results[call.id]} if call.id in results else {})})
    return {"tool_calls": calls}


def parse_arguments(text: str) -> dict[str, Any]:
    value, _ = common.parse_json(text or "{}")
    return value if isinstance(value, dict) else {}


def dialog_kind(event: Event) -> str:
    return DIALOGS.get(getattr(event.payload, "kind", ""), OTHER_DIALOG)


def notification_fields(event: Event[p.InteractionRequested], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    asks = "cru needs your permission: " if payload.kind == "permission" else ""
    return {"message": asks + payload.prompt, "title": "cru", "notification_type": dialog_kind(event)}


def idle_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    return {"message": "cru is waiting for your input", "title": "cru", "notification_type": "idle_prompt"}


def is_switch(event: Event[p.ModelSelected], facts: SessionFacts) -> bool:
    """Whether a person has put another model in the place of the one before."""
    return bool(event.payload.requested) and event.payload.before != event.payload.model


def new_model(event: Event[p.ModelSelected]) -> str:
    return event.payload.model


def model_switch_fields(event: Event[p.ModelSelected], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {
        "from_model": payload.before, "to_model": payload.model, "requested_model": payload.requested, "source": "command",
    }  # fmt: skip


def turn_ended_by(cause: str) -> Callable[[Event, SessionFacts], bool]:
    """The end of a leg of the main agent; a sub-agent's end is another event."""
    return lambda event, facts: getattr(event.payload, "cause", "") == cause and not event.stamp.is_sub_agent


def new_agent(event: Event[p.TaskSpawned]) -> str:
    return event.payload.agent


def own_agent(event: Event) -> str:
    return event.stamp.agent_type


def agent_start_fields(event: Event[p.TaskSpawned], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {"agent_id": payload.id, "agent_type": tools.TOOLS.foreign_agent(payload.agent)}


def agent_stop_fields(event: Event[p.TurnComplete], facts: SessionFacts) -> dict[str, Any]:
    path = facts.agent_transcript() if facts.agent_transcript is not None else facts.transcript()
    return {**stop_fields(event, facts), "agent_transcript_path": str(path)}


def stop_fields(event: Event[p.TurnComplete], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    count = output_to_answer.count_continuations(event, facts)
    return {
        "stop_hook_active": count > 0, "last_assistant_message": payload.response,
        "background_tasks": _background_tasks(event, facts), "session_crons": [],
        "continuation_count": count, "continuation_limit": output_to_answer.continuation_limit(facts),
    }  # fmt: skip


def _background_tasks(event: Event, facts: SessionFacts) -> list[dict[str, object]]:
    if not facts.tasks():
        return []
    from cru.core.hooks.dialects.claude.tasks import running_tasks

    return running_tasks(facts, event.stamp.agent_id)


def failure_kind(event: Event) -> str:
    answered = re.search(r" answered (\d{3})\b", getattr(event.payload, "error", ""))
    status = int(answered[1]) if answered else 0
    usual = "server_error" if status >= 500 else "invalid_request" if status >= 400 else "unknown"
    return ERRORS.get(status, usual)


def stop_failure_fields(event: Event[p.TurnComplete], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {"error": failure_kind(event), "error_details": payload.error, "last_assistant_message": payload.error}


def compaction_trigger(event: Event) -> str:
    return str(getattr(event.payload, "trigger", "auto"))


def pre_compact_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    return {"trigger": compaction_trigger(event), "custom_instructions": getattr(event.payload, "instructions", "")}


def post_compact_fields(event: Event[p.SessionCompacted], facts: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {"trigger": payload.trigger, "compact_summary": payload.summary}
