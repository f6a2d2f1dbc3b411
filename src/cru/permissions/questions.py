"""What a person is asked about a call, and the port through which they are asked."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

ReplyScope = Literal["once", "session", "project", "always", "no"]


class PermissionSubject(Struct, frozen=True):
    """What a person is asked about.

    tool: its name
    kind: read, write, shell, fetch, message, memory, flow or tool
    detail: what a rule's glob matches: a command, a path, a URL
    why: the reason for the question
    rule: what the answers session, project and always would store
    preview: a few lines of what would be written or sent, without control characters; "": the detail says it all
    is_limit: it is no call, but a turn that may go on or end here
    why_once: why no rule is offered, if somebody wants the question each time
    changed_by: the handlers that changed the call; before: what it was, if `detail` does not say the same
    agent: the sub-agent that wants to do it, "" for the main agent
    """

    tool: str
    kind: str
    detail: str
    why: str = ""
    rule: str = ""
    preview: str = ""
    is_limit: bool = False
    why_once: str = ""
    agent: str = ""
    changed_by: str = ""
    before: str = ""


class PermissionReply(Struct, frozen=True):
    """A person's answer.

    choice: how far it reaches
    reason: goes to the model when the choice is no
    """

    choice: ReplyScope
    reason: str = ""


class Asker(Protocol):
    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        """None: nobody is there."""


class NoAsker:
    """The default asker: nobody is there."""

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        return None
