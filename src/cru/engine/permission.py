"""May this call run? Rules and modes, then hooks, then a person: the one place where the answers meet (docs/permissions.md).

Four different refusals, told apart everywhere: policy (a rule, a mode, nobody to ask), human, timeout and error; a hook's own
refusal carries the hook's name.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from cru.contexts.entries import new_id
from cru.engine.parts import Parts
from cru.events.answers import PASS, Answer, add
from cru.events.payloads import (
    InteractionCompleted,
    InteractionRequested,
    PermissionRequested,
    PermissionResolved,
)
from cru.permissions.asker import PermissionReply, PermissionSubject
from cru.permissions.gate import Verdict, allow_hint
from cru.tools.protocol import Access, Tool
from cru.values.errors import CruError

REFUSALS = {
    "policy": "Not allowed by policy: {reason}",
    "hook": "Blocked by {by}: {reason}",
    "human": "The user refused: {reason}",
    "timeout": "Nobody answered in time: {reason}",
    "error": "Refused because of an error: {reason}",
}
HUMAN = "human"
NOT_THERE = "nobody can be asked here; run cru on a terminal"


class PermissionDecision(Struct, frozen=True):
    """Granted or not, and why. by: policy, human, timeout, error, user (who ran it without the model), or the owner of a handler.
    which: "" if granted, else policy, hook, human, timeout or error. `answer` is what the handlers said meanwhile."""

    granted: bool
    by: str
    which: str = ""
    reason: str = ""
    answer: Answer = PASS

    def told(self) -> str:
        """The refusal as the model reads it."""
        return REFUSALS[self.which].format(by=self.by, reason=self.reason or "no reason given")


class PermissionQuestion(Struct, frozen=True):
    """What leave is asked for. detail: what a rule's glob matches; origin: model, user, script or hook; tool gives the preview."""

    name: str
    kind: str
    args: dict[str, Any]
    call_id: str
    detail: str = ""
    paths: tuple[tuple[Access, str], ...] = ()
    origin: str = "model"
    tool: Tool | None = None


def judge(parts: Parts, asked: PermissionQuestion) -> Verdict:
    """Deny rules, mode and protected paths, before any hook's allow counts."""
    return parts.gate.judge(asked.name, asked.kind, asked.detail, asked.paths)


def refusal(by: str, answer: Answer, failed: bool) -> PermissionDecision:
    """A handler's own refusal, or that of a handler that failed."""
    return PermissionDecision(False, by, "error" if failed else "hook", answer.reason, answer)


async def decide(
    parts: Parts, asked: PermissionQuestion, verdict: Verdict, answer: Answer, by: str
) -> PermissionDecision:
    """Decide a call that no deny rule forbids. `answer` is what the hooks of `tool:before_call` said, `by` their owners."""
    if answer.decision == "ask":
        wanted = Verdict("ask", answer.reason or f"{by} wants a person to decide", verdict.rule)
        decided = await _question(parts, asked, wanted, hook=True)
    elif answer.decision == "allow" and not (verdict.decision == "ask" and verdict.explicit):
        decided = PermissionDecision(True, by, reason=answer.reason)
    elif verdict.decision == "allow":
        decided = PermissionDecision(True, "policy", reason=verdict.why)
    else:
        decided = await _question(parts, asked, verdict)
    return await resolved(parts, asked, decided)


async def resolved(parts: Parts, asked: PermissionQuestion, decided: PermissionDecision) -> PermissionDecision:
    """Announce who decided what; a halt there refuses the call."""
    word = "allow" if decided.granted else "deny"
    by = decided.by if decided.granted or decided.which == "hook" else decided.which
    payload = PermissionResolved(asked.name, asked.kind, word, by, asked.call_id, decided.reason)
    outcome = await parts.bus.dispatch(payload)
    if outcome.answer.halt and not decided.answer.halt:
        return PermissionDecision(False, outcome.by, "hook", outcome.answer.reason, add(decided.answer, outcome.answer))
    return decided


async def _question(
    parts: Parts, asked: PermissionQuestion, verdict: Verdict, hook: bool = False
) -> PermissionDecision:
    paths = tuple(path for _, path in asked.paths)
    request = PermissionRequested(
        asked.name, asked.kind, asked.detail, asked.call_id, verdict.why, dict(asked.args), paths
    )
    outcome = await parts.bus.dispatch(request)
    answer = outcome.answer
    if answer.stops:
        return refusal(outcome.by, answer, outcome.failed)
    if answer.result == "deny":
        return PermissionDecision(False, outcome.by, "hook", answer.reason, answer)
    allowed = answer.decision == "allow" and not verdict.explicit  # a rule that asks wants more than a hook's leave
    if allowed or answer.result == "allow":
        return PermissionDecision(True, outcome.by, reason=answer.reason, answer=answer)
    if answer.result is not None:
        parts.bus.stream.warn(f"permission:requested: the result is allow or deny, not {answer.result!r}", outcome.by)
    decided = await _person(parts, asked, verdict, hook)
    return PermissionDecision(decided.granted, decided.by, decided.which, decided.reason, answer)


async def _person(parts: Parts, asked: PermissionQuestion, verdict: Verdict, hook: bool) -> PermissionDecision:
    if asked.origin == "user" and not hook and not verdict.explicit:
        return PermissionDecision(True, "user", reason="the user ran it")
    if asked.origin == "script":
        return PermissionDecision(False, "policy", "policy", f"{verdict.why}; a script may not answer for a person")
    rule = parts.gate.rule_for(asked.name, asked.kind, asked.detail, asked.paths)
    subject = PermissionSubject(asked.name, asked.kind, asked.detail, verdict.why, rule, _preview(parts, asked))
    try:
        reply = await ask(parts, subject)
    except TimeoutError:
        return PermissionDecision(False, "timeout", "timeout", verdict.why)
    except (CruError, OSError) as error:
        return PermissionDecision(False, "error", "error", f"the question could not be asked: {error}")
    if reply is None:
        way = NOT_THERE if hook else allow_hint(asked.name, rule, asked.kind, verdict, parts.gate.settings_file)
        return PermissionDecision(False, "policy", "policy", f"{verdict.why}; {way}")
    if reply.choice == "no":
        return PermissionDecision(False, HUMAN, "human", reply.reason)
    try:
        parts.gate.remember(subject, reply)
    except CruError as error:  # the answer holds for this session all the same
        parts.bus.stream.warn(str(error))
    return PermissionDecision(True, HUMAN, reason=reply.choice)


def _preview(parts: Parts, asked: PermissionQuestion) -> str:
    """What the tool shows of the call; of tools without a `preview`, every argument."""
    from cru.tools.preview import show_arguments

    try:
        return str(getattr(asked.tool, "preview", show_arguments)(asked.args))
    except Exception as error:  # noqa: BLE001  the boundary around tools: the question is asked without it
        parts.bus.stream.warn(f"tool {asked.name}: no preview: {type(error).__name__}: {error}")
        return ""


async def ask(parts: Parts, subject: PermissionSubject) -> PermissionReply | None:
    """Ask a person through the asker port, with the two interaction events around it. Raises what the asker raises."""
    dialog = new_id()
    await parts.bus.dispatch(InteractionRequested(dialog, "permission", f"{subject.tool}: {subject.detail}"))
    response = "failed"
    try:
        reply = await parts.asker.ask(subject)
        response = reply.choice if reply is not None else "nobody"
    finally:
        await parts.bus.dispatch(InteractionCompleted(dialog, "permission", response))
    return reply
