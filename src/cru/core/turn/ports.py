"""What faces and the rooms above the turn lend it: protocols, for types only."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class Dialogs(Protocol):
    """A face that can show dialogs of plugins."""

    async def show(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask a person, one dialog at a time; None if they cancelled, or nobody is there. It is called for the plugin that asks
        (cru.core.api.host.host()); cancelled with its task, it leaves a clean screen. What is asked and answered, by kind (indices
        from 0):

        ask_batch   {id, questions = [{header, question, choices, multi_select, allow_other}]} → {answers = [{selected, other?}]}
        edit        {content, format, hint?} → {modified}
        show        {content, format, title?} → {}
        popup       {title, entries = [{label, description?, data?}], allow_other} → {selected_index} or {other}
        panel       {header, items, hints} → {selected = [index], other?}
        """
        ...


class TerminalLender(Protocol):
    """A face that can hand its terminal to a program."""

    def lend(self, group: int) -> AbstractAsyncContextManager[None]:
        """The terminal belongs to that process group for the block."""
        ...


class SettingsView(Protocol):
    """All settings, for scripts."""

    def as_dict(self) -> dict[str, Any]:
        """In plain types, secrets masked."""
        ...

    def origin(self, key: str) -> str:
        """Where the value of a dotted key comes from."""

    def layers(self, key: str) -> tuple[str, ...]:
        """The names of the layers that set a dotted key, the strongest first."""


class Waker(Protocol):
    """Somebody who may have something to say while the agent is idle."""

    def has_report(self) -> bool:
        """Whether there is something to take."""
        ...

    def take_report(self) -> str:
        """What is said, for the model; "" if it has heard it already."""
        ...

    async def wait_for_any(self) -> bool:
        """Wait until there is something to take; False if nothing runs that could bring it."""
        ...


class BackgroundWork(Waker, Protocol):
    """What an agent started beside its conversation (cru.tasks)."""

    def take_reported(self) -> tuple[str, ...]:
        """Ids of the tasks that the reports tell which were taken since the last call."""
        ...

    def running_agents(self) -> tuple[str, ...]:
        """The sub-agents that are at work, for people."""
        ...

    async def wait_for_agents(self) -> bool:
        """Wait until there is something to take; False if no sub-agent runs that could bring it."""
        ...
