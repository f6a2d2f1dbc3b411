"""What hooks know of sub-agents: each has facts of its own, so that what dialects keep of one is none of another's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.conversations.store import FileContext
from cru.core.events.stamp import Origin, Stamp
from cru.core.hooks.dialects.transcript import Transcript
from cru.core.hooks.model.facts import SessionFacts


class AgentState(Struct):
    """What is its own of a sub-agent.

    states, prompt_states: see SessionFacts
    model: the one that was chosen last for it
    """

    states: dict[type, object] = field(default_factory=dict)
    prompt_states: dict[type, object] = field(default_factory=dict)
    model: str = ""


class AgentRecords(Struct):
    """The sub-agents of a session, as its hooks see them.

    origins: of every agent, by its id
    """

    origins: Mapping[str, Origin] = {}
    _states: dict[str, AgentState] = field(default_factory=dict)

    def state_of(self, stamp: Stamp) -> AgentState:
        return self._states.setdefault(stamp.agent_id, AgentState())

    def facts_of(self, stamp: Stamp, facts: SessionFacts) -> SessionFacts:
        """The facts of a sub-agent. facts: of the main agent"""
        own, origin = self.state_of(stamp), self.origins.get(stamp.agent_id)
        folder, root = (origin.folder, origin.root) if origin is not None else ("", "")
        if root:
            facts = replace(facts, cwd=Path(root), root=Path(root))
        if origin is not None and origin.mode is not None:
            facts = replace(facts, mode=origin.mode)
        write = partial(write_agent_transcript, Path(folder), stamp, facts) if folder else None
        return replace(
            facts, model=own.model or facts.model, states=own.states, prompt_states=own.prompt_states, agent_transcript=write
        )  # fmt: skip


def write_agent_transcript(folder: Path, stamp: Stamp, facts: SessionFacts) -> Path:
    """The transcript of a sub-agent as its log is now; its path, also if it could not be written. folder: of its context"""
    with closing(FileContext(folder)) as store:
        transcript = Transcript(store, facts.root, facts.warn, agent=stamp)
        return transcript()
