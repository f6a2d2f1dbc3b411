"""May this call run? Rules and modes, then hooks, then a person: the one place where the answers meet (docs/permissions.md).

Refusals are told apart everywhere: policy (a rule, a mode, nobody to ask), human, timeout, error, and hook with the hook's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.conversations.entries import new_id
from cru.core.events.answers import PASS, Answer, Inject, PermissionUpdate, add
from cru.core.events.bus import Bus, Outcome, without
from cru.core.events.payloads import (
    FailureKind,
    InteractionCompleted,
    InteractionRequested,
    PermissionRequested,
    PermissionResolved,
)
from cru.core.guard.rules.gate import Gate, NoAsker, PermissionReply, PermissionSubject, Verdict
from cru.core.guard.rules.paths import JudgedCall
from cru.core.tools.protocol import Tool, ToolServices
from cru.core.turn.calls.requested_call import RequestedCall
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


CallState = Literal["undecided", "granted", "handled", "refused"]
"""What became of a call so far. Only a granted one runs; a handler did a handled one; a refused one has come to nothing, which is also
said of one that cannot run at all."""


class DecidedCall(Struct, frozen=True):
    """A call that is decided: it may run, or `content` is its outcome already.

    state: what was decided; only `granted`, `refused`, `failed` and `handled` set it
    by: who decided: policy, human, timeout, error, user (who ran it without the model), or the owners of handlers
    answer: the fold of all answers so far; injects: those of each dispatch
    env: what handlers add to the environment
    failure_kind: why it came to nothing, also of what a handler did; None: it did not
    reason: why it may or may not run, in words
    leave_of: the owners of the handlers that allowed it; (): no handler did
    content: what the model reads if it does not run
    terminates: the turn is over if all calls of the reply say so
    judged, real_paths: of a granted call what rules and the mode said, and where its paths led
    rewrite: of an undecided call the one that handlers of its question want in its place
    """

    request: RequestedCall
    state: CallState = "undecided"
    by: str = ""
    answer: Answer = PASS
    injects: tuple[Inject, ...] = ()
    env: dict[str, str] = {}
    failure_kind: FailureKind | None = None
    reason: str = ""
    leave_of: tuple[str, ...] = ()
    content: str = ""
    terminates: bool = False
    judged: str = ""
    real_paths: tuple[str, ...] = ()
    rewrite: RequestedCall | None = None

    def heard(self, answer: Answer) -> DecidedCall:
        """Add one more answer."""
        if answer is PASS:
            return self
        return replace(self, answer=add(self.answer, answer), injects=self.injects + injects_of(answer))

    def granted(self, by: str, reason: str = "", leave_of: tuple[str, ...] = ()) -> DecidedCall:
        return replace(self, state="granted", by=by, reason=reason, leave_of=leave_of)

    def refused(self, kind: FailureKind, by: str, reason: str) -> DecidedCall:
        content = render_refusal(kind, reason or "no reason given", by)
        return replace(self, state="refused", by=by, failure_kind=kind, reason=reason, leave_of=(), content=content)

    def failed(self, kind: FailureKind | None, content: str) -> DecidedCall:
        """The call cannot run at all: nobody was asked about it."""
        return replace(self, state="refused", failure_kind=kind, content=content)

    def handled(self, content: str, kind: FailureKind | None = None, terminates: bool = False) -> DecidedCall:
        """A handler did it, or failed to: `kind`."""
        return replace(self, state="handled", content=content, failure_kind=kind, terminates=terminates)


def injects_of(answer: Answer) -> tuple[Inject, ...]:
    return () if answer.inject is None else (answer.inject,)


def render_refusal(kind: FailureKind, reason: str, by: str = "") -> str:
    """What the model reads of a call that may not run."""
    return REFUSALS[kind].format(by=by, reason=reason)


def judge(parts: Parts, request: RequestedCall) -> Verdict:
    """Deny rules, mode and protected paths, before any hook's allow counts."""
    tool = _able_tool(request)
    # where a model is asked that a plugin has chosen for a sub-agent, or which file it is, is none of a model's choice
    is_choice_of_plugin = request.origin != "model" and getattr(tool, "chooses_model", False)
    why_ask = None if is_choice_of_plugin else getattr(tool, "why_ask", None)
    is_outside = _is_outside(parts.gate, request)  # False where nothing confines: the argument means nothing there
    args = request.args if is_outside else {name: v for name, v in request.args.items() if name != "outside_sandbox"}
    reason = why_ask(args, parts.tool_services) if why_ask is not None else ""
    verdict = parts.gate.judge(
        request.call.name, request.kind, request.detail, request.paths, why_ask=reason,
        receiver=_receiver(parts.tool_services, request), is_outside=is_outside,
    )  # fmt: skip
    for text in parts.gate.take_problems():
        parts.bus.stream.warn(text)
    return verdict


def _is_outside(gate: Gate, request: RequestedCall) -> bool:
    """Whether a command is to run outside of the sandbox, if there is one."""
    is_wanted = request.kind == "shell" and bool(request.args.get("outside_sandbox"))
    return is_wanted and gate.outside is not None


def _needs_person(gate: Gate, request: RequestedCall, verdict: Verdict) -> bool:
    """Whether a hook's permission is not enough: a rule asks, or the command would leave the sandbox, which may confine that hook."""
    return verdict.decision == "ask" and (verdict.explicit or _is_outside(gate, request))


def without_outside(parts: Parts, decided: DecidedCall, by: str) -> dict[str, str]:
    """The variables that handlers set for this call; none for a run outside of the sandbox, which may confine who set them."""
    if not _is_outside(parts.gate, decided.request):
        return decided.env
    parts.bus.stream.warn(f"{', '.join(decided.env)}: not set for a run outside of the sandbox", by)
    return {}


def refuse(decided: DecidedCall, by: str, reason: str, failed: bool) -> DecidedCall:
    """A handler's own refusal, or that of a handler that failed."""
    return decided.refused(FailureKind.ERROR if failed else FailureKind.HOOK, by, reason)


async def obtain(parts: Parts, decided: DecidedCall, verdict: Verdict) -> DecidedCall:
    """Obtain permission for a call that no deny rule forbids, and that the handlers of `tool:before_call` have answered."""
    request, answer = decided.request, decided.answer
    asks = _describe_question(decided.by, answer) if answer.decision == "ask" else request.asks
    if asks:
        by_rule = verdict.decision == "ask" and verdict.explicit
        decided = await _ask_hooks(parts, decided, Verdict("ask", asks, verdict.rule, by_rule), by_hook=True)
    elif answer.decision == "allow" and not _needs_person(parts.gate, request, verdict):
        decided = decided.granted(decided.by, answer.reason, request.leave_of)
    elif verdict.decision == "allow":
        decided = decided.granted("policy", verdict.reason, request.leave_of)
    else:
        decided = await _ask_hooks(parts, decided, verdict)
    if decided.rewrite is not None:
        return replace(decided, answer=_tighten(parts, decided.answer))
    return await announce_resolved(parts.bus, take_updates(parts, decided))


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


def take_updates(parts: Parts, decided: DecidedCall) -> DecidedCall:
    """What handlers of the question permit or forbid from now on: what widens, of those whose leave the call has; what tightens, of all.
    A deny rule among it holds for this very call, too."""
    if not decided.answer.updates:
        return decided
    is_granted = decided.state == "granted"
    for update in decided.answer.updates:
        effective = update if is_granted and update.by in decided.leave_of else update.tightening
        if effective is None:
            text = "what it permits for later calls does not count, since this call has not got its leave"
            parts.bus.stream.warn(f"{update.by}: {text}", update.by)
        else:
            _tell_updates(parts, effective)
    verdict = judge(parts, decided.request)
    if is_granted and verdict.decision == "deny":
        return decided.refused(FailureKind.POLICY, "policy", verdict.reason)
    return decided


async def announce_resolved(bus: Bus, decided: DecidedCall) -> DecidedCall:
    """Announce who decided what; a halt there refuses the call."""
    request, refusal = decided.request, decided.failure_kind
    word = "allow" if refusal is None else "deny"
    by = decided.by if refusal is None or refusal is FailureKind.HOOK else refusal.value
    outcome = await bus.dispatch(
        PermissionResolved(request.call.name, request.kind, word, by, request.call.id, decided.reason)
    )
    if outcome.answer.halt and not decided.answer.halt:
        return decided.heard(outcome.answer).refused(FailureKind.HOOK, outcome.by, outcome.answer.reason)
    return decided


async def _ask_hooks(parts: Parts, decided: DecidedCall, verdict: Verdict, by_hook: bool = False) -> DecidedCall:
    request = decided.request
    # what a handler or a rule asks is asked every time: an answer that is kept would have no effect, or stand in for a hook that is gone
    rule = "" if by_hook or verdict.explicit else _rule_of(parts, request)
    requested = PermissionRequested(
        request.call.name, request.kind, request.detail, request.call.id, verdict.reason, dict(request.args),
        tuple(path for _, path in request.paths), rule,
    )  # fmt: skip
    with without(request.leave_of):  # they have spoken about this very call
        outcome = await parts.bus.dispatch(requested)
    answer = outcome.answer
    decided = decided.heard(answer)
    if answer.stops:
        return refuse(decided, outcome.by, answer.reason, outcome.failed)
    if answer.result == "deny":
        return decided.refused(FailureKind.HOOK, outcome.by, answer.reason)
    if answer.result not in (None, "allow"):
        parts.bus.stream.warn(f"permission:requested: the result is allow or deny, not {answer.result!r}", outcome.by)
    is_changed = outcome.payload.args != requested.args
    if is_changed and not request.is_rewritten:
        return replace(decided, rewrite=_rewrite(request, outcome))
    if is_changed:
        text = "the call was changed at its question already; a second change is not made, and a leave for it does not count"
        parts.bus.stream.warn(f"permission:requested: {text}", outcome.changed_by("args"))
    leave_of = () if is_changed or request.asks else _leave(outcome)
    if request.leave_of and not by_hook and answer.decision != "ask":
        leave_of = (*request.leave_of, *leave_of)
    if leave_of and not _needs_person(parts.gate, request, verdict):
        return decided.granted(", ".join(leave_of), answer.reason, leave_of)
    is_asked = answer.decision == "ask"
    if is_asked:
        rule, verdict = "", replace(verdict, reason=_describe_question(outcome.by, answer))
    return await _decide_by_person(parts, decided, verdict, by_hook, rule, is_asked)


def _leave(outcome: Outcome[PermissionRequested]) -> tuple[str, ...]:
    """Whose leave a call has that nobody changed; a question beside it is stronger."""
    answer = outcome.answer
    if answer.decision == "allow":
        return outcome.deciders
    return outcome.owners if answer.decision == "none" and answer.result == "allow" else ()


def _rewrite(request: RequestedCall, outcome: Outcome[PermissionRequested]) -> RequestedCall:
    """The other call that handlers want. Only the leave of who gave it its final form is about it; everybody else is asked again."""
    owners = [owner for field, owner in outcome.edits if field == "args"]
    has_leave = outcome.answer.decision == "allow" and owners[-1] in outcome.deciders
    return replace(
        request, args=outcome.payload.args, detail="", paths=(), is_rewritten=True, before=request.before or request.detail,
        changed_by=join_owners(request.changed_by, *owners), leave_of=(owners[-1],) if has_leave else (),
        asks=_describe_question(outcome.by, outcome.answer) if outcome.answer.decision == "ask" else "",
    )  # fmt: skip


def join_owners(*owners: str) -> str:
    """Join their names, each once."""
    return ", ".join(dict.fromkeys(filter(None, owners)))


def _describe_question(by: str, answer: Answer) -> str:
    return f"{by} asks: {answer.reason or 'a person is to decide'}"


def _able_tool(request: RequestedCall) -> Tool | None:
    """Return the tool, if it can take the arguments as they are."""
    return None if request.problem else request.tool


def _receiver(tool_services: ToolServices, request: RequestedCall) -> str:
    """Return the running command that the call goes on with, "" if it begins something."""
    receiver: Callable[..., str] | None = getattr(_able_tool(request), "receiver", None)  # of a ContinuingTool
    return receiver(request.args, tool_services) if receiver is not None else ""


def _rule_of(parts: Parts, request: RequestedCall) -> str:
    """The rule that an answer may keep; "" if there is none."""
    if _receiver(parts.tool_services, request) or _why_not_by_rule(parts.gate, request):
        return ""
    return parts.gate.rule_for(_name_in_rules(parts.gate, request), request.kind, request.detail, request.paths)


def _name_in_rules(gate: Gate, request: RequestedCall) -> str:
    """A rule that is kept for a run outside of the sandbox says so."""
    return "outside_sandbox" if _is_outside(gate, request) else request.call.name


async def _decide_by_person(
    parts: Parts, decided: DecidedCall, verdict: Verdict, by_hook: bool, rule: str, handler_asks: bool
) -> DecidedCall:
    """by_hook: a handler wanted the question although nothing else did; rule: what an answer may keep; handler_asks: a handler of the
    question wants a person."""
    request, gate = decided.request, parts.gate
    if request.origin == "user" and not by_hook and not verdict.explicit:
        return decided.granted("user", "the user ran it")
    if request.origin == "script":
        return decided.refused(FailureKind.POLICY, "policy", f"{verdict.reason}; a script may not answer for a person")
    is_kept = not (by_hook or handler_asks or verdict.explicit)
    subject = _describe_call(parts, request, verdict, rule, is_kept)
    try:
        reply = await ask_person(parts, subject)
    except TimeoutError:
        return decided.refused(FailureKind.TIMEOUT, "timeout", verdict.reason)
    except (CruError, OSError) as error:
        return decided.refused(FailureKind.ERROR, "error", f"the question could not be asked: {error}")
    if reply is None:
        way = NOBODY_TO_ASK if by_hook else _allow_hint(gate, request, rule, verdict)
        return decided.refused(FailureKind.POLICY, "policy", f"{verdict.reason}; {way}")
    if reply.choice == "no":
        return decided.refused(FailureKind.HUMAN, HUMAN, reply.reason)
    try:
        gate.remember(subject, reply)
    except CruError as error:  # the answer holds for this session all the same
        parts.bus.stream.warn(str(error))
    if gate.outside is not None:
        gate.outside.permit_by_person(request.detail)
    return decided.granted(HUMAN, reply.choice)


def _describe_call(
    parts: Parts, request: RequestedCall, verdict: Verdict, rule: str, is_kept: bool
) -> PermissionSubject:
    """Describe the call for a person; is_kept: whether an answer may be kept."""
    from cru.core.turn.calls.question_view import show_call, show_parts, working_folder

    gate = parts.gate
    return PermissionSubject(
        request.call.name, request.kind, request.detail, verdict.reason, rule, show_call(parts, request),
        why_once=_why_once(gate, request) if is_kept else "a hook or a rule wants this question each time",
        changed_by=request.changed_by, before=request.before if request.before != request.detail else "",
        editing=gate.editing_for(rule, _name_in_rules(gate, request), request.kind, request.detail, request.paths),
        parts=() if _receiver(parts.tool_services, request) else show_parts(gate, request), folder=working_folder(gate),
    )  # fmt: skip


def _why_once(gate: Gate, request: RequestedCall) -> str:
    """Why no rule is offered, as far as that is known here."""
    if _is_outside(gate, request):
        from cru.core.guard.rules.kept_rules import WHY

        return _why_not_by_rule(gate, request) or WHY
    if request.kind != "shell":
        return ""
    from cru.core.guard.rules.protected_writes import may_write_protected

    is_protected = may_write_protected(request.detail, gate.places)
    return "it may write into a place that decides what programs do, such as `.git`" if is_protected else ""


def _why_not_by_rule(gate: Gate, request: RequestedCall) -> str:
    """Why no rule permits this run outside of the sandbox just now; "" if one may, or it is none."""
    outside = gate.outside
    if outside is None or not _is_outside(gate, request):
        return ""
    return outside.why_not_by_rule(JudgedCall(request.call.name, request.kind, request.detail))


def _allow_hint(gate: Gate, request: RequestedCall, rule: str, verdict: Verdict) -> str:
    from cru.core.guard.rules.hints import allow_hint, outside_hint

    if _is_outside(gate, request) and not verdict.explicit:
        return outside_hint(rule, request.detail, _why_not_by_rule(gate, request), gate.settings_file)
    return allow_hint(request.call.name, rule, request.kind, verdict, gate.settings_file)


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
