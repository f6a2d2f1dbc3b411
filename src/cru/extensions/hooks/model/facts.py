"""What dialects may know about the session that their hooks run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct


class SessionFacts(Struct):
    """What payloads, environments and matchers need to know about the session.

    context, folder: name and folder of the context
    cwd, root: working directory, and root of the project
    home, user_home: cru's home folder, and the user's
    env: the environment that hooks inherit
    mode: gives the permission mode as cru calls it
    transcript: writes the transcript if it is out of date, and gives its path
    secret_names: variables of `env` that hooks of a project do not get
    blocks: counters of the running user prompt (Claude's cap on Stop), cleared when a new one is received
    prompt, turn: text of the running user prompt, and id of the log entry that began it
    model: the one that was chosen last, "" before that
    sits: whether a person sits at a chat, and will be asked for the next prompt
    """

    session_id: str
    context: str
    folder: Path
    cwd: Path
    root: Path
    home: Path
    user_home: Path
    env: Mapping[str, str]
    mode: Callable[[], str]
    transcript: Callable[[], Path]
    secret_names: frozenset[str] = frozenset()
    blocks: dict[str, int] = {}
    prompt: str = ""
    turn: str = ""
    model: str = ""
    sits: Callable[[], bool] = lambda: True
