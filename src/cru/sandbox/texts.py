"""What is said of the sandbox, to the model and to the person."""

from __future__ import annotations

import sys

from cru.sandbox import SandboxSettings, SandboxUnavailable
from cru.sandbox.backends import NESTED, Detection

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
