"""Where servers run, and what may be reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from cru.core.base.process.confined import ConfineProject


def _nothing_forbidden(url: str) -> str:
    return ""


def _nobody_hears(text: str) -> None:
    pass


class ServerPlace(Struct, frozen=True):
    """Where servers run.

    root: the project root
    home: cru's home folder, for tokens
    env: what references are looked up in
    children: the environment of programs
    secret_names: variables with keys in it, which servers of a project get only by a reference that somebody has accepted
    why_not: the rule that forbids an address; "": none does
    why_private: why an address is none of the open network; "": it is
    confine: runs what the project brings in the sandbox; None: there is none
    warn: tells the person
    """

    root: Path
    home: Path
    env: Mapping[str, str]
    children: Mapping[str, str]
    why_not: Callable[[str], str] = _nothing_forbidden
    why_private: Callable[[str], str] = _nothing_forbidden
    secret_names: frozenset[str] = frozenset()
    confine: ConfineProject | None = None
    warn: Callable[[str], object] = _nobody_hears

    def env_of_program(self, *, of_project: bool) -> Mapping[str, str]:
        """What a server's program gets beside its own variables."""
        hidden = self.secret_names if of_project else frozenset[str]()
        return {name: value for name, value in self.children.items() if name not in hidden}
