"""What dialects may know about the session that their hooks run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import Struct

from cru.core.events.stamp import Stamp
from cru.core.hooks import HookLocations

if TYPE_CHECKING:
    from cru.core.agents.record import TaskRecord
    from cru.core.base.process.confined import ConfineProject
    from cru.core.base.values.messages import Entry

T = TypeVar("T")


class SessionFacts(Struct):
    """What payloads, environments and matchers need to know about the session; each agent has its own.

    context, folder: name and folder of the context
    cwd: where cru was started, which decides whose files hold
    root: the project's root, where tools and hooks run; of an agent in a worktree that
    home, user_home: cru's home folder, and the user's
    env: the environment that hooks inherit
    mode: gives the permission mode as cru calls it
    transcript: writes the transcript if it is out of date, and gives its path
    secret_names: variables of `env` that hooks of a project do not get
    prompt, turn: text of the running user prompt, and id of the log entry that began it
    settings_env: what accepted settings of other programs add to the environment of their hooks and of commands
    model: the one that was chosen last, "" before that
    is_chat: whether a person sits at a chat, and will be asked for the next prompt
    states: what dialects keep for the session; see `state`
    prompt_states: what they keep for the running user prompt (a cap on Stop); see `prompt_state`
    agent_transcript: writes the transcript of a sub-agent, and gives its path; None: it is the main agent
    tasks: the tasks of the session, those that have ended too
    warn: tells the person what does not work
    entries: gives the entries of the conversation's log that count
    confine: runs what the project brings in the sandbox; None: there is none
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
    prompt: str = ""
    turn: str = ""
    model: str = ""
    is_chat: Callable[[], bool] = lambda: True
    settings_env: Mapping[str, str] = {}
    states: dict[type, object] = {}
    prompt_states: dict[type, object] = {}
    agent_transcript: Callable[[], Path] | None = None
    tasks: Callable[[], Sequence[TaskRecord]] = tuple
    warn: Callable[[str], object] = lambda text: None
    entries: Callable[[], Sequence[Entry]] = tuple
    confine: ConfineProject | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The variables of every hook that hold a path of the session."""
        paths = {"PWD": self.root, "HOME": self.user_home, "CRU_HOME": self.home, "CRU_PROJECT_ROOT": self.root}
        return {name: str(path) for name, path in paths.items()}

    @property
    def locations(self) -> HookLocations:
        return HookLocations(self.home, self.user_home, self.root, self.cwd, self.env)

    def state(self, kind: type[T]) -> T:
        """The record that a dialect keeps for this session, made when it is first asked for."""
        return _state_of(self.states, kind)

    def prompt_state(self, kind: type[T]) -> T:
        """The same for the running user prompt."""
        return _state_of(self.prompt_states, kind)


def _state_of(states: dict[type, object], kind: type[T]) -> T:
    state = states.get(kind)
    if not isinstance(state, kind):
        states[kind] = state = kind()
    return state


FactsOf: TypeAlias = Callable[[Stamp], SessionFacts]
"""The facts of the agent that raised an event."""
