"""What confines here: each way is really tried, once a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir

from cru.core.base.files.search_path import find_program
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import AT_ONCE, run_program
from cru.core.base.values.errors import CruError
from cru.core.guard.sandbox import VARIABLE, bubblewrap
from cru.core.guard.sandbox.backends import BACKENDS, BUBBLEWRAP, NESTED, SEATBELT, SEATBELT_PROGRAM, Detection
from cru.core.guard.sandbox.profile import Profile
from cru.core.guard.sandbox.system_calls import assemble, open_filter

SECONDS = 20.0
"""A busy machine is no reason to run unconfined."""

CANNOT_DISABLE = (bubblewrap.DISABLE_USERNS, "max_user_namespaces")
"""In the error of a bubblewrap that does not know the option (before 0.8, or setuid), or where it cannot write the kernel's limit."""

CANNOT_FILTER = "PR_SET_SECCOMP"
"""In the error of bubblewrap where the kernel cannot filter system calls."""

_known: dict[str, Detection] = {}


async def detect(env: Mapping[str, str]) -> Detection:
    """What works with this environment's PATH. What does not is tried again the next time."""
    path = env.get("PATH", os.defpath)
    if path in _known:
        return _known[path]
    detection = await (_try_seatbelt(path) if sys.platform == "darwin" else _try_bubblewrap(path))
    if detection.backend:
        _known[path] = detection
    return detection


def command_line(
    detection: Detection,
    profile: Profile,
    argv: tuple[str, ...],
    *,
    outlives_us: bool = False,
    call_filter: int = -1,
) -> tuple[str, ...]:
    """What runs `argv` confined by what was found. call_filter: the descriptor of a CallFilter"""
    if detection.backend == BUBBLEWRAP:
        return bubblewrap.command_line(
            detection.program,
            profile,
            argv,
            outlives_us=outlives_us,
            has_user_namespaces=detection.has_user_namespaces,
            call_filter=call_filter,
        )
    from cru.core.guard.sandbox import seatbelt

    return seatbelt.command_line(detection.program, profile, argv, outlives_us=outlives_us)


class CallFilter:
    """The filter of system calls of one command, as descriptors that the command's program gets. Raises OSError."""

    def __init__(self, detection: Detection) -> None:
        self.descriptor = open_filter() if detection.filters_calls else -1
        self.descriptors = (self.descriptor,) if self.descriptor >= 0 else ()

    def close(self) -> None:
        """Close it once the program has started. A second call does nothing."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()


def with_variables(detection: Detection) -> Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]]:
    """What hands variables to the command alone, of such a command line."""
    if detection.backend == BUBBLEWRAP:
        return bubblewrap.with_variables
    from cru.core.guard.sandbox import seatbelt

    return seatbelt.with_variables


async def _try_bubblewrap(path: str) -> Detection:
    if not sys.platform.startswith("linux"):
        return Detection(why=f"there is no sandbox for {sys.platform} yet", hint="run cru in a container")
    program = find_program("bwrap", path)
    if program is None:
        return Detection(why="bwrap is not installed", hint="install it: `apt install bubblewrap`, or its like")
    filters_calls = bool(assemble(os.uname().machine))
    detection = await _try(Detection(BUBBLEWRAP, program, filters_calls=filters_calls), path)
    if not detection.backend and CANNOT_FILTER in detection.why:
        filters_calls = False
        detection = await _try(Detection(BUBBLEWRAP, program), path)
    if not detection.backend and any(text in detection.why for text in CANNOT_DISABLE):
        without = Detection(BUBBLEWRAP, program, has_user_namespaces=True, filters_calls=filters_calls)
        detection = await _try(without, path)
    if not detection.backend and os.environ.get(VARIABLE) in BACKENDS:
        return Detection(
            why=f"this cru runs in a sandbox already, and none works in another ({detection.why})", hint=NESTED
        )
    if not detection.backend and (other := await _find_working(path, program)):
        # The machine permits namespaces, so advice about its settings would be wrong.
        hint = f"{other} works: remove {program}, or take its folder off your PATH"
        return Detection(why=detection.why, hint=hint)
    return detection


async def _find_working(path: str, failed: str) -> str:
    """Return the first bwrap behind the one that failed that runs a command; "" if there is none."""
    programs = dict.fromkeys(find_program("bwrap", folder) for folder in path.split(os.pathsep) if folder)
    for program in programs:
        if program and program != failed and (await _try(Detection(BUBBLEWRAP, program), path)).backend:
            return program
    return ""


async def _try_seatbelt(path: str) -> Detection:
    return await _try(Detection(SEATBELT, SEATBELT_PROGRAM), path)


async def _try(detection: Detection, path: str) -> Detection:
    """The same if it really runs a command, else why not."""
    profile = Profile("/", (), (), (), (), gettempdir())
    call_filter = CallFilter(detection)
    try:
        words = command_line(detection, profile, ("/bin/sh", "-c", ":"), call_filter=call_filter.descriptor)
        trial = Program(words, Path("/"), {"PATH": path}, descriptors=call_filter.descriptors)
        ended = await run_program(trial, SECONDS, TextCapture(None, 2000), ending=AT_ONCE)
    except CruError as error:
        return Detection(why=error.message)
    finally:
        call_filter.close()
    if ended.exit_status == 0 and not ended.timed_out:
        return detection
    what = "it did not end" if ended.timed_out else ended.output.strip().partition("\n")[0]
    hint = "run cru in a container"
    if detection.backend == BUBBLEWRAP:
        from cru.core.guard.sandbox.diagnosis import advise

        hint = advise(what)
    return Detection(why=f"{detection.program} does not work here: {what}", hint=hint)
