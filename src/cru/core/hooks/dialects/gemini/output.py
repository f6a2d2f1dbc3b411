"""What a hook of Gemini CLI prints: JSON counts whatever the exit status is, and text means what the exit status says."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from cru.core.events.answers import PASS, Answer
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common

DENIES = ("deny", "block")
ALLOWS = ("allow", "approve")
ALLOWED = "allowed: it has nothing against it"
WARNS = 1


class GeminiOutput(Struct, frozen=True):
    """The fields that mean something, each of its type; a field of another type counts as left out. specific: hookSpecificOutput."""

    decision: Literal["none", "ask", "deny"] = "none"
    allows: bool = False
    goes_on: bool = True
    reason: str = ""
    stop_reason: str = ""
    to_user: str = ""
    specific: dict[str, Any] = {}

    @property
    def why(self) -> str:
        return self.stop_reason or self.reason or "no reason given"

    @property
    def context(self) -> tuple[str, ...]:
        """Text for the model; without tags, so that it cannot end what stands around it."""
        text = self.specific.get("additionalContext")
        return (text.replace("<", "&lt;").replace(">", "&gt;"),) if isinstance(text, str) and text else ()


def parse_output(run: HookRun) -> GeminiOutput | HookResult:
    """The output, or what the run means without one."""
    text = run.stdout.strip(common.BLANK) or run.stderr.strip(common.BLANK)
    if not text:
        return common.failed_result(run) if run.exit else GeminiOutput()
    value, wrong = common.parse_json(text)
    if isinstance(value, str):
        value, wrong = common.parse_json(value)
    if not wrong and isinstance(value, dict):
        return _output(value)
    if not run.exit:
        return GeminiOutput(to_user=text)
    if run.exit == WARNS:
        return HookResult(warning=text)
    return GeminiOutput(decision="deny", reason=text)


def _output(value: dict[str, Any]) -> GeminiOutput:
    def text(key: str) -> str:
        return value[key] if isinstance(value.get(key), str) else ""

    decision = text("decision")
    specific = value.get("hookSpecificOutput")
    return GeminiOutput(
        decision="deny" if decision in DENIES else "ask" if decision == "ask" else "none",
        allows=decision in ALLOWS,
        goes_on=value.get("continue") is not False, reason=text("reason"), stop_reason=text("stopReason"),
        to_user=text("systemMessage"), specific=specific if isinstance(specific, dict) else {},
    )  # fmt: skip


def stop_answer(out: GeminiOutput) -> Answer | None:
    """What `continue: false` and a refusal mean where something can be stopped; None if neither is there."""
    if not out.goes_on:
        return Answer(decision="deny", halt=True, reason=out.why)
    return Answer(decision="deny", reason=out.why) if out.decision == "deny" else None


def to_result(out: GeminiOutput, answer: Answer | None, *warnings: str) -> HookResult:
    if out.allows and (answer or PASS) == PASS:
        answer = Answer(note=ALLOWED)
    return HookResult(answer or PASS, to_user=out.to_user, warning="; ".join(filter(None, warnings)))
