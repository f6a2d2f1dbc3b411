"""What a program printed for a hook: whether it is an answer, and what that does.

Every plugin was given the same; the answers count in name order (docs/decisions/plugins.md). A guard that slipped must
not pass for one that said nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from cru.core.base.config.closest import closest
from cru.core.base.values.messages import Span
from cru.core.events.answers import PASS, Answer, Change, Op, cancel
from cru.core.plugins.errors import HookFailed
from cru.core.plugins.executables.hooks.hook import HookAnswerContext
from cru.core.plugins.unread_refusals import find_unread_refusal

BLOCKED = "blocked by a hook"
NARROWING: tuple[tuple[str, Op], ...] = (("include", "keep"), ("exclude", "drop"))
FALLBACKS = ("call_user", "call_agent")
REFUSING_FIELDS = ("block", "denied", "approved")
"""The fields that refuse."""
DECIDING_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("block", "blocked", "denied", "deny", "reject", "refuse", "cancel", "halt", "stop"), False),
    **dict.fromkeys(("approved", "approve", "allow", "allowed", "continue"), True),
    **dict.fromkeys(("decision", "permission", "permissiondecision", "hookspecificoutput"), None),
}
"""Words that decide in other hooks and other systems → the value with which they let it be."""
ANSWER_LIKE = re.compile(r"""\{|\[\s*["{\[]|.*"(?:block|denied|approved)"\s*:""", re.DOTALL)
"""Text that was to be an answer; any other is for a log (`[info] looked at it`, too)."""
SHOWN = 40
"""Characters of a value in an error."""


def read_answer(printed: str) -> Mapping[str, object] | None:
    """The object; None for nothing and for text, which say nothing. Raises HookFailed."""
    try:
        value = msgspec.json.decode(printed or "null")
    except (msgspec.DecodeError, RecursionError) as error:
        if ANSWER_LIKE.match(printed):
            raise HookFailed(
                f"what it printed is no JSON: {error}", "an answer is one object, and nothing else"
            ) from error
        value = printed
    if isinstance(value, str) and (refusal := find_unread_refusal(value, PASS)):
        raise HookFailed(f"{refusal} stands in a text that it printed", "an answer is one object, and nothing else")
    if isinstance(value, list):
        raise HookFailed("it printed a list", "an answer is one object, and nothing else")
    return value if isinstance(value, Mapping) else None


def check_answer(answer: Mapping[str, object], words: tuple[str, ...]) -> None:
    """Look at an answer that does not refuse, whether it meant to. `words` are the fields that the hook knows; others are somebody's
    own, unless they are nearly one or decide elsewhere. Raises HookFailed."""
    for key, value in answer.items():
        if key in words:
            if key in REFUSING_FIELDS and value is not None and not isinstance(value, bool):
                raise HookFailed(f"`{key}` of its answer is {_short(value)}, not true or false")
        elif value is not None and (value is not DECIDING_WORDS.get(key.casefold())):
            near = closest(key, words)
            if near or key.casefold() in DECIDING_WORDS:
                hint = f"did you mean `{near}`?" if near else f"its fields are {', '.join(words)}"
                raise HookFailed(f"its answer has `{key}`, which means nothing here", hint)


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def replace_prompt(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"prompt": TEXT}` is sent instead; the last one counts"""
    text = context.text(answer, "prompt")
    return PASS if text is None else _set("content", text)


def prepend_section(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"inject": TEXT}` stands above everything, a later plugin's above an earlier one's"""
    return _section(context, answer, "prepend")


def append_section(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"inject": TEXT}` stands below everything"""
    return _section(context, answer, "append")


def _section(context: HookAnswerContext, answer: Mapping[str, object], op: Op) -> Answer:
    text = context.text(answer, "inject")
    return Answer(changes=(Change("sections", op, Span("plugin", context.plugin, text)),)) if text else PASS


def block_or_change_call(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"block": true, "message": TEXT}`: it does not run, and the model reads the message; the first one counts. `{"arguments": {…}}`
    takes the place of the arguments; the last one counts"""
    if answer.get("block") is True:
        return context.last_word(cancel(context.text(answer, "message") or BLOCKED))
    check_answer(answer, ("block", "message", "arguments"))
    arguments = answer.get("arguments")
    if arguments is None:
        return PASS
    if not isinstance(arguments, Mapping):
        raise HookFailed("`arguments` of its answer is no object")
    return _set("args", dict(arguments))


def refuse_call(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"denied": true, "reason": TEXT}` refuses, and so does `{"approved": false}` of older plugins. A yes changes nothing"""
    if answer.get("denied") is True or answer.get("approved") is False:
        return context.last_word(cancel(context.text(answer, "reason") or "denied by a hook"))
    check_answer(answer, ("denied", "approved", "reason"))
    return PASS


def replace_output(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"output": TEXT}` is the result instead, the last one counts; `{"block": true, "message": TEXT}`: the message is, and nobody
    else is listened to"""
    name = "error" if context.event.name == "tool:failed" else "result"
    if answer.get("block") is True:
        return context.last_word(_set(name, context.text(answer, "message") or BLOCKED))
    check_answer(answer, ("block", "message", "output"))
    text = context.text(answer, "output")
    return PASS if text is None else _set(name, text)


def change_preview(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"block": true}`: it is sent in full; `{"summary": TEXT}`: the model reads that in the place of the beginning"""
    if answer.get("block") is True:
        return context.last_word(cancel("sent in full"))
    check_answer(answer, ("block", "summary"))
    text = context.text(answer, "summary")
    return PASS if text is None else _set("summary", text)


def narrow_tools(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"include": [NAME…]}` leaves only these, `{"exclude": [NAME…]}` takes these away; each can only take away"""
    changes = [
        Change("tools", op, names) for key, op in NARROWING if (names := _names(context, answer, key)) is not None
    ]
    return Answer(changes=tuple(changes)) if changes else PASS


def _names(context: HookAnswerContext, answer: Mapping[str, object], key: str) -> list[str] | None:
    names = answer.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        context.problems.append(f"`{key}` is no list of names and is left out")
        return None
    return names


def steer_loop(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"fallback": "call_agent"}`: the agent goes on after its answer; `"call_user"`: it does not. `{"fuel": N}` is left now,
    `{"fuel_delta": ±N}` more or less (post_tool_batch only)"""
    changes = []
    target = context.text(answer, "fallback")
    if target in FALLBACKS:
        changes.append(Change("fallback", "set", target))
    elif target is not None:
        context.problems.append(f"there is no fallback `{target}`: {' or '.join(FALLBACKS)}")
    left = _fuel(context, answer)
    if left is not None:
        context.dispatch.fuel = left
        changes.append(Change("fuel", "set", left))
    return Answer(changes=tuple(changes)) if changes else PASS


def _fuel(context: HookAnswerContext, answer: Mapping[str, object]) -> int | None:
    """What is left now; None if nothing was said, or nothing limits it."""
    now: int = context.event.payload.fuel if context.dispatch.fuel is None else context.dispatch.fuel
    fuel, delta = answer.get("fuel"), answer.get("fuel_delta")
    for key, value in (("fuel", fuel), ("fuel_delta", delta)):
        if value is not None and type(value) is not int:
            context.problems.append(f"`{key}` is no whole number and is left out")
    if now < 0 or (type(fuel) is not int and type(delta) is not int):
        return None
    left = fuel if type(fuel) is int else now
    return max(0, left + (delta if type(delta) is int and context.event.name == "tool:batch_completed" else 0))


def take_delivery(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"delivered": true, "via": TEXT}`: the plugin has delivered it, the inbox gets nothing; the first one counts"""
    if answer.get("delivered") is not True:
        return PASS
    return context.last_word(Answer(result={"via": context.text(answer, "via") or context.tool}))


def answer_for_agent(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"response": TEXT}`: no sub-agent is asked, this is its answer; `{"block": true, "message": TEXT}`: none is asked, and the model
    reads why; the first one counts"""
    if answer.get("block") is True:
        return context.last_word(cancel(context.text(answer, "message") or BLOCKED))
    check_answer(answer, ("response", "block", "message"))
    response = context.text(answer, "response")
    return PASS if response is None else context.last_word(Answer(result=response))


def _set(name: str, value: object) -> Answer:
    return Answer(changes=(Change(name, "set", value),))
