"""When to ask again, and after how long. Pure: the caller sleeps."""

from __future__ import annotations

from collections.abc import Mapping

TRIES = 4
BASE = 0.5
CAP = 8.0
LONGEST_ASKED = 60.0


def retryable(status: int) -> bool:
    """Whether the same request may succeed later: 408, 409, 429 and every 5xx."""
    return status in (408, 409, 429) or status >= 500


def asked_delay(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that `Retry-After` (seconds or a date) asks for, at most 60; None if it does not. `now` is unix time."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return min(max(seconds, 0.0), LONGEST_ASKED) if seconds == seconds else None


def delay(attempt: int, asked: float | None, jitter: float) -> float:
    """Seconds before the next try after `attempt` (0 = the first) failed. `jitter` in 0…1 takes up to half off, so that many
    clients do not come back together; what the server asked for is never shortened."""
    if asked is not None:
        return asked
    return min(CAP, BASE * 2.0**attempt) * (1.0 - jitter / 2.0)
