"""The sandbox of a session that may never need it: what a start must know of it, and the rest once something is confined."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cru.core.guard.rules.outside_runs import OutsideRuns
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.backends import Detection
from cru.core.guard.sandbox.memory import DetectionMemory

if TYPE_CHECKING:
    from cru.core.guard.sandbox.confinement import SessionSandbox


class SandboxOnDemand:
    """See SessionSandbox. memory: what was found before; project: its root; problems: what is wrong with the places of the settings;
    is_default: nobody has said whether anything is to be confined"""

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
            self._warn_of_problems()
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
        """What confines. The first command really tries it."""
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
        from cru.core.guard.sandbox.backends import describe_default, describe_missing

        self._memory.keep(detection)
        if not detection.backend:
            self._note = text = describe_missing(detection)
            if not self._is_default or self._memory.is_news_in(self._project, text):
                self._warn(text)
        elif self._is_default:
            if self._memory.is_news(text := describe_default(detection)):
                self._warn(text)
            self._warn_of_problems()

    def _warn_of_problems(self) -> None:
        for problem in self._problems():
            self._warn(problem)
