"""May this call run? Rules and modes, then hooks, then a person: the one place where the answers meet (docs/permissions.md).

Refusals are told apart everywhere: policy (a rule, a mode, nobody to ask), human, timeout, error, and hook with the hook's name.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.conversations.entries import new_id
from cru.core.events.answers import PASS, Answer, PermissionUpdate, add
from cru.core.events.bus import Bus, Outcome, without
from cru.core.events.payloads import (
    FailureKind,
    InteractionCompleted,
    InteractionRequested,
    PermissionRequested,
    PermissionResolved,
)
from cru.core.guard.rules.gate import Gate, NoAsker, PermissionReply, PermissionSubject, Verdict
from cru.core.tools.protocol import Access, Tool, ToolServices
from cru.core.turn.parts import Parts

REFUSALS = {
    FailureKind.POLICY: "Not allowed by policy: {reason}",
    FailureKind.HOOK: "Blocked by {by}: {reason}",
    FailureKind.HUMAN: "The user refused: {reason}",
    FailureKind.TIMEOUT: "Nobody answered in time: {reason}",
    FailureKind.ERROR: "Refused because of an error: {reason}",
}
HUMAN = "human"
NOBODY_TO_ASK = "nobody can be asked here; run cru on a terminal"


class CallRewrite(Struct, frozen=True):
    """Other arguments than those that a question was about.

    by: who put them there
    leave_of: those of them that allowed the call with these very arguments
    asks: who wants a person to decide, and why; "": nobody
    """

    args: dict[str, object]
    by: tuple[str, ...]
    leave_of: tuple[str, ...] = ()
    asks: str = ""


class PermissionDecision(Struct, frozen=True):
    """Whether a call may run, and why.

    by: policy, human, timeout, error, user (who ran it without the model), or the owner of a handler
    refusal: of which kind the refusal is; None: the call may run
    reason: in words, for the model and the journal
    answer: what the handlers of the question added
    leave_of: the owners of the handlers that allowed it; (): it was nobody's leave
    rewrite: nothing is decided: handlers of the question put another call in its place
    """

    by: str
    refusal: FailureKind | None = None
    reason: str = ""
    answer: Answer = PASS
    leave_of: tuple[str, ...] = ()
    rewrite: CallRewrite | None = None

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
    origin: model, user, script, hook or command
    prompt_file: of a `!` line: `name` of the command or skill, `source`, `invoked_by`
    tool: gives the preview
    before: the detail as the model gave it, if handlers changed the call; changed_by: who they are
    rewrite: the call was put in the place of another one at that one's question, and takes no further change
    asked: what the handlers answered then
    """

    name: str
    kind: str
    args: dict[str, object]
    call_id: str
    detail: str = ""
    paths: tuple[tuple[Access, str], ...] = ()
    origin: str = "model"
    prompt_file: dict[str, str] = {}
    tool: Tool | None = None
    before: str = ""
    changed_by: str = ""
    rewrite: CallRewrite | None = None
    asked: Answer = PASS

    @property
    def leave_of(self) -> tuple[str, ...]:
        return self.rewrite.leave_of if self.rewrite is not None else ()

    @property
    def asks(self) -> str:
        return self.rewrite.asks if self.rewrite is not None else ""


def judge(parts: Parts, question: PermissionQuestion) -> Verdict:
    """Deny rules, mode and protected paths, before any hook's allow counts."""
    # where a model is asked that a plugin has chosen for a sub-agent, or which file it is, is none of a model's choice
    is_choice_of_plugin = question.origin != "model" and getattr(question.tool, "chooses_model", False)
    why_ask = None if is_choice_of_plugin else getattr(question.tool, "why_ask", None)
    is_outside = _is_outside(parts.gate, question)  # False where nothing confines: the argument means nothing there
    args = question.args if is_outside else {name: v for name, v in question.args.items() if name != "outside_sandbox"}
    reason = why_ask(args, parts.tool_services) if why_ask is not None else ""
    receiver = _receiver(parts.tool_services, question)
    verdict = parts.gate.judge(
        question.name, question.kind, question.detail, question.paths, why_ask=reason, receiver=receiver,
        is_outside=is_outside,
    )  # fmt: skip
    for text in parts.gate.take_problems():
        parts.bus.stream.warn(text)
    return verdict


def _is_outside(gate: Gate, question: PermissionQuestion) -> bool:
    """Whether a command is to run outside of the sandbox, if there is one."""
    is_wanted = question.kind == "shell" and bool(question.args.get("outside_sandbox"))
    return is_wanted and gate.outside is not None


def _needs_person(parts: Parts, question: PermissionQuestion, verdict: Verdict) -> bool:
    """Whether a hook's permission is not enough: a rule asks, or the command would leave the sandbox, which may confine that hook."""
    return verdict.decision == "ask" and (verdict.explicit or _is_outside(parts.gate, question))


def without_outside(parts: Parts, question: PermissionQuestion, env: dict[str, str], by: str) -> dict[str, str]:
    """The variables that handlers set for this call; none for a run outside of the sandbox, which may confine who set them."""
    if not _is_outside(parts.gate, question):
        return env
    parts.bus.stream.warn(f"{', '.join(env)}: not set for a run outside of the sandbox", by)
    return {}


def refuse(by: str, answer: Answer, failed: bool) -> PermissionDecision:
    """A handler's own refusal, or that of a handler that failed."""
    return PermissionDecision(by, FailureKind.ERROR if failed else FailureKind.HOOK, answer.reason, answer)


async def decide(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, answer: Answer, by: str
) -> PermissionDecision:
    """Decide a call that no deny rule forbids. `answer` is what the hooks of `tool:before_call` said, `by` their owners. A decision with
    a `rewrite` decides nothing yet."""
    asks = question.asks
    if answer.decision == "ask":
        asks = _describe_question(by, answer)
    if asks:
        by_rule = verdict.decision == "ask" and verdict.explicit
        verdict = Verdict("ask", asks, verdict.rule, by_rule)
        decision = await _ask_hooks(parts, question, verdict, by_hook=True)
    elif answer.decision == "allow" and not _needs_person(parts, question, verdict):
        decision = PermissionDecision(by, reason=answer.reason, leave_of=question.leave_of)
    elif verdict.decision == "allow":
        decision = PermissionDecision("policy", reason=verdict.reason, leave_of=question.leave_of)
    else:
        decision = await _ask_hooks(parts, question, verdict)
    if decision.rewrite is not None:
        return replace(decision, answer=_tighten(parts, decision.answer))
    return await announce(parts.bus, question, take_updates(parts, question, decision))


def _tighten(parts: Parts, answer: Answer) -> Answer:
    """What tightens needs no leave, and holds whatever becomes of the call; the rest stays in the answer."""
    for update in answer.updates:
        if update.tightening is not None:
            _tell_updates(parts, update.tightening)
    return replace(answer, updates=tuple(update for update in answer.updates if update.tightening != update))


def _tell_updates(parts: Parts, update: PermissionUpdate) -> None:
    from cru.core.guard.rules.updates import take_update

    for text in take_update(parts.gate, update):
        parts.bus.stream.warn(f"{update.by}: {text}", update.by)


def take_updates(parts: Parts, question: PermissionQuestion, decision: PermissionDecision) -> PermissionDecision:
    """What handlers of the question permit or forbid from now on: what widens, of those whose leave the call has; what tightens, of all.
    A deny rule among it holds for this very call, too."""
    updates = (*question.asked.updates, *decision.answer.updates)
    if not updates:
        return decision
    granting = decision.leave_of if decision.granted else ()
    for update in updates:
        effective = update if update.by in granting else update.tightening
        if effective is None:
            text = "what it permits for later calls does not count, since this call has not got its leave"
            parts.bus.stream.warn(f"{update.by}: {text}", update.by)
        else:
            _tell_updates(parts, effective)
    verdict = judge(parts, question)
    if decision.granted and verdict.decision == "deny":
        return replace(decision, by="policy", refusal=FailureKind.POLICY, reason=verdict.reason)
    return decision


async def announce(bus: Bus, question: PermissionQuestion, decision: PermissionDecision) -> PermissionDecision:
    """Announce who decided what; a halt there refuses the call."""
    word = "allow" if decision.granted else "deny"
    by = decision.by if decision.refusal is None or decision.refusal is FailureKind.HOOK else decision.refusal.value
    payload = PermissionResolved(question.name, question.kind, word, by, question.call_id, decision.reason)
    outcome = await bus.dispatch(payload)
    if outcome.answer.halt and not decision.answer.halt:
        return PermissionDecision(
            outcome.by, FailureKind.HOOK, outcome.answer.reason, add(decision.answer, outcome.answer)
        )
    return decision


async def _ask_hooks(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, by_hook: bool = False
) -> PermissionDecision:
    # what a handler or a rule asks is asked every time: an answer that is kept would have no effect, or stand in for a hook that is gone
    rule = "" if by_hook or verdict.explicit else _rule_of(parts, question)
    request = PermissionRequested(
        question.name, question.kind, question.detail, question.call_id, verdict.reason, dict(question.args),
        tuple(path for _, path in question.paths), rule,
    )  # fmt: skip
    with without(question.leave_of):  # they have spoken about this very call
        outcome = await parts.bus.dispatch(request)
    answer = outcome.answer
    if answer.stops:
        return refuse(outcome.by, answer, outcome.failed)
    if answer.result == "deny":
        return PermissionDecision(outcome.by, FailureKind.HOOK, answer.reason, answer)
    if answer.result not in (None, "allow"):
        parts.bus.stream.warn(f"permission:requested: the result is allow or deny, not {answer.result!r}", outcome.by)
    is_changed = outcome.payload.args != request.args
    if is_changed and question.rewrite is None:
        return PermissionDecision(outcome.by, answer=answer, rewrite=_rewrite_of(outcome))
    if is_changed:
        text = "the call was changed at its question already; a second change is not made, and a leave for it does not count"
        parts.bus.stream.warn(f"permission:requested: {text}", outcome.changed_by("args"))
    leave_of = () if is_changed or question.asks else _leave(outcome)
    if question.leave_of and not by_hook and answer.decision != "ask":
        leave_of = (*question.leave_of, *leave_of)
    if leave_of and not _needs_person(parts, question, verdict):
        return PermissionDecision(", ".join(leave_of), reason=answer.reason, answer=answer, leave_of=leave_of)
    if answer.decision == "ask":
        rule, verdict = "", replace(verdict, reason=_describe_question(outcome.by, answer))
    decision = await _decide_by_person(parts, question, verdict, by_hook, rule, answer.decision == "ask")
    return replace(decision, answer=answer)


def _leave(outcome: Outcome[PermissionRequested]) -> tuple[str, ...]:
    """Whose leave a call has that nobody changed; a question beside it is stronger."""
    answer = outcome.answer
    if answer.decision == "allow":
        return outcome.deciders
    return outcome.owners if answer.decision == "none" and answer.result == "allow" else ()


def _rewrite_of(outcome: Outcome[PermissionRequested]) -> CallRewrite:
    """The other call that handlers want. Only the leave of who gave it its final form is about it; everybody else is asked again."""
    owners = [owner for field, owner in outcome.edits if field == "args"]
    has_leave = outcome.answer.decision == "allow" and owners[-1] in outcome.deciders
    asks = _describe_question(outcome.by, outcome.answer) if outcome.answer.decision == "ask" else ""
    return CallRewrite(outcome.payload.args, tuple(dict.fromkeys(owners)), (owners[-1],) if has_leave else (), asks)


def _describe_question(by: str, answer: Answer) -> str:
    return f"{by} asks: {answer.reason or 'a person is to decide'}"


def _receiver(tool_services: ToolServices, question: PermissionQuestion) -> str:
    """Return the running command that the call goes on with, "" if it begins something."""
    receiver: Callable[..., str] | None = getattr(question.tool, "receiver", None)  # of a ContinuingTool
    return receiver(question.args, tool_services) if receiver is not None else ""


def _rule_of(parts: Parts, question: PermissionQuestion) -> str:
    """The rule that an answer may keep; "" if there is none."""
    if _receiver(parts.tool_services, question):
        return ""
    if _why_not_by_rule(parts, question):
        return ""
    return parts.gate.rule_for(_name_in_rules(parts, question), question.kind, question.detail, question.paths)


def _name_in_rules(parts: Parts, question: PermissionQuestion) -> str:
    """A rule that is kept for a run outside of the sandbox says so."""
    return "outside_sandbox" if _is_outside(parts.gate, question) else question.name


async def _decide_by_person(
    parts: Parts, question: PermissionQuestion, verdict: Verdict, by_hook: bool, rule: str, handler_asks: bool
) -> PermissionDecision:
    """by_hook: a handler wanted the question although nothing else did; rule: what an answer may keep; handler_asks: a handler of the
    question wants a person."""
    if question.origin == "user" and not by_hook and not verdict.explicit:
        return PermissionDecision("user", reason="the user ran it")
    if question.origin == "script":
        return PermissionDecision(
            "policy", FailureKind.POLICY, f"{verdict.reason}; a script may not answer for a person"
        )
    from cru.core.turn.calls.question_view import show_call, show_parts, working_folder

    is_kept = not (by_hook or handler_asks or verdict.explicit)
    subject = PermissionSubject(
        question.name, question.kind, question.detail, verdict.reason, rule, show_call(parts, question),
        why_once=_why_once(parts, question) if is_kept else "a hook or a rule wants this question each time",
        changed_by=question.changed_by, before=question.before if question.before != question.detail else "",
        editing=parts.gate.editing_for(rule, _name_in_rules(parts, question), question.kind, question.detail, question.paths),
        parts=() if _receiver(parts.tool_services, question) else show_parts(parts.gate, question), folder=working_folder(parts.gate),
    )  # fmt: skip
    try:
        reply = await ask_person(parts, subject)
    except TimeoutError:
        return PermissionDecision("timeout", FailureKind.TIMEOUT, verdict.reason)
    except (CruError, OSError) as error:
        return PermissionDecision("error", FailureKind.ERROR, f"the question could not be asked: {error}")
    if reply is None:
        way = NOBODY_TO_ASK if by_hook else _allow_hint(parts, question, rule, verdict)
        return PermissionDecision("policy", FailureKind.POLICY, f"{verdict.reason}; {way}")
    if reply.choice == "no":
        return PermissionDecision(HUMAN, FailureKind.HUMAN, reply.reason)
    try:
        parts.gate.remember(subject, reply)
    except CruError as error:  # the answer holds for this session all the same
        parts.bus.stream.warn(str(error))
    if parts.gate.outside is not None:
        parts.gate.outside.permit_by_person(question.detail)
    return PermissionDecision(HUMAN, reason=reply.choice)


def _why_once(parts: Parts, question: PermissionQuestion) -> str:
    """Why no rule is offered, as far as that is known here."""
    if not _is_outside(parts.gate, question):
        return _why_protected(parts.gate, question)
    from cru.core.guard.rules.kept_rules import WHY

    return _why_not_by_rule(parts, question) or WHY


def _why_protected(gate: Gate, question: PermissionQuestion) -> str:
    if question.kind != "shell":
        return ""
    from cru.core.guard.rules.protected_writes import may_write_protected

    is_protected = may_write_protected(question.detail, gate.places)
    return "it may write into a place that decides what programs do, such as `.git`" if is_protected else ""


def _why_not_by_rule(parts: Parts, question: PermissionQuestion) -> str:
    """Why no rule permits this run outside of the sandbox just now; "" if one may, or it is none."""
    outside = parts.gate.outside
    if outside is None or not _is_outside(parts.gate, question):
        return ""
    from cru.core.guard.rules.paths import JudgedCall

    return outside.why_not_by_rule(JudgedCall(question.name, question.kind, question.detail))


def _allow_hint(parts: Parts, question: PermissionQuestion, rule: str, verdict: Verdict) -> str:
    from cru.core.guard.rules.hints import allow_hint, outside_hint

    if _is_outside(parts.gate, question) and not verdict.explicit:
        return outside_hint(rule, question.detail, _why_not_by_rule(parts, question), parts.gate.settings_file)
    return allow_hint(question.name, rule, question.kind, verdict, parts.gate.settings_file)


async def ask_person(parts: Parts, subject: PermissionSubject) -> PermissionReply | None:
    """Ask a person through the asker port, with the two interaction events around it. Raises what the asker raises."""
    if isinstance(parts.services.face.asker, NoAsker):  # no dialog opens, so no handler is told of one
        return None
    dialog, started, outcome, response = new_id(), parts.recorder.clock(), "failed", None
    await parts.bus.dispatch(InteractionRequested(dialog, "permission", f"{subject.tool}: {subject.detail}"))
    try:
        reply = await parts.services.face.asker.ask(subject)
        outcome, response = (reply.choice, reply.as_response()) if reply is not None else ("nobody", None)
    finally:
        parts.recorder.person(started, "permission", outcome)
        await parts.bus.dispatch(InteractionCompleted(dialog, "permission", outcome, response))
    return reply
