"""What the model's commands run in: a view of the machine that the operating system enforces (docs/sandbox.md).

The rules of permissions stay what they are: nothing may run because there is a sandbox.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cru.core.base.values.errors import CruError

VARIABLE = "CRU_SANDBOX"
"""Tells a confined program what confines it; a person sets it to a mode."""
Count = Annotated[int, Meta(ge=0)]


class SandboxUnavailable(CruError):
    """A sandbox is demanded, and nothing confines here (exit 1)."""


class SandboxSettings(Struct, frozen=True):
    """`[sandbox]`.

    mode: off; auto: confined where that works, told once where it does not; on: a run refuses to begin where it does not
    project: whether programs that a project brings are confined, too
    network: whether confined commands reach it; None: in `auto` without hosts they do
    hosts: those that they reach although there is no network
    writable: further folders that they may change
    readable: further files and folders of the home that they may see
    hidden: further files and folders that they may not see
    processes, memory_mb, cpu_seconds, file_mb: limits of one command; 0: none
    """

    mode: Literal["auto", "on", "off"] = "auto"
    project: bool = True
    network: bool | None = None
    hosts: list[str] = []
    writable: list[str] = []
    readable: list[str] = []
    hidden: list[str] = []
    processes: Count = 0
    memory_mb: Count = 0
    cpu_seconds: Count = 0
    file_mb: Count = 0

    def __post_init__(self) -> None:
        if self.hosts:
            from cru.core.guard.sandbox.hosts import check_hosts  # most settings name none

            check_hosts(self.hosts, has_network=self.network)

    @property
    def reaches_network(self) -> bool:
        """Whether confined commands reach every host."""
        return self.mode == "auto" and not self.hosts if self.network is None else self.network


class SandboxTable(Struct, frozen=True):
    """The settings of this room."""

    sandbox: SandboxSettings = SandboxSettings()


DOCS: dict[str, str] = {
    "sandbox": "what the model's commands are confined to ([sandbox](sandbox.md))",
    "sandbox.mode": "`auto`: confined where that works; `on`: no run begins where it does not (`--sandbox`); `off` (`--no-sandbox`)",
    "sandbox.project": "whether command hooks, plugins that are programs and MCP servers that a project brings are confined, too",
    "sandbox.network": "whether confined commands reach the network; without it they do in `auto` without `hosts`, and not in `on`",
    "sandbox.hosts": "hosts that confined commands reach all the same, through a proxy: `pypi.org`, `*.npmjs.org`, `localhost:8765`",
    "sandbox.writable": "further folders that confined commands may change, such as `~/scratch`",
    "sandbox.readable": "further files and folders of your home that confined commands may read, such as `~/src/shared`",
    "sandbox.hidden": "further files and folders that confined commands cannot see",
    "sandbox.processes": "how many processes of this user one command may have at a time; 0: no limit; does not hold for root",
    "sandbox.memory_mb": "address space of each process; 0: no limit",
    "sandbox.cpu_seconds": "processor time of each process; 0: no limit",
    "sandbox.file_mb": "size of each file that is written; 0: no limit",
}
