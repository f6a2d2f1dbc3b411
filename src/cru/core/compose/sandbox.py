"""The sandbox in a session: every agent's commands, and the argument of `bash` that asks for a run outside."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.agents import FOLDER as TASK_FOLDER
from cru.core.base.config.layers import Settings
from cru.core.base.files.search_path import own_env
from cru.core.compose.start import Start, user_home
from cru.core.guard.rules.outside_runs import OutsideRuns
from cru.core.guard.rules.paths import PathRoots, named_secrets, resolve
from cru.core.guard.sandbox import VARIABLE, SandboxSettings, SandboxTable
from cru.core.guard.sandbox.backends import (
    BACKENDS,
    Detection,
    DetectionMemory,
    backend_path,
    describe_default,
    describe_limits,
    describe_missing,
)
from cru.core.hooks import ENV_FOLDER
from cru.core.tools.builtin import BuiltInTool
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.turn.parts import Parts

if TYPE_CHECKING:
    from cru.core.base.process.confined import ConfineProject, PreparedCommand, ProjectProgram
    from cru.core.guard.sandbox.confinement import SessionSandbox

SOURCED = ("BASH_ENV", "ENV")
"""Variables that name a file which a shell runs before its command."""
OUTSIDE = {
    "type": "boolean",
    "description": "Run it outside of the sandbox. A person is asked. Only after it failed inside because of the sandbox. Default: false.",
}


def chosen_sandbox(settings: Settings | None, env: Mapping[str, str]) -> SandboxSettings:
    """What the settings say, or the default: confined where that works, and not once more in a run that is confined already."""
    if settings is not None and settings.is_set("sandbox"):
        return settings.of(SandboxTable).sandbox
    return SandboxSettings(mode="off") if env.get(VARIABLE) in BACKENDS else SandboxSettings()


def add_sandbox(parts: Parts, start: Start, settings: Settings) -> None:
    """Confine the commands of this session, unless that is not wanted."""
    chosen = chosen_sandbox(settings, start.env)
    lend_environments = _environments(parts, start, chosen)
    lend_environments(parts)
    parts.services.sandbox.lend = lend_environments
    if chosen.mode == "off":
        return
    parts.services.sandbox.state = ""
    env = bwrap_env(start, chosen)
    memory = DetectionMemory(start.home, env, is_kept=start.private is None)
    readable = (str(parts.store.folder / ENV_FOLDER), str(parts.store.folder / TASK_FOLDER))
    sandbox = SandboxOnDemand(
        chosen, env, memory, parts.bus.stream.warn, readable, os.fspath(start.root),
        lambda: _problems(chosen, parts.gate.places), is_default=not settings.is_set("sandbox"),
    )  # fmt: skip

    async def open_sandbox(_: Parts) -> None:
        parts.services.sandbox.state = (await sandbox.open()).backend or "none"
        if parts.services.sandbox.state != "none":
            _describe_sandbox(parts.tools, describe_limits(chosen))

    def lend(to: Parts) -> None:
        lend_environments(to)
        _lend(sandbox, to)

    parts.services.sandbox.lend = lend
    parts.services.sandbox.open = open_sandbox

    async def confine_project(program: ProjectProgram) -> PreparedCommand | None:
        return await sandbox.load().confine_project(parts.gate.places, program)

    parts.services.sandbox.confine_project = confine_project if chosen.project else None
    sandbox.outside.runs_elsewhere = lambda: sandbox.load().runs_elsewhere(parts.gate.places)
    parts.gate.watch_outside(sandbox.outside)
    _lend(sandbox, parts)
    parts.services.lifecycle.opening.insert(0, open_sandbox)
    parts.services.lifecycle.closing.append(sandbox.close)


def _environments(parts: Parts, start: Start, chosen: SandboxSettings) -> Callable[[Parts], None]:
    """What lends an agent the environments of what runs unconfined beside what is confined."""
    roots = (str(start.root), *_writable(start, chosen))
    base = parts.place.env  # before settings of other programs add to it

    def own(root: Path) -> Mapping[str, str]:
        return own_env(base, str(root), *roots, *parts.gate.places.roots)

    def outside(root: Path, is_by_rule: bool) -> Mapping[str, str]:
        return {name: value for name, value in own(root).items() if name not in SOURCED} if is_by_rule else base

    def lend(to: Parts) -> None:
        to.tool_services.commands.own_env, to.tool_services.commands.outside_env = own, outside

    return lend


def check_places(start: Start, settings: SandboxSettings) -> list[str]:
    """What is wrong with the places that the settings name."""
    return _problems(settings, _places(start))


def _problems(settings: SandboxSettings, places: PathRoots) -> list[str]:
    from cru.core.guard.sandbox.own_places import problems

    return list(problems(settings, places))


def _places(start: Start) -> PathRoots:
    root, user = resolve(start.root), resolve(user_home(start))
    return PathRoots(root, resolve(start.home), user, secrets=named_secrets(start.env, root, user))


def bwrap_env(start: Start, chosen: SandboxSettings) -> dict[str, str]:
    """The environment in which bwrap is looked for: on its PATH a project, and what is confined, puts nothing."""
    return {**start.env, "PATH": backend_path(start.env, str(start.root), *_writable(start, chosen))}


def _writable(start: Start, chosen: SandboxSettings) -> list[str]:
    home = str(user_home(start))
    return [os.path.join(start.root, f"{home}{place[1:]}" if place[:1] == "~" else place) for place in chosen.writable]


@asynccontextmanager
async def project_sandbox(
    start: Start, settings: Settings, warn: Callable[[str], None]
) -> AsyncIterator[ConfineProject | None]:
    """What confines programs of the project where there is no session (`cru hooks test`, `cru mcp test`); None: that is not wanted."""
    chosen = chosen_sandbox(settings, start.env)
    if chosen.mode == "off" or not chosen.project:
        yield None
        return
    from cru.core.guard.sandbox.confinement import SessionSandbox

    places = _places(start)
    env = bwrap_env(start, chosen)
    memory = DetectionMemory(start.home, env, is_kept=True)
    sandbox = SessionSandbox(chosen, env, warn, has_worked=memory.has_worked)
    try:
        yield partial(sandbox.confine_project, places)
    finally:
        await sandbox.close()


def _lend(sandbox: SandboxOnDemand, parts: Parts) -> None:
    """Where the agent works may change with its answers, so each command asks anew."""
    gate = parts.gate

    async def confine(argv: tuple[str, ...], outlives_us: bool) -> PreparedCommand | None:
        return await sandbox.load().confine(gate.places, argv, outlives_us=outlives_us)

    keep = parts.tool_services.keep_file

    def keep_file(path: str, content: bytes, tool: str, call_id: str) -> None:
        sandbox.accept(path, content)
        if keep is not None:
            keep(path, content, tool, call_id)

    parts.tool_services.commands.confine = confine
    parts.tool_services.commands.take_note = sandbox.take_note
    parts.tool_services.commands.outside = sandbox.outside
    parts.tool_services.keep_file = keep_file


def _describe_sandbox(tools: Tools, limits: str) -> None:
    """The model is told what its commands are confined to, and of the argument that asks for more, where there is a sandbox."""
    tool = tools.find("bash")
    if isinstance(tool, BuiltInTool):
        schema = dict(tool.spec.parameters)
        properties = schema["properties"]
        assert isinstance(properties, dict)
        schema["properties"] = {**properties, "outside_sandbox": OUTSIDE}
        # its processes end with it there
        description = tool.spec.description.replace(
            "leaves running ends with the session", "leaves running ends with it"
        )
        description = f"{description} It runs in a sandbox: {limits}."
        tool.spec = replace(tool.spec, description=description, parameters=schema)
        tools.refresh()


class SandboxOnDemand:
    """What confines the commands of a session, made when the first of them runs; most sessions run none.

    memory: what was found before
    project: its root
    problems: what is wrong with the places of the settings
    is_default: no setting says whether anything is to be confined
    """

    def __init__(
        self,
        settings: SandboxSettings,
        env: Mapping[str, str],
        memory: DetectionMemory,
        warn: Callable[[str], None],
        readable: Sequence[str],
        project: str,
        problems: Callable[[], Sequence[str]],
        *,
        is_default: bool,
    ) -> None:
        self.settings = settings
        self.outside = OutsideRuns()
        self._env = env
        self._memory = memory
        self._warn = warn
        self._readable = readable
        self._project = project
        self._note = ""
        self._problems = problems
        self._is_default = is_default
        self._accepted: dict[str, bytes] = {}
        self._loaded: SessionSandbox | None = None

    async def open(self) -> Detection:
        """What confines here, before the first request. It is tried only where it was not before, or is a must: then raises
        SandboxUnavailable."""
        detection = await (self.load().find() if self.settings.mode == "on" else self._recall())
        if detection.backend and not self._is_default:
            for problem in self._problems():
                self._warn(problem)
        return detection

    async def _recall(self) -> Detection:
        remembered = self._memory.recall()
        if remembered is not None:
            # a failure may be over by now, which the first command finds out: until then a run outside needs approval
            self.outside.is_confined = True
            return remembered
        from cru.core.guard.sandbox.detect import detect

        detection = await detect(self._env)
        self._memory.keep(detection)
        self.outside.is_confined = bool(detection.backend)
        return detection

    def load(self) -> SessionSandbox:
        """Return what confines. It is tried in earnest by the first command."""
        if self._loaded is None:
            from cru.core.guard.sandbox.confinement import SessionSandbox

            self._loaded = SessionSandbox(
                self.settings, self._env, self._warn, self._readable, self.outside, self._accepted, self._tell,
                self._memory.has_worked,
            )  # fmt: skip
        return self._loaded

    def accept(self, path: str, content: bytes) -> None:
        """cru itself is about to write a file, with somebody's leave: it stays where it is."""
        from hashlib import sha256  # it loads OpenSSL, and most runs write nothing

        place, digest = os.path.abspath(path), sha256(content).digest()
        self._accepted[place] = digest
        if self._loaded is not None:
            self._loaded.accept(place, digest)

    def take_note(self) -> str:
        """Return, once a session, what the model is told with the result of a command that nothing confined."""
        note, self._note = self._note, ""
        return note

    async def close(self) -> None:
        """End what serves it, and remove /tmp."""
        if self._loaded is not None:
            await self._loaded.close()

    def _tell(self, detection: Detection) -> None:
        """Before the first command. That nothing confines is told in each run to who has chosen a sandbox, and once in each project to who
        has not; what the default means, once."""
        self._memory.keep(detection)
        if not detection.backend:
            self._note = text = describe_missing(detection)
            if not self._is_default or self._memory.is_news_in(self._project, text):
                self._warn(text)
        elif self._is_default:
            if self._memory.is_news(text := describe_default(detection)):
                self._warn(text)
            for problem in self._problems():
                self._warn(problem)
