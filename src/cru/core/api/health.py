"""`cru.health`, what a plugin says about its own state, and `cru.errors`, what went wrong in plugins of this session."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct, field

from cru.core.api.arguments import tostring, whole
from cru.core.api.callbacks import recent_failures
from cru.core.api.host import host


class _HealthReport(Struct):
    name: str
    checks: list[dict[str, object]] = field(default_factory=list)


def start(name: str) -> None:
    """health.start(name) begins a report.

    Example: cru.health.start("demo") --> nil
    """
    host().session.shared["health"] = _HealthReport(tostring(name))


def ok(message: str) -> None:
    """health.ok(message)

    Example: cru.health.ok("found the program") --> nil
    """
    _add("ok", message, None)


def info(message: str) -> None:
    """health.info(message)

    Example: cru.health.info("version 1.2") --> nil
    """
    _add("info", message, None)


def warn(message: str, advice: object = None) -> None:
    """health.warn(message, advice?): advice is a text, or an array of texts.

    Example: cru.health.warn("it is old", "update it") --> nil
    """
    _add("warn", message, advice)


def error(message: str, advice: object = None) -> None:
    """health.error(message, advice?): only this makes the report unhealthy.

    Example: cru.health.error("no such program", {"install it"}) --> nil
    """
    _add("error", message, advice)


def get_results() -> dict[str, Any]:
    """health.get_results() -> {name, healthy, checks = {{level, msg, advice}, ...}}, and the next report starts empty.

    Example: cru.health.get_results().healthy --> true
    """
    report = host().session.shared.pop("health", None) or _HealthReport(host().plugin.name)
    healthy = all(check["level"] != "error" for check in report.checks)
    return {"name": report.name, "healthy": healthy, "checks": report.checks}


def recent_errors(n: int | None = None) -> list[dict[str, object]]:
    """errors.recent(n=10) -> {{plugin, error, context, age_secs}, ...}, the newest first; the last 100 are kept.

    Example: #cru.errors.recent() --> 0
    """
    count = 10 if n is None else whole("cru.errors.recent", "n", n, 0)
    failures = list(recent_failures(host().session))[::-1][:count]
    now = time.monotonic()
    return [
        {
            "plugin": failure.plugin,
            "error": failure.error,
            "context": failure.context,
            "age_secs": round(now - failure.at, 3),
        }
        for failure in failures
    ]


def _add(level: str, message: str, advice: object) -> None:
    here = host()
    report = here.session.family_state("health", lambda: _HealthReport(here.plugin.name))
    report.checks.append({"level": level, "msg": tostring(message), "advice": advice})
