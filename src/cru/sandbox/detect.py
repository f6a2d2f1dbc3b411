"""What confines here: each way is really tried, once a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir

from cru.process.capture import TextCapture
from cru.process.child import Program
from cru.process.run import AT_ONCE, run_program
from cru.sandbox import VARIABLE, bubblewrap
from cru.sandbox.backends import BUBBLEWRAP, SEATBELT, SEATBELT_PROGRAM, Detection, find_bubblewrap
from cru.sandbox.profile import Profile
from cru.values.errors import CruError

SECONDS = 5.0
NESTED = "run it outside of that one, or with --no-sandbox: the outer one confines it all the same"


_known: dict[str, Detection] = {}


async def detect(env: Mapping[str, str]) -> Detection:
    """What works with this environment's PATH."""
    path = env.get("PATH", os.defpath)
    if path not in _known:
        _known[path] = await (_try_seatbelt(path) if sys.platform == "darwin" else _try_bubblewrap(path))
    return _known[path]


def command_line(
    detection: Detection, profile: Profile, argv: tuple[str, ...], *, outlives_us: bool = False
) -> tuple[str, ...]:
    """What runs `argv` confined by what was found."""
    if detection.backend == BUBBLEWRAP:
        return bubblewrap.command_line(detection.program, profile, argv, outlives_us=outlives_us)
    from cru.sandbox import seatbelt

    return seatbelt.command_line(detection.program, profile, argv, outlives_us=outlives_us)


async def _try_bubblewrap(path: str) -> Detection:
    if not sys.platform.startswith("linux"):
        return Detection(why=f"there is no sandbox for {sys.platform} yet", hint="run cru in a container")
    program = find_bubblewrap(path)
    if program is None:
        return Detection(why="bwrap is not installed", hint="apt install bubblewrap, or pip install 'cru[sandbox]'")
    hint = "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    detection = await _try(Detection(BUBBLEWRAP, program), path, hint)
    if not detection.backend and os.environ.get(VARIABLE):
        return Detection(
            why=f"this cru runs in a sandbox already, and none works in another ({detection.why})", hint=NESTED
        )
    return detection


async def _try_seatbelt(path: str) -> Detection:
    return await _try(Detection(SEATBELT, SEATBELT_PROGRAM), path, "run cru in a container")


async def _try(detection: Detection, path: str, hint: str) -> Detection:
    """The same if it really runs a command, else why not."""
    profile = Profile("/", (), (), (), (), gettempdir())
    trial = Program(command_line(detection, profile, ("/bin/sh", "-c", ":")), Path("/"), {"PATH": path})
    try:
        ended = await run_program(trial, SECONDS, TextCapture(None, 2000), ending=AT_ONCE)
    except CruError as error:
        return Detection(why=error.message)
    if ended.exit_status == 0 and not ended.timed_out:
        return detection
    what = "it did not end" if ended.timed_out else ended.output.strip().partition("\n")[0]
    return Detection(why=f"{detection.program} does not work here: {what}", hint=hint)
