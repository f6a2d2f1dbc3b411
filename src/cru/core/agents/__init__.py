"""Work beside the conversation: sub-agents, and commands in the background, under the rules of the agent that started them.

TaskError
├── NoSuchTask    there is no task of that id
├── TaskLimit     too many tasks, or agents too deep below one another
├── TaskDenied    a handler of `task:spawned` refused it
├── NoSuchAgent   there is no card of that name
└── BadCard       a card cannot be understood
"""

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from cru.core.base.bundled import AGENTS
from cru.core.base.values.errors import CruError

FOLDER = "tasks"
"""Below the folder of a context: one folder a task."""
UNTOLD = "untold"
"""In there: one file for each task whose end the model may not have heard of."""


class TaskError(CruError):
    pass


class NoSuchTask(TaskError):
    pass


class TaskLimit(TaskError):
    pass


class TaskDenied(TaskError):
    pass


class NoSuchAgent(TaskError):
    pass


class BadCard(TaskError):
    """A card that cannot be used, whatever it says. name: what its agent would be called; faults: a sentence each, with its place."""

    def __init__(self, name: str, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.name = name
        self.faults = faults


class TaskSettings(Struct, frozen=True):
    """`[tasks]`: limits of what runs beside the conversation. Times are seconds."""

    max_depth: Annotated[int, Meta(ge=0, le=16)] = 2
    max_concurrent: Annotated[int, Meta(ge=1, le=1000)] = 10
    per_model: dict[str, Annotated[int, Meta(ge=1)]] = {}
    max_tasks: Annotated[int, Meta(ge=1)] = 200
    timeout: Annotated[float, Meta(gt=0)] = 1800.0
    fuel: Annotated[int, Meta(ge=1)] = 100
    result_limit: Annotated[int, Meta(ge=1000)] = 50_000
    command_timeout: Annotated[float, Meta(ge=0)] = 0.0
    output_limit: Annotated[int, Meta(ge=1000)] = 10_000_000


class AgentSettings(Struct, frozen=True):
    """`[agents]`: what agent cards mean here."""

    model_aliases: dict[str, str] = {}


class TaskTable(Struct, frozen=True):
    """The settings of this room."""

    tasks: TaskSettings = TaskSettings()
    agents: AgentSettings = AgentSettings()


DOCS: dict[str, str] = {
    "agents": "what [agent cards](agents.md) mean here",
    "agents.model_aliases": "names of models in cards, as `sonnet`, and the model or category that each means; without: the model of the "
    "agent's parent",
    "tasks": "limits of [sub-agents](agents.md) and of what runs in the background",
    "tasks.max_depth": "how deep sub-agents may start sub-agents; 0: there are none",
    "tasks.max_concurrent": "how many sub-agents of one depth, and how many commands, run at once; others wait",
    "tasks.per_model": "how many sub-agents of one depth ask one model at once, by globs of `provider:model`; others wait "
    '(`"ollama:*" = 1`)',
    "tasks.max_tasks": "how many tasks one session may start",
    "tasks.timeout": "seconds that a sub-agent may take, unless its card says otherwise",
    "tasks.fuel": "tool batches and continuations that a sub-agent may cost, unless its card says otherwise",
    "tasks.result_limit": "characters of a finished background task's result that the model gets; the rest stays in a file",
    "tasks.command_timeout": "seconds that a command in the background may take, unless the call says otherwise; 0: no limit",
    "tasks.output_limit": "bytes of a background command's output that are kept on disk: the first half and the last one",
}

BUNDLED = Path(AGENTS)


class CardOrigin(StrEnum):
    BUNDLED = "bundled"
    USER = "user"
    PROJECT = "project"
    UNTRUSTED = "not trusted"


PROJECT_FOLDERS = (".cru/agents", ".claude/agents", ".agents/agents")
USER_FOLDERS = (".claude/agents", ".agents/agents")


class CardPlaces(Struct, frozen=True):
    """home: cru's; user_home: the person's; root: the project; judges_calls: whether hooks of that name judge calls of tools (`bool`: all
    of them)"""

    home: Path
    user_home: Path
    root: Path
    judges_calls: Callable[[str], bool] = bool

    def folders(self) -> Iterator[tuple[CardOrigin, Path]]:
        """Every place, the strongest first. A project that is the user's home has nothing of its own."""
        yield CardOrigin.USER, self.home / "agents"
        if os.path.realpath(self.root) != os.path.realpath(self.user_home):
            for name in PROJECT_FOLDERS:
                if os.path.realpath(self.root / name) != os.path.realpath(self.home / "agents"):
                    yield CardOrigin.PROJECT, self.root / name
        for name in USER_FOLDERS:
            yield CardOrigin.USER, self.user_home / name
        yield CardOrigin.BUNDLED, BUNDLED

    def is_own(self, file: Path) -> bool:
        """Whether it lies where only cru looks for cards."""
        return any(file.is_relative_to(folder) for folder in (self.home / "agents", self.root / PROJECT_FOLDERS[0]))

    def has_own(self) -> bool:
        """Whether there may be cards that did not come with cru."""
        return any(origin is not CardOrigin.BUNDLED and folder.is_dir() for origin, folder in self.folders())
