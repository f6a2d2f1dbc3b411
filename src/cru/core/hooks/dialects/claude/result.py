"""Convert one run of a Claude Code hook to a HookResult, by the row of its event in output_to_answer.py."""

from __future__ import annotations

from cru.core.events.answers import PASS, Answer, Inject
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude import labels
from cru.core.hooks.dialects.claude import output_schema as out
from cru.core.hooks.dialects.claude.fields import start_subject
from cru.core.hooks.dialects.claude.output_schema import ParsedClaudeOutput
from cru.core.hooks.dialects.claude.output_to_answer import BLOCKED, EFFECTS, AnswerDraft, EventEffect, continue_turn
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing.common import spill_text

STOPPED = "stopped by a hook"
WAITS = "(the model reads this now)"
# Fields that change nothing here and that nobody has to know about at once: the journal names them.
IGNORED_FIELDS = (
    "terminal_sequence",
    "session_title",
    "watch_paths",
    "reload_skills",
    "suppress_original_prompt",
    "classifier_context",
)


def to_hook_result(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    """What a run means on the event of the entry."""
    name = entry.event
    effect = EFFECTS[name]
    read = out.parse_output(name, effect.specific, run, effect.plain)
    if not read.wrong and read.exit2 and effect.exit2 == "failed" and read.output is None:
        read = ParsedClaudeOutput(wrong=f"exit status 2 has no meaning on {name}")
    if read.wrong:
        return HookResult(failed=read.wrong)
    if read.exit2 and entry.rewake and (name != "Stop" or facts.is_chat()):
        why = f"[{labels.shown_command(entry)}]: {read.stderr}"
        objection = labels.block_text(effect.label or labels.OBJECTION, event, why, facts, entry)
        notice = f"{spill_text(read.stderr, facts)} {WAITS}" if facts.is_chat() else ""
        return HookResult(Answer(context=(objection,)), notice)
    if read.exit2 and effect.exit2 == "ignored":
        return HookResult(answer=Answer(note=f"exit status 2 is ignored on {name}"))
    draft = AnswerDraft(warnings=[read.warning] if read.warning else [])
    _fill(draft, entry, effect, read, event, facts)
    if draft.failed:
        return HookResult(failed=draft.failed)
    context, deferred = (draft.context, ()) if event.row.context else ([], tuple(draft.context))
    shown = "\n".join(spill_text(text, facts) for text in draft.to_user if text)
    return HookResult(_answer(draft, context, read), shown, "; ".join(dict.fromkeys(draft.warnings)), deferred=deferred)


def _fill(
    draft: AnswerDraft,
    entry: HookEntry,
    effect: EventEffect,
    read: ParsedClaudeOutput,
    event: Event,
    facts: SessionFacts,
) -> None:
    """Everything that the output says, the strongest last."""
    name, output = entry.event, read.output
    if effect.more is not None and output is not None:
        effect.more(draft, read, event, facts)
    why = _blocked(draft, entry, effect, read)
    if why is not None and effect.block is not None:
        effect.block(draft, labels.block_text(effect.label, event, why or BLOCKED, facts, entry), event, facts)
    if read.exit2 and effect.exit2 == "user":
        draft.to_user.append(read.stderr)
    if effect.plain and read.plain:
        draft.context.append(labels.plain_text(entry, read.plain, start_subject(event), facts))
    if read.specific.additional_context:
        _add_context(draft, entry, effect, read.specific.additional_context, event, facts)
    if output is None:
        return
    if output.decision == "block" and effect.block is None:
        draft.warnings.append(f"{name} cannot be blocked")
    if output.system_message:
        draft.to_user.append(output.system_message)
    if output.continue_ is False:
        _stop(draft, name, effect, spill_text(output.stop_reason or "", facts), event)


def _add_context(
    draft: AnswerDraft, entry: HookEntry, effect: EventEffect, text: str, event: Event, facts: SessionFacts
) -> None:
    """`additionalContext`: beside a refusal it goes with the reason, since a refused call has no other place for it."""
    labelled = labels.context_text(entry, event, text, facts)
    if not effect.context:
        draft.warnings.append(f"`additionalContext` has no effect on {entry.event}")
    elif effect.goes_on:
        continue_turn(draft, "\n\n".join(filter(None, (draft.inject, labelled))), event, facts)
    elif draft.decision == "deny" and entry.event == "PreToolUse":
        draft.reason = f"{draft.reason}\n{labelled}"
    else:
        draft.context.append(labelled)


def _blocked(draft: AnswerDraft, entry: HookEntry, effect: EventEffect, read: ParsedClaudeOutput) -> str | None:
    """Why the hook blocks, None if it does not; its JSON's reason goes before what it wrote to stderr."""
    if read.output is not None and read.output.decision == "block":
        return read.output.reason or read.stderr
    if read.exit2 and effect.exit2 == "block" and draft.decision != "deny":
        return f"[{labels.shown_command(entry)}]: {read.stderr}" if effect.label else read.stderr
    return None


def _stop(draft: AnswerDraft, name: str, effect: EventEffect, reason: str, event: Event) -> None:
    if reason and (not effect.halts or event.name == "turn:complete"):  # elsewhere the end of the turn says why
        draft.to_user.append(reason)
    if effect.ends_agent:
        draft.decision, draft.inject = "deny", ""
        return
    if not effect.halts:
        draft.warnings.append(f"`continue: false` has no effect on {name}")
        return
    draft.halt, draft.decision, draft.reason = True, "deny", reason or STOPPED
    draft.inject, draft.result = "", None


def _answer(draft: AnswerDraft, context: list[str], read: ParsedClaudeOutput) -> Answer:
    note = "; ".join(f"{key} has no effect yet" for key in _unheard(read))
    answer = Answer(
        decision=draft.decision, halt=draft.halt, reason=draft.reason, changes=tuple(draft.changes),
        context=tuple(context), inject=Inject(draft.inject) if draft.inject else None,
        result=draft.result, note=note, updates=tuple(draft.updates),
    )  # fmt: skip
    return PASS if answer == PASS else answer


def _unheard(read: ParsedClaudeOutput) -> list[str]:
    outputs = (read.output, read.specific)
    return [key for key in IGNORED_FIELDS if any(getattr(output, key, None) not in (None, False) for output in outputs)]
