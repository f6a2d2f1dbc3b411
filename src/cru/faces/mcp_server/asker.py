"""Questions of the gate, put to the person at the client: MCP's elicitation. A client that has none cannot be asked."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.visible import fold_blanks, visible, whole_lines
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject, ReplyScope
from cru.core.tools.preview import cut_preview

CHOICES: dict[str, ReplyScope] = {"once": "once", "session": "session", "no": "no"}
"""No answer is kept beyond this process: it is another program that says what its person has chosen."""


class ElicitedAnswer(Struct, frozen=True):
    """What came back: accept, decline or cancel, and what was filled in."""

    action: str
    content: dict[str, Any] = {}


class Channel(Protocol):
    """A way to the person at the client that made a call."""

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitedAnswer | None:
        """None: nobody can be asked, or nobody has answered in time."""
        ...


CHANNEL: ContextVar[Channel | None] = ContextVar("mcp_client", default=None)
"""Set for the time of a call."""


class ClientAsker:
    """The asker of all sessions of the server.

    one_client: nobody else profits from an answer that is kept
    caller_variable: by it sub-agents find who has made the call that started them
    """

    caller_variable = CHANNEL

    def __init__(self, one_client: bool) -> None:
        self._one_client = one_client

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        channel = CHANNEL.get()
        if channel is None:
            return None
        if not self._one_client:
            subject = replace(subject, rule="")
        answer = await channel.elicit(render_question(subject), answer_schema(subject))
        if answer is None:
            return None
        reason = visible(str(answer.content.get("reason") or "")).strip()
        if answer.action != "accept":
            return PermissionReply("no", reason or "the question was closed without leave")
        choice = CHOICES.get(str(answer.content.get("decision")), "no")
        return PermissionReply("once" if choice == "session" and not subject.rule else choice, reason)


def render_question(subject: PermissionSubject) -> str:
    """What the person reads: who wants what, and why cru asks. No control characters; no line of a stranger's text begins as one of
    cru's own."""
    who = f"[sub-agent {subject.agent}] " if subject.agent else ""
    head, *rest = whole_lines(f"{who}{subject.tool}: {subject.detail}".rstrip(": "))
    lines = [head, *(f": {line}" for line in rest)]
    lines += [f"| {line}" for line in cut_preview(subject.preview)]
    own = [f"in {subject.folder}" if subject.folder else "", *(f"- {part}" for part in subject.parts)]
    if subject.changed_by:
        own.append(f"changed by {subject.changed_by}" + (f"; before: {subject.before}" if subject.before else ""))
    own += [subject.why, f"for this session: the rule {subject.rule}" if subject.rule else ""]
    return "\n".join((*lines, *(visible(fold_blanks(line)) for line in own if line)))


def answer_schema(subject: PermissionSubject) -> dict[str, Any]:
    """The form of the answer, in JSON Schema as elicitation knows it."""
    choices = [choice for choice in CHOICES if choice != "session" or subject.rule]
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "May it?", "enum": choices},
            "reason": {"type": "string", "title": "Why not", "description": "told to the agent"},
        },
        "required": ["decision"],
    }
