"""Work beside the conversation: sub-agents, and commands in the background, under the rules of the agent that started them.

TaskError
├── NoSuchTask    there is no task of that id
├── TaskLimit     too many tasks, or agents too deep below one another
├── TaskDenied    a handler of `task:spawned` refused it
├── NoSuchAgent   there is no card of that name
└── BadCard       a card cannot be understood
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cru.values.errors import CruError

FOLDER = "tasks"
"""Below the folder of a context: one folder a task."""


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
    pass


class TaskSettings(Struct, frozen=True):
    """`[tasks]`: limits of what runs beside the conversation. Times are seconds."""

    max_depth: Annotated[int, Meta(ge=0, le=16)] = 2
    max_concurrent: Annotated[int, Meta(ge=1, le=1000)] = 10
    max_tasks: Annotated[int, Meta(ge=1)] = 200
    timeout: Annotated[float, Meta(gt=0)] = 1800.0
    fuel: Annotated[int, Meta(ge=1)] = 100
    result_limit: Annotated[int, Meta(ge=1000)] = 50_000


class TaskTable(Struct, frozen=True):
    """The settings of this room."""

    tasks: TaskSettings = TaskSettings()


DOCS: dict[str, str] = {
    "tasks": "limits of [sub-agents](agents.md) and of what runs in the background",
    "tasks.max_depth": "how deep sub-agents may start sub-agents; 0: there are none",
    "tasks.max_concurrent": "how many sub-agents of one depth, and how many commands, run at once; others wait",
    "tasks.max_tasks": "how many tasks one session may start",
    "tasks.timeout": "seconds that a sub-agent may take, unless its card says otherwise",
    "tasks.fuel": "tool batches and continuations that a sub-agent may cost, unless its card says otherwise",
    "tasks.result_limit": "characters of a finished background task's result that the model gets; the rest stays in a file",
}
