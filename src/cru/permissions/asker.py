"""The port through which a person is asked. Nobody there: the default answers None."""

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
    """

    tool: str
    kind: str
    detail: str
    why: str = ""
    rule: str = ""
    preview: str = ""


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
