"""May this call run? Rules and modes, then hooks, then a person: the one place where the answers meet (docs/permissions.md).

Four different refusals, told apart everywhere: policy (a rule, a mode, nobody to ask), human, timeout and error; a hook's own
refusal carries the hook's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cru.contexts.entries import new_id
from cru.engine.parts import Parts
from cru.events.answers import PASS, Answer
from cru.events.payloads import (
    InteractionCompleted,
    InteractionRequested,
    PermissionRequested,
    PermissionResolved,
)
from cru.permissions.asker import Reply, Subject
from cru.permissions.gate import Verdict, how_to_allow
from cru.tools.protocol import Tool

TOLD = {
    "policy": "Not allowed by policy: {reason}",
    "hook": "Blocked by {by}: {reason}",
    "human": "The user refused: {reason}",
    "timeout": "Nobody answered in time: {reason}",
    "error": "Refused because of an error: {reason}",
}


class Leave(Struct, frozen=True):
    """Granted or not, by whom, and why. which: "" if granted, else policy, hook, human, timeout or error."""

    granted: bool
    by: str
    which: str = ""
    reason: str = ""
    answer: Answer = PASS

    def told(self) -> str:
        """The refusal as the model reads it."""
        return TOLD[self.which].format(by=self.by, reason=self.reason or "no reason given")


class Asked(Struct, frozen=True):
    """What leave is asked for."""

    tool: Tool
    args: Mapping[str, Any]
    call_id: str
    detail: str
    origin: str = "model"


def judge(parts: Parts, asked: Asked) -> Verdict:
    """Deny rules, mode and protected paths, before any hook's allow counts."""
    tool = asked.tool
    return parts.gate.judge(tool.spec.name, tool.kind, asked.detail, tool.paths(asked.args))


async def leave(parts: Parts, asked: Asked, verdict: Verdict, answer: Answer, by: str) -> Leave:
    """Decide a call that no deny rule forbids. `answer` is what the hooks of `tool:before_call` said, `by` their owners."""
    if answer.decision == "ask":
        decided = await _question(
            parts, asked, Verdict("ask", answer.reason or f"{by} wants a person to decide", verdict.rule)
        )
    elif answer.decision == "allow" and not (verdict.decision == "ask" and verdict.explicit):
        decided = Leave(True, by, reason=answer.reason)
    elif verdict.decision == "allow":
        decided = Leave(True, "policy", reason=verdict.why)
    else:
        decided = await _question(parts, asked, verdict)
    await resolved(parts, asked, decided)
    return decided


async def resolved(parts: Parts, asked: Asked, decided: Leave) -> None:
    word = "allow" if decided.granted else "deny"
    by = decided.by if decided.granted or decided.which == "hook" else decided.which
    await parts.bus.dispatch(
        PermissionResolved(asked.tool.spec.name, asked.tool.kind, word, by, asked.call_id, decided.reason)
    )


async def _question(parts: Parts, asked: Asked, verdict: Verdict) -> Leave:
    tool = asked.tool
    paths = tuple(path for _, path in tool.paths(asked.args))
    request = PermissionRequested(
        tool.spec.name, tool.kind, asked.detail, asked.call_id, verdict.why, dict(asked.args), paths
    )
    outcome = await parts.bus.dispatch(request)
    answer = outcome.answer
    if answer.stops:
        which = "error" if answer.note == "error" else "hook"
        return Leave(False, outcome.by, which, answer.reason, answer)
    if answer.decision == "allow" or answer.result == "allow":
        return Leave(True, outcome.by, reason=answer.reason, answer=answer)
    if answer.result == "deny":
        return Leave(False, outcome.by, "hook", answer.reason, answer)
    return await _person(parts, asked, verdict, answer)


async def _person(parts: Parts, asked: Asked, verdict: Verdict, answer: Answer) -> Leave:
    name = asked.tool.spec.name
    if asked.origin == "user":
        return Leave(True, "user", reason="the user ran it", answer=answer)
    if asked.origin == "script":
        return Leave(False, "policy", "policy", f"{verdict.why}; a script may not answer for a person", answer)
    rule = parts.gate.rule_for(name, asked.tool.kind, asked.detail, asked.tool.paths(asked.args))
    subject = Subject(name, asked.tool.kind, asked.detail, verdict.why, rule)
    reply = await ask(parts, subject)
    if reply is None:
        return Leave(False, "policy", "policy", f"{verdict.why}; {how_to_allow(name, rule)}", answer)
    if reply.choice == "no":
        return Leave(False, parts.username, "human", reply.reason, answer)
    parts.gate.remember(subject, reply)
    return Leave(True, parts.username, reason=f"{reply.choice}", answer=answer)


async def ask(parts: Parts, subject: Subject) -> Reply | None:
    """Ask a person through the asker port, with the two interaction events around it."""
    dialog = new_id()
    await parts.bus.dispatch(InteractionRequested(dialog, "permission", f"{subject.tool}: {subject.detail}"))
    reply = await parts.asker.ask(subject)
    response = reply.choice if reply is not None else "nobody"
    await parts.bus.dispatch(InteractionCompleted(dialog, "permission", response))
    return reply
