"""May this call run? Rules and modes, then hooks, then a person: the one place where the answers meet (docs/permissions.md).

Refusals are told apart everywhere: policy (a rule, a mode, nobody to ask), human, timeout, error, and hook with the hook's name.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from cru.contexts.entries import new_id
from cru.engine.parts import Parts
from cru.events.answers import PASS, Answer, add
from cru.events.payloads import (
    FailureKind,
    InteractionCompleted,
    InteractionRequested,
    PermissionRequested,
    PermissionResolved,
)
from cru.permissions.gate import PermissionReply, PermissionSubject, Verdict, allow_hint
from cru.tools.protocol import Access, Tool
from cru.values.errors import CruError

REFUSALS = {
    FailureKind.POLICY: "Not allowed by policy: {reason}",
    FailureKind.HOOK: "Blocked by {by}: {reason}",
    FailureKind.HUMAN: "The user refused: {reason}",
    FailureKind.TIMEOUT: "Nobody answered in time: {reason}",
    FailureKind.ERROR: "Refused because of an error: {reason}",
}
HUMAN = "human"
NOBODY_TO_ASK = "nobody can be asked here; run cru on a terminal"


class PermissionDecision(Struct, frozen=True):
    """Whether a call may run, and why.

    by: policy, human, timeout, error, user (who ran it without the model), or the owner of a handler
    refusal: of which kind the refusal is; None: the call may run
    reason: in words, for the model and the journal
    answer: what the handlers of the question added
    """

    by: str
    refusal: FailureKind | None = None
    reason: str = ""
    answer: Answer = PASS

    @property
    def granted(self) -> bool:
        return self.refusal is None

    def refusal_text(self) -> str:
        """The refusal as the model reads it."""
        assert self.refusal is not None
        return render_refusal(self.refusal, self.reason or "no reason given", self.by)


def render_refusal(kind: FailureKind, reason: str, by: str = "") -> str:
    """What the model reads of a call that may not run."""
    return REFUSALS[kind].format(by=by, reason=reason)


class PermissionQuestion(Struct, frozen=True):
    """A call that needs permission.

    detail: what a rule's glob matches
    paths: what the call touches, as given by the model
    origin: model, user, script or hook
    tool: gives the preview
    """

    name: str
    kind: str
    args: dict[str, object]
    call_id: str
    detail: str = ""
    paths: tuple[tuple[Access, str], ...] = ()
    origin: str = "model"
    tool: Tool | None = None


def judge(parts: Parts, question: PermissionQuestion) -> Verdict:
    """Deny rules, mode and protected paths, before any hook's allow counts."""
    return parts.gate.judge(question.name, question.kind, question.detail, question.paths)


def refuse(by: str, answer: Answer, failed: bool) -> PermissionDecision:
    """A handler's own refusal, or that of a handler that failed."""
    return PermissionDecision(by, FailureKind.ERROR if failed else FailureKind.HOOK, answer.reason, answer)


async def decide(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, answer: Answer, by: str
) -> PermissionDecision:
    """Decide a call that no deny rule forbids. `answer` is what the hooks of `tool:before_call` said, `by` their owners."""
    if answer.decision == "ask":
        verdict = Verdict("ask", answer.reason or f"{by} wants a person to decide", verdict.rule)
        decision = await _ask_hooks(parts, question, verdict, by_hook=True)
    elif answer.decision == "allow" and not (verdict.decision == "ask" and verdict.explicit):
        decision = PermissionDecision(by, reason=answer.reason)
    elif verdict.decision == "allow":
        decision = PermissionDecision("policy", reason=verdict.reason)
    else:
        decision = await _ask_hooks(parts, question, verdict)
    return await announce(parts, question, decision)


async def announce(parts: Parts, question: PermissionQuestion, decision: PermissionDecision) -> PermissionDecision:
    """Announce who decided what; a halt there refuses the call."""
    word = "allow" if decision.granted else "deny"
    by = decision.by if decision.refusal is None or decision.refusal is FailureKind.HOOK else decision.refusal.value
    payload = PermissionResolved(question.name, question.kind, word, by, question.call_id, decision.reason)
    outcome = await parts.bus.dispatch(payload)
    if outcome.answer.halt and not decision.answer.halt:
        return PermissionDecision(
            outcome.by, FailureKind.HOOK, outcome.answer.reason, add(decision.answer, outcome.answer)
        )
    return decision


async def _ask_hooks(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, by_hook: bool = False
) -> PermissionDecision:
    paths = tuple(path for _, path in question.paths)
    request = PermissionRequested(
        question.name, question.kind, question.detail, question.call_id, verdict.reason, dict(question.args), paths
    )
    outcome = await parts.bus.dispatch(request)
    answer = outcome.answer
    if answer.stops:
        return refuse(outcome.by, answer, outcome.failed)
    if answer.result == "deny":
        return PermissionDecision(outcome.by, FailureKind.HOOK, answer.reason, answer)
    allowed = (
        answer.decision == "allow" and not verdict.explicit
    )  # a rule that asks wants more than a hook's permission
    if allowed or answer.result == "allow":
        return PermissionDecision(outcome.by, reason=answer.reason, answer=answer)
    if answer.result is not None:
        parts.bus.stream.warn(f"permission:requested: the result is allow or deny, not {answer.result!r}", outcome.by)
    decision = await _decide_by_person(parts, question, verdict, by_hook, by_hook or answer.decision == "ask")
    return replace(decision, answer=answer)


async def _decide_by_person(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, by_hook: bool, handler_asks: bool
) -> PermissionDecision:
    """by_hook: a handler wanted the question although nothing else did; handler_asks: a handler wants it at all."""
    if question.origin == "user" and not by_hook and not verdict.explicit:
        return PermissionDecision("user", reason="the user ran it")
    if question.origin == "script":
        return PermissionDecision(
            "policy", FailureKind.POLICY, f"{verdict.reason}; a script may not answer for a person"
        )
    # what a handler or a rule asks is asked every time: an answer that is kept would have no effect, or stand in for a hook that is gone
    is_kept = not (handler_asks or verdict.explicit)
    rule = parts.gate.rule_for(question.name, question.kind, question.detail, question.paths) if is_kept else ""
    subject = PermissionSubject(
        question.name, question.kind, question.detail, verdict.reason, rule, _preview(parts, question),
        why_once="" if is_kept else "a hook or a rule wants this question each time",
    )  # fmt: skip
    try:
        reply = await ask_person(parts, subject)
    except TimeoutError:
        return PermissionDecision("timeout", FailureKind.TIMEOUT, verdict.reason)
    except (CruError, OSError) as error:
        return PermissionDecision("error", FailureKind.ERROR, f"the question could not be asked: {error}")
    if reply is None:
        way = (
            NOBODY_TO_ASK
            if by_hook
            else allow_hint(question.name, rule, question.kind, verdict, parts.gate.settings_file)
        )
        return PermissionDecision("policy", FailureKind.POLICY, f"{verdict.reason}; {way}")
    if reply.choice == "no":
        return PermissionDecision(HUMAN, FailureKind.HUMAN, reply.reason)
    try:
        parts.gate.remember(subject, reply)
    except CruError as error:  # the answer holds for this session all the same
        parts.bus.stream.warn(str(error))
    return PermissionDecision(HUMAN, reason=reply.choice)


def _preview(parts: Parts, question: PermissionQuestion) -> str:
    """What the tool shows of the call; of tools without a `preview`, every argument."""
    from cru.tools.preview import show_arguments

    try:
        return str(getattr(question.tool, "preview", show_arguments)(question.args))
    except Exception as error:  # noqa: BLE001  the boundary around tools: the question is asked without it
        parts.bus.stream.warn(f"tool {question.name}: no preview: {type(error).__name__}: {error}")
        return ""


async def ask_person(parts: Parts, subject: PermissionSubject) -> PermissionReply | None:
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
