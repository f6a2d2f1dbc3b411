"""`[verify]`: a command that must pass before a turn that changed files ends as done."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class VerifySettings(Struct, frozen=True):
    """command: what must pass, "": nothing; timeout: seconds; attempts: how often the model may try to make it pass in one turn"""

    command: str = ""
    timeout: Annotated[float, Meta(gt=0)] = 600.0
    attempts: Annotated[int, Meta(ge=1)] = 5


class VerifyTable(Struct, frozen=True):
    """The settings of this room."""

    verify: VerifySettings = VerifySettings()


DOCS: dict[str, str] = {
    "verify": "What must pass before a turn that changed files ends as done ([verify](turn.md#verify)).",
    "verify.command": "A command, as for a shell: `make test`; empty: nothing is verified.",
    "verify.timeout": "Seconds after which the command is ended, and has not passed.",
    "verify.attempts": "How often in a turn the model gets the output of a failed command and may try again; then the turn ends as failed.",
}
