"""A command as it runs in a sandbox: what tools, hooks, plugins and servers know of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files.search_path import LOADER
from cru.core.base.process.child import Program
from cru.core.base.process.run import ProcessResult

IN_SANDBOX = "this ran in a sandbox"
"""Begins what the model is told of a failure that may be the sandbox's doing; faces know by it what to tell the person."""
PERSONS_WAY = "the model may ask to run it outside, or [sandbox] in config.toml opens more"
"""What a person is told of that."""


class PreparedCommand(Struct, frozen=True):
    """A command ready to be started: in a sandbox, or as it is where it may run outside.

    argv: what is run for it
    explain: (what it printed, its exit status, None: unknown) -> what the sandbox kept it from, and that it may be why something
        failed; "" if it does not look so
    settle: called at its end; the files that it must not make, and that have been put aside
    has_monitor: argv only watches over the command (cru.core.base.process.child.Program)
    outlive: (its process) called once that runs, if it may go on when the session has ended. Raises OSError
    with_variables: (argv, variables) -> argv that sets them inside alone; None: it is no sandbox that runs
    descriptors: what argv reads; `settle` and `outlive` close them
    env: what it gets in place of the program's environment; None: that
    """

    argv: tuple[str, ...]
    explain: Callable[[str, int | None], str]
    settle: Callable[[], list[str]]
    has_monitor: bool = True
    outlive: Callable[[int], None] | None = None
    with_variables: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] | None = None
    env: Mapping[str, str] | None = None
    descriptors: tuple[int, ...] = ()

    def put_around(self, program: Program) -> Program:
        """What is started for that program. What the loader obeys does not reach what confines, which would obey it unconfined."""
        if self.with_variables is None:
            env = program.env if self.env is None else self.env
            return replace(program, argv=self.argv, env=env, has_monitor=self.has_monitor)
        env = {name: value for name, value in program.env.items() if not name.startswith(LOADER)}
        inside = {name: value for name, value in program.env.items() if name not in env}
        argv = self.with_variables(self.argv, inside) if inside else self.argv
        return replace(program, argv=argv, env=env, has_monitor=self.has_monitor, descriptors=self.descriptors)


class ProjectProgram(Struct, frozen=True):
    """A program that a project brings, which is confined where there is a sandbox.

    argv: itself and its arguments
    cwd: the folder that it runs in
    root: that of the agent that it runs for, "" for the session's; it may be changed like the project
    readable: what it may read of what is hidden; writable: what it may change, too
    """

    argv: tuple[str, ...]
    cwd: str
    root: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


ConfineProject: TypeAlias = Callable[[ProjectProgram], Awaitable[PreparedCommand | None]]
"""What runs it in the sandbox; None: nothing confines here. Raises CruError, OSError."""


Confine: TypeAlias = Callable[[tuple[str, ...]], Awaitable[PreparedCommand | None]]
"""The same of words whose place is known."""


class ConfinedResult(Struct, frozen=True):
    """How a program ended that was to be confined; put_aside: what it must not make; why: what the sandbox kept it
    from, or that it may be why it failed."""

    ended: ProcessResult
    put_aside: list[str] = []
    why: str = ""


async def run_confined(
    confine: Confine, program: Program, run: Callable[[Program], Awaitable[ProcessResult]]
) -> ConfinedResult:
    """Raises what `confine` and `run` raise."""
    confined = await confine(program.argv)
    if confined is None:
        return ConfinedResult(await run(program))
    put_aside: list[str] = []
    try:
        ended = await run(confined.put_around(program))
    finally:
        put_aside += confined.settle()
    why = confined.explain(f"{ended.errors}\n{ended.output}", ended.exit_status)
    return ConfinedResult(ended, put_aside, why)


def describe_put_aside(paths: Sequence[str]) -> str:
    """What is told of files that a confined program must not make; "" if there are none."""
    return f"what a command in the sandbox must not make was put aside, as {', '.join(paths)}" if paths else ""


def tell_put_aside(paths: Sequence[str]) -> str:
    """The same for the model."""
    text = describe_put_aside(paths)
    return f"{text}; for files of that kind the tool `write` asks a person" if text else ""
