"""What is said of hooks, in plain sentences: what an answer did, what came of several, why a matcher does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cru.core.base.config.closest import closest, did_you_mean
from cru.core.events.answers import STRENGTH, strength
from cru.core.events.journal import JournalLine
from cru.core.hooks import synthetic_events
from cru.core.hooks.model.entry import HookEntry, hook_id
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.records import CANCELLED, SLOW_MS, FiringRecord
from cru.core.hooks.report.turn_history import RecordedCall

NAMED = 40
STATES = {
    Activation.NOT_ACCEPTED: "hooks of other programs are off until you accept them: `cru hooks review`",
    Activation.REFUSED: "it was refused: {why}",
    Activation.DISABLED: "it is disabled: {why}",
    Activation.BROKEN: "it is broken: {why}",
}
STRONGEST = {4: "halted", 3: "denied", 1: "allowed"}
SAYS = {"halt": "halted the turn", "deny": "denied", "ask": "wanted a person to be asked", "allow": "allowed"}
FATES = {
    "": "ran",
    "policy": "not run: a rule or the mode denied it",
    "hook": "not run: a hook denied it",
    "human": "not run: a person refused it",
    "timeout": "ended by its time limit, or nobody answered",
    "error": "not run: what was to decide failed",
    "invalid": "not run: its arguments do not fit",
    "unknown": "not run: there is no such tool",
    "failed": "ran and failed",
    "halted": "not run: the turn was halted",
    "interrupted": "interrupted",
}
# Why a turn had no such event, by the beginning of its name.
NEVER = (
    ("tool:failed", "no call failed"), ("tool:completed", "no call ended well"), ("tool:", "no tool was called"),
    ("permission:", "no leave was asked for"), ("session:started", "the session had started before"),
    ("session:ended", "the session had not ended"), ("context:overflow", "nothing was compacted"),
    ("session:compacted", "nothing was compacted"),
)  # fmt: skip


def describe_outcome(line: JournalLine, loaded: LoadedHooks) -> Iterator[str]:
    """Which answers made the decision of a dispatch, which had no effect, and who changed what."""
    known = {status.entry.id: status for status in loaded.known}
    answers = [(describe_owner(heard.owner, known), heard.answer) for heard in line.heard if not heard.skipped]
    top = max((strength(answer) for _, answer in answers), default=0)
    deciders = ", ".join(name for name, answer in answers if top and strength(answer) == top)
    reason = f": {line.reason}" if line.reason else ""
    if not deciders:
        yield "nobody decided"
    elif line.decision == "none":
        yield f"nobody decided in the end: the leave of {deciders} is void, since the call was changed after it"
    elif top == STRENGTH["ask"]:
        yield f"a person is to be asked, says {deciders}{reason}"
    else:
        yield f"{STRONGEST[top]} by {deciders}{reason}"
    weaker = [f"{name} {SAYS[answer.decision]}" for name, answer in answers if 0 < strength(answer) < top]
    if weaker:
        yield f"{', '.join(weaker)} in vain: halt counts before deny, that before ask, that before allow"
    for field_name in line.changed:
        by = [name for name, answer in answers if any(change.field == field_name for change in answer.changes)]
        yield f"{field_name} changed by {', then '.join(by)}"


def describe_owner(owner: str, known: Mapping[str, EntryStatus]) -> str:
    """A handler's owner for people."""
    status = known.get(hook_id(owner))
    if status is None:
        return owner
    label = status.entry.label
    return f"{label if len(label) <= NAMED else label[: NAMED - 1] + '…'} ({status.entry.id})"


def describe_answer(decision: str, reason: str, effects: tuple[str, ...]) -> str:
    """What an answer did, in words."""
    parts = [SAYS[decision] + (f": {reason}" if reason else "")] if decision in SAYS else []
    additions = [
        name
        for name in effects
        if name in ("context", "context_files", "inject", "outcome", "result", "permission_updates")
    ]
    changes = [name for name in effects if name not in additions]
    if changes:
        parts.append(f"changed {', '.join(changes)}")
    if additions:
        parts.append(f"gave {', '.join(additions)}")
    return "; ".join(parts) or "said nothing"


def describe_firing(fired: FiringRecord, rejected: tuple[str, ...] = ()) -> str:
    """One firing: how long, how it ended, what it did."""
    parts = [f"ran {fired.ms:.0f} ms"]
    if fired.timed_out:
        parts.append("timed out")
    elif fired.exit is not None:
        parts.append(f"exit {fired.exit}")
    elif not fired.failed:
        parts.append(fired.error or "no exit status")
    if fired.beside:
        parts.append("beside the session")
    if fired.ms > SLOW_MS and fired.ours.startswith("tool:"):
        parts.append("slow: the call waited for it")
    results = [describe_answer(fired.decision, fired.reason, fired.did)]
    if fired.note and fired.decision == "none" and not fired.did:
        results = [fired.note]
    if fired.failed == CANCELLED:
        results = ["was running when the run was interrupted"]
    elif fired.failed:
        more = [describe_answer("none", "", fired.did)] if fired.did else []
        results = [f"failed ({fired.failed}), so it {SAYS.get(fired.decision, 'has no say')}", *more]
    elif fired.warning:
        results.append(f"odd: {fired.warning}")
    results += [f"left out: {text}" for text in rejected]
    return f"{', '.join(parts)}: {'; '.join(results)}"


def describe_other_event(line: JournalLine) -> str:
    """The event is one of ours, and the dialect's event means only some of its firings."""
    if line.event == "message:received":
        return "the prompt was not typed by a person: it came from a continuation, a task or another context"
    if line.event == "session:idle":
        return "nobody sat at a chat whose input was awaited"
    if line.event == "turn:complete":
        return f"the turn ended otherwise (cause: {line.ident})"
    return f"this {line.event} is none of its moments" + (f" ({line.ident})" if line.ident else "")


def describe_mismatch(
    entry: HookEntry, dialect: Dialect, event: str, subjects: Sequence[str], call: RecordedCall | None = None
) -> str:
    """Why a matcher fits none of these, and what it may have meant."""
    if not event.startswith(("tool:", "permission:", "output:")):
        is_resumed = event == "session:started" and "resume" in subjects and "startup" in entry.matcher
        hint = ": the context was there before; `startup|resume` hears both" if is_resumed else ""
        return f"its matcher `{entry.matcher}` does not fit {', '.join(subjects)}{hint}"
    if entry.condition and any(fits_without_condition(entry, dialect, subject) for subject in subjects):
        return f"its `if` {entry.condition} does not fit {f'`{call.arguments}`' if call is not None else 'the call'}"
    known = [dialect.tools.names(subject) for subject in subjects]
    called = [
        f"{subject} ({entry.dialect}: {names[0]})" if names[0] != subject else subject
        for subject, names in zip(subjects, known, strict=True)
    ]
    near = _find_likely(entry.matcher, [name for names in known for name in names])
    hint = f"; did you mean `{near}`?" if near else ""
    return f"its matcher `{entry.matcher}` does not fit {', '.join(called)}{hint}"


def describe_pattern(pattern: str, subject: str) -> str:
    """Why a handler's pattern does not fit, and what it may have meant."""
    near = closest(pattern.strip("*^$"), [subject]) if subject else None
    hint = f"; did you mean `{near}`?" if near else "; patterns are globs: {a,b}" if "|" in pattern else ""
    return f"its pattern `{pattern}` does not fit {subject or 'an event without a name'}{hint}"


def describe_state(status: EntryStatus, dialect: Dialect) -> str:
    """Why an entry cannot fire, in a sentence."""
    event = status.entry.event
    if status.state is Activation.NO_EVENT and event not in dialect.events:
        hint = did_you_mean(event, dialect.events)
        return f"{dialect.name} has no event {event}" + (f"; {hint}" if hint else "")
    return STATES.get(status.state, "{why}").format(why=status.why)


def _find_likely(matcher: str, known: Sequence[str]) -> str:
    """The name that a matcher nearly is, "" if none is near."""
    bare = matcher.strip("^$() ")
    words = [word for word in bare.replace(",", "|").split("|") if word.strip()]
    return next((near for word in words if (near := closest(word.strip(" ^$"), known))), "")


def fits_without_condition(entry: HookEntry, dialect: Dialect, tool: str) -> bool:
    return dialect.may_fit(entry, synthetic_events.make_call(tool), tool)
