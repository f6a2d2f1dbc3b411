"""What hooks are given: for each the fields of both generations of chibi (0.4 with environment variables, 0.10 with standard input)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from cru.events.stamp import Event
from cru.extensions.executables.hooks.hook import LegFacts, count_messages
from cru.values.entries import MESSAGE
from cru.values.messages import ToolCall

RAW = "_raw"
"""Where the engine keeps arguments that are no JSON object."""
# Kinds of built-in tools → chibi's categories; tools of plugins are "plugin".
CATEGORIES = {
    "read": "fs_read", "write": "fs_write", "shell": "shell", "fetch": "network", "memory": "memory", "message": "flow", "flow": "flow",
}  # fmt: skip


def field(event: Event, name: str) -> Any:
    return getattr(event.payload, name)


# session --------------------------------------------------------------------------------------------------------------------------


def session(event: Event, facts: LegFacts) -> dict[str, Any]:
    """`current_context` is the one of this run: it is heard after -c and -C were carried out, and CHIBI_CONTEXT says the same."""
    parts = facts.parts
    return {
        "current_context": parts.store.name, "verbose": facts.verbose,
        "chibi_home": str(facts.home), "project_root": str(parts.root), "tool_count": len(parts.tools.names()),
    }  # fmt: skip


def context_switch(event: Event, facts: LegFacts) -> dict[str, Any]:
    transient = field(event, "transient")
    both = {"is_transient": transient, "is_sub_context": transient}
    return {"from_context": field(event, "old"), "to_context": field(event, "new"), **both}


# messages -------------------------------------------------------------------------------------------------------------------------


def _here(facts: LegFacts) -> dict[str, Any]:
    return {"context_name": facts.parts.store.name, "summary": facts.parts.store.summary()}


def prompt(event: Event, facts: LegFacts) -> dict[str, Any]:
    return {"prompt": field(event, "content"), **_here(facts)}


def final_answer(event: Event, facts: LegFacts) -> dict[str, Any]:
    """The prompt as it was sent, with messages of other contexts."""
    ref = field(event, "ref")
    sent = next((m.content for m in facts.parts.history.messages() if ref and m.ref == ref), "")
    return {"prompt": sent, "response": field(event, "response"), "context_name": facts.parts.store.name}


def is_final_answer(event: Event, facts: LegFacts) -> bool:
    """A final text of the model; not the message of a `call_user`."""
    if field(event, "cause") != "done" or not field(event, "response").strip():
        return False
    said = (
        e for e in reversed(facts.parts.store.visible()) if e.entry_type == MESSAGE and e.role in ("agent", "assistant")
    )
    last = next(said, None)
    return last is None or not last.metadata.get("call")


def system_prompt(event: Event, facts: LegFacts) -> dict[str, Any]:
    store = facts.parts.store
    own = {name: store.read_text(f"{name}.md") for name in ("todos", "goals")}
    return {**_here(facts), **own, "flock_goals": []}


# tools ----------------------------------------------------------------------------------------------------------------------------


def _called(event: Event, name: str = "name") -> dict[str, Any]:
    args = field(event, "args")
    return {"tool_name": field(event, name), "arguments": {} if RAW in args else args}


def tool_call(event: Event, facts: LegFacts) -> dict[str, Any]:
    return _called(event)


def tool_output(event: Event, facts: LegFacts) -> dict[str, Any]:
    return {**_called(event), "output": field(event, "error" if event.name == "tool:failed" else "result")}


def settled_call(event: Event, facts: LegFacts) -> dict[str, Any]:
    return {**_called(event), "result": field(event, "output"), "cached": bool(field(event, "cached"))}


def final_output(event: Event, facts: LegFacts) -> dict[str, Any]:
    more = {
        "output": field(event, "output"),
        "final_output": field(event, "content"),
        "cached": bool(field(event, "cached")),
    }
    return {**_called(event), **more}


def is_not_steering(event: Event, facts: LegFacts) -> bool:
    """Tools that end the turn have no `post_tool`; `recurse` was a plugin's tool once, and has."""
    found = facts.parts.tools.find(field(event, "name"))
    return found is None or found.kind != "flow" or field(event, "name") == "recurse"


def output_to_cache(event: Event, facts: LegFacts) -> dict[str, Any]:
    sizes = {
        "output_size": field(event, "size"),
        "char_count": len(field(event, "content")),
        "line_count": field(event, "lines"),
    }
    return {**_called(event, "tool"), "content": field(event, "content"), **sizes}


def is_worth_caching(event: Event, facts: LegFacts) -> bool:
    text = str(field(event, "content"))
    return bool(text.strip()) and not text.startswith("Error:")


def cached_output(event: Event, facts: LegFacts) -> dict[str, Any]:
    sizes = {"output_size": _bytes(field(event, "output")), "preview_size": _bytes(field(event, "content"))}
    return {"tool_name": field(event, "name"), "cache_id": Path(field(event, "cached")).stem, **sizes}


def is_cached(event: Event, facts: LegFacts) -> bool:
    return bool(field(event, "cached"))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


# the loop -------------------------------------------------------------------------------------------------------------------------


def fuel_fields(facts: LegFacts, left: int) -> dict[str, Any]:
    """`recursion_depth` is what the hooks of 0.6 and before had in the place of fuel, which is told only where it is limited."""
    total = facts.parts.settings.fuel
    return {
        "recursion_depth": facts.depth,
        **({"fuel_remaining": left, "fuel_total": total} if total and left >= 0 else {}),
    }


def tool_choice(event: Event, facts: LegFacts) -> dict[str, Any]:
    offered = [{"name": name, "type": _category(facts, name)} for name in field(event, "tools")]
    return {"context_name": facts.parts.store.name, "tools": offered, **fuel_fields(facts, facts.fuel)}


def _category(facts: LegFacts, name: str) -> str:
    found = facts.parts.tools.find(name)
    return CATEGORIES.get(found.kind, "plugin") if found is not None and found.source == "built-in" else "plugin"


def loop_start(event: Event, facts: LegFacts) -> dict[str, Any]:
    facts.observe(event)
    said = {"current_fallback": field(event, "fallback"), "message": field(event, "message")}
    return {"context_name": facts.parts.store.name, **said, **fuel_fields(facts, field(event, "fuel"))}


def tool_batch(event: Event, facts: LegFacts) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": _arguments(call)} for call in field(event, "tool_calls")]
    said = {"current_fallback": field(event, "fallback"), "tool_calls": calls}
    return {"context_name": facts.parts.store.name, **said, **fuel_fields(facts, field(event, "fuel"))}


def _arguments(call: ToolCall) -> Any:
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return {}


# other contexts, and what becomes of this one --------------------------------------------------------------------------------------


def outgoing_message(event: Event, facts: LegFacts) -> dict[str, Any]:
    said = {"from": field(event, "sender"), "to": field(event, "to"), "content": field(event, "content")}
    return {**said, "context_name": facts.parts.store.name}


def delivered_message(event: Event, facts: LegFacts) -> dict[str, Any]:
    from cru.engine.mail import describe_delivery

    return {
        **outgoing_message(event, facts),
        "delivery_result": describe_delivery(field(event, "to"), field(event, "delivered_by")),
    }


def context_summary(event: Event, facts: LegFacts) -> dict[str, Any]:
    here = _here(facts)
    return {
        "context_name": here["context_name"],
        "message_count": count_messages(facts.parts),
        "summary": here["summary"],
    }


def context_name(event: Event, facts: LegFacts) -> dict[str, Any]:
    return {"context_name": facts.parts.store.name}


def automatic_compaction(event: Event, facts: LegFacts) -> dict[str, Any]:
    """There are no system messages in a context: the system prompt is made anew for each prompt."""
    return {**context_summary(event, facts), "non_system_count": count_messages(facts.parts)}


def compacted_context(event: Event, facts: LegFacts) -> dict[str, Any]:
    return {**context_summary(event, facts), "messages_archived": field(event, "archived")}


def is_manual(event: Event, facts: LegFacts) -> bool:
    return bool(field(event, "trigger") == "manual")


def is_automatic(event: Event, facts: LegFacts) -> bool:
    return not is_manual(event, facts)
