"""The sandbox of one session: found when the first command needs it, one /tmp for all of its commands."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping

from cru.permissions.paths import PathRoots
from cru.sandbox import SandboxSettings, SandboxUnavailable, bubblewrap
from cru.sandbox.detect import Detection, detect
from cru.sandbox.planted import look, put_aside
from cru.sandbox.profile import make_profile
from cru.tools.protocol import ConfinedCommand

REFUSALS = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|Device or resource busy|Invalid cross-device link"
    r"|Network is unreachable|[Nn]ame resolution|[Cc]ould(?: not|n't) resolve|Name or service not known|getaddrinfo|Connection refused"
    r"|No such file or directory|[Cc]annot fork|Resource temporarily unavailable|File too large|Cannot allocate memory|bwrap:"
)
"""What programs print if it was the sandbox that refused; it may be something else, too."""


class SessionSandbox:
    """Confines the commands of a session, its sub-agents' too. `warn` tells the person."""

    def __init__(self, settings: SandboxSettings, env: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._env = env
        self._warn = warn
        self._temporary = ""
        self._is_told = False

    async def find(self) -> Detection:
        """What confines here. Raises SandboxUnavailable if a sandbox is demanded and nothing does."""
        detection = await detect(self._env)
        if detection.backend:
            return detection
        if self._settings.mode == "on":
            raise SandboxUnavailable(
                f"the sandbox does not work here: {detection.why}", f"{detection.hint or 'mend that'}, or --no-sandbox"
            )
        if not self._is_told:
            self._is_told = True
            self._warn(f"commands run without a sandbox: {detection.why} ({detection.hint or 'cru doctor'})")
        return detection

    async def confine(
        self, places: PathRoots, argv: tuple[str, ...], *, outlives_us: bool = False
    ) -> ConfinedCommand | None:
        """What runs `argv` as the agent at these places may; None: nothing confines here. Raises SandboxUnavailable."""
        detection = await self.find()
        if not detection.backend:
            return None
        if not self._temporary:
            self._temporary = tempfile.mkdtemp(prefix="cru-sandbox-", dir=self._env.get("TMPDIR") or None)
        profile = make_profile(places, self._settings, self._temporary)
        before = look(profile.absent)
        words = bubblewrap.command_line(detection.program, profile, argv, outlives_us=outlives_us)
        return ConfinedCommand(words, self._explain, lambda: put_aside(before))

    def _explain(self, output: str) -> str:
        """What to tell the model of a command that failed; "" if it does not look as if the sandbox was why."""
        if REFUSALS.search(output) is None:
            return ""
        reaches = "the network" if self._settings.network else "no network"
        return (
            f"[this ran in a sandbox: only the project and /tmp can be changed there, but not what guards them, secrets are hidden, and "
            f"there is {reaches}. If that is why it failed and it has to be done, `outside_sandbox`: true asks a person for that]"
        )

    async def close(self) -> None:
        """Remove /tmp."""
        if self._temporary:
            folder, self._temporary = self._temporary, ""
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
