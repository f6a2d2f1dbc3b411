"""`cru.errors`: what went wrong in plugins of this session."""

from __future__ import annotations

import time
from typing import Any

from cru.namespace.arguments import whole
from cru.namespace.callbacks import recent_failures
from cru.namespace.host import host


def recent(n: int | None = None) -> list[dict[str, Any]]:
    """errors.recent(n=10) -> {{plugin, error, context, age_secs}, ...}, the newest first; the last 100 are kept.

    Example: #cru.errors.recent() --> 0
    """
    count = 10 if n is None else whole("cru.errors.recent", "n", n, 0)
    found = list(recent_failures(host().session))[::-1][:count]
    now = time.monotonic()
    return [
        {"plugin": one.plugin, "error": one.error, "context": one.context, "age_secs": round(now - one.at, 3)}
        for one in found
    ]
