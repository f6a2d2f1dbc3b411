"""What hooks are given: for each the fields of both generations of chibi (0.4 with environment variables, 0.10 with standard input)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cru.core.base.values.messages import MESSAGE, ToolCall
from cru.core.events.payloads import (
    ContextOverflow,
    ContextSwitched,
    InboxSending,
    InboxSent,
    LegStarted,
    MessageReceived,
    OutputCached,
    SessionCompacted,
    TaskCompleted,
    TaskSpawned,
    ToolBatchCompleted,
    ToolBeforeCall,
    ToolCompleted,
    ToolFailed,
    ToolSettled,
    ToolsSelect,
    TurnComplete,
)  # fmt: skip
from cru.core.events.stamp import Event
from cru.core.plugins.executables.hooks.hook import LegFacts, count_messages

RAW = "_raw"
"""Where the engine keeps arguments that are no JSON object."""
# Kinds of built-in tools → chibi's categories; tools of plugins are "plugin".
CATEGORIES = {
    "read": "fs_read", "write": "fs_write", "shell": "shell", "fetch": "network", "memory": "memory", "message": "flow", "flow": "flow",
}  # fmt: skip


# session --------------------------------------------------------------------------------------------------------------------------


def session(event: Event, facts: LegFacts) -> dict[str, object]:
    """`current_context` is the one of this run: it is heard after -c and -C were carried out, and CHIBI_CONTEXT says the same."""
    parts = facts.parts
    return {
        "current_context": parts.store.name, "verbose": facts.verbose,
        "chibi_home": str(facts.home), "project_root": str(parts.place.root), "tool_count": len(parts.tools.names()),
    }  # fmt: skip


def context_switch(event: Event[ContextSwitched], facts: LegFacts) -> dict[str, object]:
    transient = event.payload.transient
    both = {"is_transient": transient, "is_sub_context": transient}
    return {"from_context": event.payload.old, "to_context": event.payload.new, **both}


# messages -------------------------------------------------------------------------------------------------------------------------


def _here(facts: LegFacts) -> dict[str, object]:
    return {"context_name": facts.parts.store.name, "summary": facts.parts.store.summary()}


def prompt(event: Event[MessageReceived], facts: LegFacts) -> dict[str, object]:
    return {"prompt": event.payload.content, **_here(facts)}


def final_answer(event: Event[TurnComplete], facts: LegFacts) -> dict[str, object]:
    """The prompt as it was sent, with messages of other contexts."""
    ref = event.payload.ref
    sent = next((m.content for m in facts.parts.history.messages() if ref and m.ref == ref), "")
    return {"prompt": sent, "response": event.payload.response, "context_name": facts.parts.store.name}


def is_final_answer(event: Event[TurnComplete], facts: LegFacts) -> bool:
    """A final text of the model; not the message of a `call_user`."""
    if event.payload.cause != "done" or not event.payload.response.strip():
        return False
    replies = (
        e for e in reversed(facts.parts.store.visible()) if e.entry_type == MESSAGE and e.role in ("agent", "assistant")
    )
    last = next(replies, None)
    return last is None or not last.metadata.get("call")


def system_prompt(event: Event, facts: LegFacts) -> dict[str, object]:
    store = facts.parts.store
    own = {name: store.read_text(f"{name}.md") for name in ("todos", "goals")}
    return {**_here(facts), **own, "flock_goals": []}


# tools ----------------------------------------------------------------------------------------------------------------------------


def _call(name: str, args: dict[str, object]) -> dict[str, object]:
    return {"tool_name": name, "arguments": {} if RAW in args else args}


def tool_call(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, object]:
    return _call(event.payload.name, event.payload.args)


def tool_output(event: Event[ToolCompleted | ToolFailed], facts: LegFacts) -> dict[str, object]:
    payload = event.payload
    output = payload.error if isinstance(payload, ToolFailed) else payload.result
    return {**_call(payload.name, payload.args), "output": output}


def settled_call(event: Event[ToolSettled], facts: LegFacts) -> dict[str, object]:
    return {
        **_call(event.payload.name, event.payload.args),
        "result": event.payload.output,
        "cached": bool(event.payload.cached),
    }


def final_output(event: Event[ToolSettled], facts: LegFacts) -> dict[str, object]:
    more = {
        "output": event.payload.output,
        "final_output": event.payload.content,
        "cached": bool(event.payload.cached),
    }
    return {**_call(event.payload.name, event.payload.args), **more}


def is_not_steering(event: Event[ToolSettled], facts: LegFacts) -> bool:
    """Tools that end the turn have no `post_tool`; `recurse` was a plugin's tool once, and has."""
    tool = facts.parts.tools.find(event.payload.name)
    return tool is None or tool.kind != "flow" or event.payload.name == "recurse"


def output_to_cache(event: Event[OutputCached], facts: LegFacts) -> dict[str, object]:
    sizes = {
        "output_size": event.payload.size,
        "char_count": len(event.payload.content),
        "line_count": event.payload.lines,
    }
    return {**_call(event.payload.tool, event.payload.args), "content": event.payload.content, **sizes}


def is_worth_caching(event: Event[OutputCached], facts: LegFacts) -> bool:
    text = str(event.payload.content)
    return bool(text.strip()) and not text.startswith("Error:")


def cached_output(event: Event[ToolSettled], facts: LegFacts) -> dict[str, object]:
    sizes = {"output_size": _bytes(event.payload.output), "preview_size": _bytes(event.payload.content)}
    return {"tool_name": event.payload.name, "cache_id": Path(event.payload.cached).stem, **sizes}


def is_cached(event: Event[ToolSettled], facts: LegFacts) -> bool:
    return bool(event.payload.cached)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


# the loop -------------------------------------------------------------------------------------------------------------------------


def fuel_fields(facts: LegFacts, left: int) -> dict[str, object]:
    """`recursion_depth` is what the hooks of 0.6 and before had in the place of fuel, which is told only where it is limited."""
    total = facts.parts.settings.fuel
    return {
        "recursion_depth": facts.depth,
        **({"fuel_remaining": left, "fuel_total": total} if total and left >= 0 else {}),
    }


def tool_choice(event: Event[ToolsSelect], facts: LegFacts) -> dict[str, object]:
    offered = [{"name": name, "type": _category(facts, name)} for name in event.payload.tools]
    return {"context_name": facts.parts.store.name, "tools": offered, **fuel_fields(facts, facts.fuel)}


def _category(facts: LegFacts, name: str) -> str:
    tool = facts.parts.tools.find(name)
    return CATEGORIES.get(tool.kind, "plugin") if tool is not None and tool.source == "built-in" else "plugin"


def loop_start(event: Event[LegStarted], facts: LegFacts) -> dict[str, object]:
    facts.observe(event)
    more = {"current_fallback": event.payload.fallback, "message": event.payload.message}
    return {"context_name": facts.parts.store.name, **more, **fuel_fields(facts, event.payload.fuel)}


def tool_batch(event: Event[ToolBatchCompleted], facts: LegFacts) -> dict[str, object]:
    calls = [{"name": call.name, "arguments": _arguments(call)} for call in event.payload.tool_calls]
    more = {"current_fallback": event.payload.fallback, "tool_calls": calls}
    return {"context_name": facts.parts.store.name, **more, **fuel_fields(facts, event.payload.fuel)}


def _arguments(call: ToolCall) -> object:
    try:
        return msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return {}


# other contexts, and what becomes of this one --------------------------------------------------------------------------------------


def outgoing_message(event: Event[InboxSending | InboxSent], facts: LegFacts) -> dict[str, object]:
    more = {"from": event.payload.sender, "to": event.payload.to, "content": event.payload.content}
    return {**more, "context_name": facts.parts.store.name}


def delivered_message(event: Event[InboxSent], facts: LegFacts) -> dict[str, object]:
    return {**outgoing_message(event, facts), "delivery_result": event.payload.result}


def new_agent(event: Event[TaskSpawned], facts: LegFacts) -> dict[str, object]:
    """Its system prompt is that of its card, which cru does not pass on; temperature and length are the card's and the model's."""
    asked = event.payload
    known = {"system_prompt": "", "input": asked.prompt, "model": asked.model, "temperature": None, "max_tokens": None}
    return {**known, "agent": asked.agent, "task_id": asked.id}


def agent_answer(event: Event[TaskCompleted], facts: LegFacts) -> dict[str, object]:
    done = event.payload
    known = {"system_prompt": "", "input": done.prompt, "model": done.model, "response": done.result}
    return {**known, "agent": done.agent, "task_id": done.id}


def is_agent(event: Event[TaskSpawned | TaskCompleted], facts: LegFacts) -> bool:
    return event.payload.kind == "subagent"


def context_summary(event: Event, facts: LegFacts) -> dict[str, object]:
    here = _here(facts)
    return {
        "context_name": here["context_name"],
        "message_count": count_messages(facts.parts.store),
        "summary": here["summary"],
    }


def context_name(event: Event, facts: LegFacts) -> dict[str, object]:
    return {"context_name": facts.parts.store.name}


def automatic_compaction(event: Event, facts: LegFacts) -> dict[str, object]:
    """There are no system messages in a context: the system prompt is made anew for each prompt."""
    return {**context_summary(event, facts), "non_system_count": count_messages(facts.parts.store)}


def compacted_context(event: Event[SessionCompacted], facts: LegFacts) -> dict[str, object]:
    return {**context_summary(event, facts), "messages_archived": event.payload.archived}


def is_manual(event: Event[ContextOverflow | SessionCompacted], facts: LegFacts) -> bool:
    return event.payload.trigger == "manual"


def is_automatic(event: Event[ContextOverflow | SessionCompacted], facts: LegFacts) -> bool:
    return event.payload.trigger == "auto"
