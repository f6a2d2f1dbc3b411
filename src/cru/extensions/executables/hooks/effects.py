"""What an object that a hook returns does. Every plugin was given the same; the answers count in name order
(docs/decisions/0015-hooks-of-programs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cru.events.answers import PASS, Answer, Change, Op, cancel
from cru.extensions.errors import HookFailed
from cru.extensions.executables.hooks.hook import HookAnswerContext
from cru.extensions.executables.hooks.output import check_answer
from cru.values.messages import Span

BLOCKED = "blocked by a hook"
NARROWING: tuple[tuple[str, Op], ...] = (("include", "keep"), ("exclude", "drop"))
FALLBACKS = ("call_user", "call_agent")


def replace_prompt(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"prompt": TEXT}` is sent instead; the last one counts"""
    text = run.text(said, "prompt")
    return PASS if text is None else _set("content", text)


def prepend_section(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"inject": TEXT}` stands above everything, a later plugin's above an earlier one's"""
    return _section(run, said, "prepend")


def append_section(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"inject": TEXT}` stands below everything"""
    return _section(run, said, "append")


def _section(run: HookAnswerContext, said: Mapping[str, Any], op: Op) -> Answer:
    text = run.text(said, "inject")
    return Answer(changes=(Change("sections", op, Span("plugin", run.plugin, text)),)) if text else PASS


def block_or_change_call(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"block": true, "message": TEXT}`: it does not run, and the model reads the message; the first one counts. `{"arguments": {…}}`
    takes the place of the arguments; the last one counts"""
    if said.get("block") is True:
        return run.last_word(cancel(run.text(said, "message") or BLOCKED))
    check_answer(said, ("block", "message", "arguments"))
    given = said.get("arguments")
    if given is None:
        return PASS
    if not isinstance(given, Mapping):
        raise HookFailed("`arguments` of its answer is no object")
    return _set("args", dict(given))


def refuse_call(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"denied": true, "reason": TEXT}` refuses, and so does `{"approved": false}` of older plugins. A yes changes nothing"""
    if said.get("denied") is True or said.get("approved") is False:
        return run.last_word(cancel(run.text(said, "reason") or "denied by a hook"))
    check_answer(said, ("denied", "approved", "reason"))
    return PASS


def replace_output(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"output": TEXT}` is the result instead, the last one counts; `{"block": true, "message": TEXT}`: the message is, and nobody
    else is listened to"""
    name = "error" if run.event.name == "tool:failed" else "result"
    if said.get("block") is True:
        return run.last_word(_set(name, run.text(said, "message") or BLOCKED))
    check_answer(said, ("block", "message", "output"))
    text = run.text(said, "output")
    return PASS if text is None else _set(name, text)


def change_preview(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"block": true}`: it is sent in full; `{"summary": TEXT}`: the model reads that in the place of the beginning"""
    if said.get("block") is True:
        return run.last_word(cancel("sent in full"))
    check_answer(said, ("block", "summary"))
    text = run.text(said, "summary")
    return PASS if text is None else _set("summary", text)


def narrow_tools(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"include": [NAME…]}` leaves only these, `{"exclude": [NAME…]}` takes these away; each can only take away"""
    changes = [Change("tools", op, names) for key, op in NARROWING if (names := _names(run, said, key)) is not None]
    return Answer(changes=tuple(changes)) if changes else PASS


def _names(run: HookAnswerContext, said: Mapping[str, Any], key: str) -> list[str] | None:
    names = said.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        run.odd.append(f"`{key}` is no list of names and is left out")
        return None
    return names


def steer_loop(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"fallback": "call_agent"}`: the agent goes on after its answer; `"call_user"`: it does not. `{"fuel": N}` is left now,
    `{"fuel_delta": ±N}` more or less (post_tool_batch only)"""
    changes = []
    target = run.text(said, "fallback")
    if target in FALLBACKS:
        changes.append(Change("fallback", "set", target))
    elif target is not None:
        run.odd.append(f"there is no fallback `{target}`: {' or '.join(FALLBACKS)}")
    left = _fuel(run, said)
    if left is not None:
        run.group.fuel = left
        changes.append(Change("fuel", "set", left))
    return Answer(changes=tuple(changes)) if changes else PASS


def _fuel(run: HookAnswerContext, said: Mapping[str, Any]) -> int | None:
    """What is left now; None if nothing was said, or nothing limits it."""
    now: int = run.event.payload.fuel if run.group.fuel is None else run.group.fuel  # type: ignore[attr-defined]
    given, delta = said.get("fuel"), said.get("fuel_delta")
    for key, value in (("fuel", given), ("fuel_delta", delta)):
        if value is not None and type(value) is not int:
            run.odd.append(f"`{key}` is no whole number and is left out")
    if now < 0 or (type(given) is not int and type(delta) is not int):
        return None
    left = given if type(given) is int else now
    return max(0, left + (delta if type(delta) is int and run.event.name == "tool:batch_completed" else 0))


def take_delivery(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """`{"delivered": true, "via": TEXT}`: the plugin has delivered it, the inbox gets nothing; the first one counts"""
    if said.get("delivered") is not True:
        return PASS
    return run.last_word(Answer(result={"via": run.text(said, "via") or run.tool}))


def _set(name: str, value: Any) -> Answer:
    return Answer(changes=(Change(name, "set", value),))
